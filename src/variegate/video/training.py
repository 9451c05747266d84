"""Videos made ready to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.video.evaluation import evaluate_keyframes
from variegate.video.oracle import oracle_keyframes
from variegate.video.view import VideoView

__all__ = ["TARGETS", "TrainingVideo"]

#: What is learned: the choice of each user, or the one that agrees best with all.
TARGETS = ("users", "oracle")


@dataclass(frozen=True, eq=False)
class TrainingVideo:
    """A video, and what users chose of it.

    Attributes
    ----------
    view : VideoView
    users : sequence of sequences of candidate numbers
    n_unmatchable : sequence of int
        Frames of each user that are not among the candidates.
    """

    view: VideoView
    users: Sequence[Sequence[int]]
    n_unmatchable: Sequence[int]

    @property
    def histograms(self) -> FloatArray:
        """Hues of the candidates, (N, 16)."""
        return np.array([d.hue for d in self.view.descriptions])

    @cached_property
    def oracle(self) -> IntArray:
        """The candidates that agree best with all users."""
        hues = self.histograms
        return oracle_keyframes(
            hues,
            [hues[list(user)] for user in self.users],
            n_unmatchable=self.n_unmatchable,
        )

    @property
    def oracle_f(self) -> float:
        """How well they do."""
        hues = self.histograms
        users = [hues[list(user)] for user in self.users]
        score = evaluate_keyframes(
            users, hues[self.oracle], n_unmatchable=self.n_unmatchable
        )
        return score.f

    def targets(self, kind: str) -> list[IntArray]:
        """Return the subsets to learn from."""
        if kind == "oracle":
            return [self.oracle] if len(self.oracle) else []
        return [np.unique(np.array(user, dtype=np.intp)) for user in self.users if user]
