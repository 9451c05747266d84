r"""How well one summary agrees with others, by their words.

The agreement of a summary ``y`` with a summary ``t`` is the F-score of their words, or
of whatever units are counted, each as often as both have it:

.. math:: F(y, t) = 2 \sum_w \min(y_w, t_w) / (|y| + |t|)

which is ROUGE-1 F of words, and ROUGE-2 F of pairs of words.  Averaged over samples of
a determinantal point process it is the consensus of minimum Bayes risk decoding; over
summaries written by people, what an oracle maximizes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.decoding import Agreement

__all__ = ["GrowingSummary", "WordAgreement", "pairwise_rouge_f"]


class WordAgreement(Agreement):
    """The sum of the F-scores of several kinds of units.

    ``counts`` says how often each word, and perhaps each pair of words, is in each
    sentence: (N, W) each.
    """

    name = "ROUGE F"

    def __init__(self, counts: Sequence[sparse.csr_array]) -> None:
        self._counts = counts

    def gains(self, candidates: BoolArray, voters: BoolArray) -> FloatArray:
        """Return the agreement of every candidate with every voter."""
        total = np.zeros((len(candidates), len(voters)))
        for counts in self._counts:
            total += pairwise_rouge_f(_bags(candidates, counts), _bags(voters, counts))
        return total

    def growing(self, voters: BoolArray, votes: IntArray) -> GrowingSummary:
        """Return an empty summary that grows sentence by sentence."""
        targets = [_bags(voters, counts) for counts in self._counts]
        return GrowingSummary(self._counts, targets, votes / votes.sum())


def _bags(subsets: BoolArray, counts: sparse.csr_array) -> FloatArray:
    """Return how often each unit is in each subset of the sentences."""
    units = sparse.csr_array(counts.T, dtype=np.float32)
    members = sparse.csr_array(np.ascontiguousarray(subsets.T), dtype=np.float32)
    # Units in rows are what agreement is computed from: nothing is copied there.
    return np.asarray((units @ members).toarray().T)


def pairwise_rouge_f(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the F-score of the units of each row of ``A`` with each of ``B``."""
    hits = np.empty((len(A), len(B)))
    for row, bag in enumerate(A):
        used = np.flatnonzero(bag)
        hits[row] = np.minimum(bag[used], B[:, used]).sum(axis=1)
    total = A.sum(axis=1)[:, None] + B.sum(axis=1)
    return np.asarray(2.0 * hits / np.maximum(total, 1.0))


class GrowingSummary:
    """A summary that grows, and its mean agreement with some targets.

    For each kind of unit, ``counts`` of shape (N, W) says how often each unit is in
    each sentence, and ``targets`` of shape (T, W) how often in each target; the targets
    have ``weights``, (T,).
    """

    def __init__(
        self,
        counts: Sequence[sparse.csr_array],
        targets: Sequence[FloatArray],
        weights: FloatArray,
    ) -> None:
        self._parts = [
            _Overlap(of_sentences, of_targets, weights)
            for of_sentences, of_targets in zip(counts, targets, strict=True)
        ]

    @property
    def value(self) -> float:
        """The mean agreement of the summary."""
        return sum(part.value for part in self._parts)

    def gain(self) -> FloatArray:
        """Return what each sentence adds to the agreement."""
        gains = [part.with_each() - part.value for part in self._parts]
        return np.asarray(np.sum(gains, axis=0))

    def add(self, item: int) -> None:
        """Add a sentence."""
        for part in self._parts:
            part.add(item)


class _Overlap:
    """What a growing summary has in common with targets, of one kind of unit."""

    def __init__(
        self, counts: sparse.csr_array, targets: FloatArray, weights: FloatArray
    ) -> None:
        # Whether SciPy counts in 32 or in 64 bits hangs on how the matrix was made.
        self._starts = counts.indptr.astype(np.int32, copy=False)
        self._units = counts.indices.astype(np.int32, copy=False)
        self._weights = weights
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
        total = np.maximum(self._size + self._target_sizes, 1e-12)
        return float(2.0 * self._hits / total @ self._weights)

    def with_each(self) -> FloatArray:
        """Return the mean F-score with each of the sentences added."""
        from variegate.linalg.compiled import read_only
        from variegate.linalg.compiled.agreement import mean_f_with_each

        values = np.empty(len(self._sizes))
        mean_f_with_each(
            self._starts,
            self._units,
            self._amounts,
            self._sizes,
            self._current,
            self._size,
            self._targets,
            self._target_sizes,
            read_only(self._weights),
            self._hits,
            values,
        )
        return values

    def add(self, item: int) -> None:
        row = slice(self._starts[item], self._starts[item + 1])
        units, amounts = self._units[row], self._amounts[row][:, None]
        before, wanted = self._current[units][:, None], self._targets[units]
        added = np.minimum(before + amounts, wanted) - np.minimum(before, wanted)
        self._hits = self._hits + added.sum(axis=0)
        self._current[units] += amounts[:, 0]
        self._size += float(self._sizes[item])
