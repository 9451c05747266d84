"""Folds of ground sets, and scores on held-out ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from variegate import metrics
from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSet, map_positions_in_errors
from variegate.learning.problem import SharedExamples

K = TypeVar("K")

#: The names of the scores of a choice: against the wanted subset, and its size.
SCORES = ("precision", "recall", "f", "size")

#: Standard errors behind the leader at which a contender is clearly behind.
DROPPED_AT = 1.5


def scores_of(chosen: Any, wanted: Any) -> tuple[float, float, float, float]:
    """Return precision, recall, F and size of a chosen subset, given the wanted one."""
    return (
        metrics.precision(chosen, wanted),
        metrics.recall(chosen, wanted),
        metrics.f_score(chosen, wanted),
        float(len(chosen)),
    )


@dataclass(frozen=True, eq=False)
class Fold:
    """Data, and the positions of ground sets to learn from and of held-out ones."""

    ground_sets: Sequence[GroundSet]
    #: The wanted item numbers of each ground set.
    subsets: Sequence[IntArray]
    #: Positions in ``ground_sets``.
    learned: IntArray
    held_out: IntArray
    #: A label for each ground set, equal for those of one group.  Standard errors are
    #: clustered by label: scores under different labels are independent.
    labels: IntArray

    @property
    def units(self) -> IntArray:
        """The labels of the held-out ground sets."""
        return self.labels[self.held_out]

    @property
    def judged(self) -> list[GroundSet]:
        """The held-out ground sets."""
        return [self.ground_sets[position] for position in self.held_out]

    @property
    def wanted(self) -> list[IntArray]:
        """The wanted subsets of the held-out ground sets."""
        return [self.subsets[position] for position in self.held_out]

    def mean_by_unit(self, scores: FloatArray) -> FloatArray:
        """Return the mean score of each unit from scores of held-out ground sets."""
        first, place, sizes = np.unique(
            self.units, return_index=True, return_inverse=True, return_counts=True
        )[1:]
        if len(first) == len(scores):
            return scores
        return np.asarray(np.bincount(place, scores) / sizes)

    def shared_examples(self) -> SharedExamples:
        """Return the ground sets to learn from, with subsets, for several fits."""
        with map_positions_in_errors(self.learned):
            return SharedExamples(
                [self.ground_sets[position] for position in self.learned],
                [self.subsets[position] for position in self.learned],
            )


def not_clearly_behind(
    scores: Mapping[K, FloatArray], n_errors: float = DROPPED_AT
) -> list[K]:
    """Return the keys of ``scores`` that are not clearly behind the best, best first.

    Values are scores (ground sets,) of the same ground sets.  Clearly behind is a mean
    difference of more than ``n_errors`` of its standard errors; never with one set.
    """
    names = sorted(scores, key=lambda name: -float(scores[name].mean()))
    left = []
    for name in names:
        behind, error = paired_difference(scores[names[0]], scores[name])
        if not behind > n_errors * error:
            left.append(name)
    return left


def paired_difference(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """Return the mean of ``first - second`` and its standard error (NaN for one)."""
    less = first - second
    error = less.std(ddof=1) / np.sqrt(len(less)) if len(less) > 1 else np.nan
    return float(less.mean()), float(error)
