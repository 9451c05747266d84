"""Spherical k-means: clusters of rows of unit length, started by k-means++."""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.linalg.cosine import chunks, round_off

__all__ = ["cluster_items", "draw_seeds", "rank_members"]

#: The end of a clustering: after this many rounds, or when the cost falls by less than
#: this share of it.
_MAX_ROUNDS = 100
_LEAST_FALL = 1e-4


def draw_seeds(
    F: FloatArray,
    z: FloatArray,
    k: int,
    rng: np.random.Generator,
    fixed: FloatArray | None = None,
) -> IntArray:
    """Draw ``k`` row numbers, far from each other, by k-means++; copies come last.

    ``fixed`` (N,) is the similarity of each row to the nearest fixed centre, if any;
    the rows are then far from these as well.
    """
    n_draws = 2 + int(np.log(k))
    if fixed is None:
        seeds = [int(rng.integers(len(F)))]
        cost = 1.0 - round_off(F @ F[seeds[0]])
    else:
        seeds, cost = [], 1.0 - fixed
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
        costs = np.minimum(cost[:, None], 1.0 - round_off(F @ F[candidates].T))
        best = int(np.argmin(costs.sum(axis=0)))
        seeds.append(int(candidates[best]))
        cost = costs[:, best]
    return np.array(seeds, dtype=np.intp)


def cluster_items(
    F: FloatArray, seeds: IntArray, fixed: FloatArray | None = None
) -> tuple[IntArray, float]:
    """Run k-means from rows ``seeds``; return labels (N,) and the sum of 1 - cosine.

    ``fixed`` (N,) is the similarity of each row to the nearest fixed centre, if any: a
    row that is nearer to it than to all ``k`` centres has the label ``k``.
    """
    k = len(seeds)
    labels, cost = _assign_to_centres(F, F[seeds], fixed)
    for _ in range(_MAX_ROUNDS):
        sums = np.array(
            [F[members].sum(axis=0) for members in _split_by_label(labels, k)]
        )
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = sums / np.where(lengths > 0.0, lengths, 1.0)
        new_labels, new_cost = _assign_to_centres(F, centres, fixed)
        if not new_cost < cost * (1.0 - _LEAST_FALL):
            break
        labels, cost = new_labels, new_cost
    return labels, cost


def _split_by_label(labels: IntArray, k: int) -> list[IntArray]:
    """Return the row numbers of each of ``k`` clusters, sorted."""
    ends = np.cumsum(np.bincount(labels, minlength=k)[:k])
    return np.split(np.argsort(labels, kind="stable"), ends)[:k]


def _assign_to_centres(
    F: FloatArray, centres: FloatArray, fixed: FloatArray | None
) -> tuple[IntArray, float]:
    """Return labels (N,) of nearest centres, and the sum of 1 - cosine.

    A centre without rows gets the row that fits worst where it is.  The label of rows
    nearer to a ``fixed`` centre is the number of centres.
    """
    labels = np.empty(len(F), dtype=np.intp)
    closest = np.empty(len(F))
    for rows in chunks(len(F)):
        similarity = round_off(F[rows] @ centres.T)
        labels[rows] = np.argmax(similarity, axis=1)
        closest[rows] = similarity.max(axis=1)
    k = len(centres)
    if fixed is not None:
        labels[fixed > closest] = k
        closest = np.maximum(closest, fixed)
    sizes = np.bincount(labels, minlength=k)
    for empty in np.flatnonzero(sizes[:k] == 0):
        # The item that fits worst where it is, if it is not alone there.
        may_leave = (sizes[labels] > 1) | (labels == k)
        item = int(np.argmin(np.where(may_leave, closest, np.inf)))
        sizes[labels[item]] -= 1
        sizes[empty] = 1
        labels[item], closest[item] = empty, 1.0
    return labels, float((1.0 - closest).sum())


def rank_members(
    F: FloatArray, z: FloatArray, labels: IntArray, k: int, diversity: float
) -> list[IntArray]:
    """Return row numbers by cluster, the best first; of equals the more relevant."""
    ranked = []
    for members in _split_by_label(labels, k):
        rows = F[members]
        # The mean of similarities is the similarity to the mean.
        central = round_off(rows @ rows.mean(axis=0))
        score = (1.0 - diversity) * z[members] + diversity * central
        ranked.append(members[np.lexsort((-z[members], -score))])
    return ranked
