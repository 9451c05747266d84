"""One item for each of ``k`` clusters, as :func:`variegate.select` offers it."""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.linalg.cosine import chunks, rounded

__all__ = ["k_medoids"]

#: How often k-medoids starts, and when a start ends: after so many rounds, or when the
#: cost falls by less than this share of it.
_RESTARTS = 5
_MAX_ROUNDS = 100
_LEAST_FALL = 1e-4


def k_medoids(
    F: FloatArray, z: FloatArray, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    """Return the best item of each of ``k`` clusters, the largest cluster first.

    ``F`` has rows of unit length, ``z`` is the standardized relevance; what is best is
    written in :mod:`variegate.baselines.methods`.
    """
    best_cost, best_labels = np.inf, np.zeros(len(F), dtype=np.intp)
    for _ in range(_RESTARTS):
        labels, cost = _clusters(F, _seeds(F, z, k, rng))
        if cost < best_cost - 1e-12 * len(F):
            best_cost, best_labels = cost, labels
    sizes = np.bincount(best_labels, minlength=k)
    chosen = _representatives(F, z, best_labels, k, trade_off)
    return chosen[np.lexsort((chosen, -sizes))]


def _seeds(F: FloatArray, z: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Draw items in proportion to their cost, of a few the best (greedy k-means++)."""
    n_draws = 2 + int(np.log(k))
    seeds = [int(rng.integers(len(F)))]
    cost = 1.0 - rounded(F @ F[seeds[0]])
    while len(seeds) < k:
        cost[seeds] = 0.0
        cumulated = np.cumsum(cost)
        if cumulated[-1] <= 0.0:
            # All others are copies of seeds.
            ranked = np.argsort(-z, kind="stable")
            others = ranked[~np.isin(ranked, seeds)]
            return np.array([*seeds, *others[: k - len(seeds)]], dtype=np.intp)
        # A draw that rounds to the sum itself would be past the last item.
        end = np.nextafter(cumulated[-1], 0.0)
        draws = rng.uniform(0.0, end, size=n_draws)
        candidates = np.searchsorted(cumulated, draws, side="right")
        costs = np.minimum(cost[:, None], 1.0 - rounded(F @ F[candidates].T))
        best = int(np.argmin(costs.sum(axis=0)))
        seeds.append(int(candidates[best]))
        cost = costs[:, best]
    return np.array(seeds, dtype=np.intp)


def _clusters(F: FloatArray, seeds: IntArray) -> tuple[IntArray, float]:
    """Run spherical k-means: in many dimensions a seed is its own cluster's medoid."""
    k = len(seeds)
    labels, cost = _assign(F, F[seeds])
    for _ in range(_MAX_ROUNDS):
        sums = np.array([F[members].sum(axis=0) for members in _split(labels, k)])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = sums / np.where(lengths > 0.0, lengths, 1.0)
        new_labels, new_cost = _assign(F, centres)
        if not new_cost < cost * (1.0 - _LEAST_FALL):
            break
        labels, cost = new_labels, new_cost
    return labels, cost


def _split(labels: IntArray, k: int) -> list[IntArray]:
    ends = np.cumsum(np.bincount(labels, minlength=k))
    return np.split(np.argsort(labels, kind="stable"), ends[:-1])


def _assign(F: FloatArray, centres: FloatArray) -> tuple[IntArray, float]:
    labels = np.empty(len(F), dtype=np.intp)
    closest = np.empty(len(F))
    for rows in chunks(len(F)):
        similarity = rounded(F[rows] @ centres.T)
        labels[rows] = np.argmax(similarity, axis=1)
        closest[rows] = similarity.max(axis=1)
    sizes = np.bincount(labels, minlength=len(centres))
    for empty in np.flatnonzero(sizes == 0):
        # The item that fits worst where it is, if it is not alone there.
        item = int(np.argmin(np.where(sizes[labels] > 1, closest, np.inf)))
        sizes[labels[item]] -= 1
        sizes[empty] = 1
        labels[item], closest[item] = empty, 1.0
    return labels, float((1.0 - closest).sum())


def _representatives(
    F: FloatArray, z: FloatArray, labels: IntArray, k: int, trade_off: float
) -> IntArray:
    """Return the best item of each cluster; among equals the more relevant."""
    chosen = np.empty(k, dtype=np.intp)
    for cluster, members in enumerate(_split(labels, k)):
        rows = F[members]
        # The mean of similarities is the similarity to the mean.
        central = rounded(rows @ rows.mean(axis=0))
        score = (1.0 - trade_off) * z[members] + trade_off * central
        chosen[cluster] = members[np.lexsort((-z[members], -score))[0]]
    return chosen
