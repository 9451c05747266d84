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

#: Entries of the largest matrix made at a time.
_CHUNK = 8_000_000


class Agreement:
    """A growing summary and its mean F-score with some targets.

    Parameters
    ----------
    counts : CSR matrix of shape (N, W)
        How often each unit (a word, a pair of words) is in each sentence.
    targets : array of shape (T, W)
        How often it is in each target.
    sizes : array of shape (N,), optional
        Units in each sentence, where ``counts`` leaves out some that no target has.
    target_sizes : array of shape (T,), optional
        The same for targets.
    """

    def __init__(
        self,
        counts: sparse.csr_array,
        targets: FloatArray,
        sizes: FloatArray | None = None,
        target_sizes: FloatArray | None = None,
    ) -> None:
        self._counts = counts
        # Units in rows: what one sentence changes is then a few whole rows.
        self._targets = np.ascontiguousarray(targets.T, dtype=np.float32)
        self._sizes = counts.sum(axis=1) if sizes is None else sizes
        self._target_sizes = (
            targets.sum(axis=1) if target_sizes is None else target_sizes
        )
        self._current = np.zeros(counts.shape[1], dtype=np.float32)
        self._hits = np.zeros(targets.shape[0])
        self._size = 0.0

    @property
    def value(self) -> float:
        """The mean F-score of the summary."""
        return float(self._mean_f(self._hits, self._size))

    def _mean_f(self, hits: FloatArray, size: FloatArray | float) -> FloatArray:
        total = np.asarray(size)[..., None] + self._target_sizes
        return np.asarray((2.0 * hits / np.maximum(total, 1e-12)).mean(axis=-1))

    def with_each(self, items: IntArray) -> FloatArray:
        """Return the mean F-score with each of some sentences added."""
        values = np.empty(len(items))
        n_targets = max(1, self._targets.shape[1])
        per_item = np.diff(self._counts.indptr)[items]
        start = 0
        while start < len(items):
            filled = np.cumsum(per_item[start:]) * n_targets
            stop = start + max(1, int(np.searchsorted(filled, _CHUNK, side="right")))
            part = items[start:stop]
            size = self._size + self._sizes[part]
            values[start:stop] = self._mean_f(self._hits + self._new_hits(part), size)
            start = stop
        return values

    def _new_hits(self, items: IntArray) -> FloatArray:
        rows = self._counts[items]
        wanted = self._targets[rows.indices]
        before = self._current[rows.indices][:, None]
        added = np.minimum(before + rows.data.astype(np.float32)[:, None], wanted)
        added -= np.minimum(before, wanted)
        hits = np.zeros((len(items), self._targets.shape[1]))
        filled = np.flatnonzero(np.diff(rows.indptr))  # reduceat knows no empty rows
        if len(filled):
            hits[filled] = np.add.reduceat(added, rows.indptr[filled], axis=0)
        return hits

    def add(self, item: int) -> None:
        """Add a sentence."""
        self._hits = self._hits + self._new_hits(np.array([item]))[0]
        self._size += float(self._sizes[item])
        row = self._counts[[item]]
        self._current[row.indices] += row.data


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
