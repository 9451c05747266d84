r"""Choosing sentences so that a summary agrees with other summaries.

How well a summary ``y`` agrees with a summary ``t`` is the F-score of their words, each
counted as often as both have it:

.. math:: F(y, t) = 2 \sum_w \min(y_w, t_w) / (|y| + |t|)

which is ROUGE-1 F.  Averaged over samples of a determinantal point process it is the
consensus of minimum Bayes risk decoding; over summaries written by people, what an
oracle maximizes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from variegate._typing import BoolArray, FloatArray, IntArray

__all__ = ["Agreement", "choose_by_agreement"]


class Agreement:
    """A growing summary and its mean F-score with some targets.

    Parameters
    ----------
    counts : CSR matrix of shape (N, W)
        How often each unit (a word, a pair of words) is in each sentence.
    targets : array of shape (T, W)
        How often it is in each target.
    """

    def __init__(self, counts: sparse.csr_array, targets: FloatArray) -> None:
        self._counts = counts
        self._amounts = counts.data.astype(np.float32)
        # Units in rows: what one sentence changes is then a few whole rows.
        self._targets = np.ascontiguousarray(targets.T, dtype=np.float32)
        self._sizes = np.asarray(counts.sum(axis=1), dtype=np.float64)
        self._target_sizes = np.asarray(targets.sum(axis=1), dtype=np.float64)
        self._current = np.zeros(counts.shape[1], dtype=np.float32)
        self._hits = np.zeros(targets.shape[0])
        self._size = 0.0

    @property
    def value(self) -> float:
        """The mean F-score of the summary."""
        total = np.maximum(self._size + self._target_sizes, 1e-12)
        return float((2.0 * self._hits / total).mean())

    def with_each(self, items: IntArray) -> FloatArray:
        """Return the mean F-score with each of some sentences added."""
        from variegate.compiled.overlap import mean_f_with_each

        values = np.empty(len(items))
        mean_f_with_each(
            self._counts.indptr,
            self._counts.indices,
            self._amounts,
            self._sizes,
            items,
            self._current,
            self._size,
            self._targets,
            self._target_sizes,
            self._hits,
            values,
        )
        return values

    def add(self, item: int) -> None:
        """Add a sentence."""
        row = slice(self._counts.indptr[item], self._counts.indptr[item + 1])
        units, amounts = self._counts.indices[row], self._amounts[row][:, None]
        before, wanted = self._current[units][:, None], self._targets[units]
        added = np.minimum(before + amounts, wanted) - np.minimum(before, wanted)
        self._hits = self._hits + added.sum(axis=0)
        self._current[units] += amounts[:, 0]
        self._size += float(self._sizes[item])


def choose_by_agreement(
    parts: Sequence[Agreement],
    costs: FloatArray,
    limit: float,
    per_cost: bool = True,
    fill: bool = True,
) -> list[int]:
    """Choose sentences greedily for the sum of agreements, within a budget.

    Parameters
    ----------
    parts : the agreements that are summed
    costs : array of shape (N,)
    limit : float
        What the costs of the chosen add up to at most.
    per_cost : bool
        Whether to compare gains for their cost.
    fill : bool
        Whether to go on while anything fits, or to stop where agreement would fall.
    """
    chosen: list[int] = []
    spent = 0.0
    free: BoolArray = np.ones(len(costs), dtype=bool)
    while True:
        items = np.flatnonzero(free & (spent + costs <= limit * (1.0 + 1e-9)))
        if len(items) == 0:
            return chosen
        gain = np.zeros(len(items))
        for part in parts:
            gain += part.with_each(items) - part.value
        score = np.where(gain > 0.0, gain / costs[items], gain * costs[items])
        best = int(np.argmax(score if per_cost else gain))
        if not fill and gain[best] <= 0.0:
            return chosen
        item = int(items[best])
        chosen.append(item)
        free[item] = False
        spent += float(costs[item])
        for part in parts:
            part.add(item)
