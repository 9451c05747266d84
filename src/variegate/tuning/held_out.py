"""Held-out ground sets: what to learn from, what to judge by, and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate import metrics
from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSet, renumbering
from variegate.learning.problem import SharedExamples

#: The names of the scores of a choice.
SCORES = ("precision", "recall", "f", "size")


def scores_of(chosen: Any, wanted: Any) -> tuple[float, float, float, float]:
    """Return ``SCORES`` of a chosen subset, given the wanted one."""
    return (
        metrics.precision(chosen, wanted),
        metrics.recall(chosen, wanted),
        metrics.f_score(chosen, wanted),
        float(len(chosen)),
    )


@dataclass(frozen=True, eq=False)
class Fold:
    """Positions of ground sets to learn from and of held-out ones, with the data.

    ``units`` numbers what counts as independent among the held-out ground sets: these
    themselves, or the groups that they belong to.
    """

    learned: IntArray
    held_out: IntArray
    ground_sets: list[GroundSet]
    subsets: list[IntArray]
    judged: list[GroundSet]
    wanted: list[IntArray]
    units: IntArray

    @classmethod
    def of(
        cls,
        ground_sets: Sequence[GroundSet],
        subsets: Sequence[IntArray],
        learned: IntArray,
        held_out: IntArray,
        labels: IntArray | None = None,
    ) -> Fold:
        """Take both parts from all data; ``labels`` are those of groups."""
        return cls(
            learned,
            held_out,
            [ground_sets[i] for i in learned],
            [subsets[i] for i in learned],
            [ground_sets[i] for i in held_out],
            [subsets[i] for i in held_out],
            held_out if labels is None else labels[held_out],
        )

    def shared(self) -> SharedExamples:
        """Return the examples to learn from, for several fits."""
        with renumbering(self.learned):
            return SharedExamples(self.ground_sets, self.subsets)


def paired(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """Return the mean difference of scores of the same sets, and its standard error."""
    less = first - second
    error = less.std(ddof=1) / np.sqrt(len(less)) if len(less) > 1 else np.nan
    return float(less.mean()), float(error)
