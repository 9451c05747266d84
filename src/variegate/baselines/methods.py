r"""Choose items without learning, by one of seven methods.

A method sees ``F``, embeddings with rows of unit length (or zero), so that
``s_ij = f_i · f_j`` is the cosine similarity, and ``z``, the relevance less the largest
one, over the range of the items that compete for the places (all zeros if it is
constant).  With ``t`` the ``diversity`` and ``Y`` the chosen items:

=================  ==================================================================
dpp                greedy on ``(1 - t) Σ_{j ∈ Y} z_j + t log √(det S_Y)``, with the root
                   for the volume that the picks span; the MAP of
                   ``L = diag(q) F Fᵀ diag(q)`` with ``q = exp((1 - t) z / t)``
mmr                next is the largest ``(1 - t) z_j - t max_{i ∈ Y} s_ij``; copies of
                   chosen items come last, unless ``t = 0``
facility-location  greedy on ``(1 - t) Σ_{j ∈ Y} z_j + t (k/N) Σ_i max_{j ∈ Y} s_ij⁺``
k-medoids          ``k`` clusters with the largest ``Σ_i f_i · c_i``, with ``c_i`` the
                   centre of the cluster of ``i``; from each cluster the item with the
                   largest ``(1 - t) z_j + t mean_i s_ij`` over its cluster
max-min            next is the farthest from all chosen: mmr with ``t = 1``
top                the largest ``z_j``
random             each subset of ``k`` items with the same probability
=================  ==================================================================

With limits on labels, an item whose label is used up is not chosen: the methods that
choose one by one leave it out of every later step, "k-medoids" takes the next item of
the cluster, and "random" the next of a random order.

"mmr" is from [1]_, "max-min" from [2]_, the greedy search of "dpp" from [3]_, and
"k-medoids" starts as in [4]_.

References
----------
.. [1] Carbonell, Goldstein. The use of MMR, diversity-based reranking for reordering
   documents and producing summaries. SIGIR 1998.
.. [2] Gonzalez. Clustering to minimize the maximum intercluster distance. 1985.
.. [3] Chen, Zhang, Zhou. Fast greedy MAP inference for determinantal point process to
   improve recommendation diversity. NeurIPS 2018.
.. [4] Arthur, Vassilvitskii. k-means++: the advantages of careful seeding. SODA 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.decoding import Constraint
from variegate.linalg.cosine import chunks, rounded
from variegate.linalg.greedy import choose_rows
from variegate.linalg.limits import MAX_PAIRED, RANK_TOLERANCE

__all__ = ["METHODS", "Items"]

#: Candidates whose coverage is brought up to date at a time.
_BATCH = 64

#: Squares of qualities further apart than exp(this) are not numbers.
_WIDEST_QUALITY = 600.0

#: Items are copies of each other from this cosine on.
_COPY = 1.0 - 1e-9

#: Starts of k-medoids, and the end of each: after this many rounds, or when the cost
#: falls by less than this share of it.
_RESTARTS = 5
_MAX_ROUNDS = 100
_LEAST_FALL = 1e-4


@dataclass(frozen=True, eq=False)
class Items:
    """Items to choose from: ``F`` (N, D), ``z`` (N,), and those ``included`` before."""

    F: FloatArray
    z: FloatArray
    included: IntArray
    diversity: float
    rng: np.random.Generator
    limit: Constraint | None = None

    def others(self) -> IntArray:
        """Return the items that are not included, the most relevant first."""
        ranked = np.argsort(-self.z, kind="stable")
        return ranked[self.is_open()[ranked]]

    def is_open(self) -> BoolArray:
        """Return a mask (N,) of the items that are not included."""
        return ~np.isin(np.arange(len(self.F)), self.included)

    def leaves_room(self, chosen: list[int]) -> BoolArray:
        """Return a mask (N,) of items the limit allows beside included and chosen."""
        if self.limit is None:
            return np.ones(len(self.F), dtype=bool)
        return self.limit.leaves_room([*self.included.tolist(), *chosen])

    def first(
        self, order: IntArray, k: int, chosen: list[int] | None = None
    ) -> IntArray:
        """Return the first ``k`` of an order that the limit allows beside others."""
        if self.limit is None or self.limit.at_most is None:
            return order[:k]
        at_most, before = self.limit.at_most, chosen or []
        if self.limit.k is None or len(at_most.labels) == 1:
            return at_most.first(order, k, [*self.included.tolist(), *before])
        taken: list[int] = []
        while len(taken) < k and len(order):
            order = order[self.leaves_room([*before, *taken])[order]]
            taken += order[:1].tolist()
        return np.array(taken, dtype=np.intp)


#: From items and a number to so many that are not included, in the order of choice.
Method: TypeAlias = Callable[[Items, int], IntArray]


def _top(items: Items, k: int) -> IntArray:
    """Choose the ``k`` most relevant items."""
    return items.first(items.others(), k)


def _random(items: Items, k: int) -> IntArray:
    """Choose ``k`` items at random."""
    others = np.sort(items.others())
    if items.limit is not None:
        return items.first(items.rng.permutation(others), k)
    return np.asarray(items.rng.choice(others, size=k, replace=False), dtype=np.intp)


def _mmr(items: Items, k: int) -> IntArray:
    """Choose ``k`` items one by one by maximal marginal relevance."""
    F, z, diversity = items.F, items.z, items.diversity
    nearest = np.full(len(F), -np.inf)
    available = np.ones(len(F), dtype=bool)
    chosen: list[int] = []

    def take(item: int) -> None:
        """Choose an item, and update the largest similarity of each to the chosen."""
        chosen.append(item)
        available[item] = False
        np.maximum(nearest, rounded(F @ F[item]), out=nearest)

    for item in items.included.tolist() or items.first(items.others(), 1).tolist():
        take(item)
    while len(chosen) < len(items.included) + k:
        if items.limit is not None:
            available &= items.leaves_room(chosen[len(items.included) :])
            if not available.any():
                break
        # Rounded, so that ties do not depend on the scale of relevance.
        score = rounded((1.0 - diversity) * z - diversity * nearest)
        preferred = available & (nearest < _COPY) if diversity > 0.0 else available
        if not preferred.any():
            preferred = available
        take(int(np.argmax(np.where(preferred, score, -np.inf))))
    return np.array(chosen[len(items.included) :], dtype=np.intp)


def _dpp(items: Items, k: int) -> IntArray:
    """Choose ``k`` items greedily by the determinant; past the rank, by relevance."""
    if items.diversity == 0.0:
        return _top(items, k)
    F, squared = _project_out(items.F, items.included)
    # A diversity so small that the weight overflows is one of relevance alone.
    weight = min(2.0 * (1.0 - items.diversity) / items.diversity, 1e100)
    log_squared_quality = weight * (items.z - items.z[items.is_open()].max())
    squared[~items.leaves_room([])] = 0.0
    leaves_room = None if items.limit is None else items.leaves_room
    count = min(k, F.shape[1])
    if log_squared_quality.min() > -_WIDEST_QUALITY:
        B = F * np.exp(log_squared_quality / 2.0)[:, None]
        # Not from the rows, whose squared lengths differ in the last digit.
        lengths = squared * np.exp(log_squared_quality)
        chosen, _ = choose_rows(B, lengths, count, leaves_room=leaves_room)
    else:
        chosen = _greedy_in_logarithms(
            F, log_squared_quality, squared, count, leaves_room
        )
    if len(chosen) == k:
        return chosen
    rest = items.others()
    rest = rest[~np.isin(rest, chosen)]
    is_zero = ~items.F[rest].any(axis=1)
    rest = rest[np.argsort(is_zero, kind="stable")]
    return np.concatenate([chosen, items.first(rest, k - len(chosen), chosen.tolist())])


def _project_out(F: FloatArray, included: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return rows orthogonal to the span of the included ones, and squared lengths."""
    squared = np.where(F.any(axis=1), 1.0, 0.0)
    if len(included) == 0:
        return F, squared
    left, singular, _ = np.linalg.svd(F[included].T, full_matrices=False)
    basis = left[:, singular > RANK_TOLERANCE * singular[0]]
    residual = F - (F @ basis) @ basis.T
    residual -= (residual @ basis) @ basis.T  # once more, to be orthogonal to rounding
    squared = np.einsum("ij,ij->i", residual, residual)
    squared[squared <= RANK_TOLERANCE] = 0.0
    squared[included] = 0.0
    return residual, squared


