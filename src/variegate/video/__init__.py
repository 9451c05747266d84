"""Video in, key frames out."""

from __future__ import annotations

from variegate.video.evaluation import KeyframeScore, evaluate_keyframes
from variegate.video.hue import hue_histogram
from variegate.video.picker import KeyframePicker, load_default
from variegate.video.picks import PickedVideo, read_picks
from variegate.video.reading import Frame, read_frames
from variegate.video.screening import Screening
from variegate.video.summary import Candidate, Keyframe, VideoSummary

__all__ = [
    "Candidate",
    "Frame",
    "Keyframe",
    "KeyframePicker",
    "KeyframeScore",
    "PickedVideo",
    "Screening",
    "VideoSummary",
    "evaluate_keyframes",
    "hue_histogram",
    "load_default",
    "read_frames",
    "read_picks",
]
