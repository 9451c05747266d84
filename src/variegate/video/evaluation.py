"""How well key frames agree with those that people chose (VSUMM's evaluation).

Avila et al., 2011, "VSUMM: a mechanism designed to produce static video summaries".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from variegate.video.matching import Matching, frame_distances, n_matches

__all__ = ["THRESHOLD", "KeyframeScore", "evaluate_keyframes", "score_against_user"]

#: Frames are alike whose histograms differ by less (L1; the most is 2).
THRESHOLD = 0.5


class KeyframeScore(NamedTuple):
    """Agreement with one user, or the mean over several.

    Attributes
    ----------
    precision : matched share of the system's frames
    recall : matched share of the user's frames
    f : their harmonic mean
    cus_a : CUSa, matched frames for each of the user's
    cus_e : CUSe, frames of the system without a match for each of the user's
    """

    precision: float
    recall: float
    f: float
    cus_a: float
    cus_e: float


def score_against_user(
    user: Any,
    system: Any,
    threshold: float = THRESHOLD,
    matching: Matching = "maximum",
    n_unmatchable: int = 0,
    n_lost: int = 0,
) -> KeyframeScore:
    """Score the frames of a system against those of one user.

    Parameters
    ----------
    user, system : arrays of shape (frames, bins)
        Histograms, in the order in which the frames were chosen.
    threshold : float
    matching : {"maximum", "vsumm"}
    n_unmatchable, n_lost : int
        Frames of the user, and of the system, that cannot be matched because their
        picture is lost.
    """
    n_user, n_system = len(user) + n_unmatchable, len(system) + n_lost
    matches = 0
    if len(user) and len(system):
        matches = n_matches(frame_distances(user, system) < threshold, matching)
    precision = matches / n_system if n_system else 0.0
    recall = matches / n_user if n_user else 0.0
    both = precision + recall
    return KeyframeScore(
        precision,
        recall,
        2.0 * precision * recall / both if both else 0.0,
        recall,
        (n_system - matches) / n_user if n_user else 0.0,
    )


def evaluate_keyframes(
    users: Sequence[Any],
    system: Any,
    threshold: float = THRESHOLD,
    matching: Matching = "maximum",
    n_unmatchable: Sequence[int] | None = None,
    n_lost: int = 0,
) -> KeyframeScore:
    """Return the mean of the scores against several users."""
    if not len(users):
        raise ValueError("there are no users' key frames to compare with")
    lost = n_unmatchable or [0] * len(users)
    scores = [
        score_against_user(user, system, threshold, matching, count, n_lost)
        for user, count in zip(users, lost, strict=True)
    ]
    return KeyframeScore(*(float(value) for value in np.mean(scores, axis=0)))
