"""Video in, key frames out."""

from __future__ import annotations

from variegate.video.evaluation import KeyframeScore, evaluate_keyframes
from variegate.video.hue import hue_histogram

__all__ = ["KeyframeScore", "evaluate_keyframes", "hue_histogram"]
