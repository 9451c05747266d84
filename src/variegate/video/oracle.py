"""The key frames that agree best with several users at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate._typing import IntArray
from variegate.video.evaluation import evaluate_keyframes

__all__ = ["oracle_keyframes"]


def oracle_keyframes(
    frames: Any, users: Sequence[Any], n_unmatchable: Sequence[int] | None = None
) -> IntArray:
    """Return frame numbers, sorted, by greedy marginal gain in mean F-score.

    As in the paper's appendix: the frame that raises the agreement with the users most
    is added, until none raises it.

    Of the frames to choose from and of those of users there are histograms, (N, bins);
    ``n_unmatchable`` is as for :func:`variegate.video.evaluate_keyframes`.
    """
    frames = np.asarray(frames, dtype=np.float64)
    chosen: list[int] = []
    best = 0.0
    while True:
        left = [i for i in range(len(frames)) if i not in chosen]
        scores = [
            evaluate_keyframes(
                users, frames[[*chosen, i]], n_unmatchable=n_unmatchable
            ).f
            for i in left
        ]
        if not scores or max(scores) <= best:
            return np.sort(np.array(chosen, dtype=np.intp))
        best = max(scores)
        chosen.append(left[int(np.argmax(scores))])
