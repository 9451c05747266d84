"""Score key frames against people's choices (VSUMM's evaluation).

Avila et al., 2011, "VSUMM: a mechanism designed to produce static video summaries".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray

THRESHOLD = 0.5  # L1 distance, at most 2, below which histograms are alike
Matching = Literal["maximum", "vsumm"]  # how frames are paired


def frame_distances(one: Any, other: Any) -> FloatArray:
    """Return the L1 distances of histograms, (A, B) for (A, bins) and (B, bins).

    A histogram of NaN is of a frame whose picture is lost, which is like no other.
    """
    first, second = np.atleast_2d(one), np.atleast_2d(other)
    return np.asarray(np.abs(first[:, None] - second).sum(axis=2))


def with_lost(histograms: FloatArray, n_lost: int) -> FloatArray:
    """Return histograms (N + n_lost, bins), the last rows NaN, for lost pictures."""
    return np.pad(histograms, ((0, n_lost), (0, 0)), constant_values=np.nan)


def n_matches(alike: BoolArray, matching: Matching = "maximum") -> int:
    """Return how many pairs of alike frames can be formed, each frame in one at most.

    Rows are the user's frames, columns the system's.  "maximum" forms the most pairs
    possible, as in the paper; "vsumm" does as VSUMM's evaluator: user frames in their
    order each take the first system frame that is alike and still free.
    """
    if matching == "maximum":
        from scipy import sparse
        from scipy.sparse.csgraph import maximum_bipartite_matching

        graph = sparse.csr_array(alike)
        return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())
    if matching != "vsumm":
        raise ValueError(f"unknown matching {matching!r}; there are maximum, vsumm")
    free = np.ones(alike.shape[1], dtype=bool)
    for row in alike:
        free[np.flatnonzero(row & free)[:1]] = False
    return int((~free).sum())


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

    @classmethod
    def mean(cls, scores: Sequence[KeyframeScore]) -> KeyframeScore:
        """Return the mean of several scores."""
        return cls(*np.mean(scores, axis=0).tolist())


def score_against_user(
    user: Any, system: Any, threshold: float = THRESHOLD, matching: Matching = "maximum"
) -> KeyframeScore:
    """Return the score of a system's frames against those of one user.

    Both are histograms, (frames, bins), in the order of choice, NaN where the picture
    is lost.  Frames whose distance is below ``threshold`` are alike.
    """
    n_user, n_system = len(user), len(system)
    matches = 0
    if n_user and n_system:
        matches = n_matches(frame_distances(user, system) < threshold, matching)
    precision, recall = matches / max(n_system, 1), matches / max(n_user, 1)
    both = precision + recall
    f = 2.0 * precision * recall / both if both else 0.0
    cus_e = (n_system - matches) / n_user if n_user else 0.0
    return KeyframeScore(precision, recall, f, recall, cus_e)


def evaluate_keyframes(
    users: Sequence[Any],
    system: Any,
    threshold: float = THRESHOLD,
    matching: Matching = "maximum",
) -> KeyframeScore:
    """Return the mean of ``score_against_user``; ValueError without users."""
    if not len(users):
        raise ValueError("there are no users' key frames to compare with")
    return KeyframeScore.mean(
        [score_against_user(user, system, threshold, matching) for user in users]
    )


def oracle_keyframes(frames: Any, users: Sequence[Any]) -> IntArray:
    """Return the sorted numbers of the frames that agree best with several users.

    As in the paper's appendix: the frame that raises the mean F-score most is added,
    until none raises it.  ``frames`` are histograms, (N, bins), and so is the choice of
    each of ``users``.
    """
    frames = np.asarray(frames, dtype=np.float64)
    chosen: list[int] = []
    best = 0.0
    while True:
        left = [i for i in range(len(frames)) if i not in chosen]
        scores = [evaluate_keyframes(users, frames[[*chosen, i]]).f for i in left]
        if not scores or max(scores) <= best:
            return np.sort(np.array(chosen, dtype=np.intp))
        best = max(scores)
        chosen.append(left[int(np.argmax(scores))])