def _greedy_in_logarithms(
    F: FloatArray,
    log_squared_quality: FloatArray,
    lengths: FloatArray,
    count: int,
    leaves_room: Callable[[list[int]], BoolArray] | None,
) -> IntArray:
    """Choose as ``choose_rows`` does; qualities differ too much for exponentials."""
    chosen: list[int] = []
    directions = np.empty((count, F.shape[1]))
    residual = lengths.copy()
    while len(chosen) < count and (usable := residual > RANK_TOLERANCE).any():
        gain = np.log(np.where(usable, residual, 1.0)) + log_squared_quality
        item = int(np.argmax(np.where(usable, gain, -np.inf)))
        direction = F[item].copy()
        earlier = directions[: len(chosen)]
        for _ in range(2):  # once more, to be orthogonal to rounding
            direction -= (earlier @ direction) @ earlier
        direction /= np.linalg.norm(direction)
        directions[len(chosen)] = direction
        residual -= (F @ direction) ** 2
        residual[item] = 0.0
        chosen.append(item)
        if leaves_room is not None:
            residual[~leaves_room(chosen)] = 0.0
    return np.array(chosen, dtype=np.intp)


def _facility_location(items: Items, k: int) -> IntArray:
    """Choose greedily, with lazy evaluation: gains only shrink (Minoux, 1978)."""
    F, z, diversity = items.F, items.z, items.diversity
    n_items = len(F)
    if n_items > MAX_PAIRED:
        raise ValueError(
            f"facility-location looks at all pairs and takes at most {MAX_PAIRED} "
            f"items, got {n_items}: use 'dpp' or 'mmr', or choose from a sample"
        )
    covered = np.zeros(n_items)
    total = k + len(items.included)
    for item in items.included:
        np.maximum(covered, rounded(F @ F[item]), out=covered)

    def gain(candidates: IntArray) -> FloatArray:
        """Return the gain in the objective by each candidate."""
        similarity = rounded(F @ F[candidates].T)
        more = np.maximum(similarity - covered[:, None], 0.0).sum(axis=0)
        return (1.0 - diversity) * z[candidates] + diversity * total * rounded(
            more / n_items
        )

    parts = np.split(np.arange(n_items), range(_BATCH, n_items, _BATCH))
    score = np.concatenate([gain(part) for part in parts])
    score[items.included] = -np.inf
    score[~items.leaves_room([])] = -np.inf
    is_fresh = np.ones(n_items, dtype=bool)
    chosen: list[int] = []
    while len(chosen) < k:
        item = int(np.argmax(score))
        if score[item] == -np.inf:
            break
        if is_fresh[item]:
            chosen.append(item)
            np.maximum(covered, rounded(F @ F[item]), out=covered)
            is_fresh[:] = False
            score[item] = -np.inf
            if items.limit is not None:
                score[~items.leaves_room(chosen)] = -np.inf
        else:
            stale = np.flatnonzero(~is_fresh & (score > -np.inf))
            best = stale[np.argsort(-score[stale], kind="stable")[:_BATCH]]
            score[best], is_fresh[best] = gain(best), True
    return np.array(chosen, dtype=np.intp)


