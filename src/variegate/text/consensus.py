r"""Minimum Bayes risk decoding of summaries.

The agreement of a summary ``y`` with a summary ``t`` is the F-score of their words, or
of other units, each as often as both have it:

.. math:: F(y, t) = 2 \sum_w \min(y_w, t_w) / (|y| + |t|)

which is ROUGE-1 F of words, and ROUGE-2 F of pairs of words.  Averaged over samples of
a determinantal point process it is the consensus of minimum Bayes risk decoding; over
summaries written by people, oracles maximize it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.decoding import MBR, Agreement, Constraint, Decoder, GreedySearch
from variegate.ensemble import LEnsemble
from variegate.linalg.spectrum import symmetric_eigenpairs
from variegate.sampling.sequential import sample_sequential
from variegate.sampling.spectral import sample_spectral

_FEW_CANDIDATES = 400  # up to which eigenvalues are exact to nearly all their digits

# Logarithms of factors of L.
_WIDEST_SCALE = 50.0  # the largest that is tried
_SAFE_SCALE = 20.0  # above which small probabilities lose digits
_BISECTIONS = 60

_SHORT = 40  # sentences in a sample, up to which all samples are drawn
_LONG = 150  # sentences in a sample, from which it is drawn without eigenvectors
_FEWEST = 40  # samples


def summary_decoder(
    n_samples: int, counts: Sequence[sparse.csr_array], fill: bool
) -> Decoder:
    """Return a minimum Bayes risk decoder, which adds sentences one by one.

    Each raises the mean agreement with samples most for its cost.  ``counts`` has, of
    each kind of unit (words, pairs of words), how often each unit is in each sentence
    (N, W).  With ``fill``, a budget is filled; else the search stops where agreement
    would not rise.
    """
    search = GreedySearch(fill, nonempty=True)
    return MBR(n_samples, None, WordAgreement(counts), search, draw_near_budget)


def draw_near_budget(
    ensemble: LEnsemble,
    constraint: Constraint,
    n_samples: int,
    generator: np.random.Generator,
) -> BoolArray:
    """Draw sets of sentences as a boolean array (n, N).

    ``n`` is ``n_samples``, less where sets hold more than 40 sentences, but at least
    40.  With a budget, twice as many are drawn and the half of nearest cost is kept.
    If all sentences fit the budget, the one row is the set of all.
    """
    budget, costs = constraint.budget, constraint.costs
    if budget is not None and costs.sum() <= budget:
        return np.ones((1, len(ensemble)), dtype=bool)
    kept, draw = _prepare_sampler(ensemble, constraint)
    share = min(1.0, (_SHORT / kept) ** 2)
    fewest = min(_FEWEST, n_samples)
    if budget is None:
        return draw(max(fewest, int(n_samples * share)), generator)
    samples = draw(max(fewest, int(2 * n_samples * share)), generator)
    distance = np.abs(samples @ costs - budget)
    n_voters = max(fewest, len(samples) // 2)
    return samples[np.argsort(distance, kind="stable")[:n_voters]]


Draw = Callable[[int, np.random.Generator], BoolArray]


def _prepare_sampler(ensemble: LEnsemble, constraint: Constraint) -> tuple[float, Draw]:
    """Return the mean size of samples near the budget, and a function to draw them."""
    budget, costs = constraint.budget, constraint.costs
    if len(ensemble) > _FEW_CANDIDATES:
        values, vectors = symmetric_eigenpairs(ensemble.marginal_kernel())
        odds = logit(np.clip(values, 0.0, 1.0))
        weight = vectors.all() ** 2 @ costs
        shift = 0.0 if budget is None else _log_scale(odds, weight, budget)
        if abs(shift) <= _SAFE_SCALE:
            kept = expit(odds + shift)
            size = float(kept.sum())
            if size <= _LONG:
                return size, partial(sample_spectral, kept, vectors)
            K = (vectors.all().T * kept) @ vectors.all()
            return size, partial(sample_sequential, K)
    if budget is not None:
        ensemble = scaled_to_cost(ensemble, costs, budget)
    size = max(1.0, ensemble.expected_size())
    return size, lambda n, rng: ensemble.sample(n, random_state=rng)


def scaled_to_cost(ensemble: LEnsemble, costs: FloatArray, total: float) -> LEnsemble:
    """Return the ensemble of ``c L`` whose sets cost ``total`` on average.

    A model that learned summaries of one length thus gives another.  One decomposition
    of ``L`` into eigenvalues λ_m and vectors v_m gives the expected cost for every
    ``c``: ``Σ_m c λ_m / (1 + c λ_m) Σ_i v_mi² costs_i``.
    """
    log_values, vectors = ensemble.representation.eigenpairs
    shift = _log_scale(log_values, vectors.all() ** 2 @ costs, total)
    return LEnsemble.from_quality(ensemble.S, ensemble.log_scale + 0.5 * shift)


def _log_scale(log_values: FloatArray, weight: FloatArray, total: float) -> float:
    """Return ``log c`` at which the expected cost is ``total``, by halving an interval.

    ``log_values`` (M,) are logarithms of the eigenvalues of ``L``, ``weight`` (M,) the
    cost ``Σ_i v_mi² costs_i`` of each eigenvector.  The result is within ±50.
    """
    low, high = -_WIDEST_SCALE, _WIDEST_SCALE
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if expit(log_values + middle) @ weight < total:
            low = middle
        else:
            high = middle
    return low


class WordAgreement(Agreement):
    """The agreement of summaries: F-scores, summed over kinds of units.

    ``counts`` has, of each kind, how often each unit is in each sentence (N, W).
    """

    name = "ROUGE F"

    def __init__(self, counts: Sequence[sparse.csr_array]) -> None:
        self.counts = counts

    def growing(self, voters: BoolArray, votes: IntArray) -> GrowingSummary:
        """Return an empty summary, to agree with voters (T, N) of weights ``votes``."""
        targets = [word_bags(voters, counts) for counts in self.counts]
        return GrowingSummary(self.counts, targets, votes / votes.sum())


def word_bags(subsets: BoolArray, counts: sparse.csr_array) -> FloatArray:
    """Return counts (T, W) of units in subsets (T, N), from ``counts`` in sentences."""
    units = sparse.csr_array(counts.T, dtype=np.float32)
    members = sparse.csr_array(np.ascontiguousarray(subsets.T), dtype=np.float32)
    # With units in rows, as the search reads them without a copy.
    return np.asarray((units @ members).toarray().T)


class GrowingSummary:
    """A growing summary, and its agreement with T targets of ``weights`` (T,).

    Of each kind of unit, ``counts`` says how often the W units are in each of N
    sentences (N, W), ``targets`` how often they are in each target (T, W).
    """

    def __init__(
        self,
        counts: Sequence[sparse.csr_array],
        targets: Sequence[FloatArray],
        weights: FloatArray,
    ) -> None:
        pairs = zip(counts, targets, strict=True)
        self._overlaps = [_Overlap(*pair, weights) for pair in pairs]

    @property
    def value(self) -> float:
        """The weighted mean over targets of the F-score, summed over kinds of units."""
        return sum(one.mean_f_score for one in self._overlaps)

    def gain(self) -> FloatArray:
        """Return by how much adding each sentence would raise :attr:`value`, (N,)."""
        gains = [one.mean_with_each() - one.mean_f_score for one in self._overlaps]
        return np.asarray(np.sum(gains, axis=0))

    def add(self, item: int) -> None:
        """Add sentence number ``item`` to the summary, in place."""
        for one in self._overlaps:
            one.add(item)


class _Overlap:
    """A :class:`GrowingSummary` of one kind of unit; ``weights`` add up to 1."""

    def __init__(
        self, counts: sparse.csr_array, targets: FloatArray, weights: FloatArray
    ) -> None:
        # SciPy's index type, of 32 or 64 bits, depends on how the matrix was made.
        self._starts = counts.indptr.astype(np.int32, copy=False)
        self._units = counts.indices.astype(np.int32, copy=False)
        self._weights = weights
        self._amounts = counts.data.astype(np.float32)
        # Units in rows: one sentence changes a few whole rows.
        self._targets = np.ascontiguousarray(targets.T, dtype=np.float32)
        self._sizes = np.asarray(counts.sum(axis=1), dtype=np.float64)
        self._target_sizes = np.asarray(targets.sum(axis=1), dtype=np.float64)
        # Of the summary: counts of units (W,), units in common with targets (T,), size.
        self._current = np.zeros(counts.shape[1], dtype=np.float32)
        self._hits = np.zeros(targets.shape[0])
        self._size = 0.0

    @property
    def mean_f_score(self) -> float:
        """The mean F-score of the summary with the targets, by their weights."""
        total = np.maximum(self._size + self._target_sizes, 1e-12)
        return float(2.0 * self._hits / total @ self._weights)

    def mean_with_each(self) -> FloatArray:
        """Return the mean F-score of the summary with each sentence added, (N,)."""
        from variegate.linalg.compiled import read_only
        from variegate.linalg.compiled.agreement import fill_mean_f_scores

        values = np.empty(len(self._sizes))
        sentences = (self._starts, self._units, self._amounts, self._sizes)
        weights = read_only(self._weights)
        targets = (self._targets, self._target_sizes, weights, self._hits)
        fill_mean_f_scores(sentences, self._current, self._size, targets, values)
        return values

    def add(self, item: int) -> None:
        """Add the units of sentence number ``item`` to the summary, in place."""
        row = slice(self._starts[item], self._starts[item + 1])
        units, amounts = self._units[row], self._amounts[row][:, None]
        before, wanted = self._current[units][:, None], self._targets[units]
        added = np.minimum(before + amounts, wanted) - np.minimum(before, wanted)
        self._hits = self._hits + added.sum(axis=0)
        self._current[units] += amounts[:, 0]
        self._size += float(self._sizes[item])
