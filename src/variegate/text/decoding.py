"""How the sentences of a summary are chosen from a model of summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.decoding import MBR
from variegate.decoding.residuals import Residuals
from variegate.ensemble import LEnsemble
from variegate.text.agreement import Agreement, choose_by_agreement

__all__ = ["TEXT_DECODERS", "Task"]

#: Samples that may be chosen, where only samples may.
_N_CANDIDATES = 200

#: Logarithms of factors that are tried, and how often the interval is halved.
_WIDEST_SCALE = 50.0
_BISECTIONS = 60


@dataclass(frozen=True, eq=False)
class Task:
    """What to choose from, and how much.

    Attributes
    ----------
    ensemble : LEnsemble over N sentences
    counts : sequence of CSR matrices of shape (N, W)
        How often each word, and each pair of words, is in each sentence: what
        summaries are compared by.
    costs : array of shape (N,)
    limit : float or None
        What the costs of the chosen add up to at most.
    n_samples : int
    generator : numpy.random.Generator
    """

    ensemble: LEnsemble
    counts: Sequence[sparse.csr_array]
    costs: FloatArray
    limit: float | None
    n_samples: int
    generator: np.random.Generator


def _mbr(task: Task) -> IntArray:
    """Search for the subset with the best expected ROUGE F.

    Sets drawn from the ensemble stand for what people would have written; sentences
    are added greedily for the mean agreement with them, gained for their cost.  A
    budget is filled, and agreement is with sets of about its size; without one the
    search stops where agreement would fall.
    """
    samples = _samples(task)
    chosen = choose_by_agreement(
        [Agreement(counts, _bags(samples, counts)) for counts in task.counts],
        task.costs,
        np.inf if task.limit is None else task.limit,
        fill=task.limit is not None,
    )
    if not chosen:  # all samples were empty; a summary is not
        chosen = [int(np.argmax(task.ensemble.marginals()))]
    return np.sort(np.array(chosen, dtype=np.intp))


def _samples(task: Task) -> BoolArray:
    """Draw sets; with a budget, the ones nearest to it of twice as many."""
    ensemble, n = task.ensemble, task.n_samples
    if task.limit is None:
        return ensemble.sample(n, random_state=task.generator)
    scaled = scaled_to_cost(ensemble, task.costs, task.limit)
    samples = scaled.sample(2 * n, random_state=task.generator)
    distance = np.abs(samples @ task.costs - task.limit)
    return samples[np.argsort(distance, kind="stable")[:n]]


def scaled_to_cost(ensemble: LEnsemble, costs: FloatArray, total: float) -> LEnsemble:
    """Return the ensemble of ``c L`` whose sets cost ``total`` on average.

    A model that learned summaries of one length is so asked for those of another.  The
    eigenvectors do not depend on ``c``, so that one decomposition gives the expected
    cost for all: ``Σ_m c λ_m / (1 + c λ_m) Σ_i v_mi² costs_i``.
    """
    log_values, vectors = ensemble.representation.eigenpairs()
    weight = vectors.all() ** 2 @ costs
    low, high = -_WIDEST_SCALE, _WIDEST_SCALE
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if expit(log_values + middle) @ weight < total:
            low = middle
        else:
            high = middle
    return LEnsemble.from_quality(ensemble.S, ensemble.log_scale + 0.5 * low)


def _mbr_samples(task: Task) -> IntArray:
    """Take the sample with the best expected ROUGE-1 F, as the paper does."""
    counts = task.counts[0]

    def rouge_1_f(candidates: BoolArray, voters: BoolArray) -> FloatArray:
        return pairwise_rouge_1_f(_bags(candidates, counts), _bags(voters, counts))

    decoder = MBR(task.n_samples, _N_CANDIDATES, rouge_1_f)
    costs = None if task.limit is None else task.costs
    return task.ensemble.decode(
        decoder, budget=task.limit, costs=costs, random_state=task.generator
    ).indices


def _greedy(task: Task) -> IntArray:
    """Add the sentence that raises the probability most, or lowers it least.

    While any fits the budget, or until as many are chosen as a sample has on average.
    The most probable subset of all would hold next to nothing: single sentences are
    all improbable.
    """
    limit, costs = task.limit, task.costs
    if limit is None:
        limit = max(1.0, float(np.round(task.ensemble.expected_size())))
        costs = np.ones(len(task.ensemble))
    state = Residuals(task.ensemble.representation)
    spent = 0.0
    while True:
        fits = spent + costs <= limit * (1.0 + 1e-9)
        gain = np.where(fits, state.gain(), -np.inf)
        item = int(np.argmax(gain))
        if gain[item] == -np.inf:
            return np.sort(np.array(state.chosen, dtype=np.intp))
        state.add(item)
        spent += float(costs[item])


def _bags(subsets: BoolArray, counts: sparse.csr_array) -> FloatArray:
    """Return how often each word is in each subset of the sentences."""
    units = sparse.csr_array(counts.T, dtype=np.float32)
    members = sparse.csr_array(np.ascontiguousarray(subsets.T), dtype=np.float32)
    # Units in rows are what agreement is computed from: nothing is copied there.
    return np.asarray((units @ members).toarray().T)


def pairwise_rouge_1_f(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the F-score of the words of each row of ``A`` with each of ``B``."""
    hits = np.empty((len(A), len(B)))
    for row, bag in enumerate(A):
        used = np.flatnonzero(bag)
        hits[row] = np.minimum(bag[used], B[:, used]).sum(axis=1)
    total = A.sum(axis=1)[:, None] + B.sum(axis=1)
    return np.asarray(2.0 * hits / np.maximum(total, 1.0))


#: The ways of choosing, by name.
TEXT_DECODERS: Mapping[str, Callable[[Task], IntArray]] = {
    "mbr": _mbr,
    "mbr-samples": _mbr_samples,
    "greedy": _greedy,
}