def _k_medoids(items: Items, k: int) -> IntArray:
    """Choose the best item of each of ``k`` clusters, the largest cluster first."""
    others = np.sort(items.others())
    F, z = items.F[others], items.z[others]
    best_cost, best_labels = np.inf, np.zeros(len(F), dtype=np.intp)
    for _ in range(_RESTARTS):
        labels, cost = _clusters(F, _seeds(F, z, k, items.rng))
        if cost < best_cost - 1e-12 * len(F):
            best_cost, best_labels = cost, labels
    sizes = np.bincount(best_labels, minlength=k)
    ranked = _representatives(F, z, best_labels, k, items.diversity)
    first = [members[0] for members in ranked]
    chosen: list[int] = []
    for cluster in np.lexsort((first, -sizes)):
        chosen += items.first(others[ranked[cluster]], 1, chosen).tolist()
    rest = items.others()
    rest = rest[~np.isin(rest, chosen)]
    chosen += items.first(rest, k - len(chosen), chosen).tolist()
    return np.array(chosen, dtype=np.intp)


def _seeds(F: FloatArray, z: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Draw ``k`` items that are distant from each other, by greedy k-means++."""
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
    """Run spherical k-means from seeds; return labels (N,) and the sum of distances."""
    k = len(seeds)
    labels, cost = _assign(F, F[seeds])
    for _ in range(_MAX_ROUNDS):
        sums = np.array([F[members].sum(axis=0) for members in _members(labels, k)])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = sums / np.where(lengths > 0.0, lengths, 1.0)
        new_labels, new_cost = _assign(F, centres)
        if not new_cost < cost * (1.0 - _LEAST_FALL):
            break
        labels, cost = new_labels, new_cost
    return labels, cost


def _members(labels: IntArray, k: int) -> list[IntArray]:
    """Return the items of each of ``k`` clusters, sorted."""
    ends = np.cumsum(np.bincount(labels, minlength=k))
    return np.split(np.argsort(labels, kind="stable"), ends[:-1])


def _assign(F: FloatArray, centres: FloatArray) -> tuple[IntArray, float]:
    """Return each row's nearest centre (each has one), and the sum of 1 - cosine."""
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
    F: FloatArray, z: FloatArray, labels: IntArray, k: int, diversity: float
) -> list[IntArray]:
    """Return the items of each cluster, the best first; of equals the more relevant."""
    ranked = []
    for members in _members(labels, k):
        rows = F[members]
        # The mean of similarities is the similarity to the mean.
        central = rounded(rows @ rows.mean(axis=0))
        score = (1.0 - diversity) * z[members] + diversity * central
        ranked.append(members[np.lexsort((-z[members], -score))])
    return ranked


#: The names that :func:`variegate.select` takes.
#:
#: :meta hide-value:
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "dpp": _dpp,
        "mmr": _mmr,
        "facility-location": _facility_location,
        "k-medoids": _k_medoids,
        # On the sphere, the least similar is the farthest.
        "max-min": lambda items, k: _mmr(replace(items, diversity=1.0), k),
        "top": _top,
        "random": _random,
    }
)
