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

Given items, which are there already, stand among ``Y`` in "dpp", "mmr", "max-min" and
"facility-location", but are not candidates: "dpp" takes the determinant of ``Y`` and
the given items together, over that of the given items.  Past the rank, where it is
zero, "mmr" chooses the rest, near copies (a cosine of 0.9 or more) last.  "k-medoids"
has them as fixed centres besides its own ``k``: an item that is nearer to a given item
than to these belongs to it, and is chosen last.  For "top" and "random" they make no
difference.  No method chooses a copy of a given item.

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
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.baselines.clustering import cluster_items, draw_seeds, rank_members
from variegate.baselines.items import Items
from variegate.baselines.redundancy import COPY, NEAR_COPY, Nearest
from variegate.linalg.cosine import round_off
from variegate.linalg.greedy import choose_rows
from variegate.linalg.limits import MAX_PAIRED, NOISE_SHARE, RANK_TOLERANCE

__all__ = ["METHODS"]

#: Candidates whose coverage is brought up to date at a time.
_BATCH = 64

#: Squares of qualities further apart than exp(this) are not numbers.
_WIDEST_QUALITY = 600.0

#: Starts of k-medoids.
_RESTARTS = 5


#: From items and ``k`` to the numbers of ``k`` that are not included, in the order of
#: choice; fewer where the limit allows no more.
Method: TypeAlias = Callable[[Items, int], IntArray]


def _choose_top(items: Items, k: int) -> IntArray:
    """Return the numbers of the ``k`` most relevant items."""
    return items.first_allowed(items.others(), k)


def _choose_random(items: Items, k: int) -> IntArray:
    """Return the numbers of ``k`` random items, in a random order."""
    others = np.sort(items.others())
    if items.limit is not None:
        return items.first_allowed(items.rng.permutation(others), k)
    return np.asarray(items.rng.choice(others, size=k, replace=False), dtype=np.intp)


def _choose_mmr(items: Items, k: int) -> IntArray:
    """Return ``k`` item numbers, chosen one by one by maximal marginal relevance."""
    if len(items.included) or len(items.given):
        return _go_on_by_mmr(items, [], k)
    first = _choose_top(items, 1).tolist()
    return np.array([*first, *_go_on_by_mmr(items, first, k - 1)], dtype=np.intp)


def _go_on_by_mmr(
    items: Items, chosen: list[int], k: int, is_past_rank: bool = False
) -> IntArray:
    """Return ``k`` more item numbers after the ``chosen``, by marginal relevance.

    Copies of earlier items come last; past the rank, near copies and rows of zeros do.
    """
    z, diversity = items.weights, items.diversity
    nearest = Nearest(items.F, items.given if diversity > 0.0 else items.given[:0])
    available = np.ones(len(items.F), dtype=bool)
    chosen = list(chosen)

    def score_of(rows: IntArray | slice) -> FloatArray:
        """Return scores, rounded: ties do not depend on the scale of relevance."""
        similarity = diversity * nearest.values[rows] if diversity > 0.0 else 0.0
        return round_off((1.0 - diversity) * z[rows] - similarity)

    limit = COPY
    if is_past_rank:
        limit = NEAR_COPY
        nearest.values[~items.F.any(axis=1)] = 1.0
    for item in [*items.included.tolist(), *chosen]:
        nearest.add_chosen(item)
        available[item] = False
    n_before = len(chosen)
    while len(chosen) < n_before + k:
        if items.limit is not None:
            available &= items.leaves_room(chosen)
        best = None
        if diversity > 0.0:
            best = nearest.best_item(score_of, available, limit)
        if best is None:
            best = nearest.best_item(score_of, available, np.inf)
        if best is None:
            break
        chosen.append(best)
        available[best] = False
        nearest.add_chosen(best)
    return np.array(chosen[n_before:], dtype=np.intp)


def _choose_dpp(items: Items, k: int) -> IntArray:
    """Return ``k`` item numbers, by greedy determinant; past the rank, by relevance."""
    if items.diversity == 0.0:
        return _choose_top(items, k)
    if len(items.given):
        chosen = _choose_given_others(items, k)
    else:
        F, squared = _project_out(items.F, items.included)
        basis = np.zeros((0, F.shape[1]))
        chosen = _choose_by_determinant(items, F, squared, basis, k)
    if len(chosen) == k:
        return chosen
    if len(items.given):
        more = _go_on_by_mmr(items, chosen.tolist(), k - len(chosen), True)
        return np.concatenate([chosen, more])
    rest = items.others()
    rest = rest[~np.isin(rest, chosen)]
    is_zero = ~items.F[rest].any(axis=1)
    rest = rest[np.argsort(is_zero, kind="stable")]
    more = items.first_allowed(rest, k - len(chosen), chosen.tolist())
    return np.concatenate([chosen, more])


def _choose_given_others(items: Items, k: int) -> IntArray:
    """Return up to ``k`` item numbers by the determinant besides given items.

    Fewer where no item is left that leaves the span of given and included items.
    """
    if len(items.basis) == items.F.shape[1]:
        return np.zeros(0, dtype=np.intp)
    squared = np.where(items.F.any(axis=1), 1.0, 0.0)
    squared[items.included] = 0.0
    return _choose_by_determinant(items, items.F, squared, items.basis, k)


def _choose_by_determinant(
    items: Items, F: FloatArray, squared: FloatArray, basis: FloatArray, k: int
) -> IntArray:
    """Return up to ``k`` item numbers, greedily by the determinant of rows of ``F``.

    ``squared`` (N,) are squared lengths of the rows, zero of items left out; only their
    parts orthogonal to ``basis`` (rank, D) count.
    """
    weights, diversity = items.weights, items.diversity
    # A diversity so small that the weight overflows is one of relevance alone.
    weight = min(2.0 * (1.0 - diversity) / diversity, 1e100)
    log_squared_quality = weight * (weights - weights[items.is_open()].max())
    squared[~items.leaves_room([])] = 0.0
    leaves_room = None if items.limit is None else items.leaves_room
    count = min(k, F.shape[1] - len(basis))
    if log_squared_quality.min() > -_WIDEST_QUALITY:
        B = F * np.exp(log_squared_quality / 2.0)[:, None]
        # Not from the rows, whose squared lengths differ in the last digit.
        lengths = squared * np.exp(log_squared_quality)
        chosen, _ = choose_rows(B, lengths, count, leaves_room=leaves_room, basis=basis)
        return chosen
    return _choose_in_logarithms(
        F, log_squared_quality, squared, count, leaves_room, basis
    )


def _project_out(F: FloatArray, included: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return ``F`` less its part along included rows, and squared lengths (N,) left."""
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


def _choose_in_logarithms(
    F: FloatArray,
    log_squared_quality: FloatArray,
    lengths: FloatArray,
    count: int,
    leaves_room: Callable[[list[int]], BoolArray] | None,
    basis: FloatArray,
) -> IntArray:
    """Choose up to ``count`` items greedily; return their numbers in this order.

    The gain is ``log_squared_quality`` (N,) plus the logarithm of the squared length
    left of the row, at first ``lengths`` (N,) less the part along the ``basis``.  Items
    of length 0 are left out, and those not in the mask ``leaves_room(chosen)``.
    """
    chosen: list[int] = []
    directions = np.concatenate([basis, np.empty((count, F.shape[1]))])
    residual, floor = lengths.copy(), RANK_TOLERANCE
    if len(basis):
        residual -= ((F @ basis.T) ** 2).sum(axis=1)
        floor = NOISE_SHARE
    while len(chosen) < count and (usable := residual > floor).any():
        gain = np.log(np.where(usable, residual, 1.0)) + log_squared_quality
        item = int(np.argmax(np.where(usable, gain, -np.inf)))
        direction = F[item].copy()
        earlier = directions[: len(basis) + len(chosen)]
        for _ in range(2):  # once more, to be orthogonal to rounding
            direction -= (earlier @ direction) @ earlier
        direction /= np.linalg.norm(direction)
        directions[len(basis) + len(chosen)] = direction
        residual -= (F @ direction) ** 2
        residual[item] = 0.0
        chosen.append(item)
        if leaves_room is not None:
            residual[~leaves_room(chosen)] = 0.0
    return np.array(chosen, dtype=np.intp)


def _choose_facilities(items: Items, k: int) -> IntArray:
    """Return ``k`` item numbers, chosen greedily; ValueError for too many items.

    As gains only shrink, those that may be the largest are computed anew (Minoux).
    """
    F, z, diversity = items.F, items.weights, items.diversity
    n_items = len(F)
    if n_items > MAX_PAIRED:
        raise ValueError(
            f"facility-location looks at all pairs and takes at most {MAX_PAIRED} "
            f"items, got {n_items}: use 'dpp' or 'mmr', or choose from a sample"
        )
    covered = np.zeros(n_items)
    if len(items.given):
        np.maximum(covered, items.similarity_to_given, out=covered)
    total = k + len(items.included)
    for item in items.included:
        np.maximum(covered, round_off(F @ F[item]), out=covered)

    def gain(candidates: IntArray) -> FloatArray:
        """Return the rise in the objective by each candidate, an item number."""
        similarity = round_off(F @ F[candidates].T)
        more = np.maximum(similarity - covered[:, None], 0.0).sum(axis=0)
        return (1.0 - diversity) * z[candidates] + diversity * total * round_off(
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
            np.maximum(covered, round_off(F @ F[item]), out=covered)
            is_fresh[:] = False
            score[item] = -np.inf
            if items.limit is not None:
                score[~items.leaves_room(chosen)] = -np.inf
        else:
            stale = np.flatnonzero(~is_fresh & (score > -np.inf))
            best = stale[np.argsort(-score[stale], kind="stable")[:_BATCH]]
            score[best], is_fresh[best] = gain(best), True
    return np.array(chosen, dtype=np.intp)


def _choose_medoids(items: Items, k: int) -> IntArray:
    """Return the best item of each of ``k`` clusters, the largest cluster first."""
    others = np.sort(items.others())
    F, z = items.F[others], items.weights[others]
    fixed = items.similarity_to_given[others] if len(items.given) else None
    best_cost, best_labels = np.inf, np.zeros(len(F), dtype=np.intp)
    for _ in range(_RESTARTS):
        labels, cost = cluster_items(F, draw_seeds(F, z, k, items.rng, fixed), fixed)
        if cost < best_cost - 1e-12 * len(F):
            best_cost, best_labels = cost, labels
    sizes = np.bincount(best_labels, minlength=k)[:k]
    ranked = rank_members(F, z, best_labels, k, items.diversity)
    first = [members[0] for members in ranked]
    chosen: list[int] = []
    for cluster in np.lexsort((first, -sizes)):
        chosen += items.first_allowed(others[ranked[cluster]], 1, chosen).tolist()
    rest = items.others()
    rest = rest[~np.isin(rest, chosen)]
    chosen += items.first_allowed(rest, k - len(chosen), chosen).tolist()
    return np.array(chosen, dtype=np.intp)


#: The names that :func:`variegate.select` takes.
#:
#: :meta hide-value:
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "dpp": _choose_dpp,
        "mmr": _choose_mmr,
        "facility-location": _choose_facilities,
        "k-medoids": _choose_medoids,
        # On the sphere, the least similar is the farthest.
        "max-min": lambda items, k: _choose_mmr(replace(items, diversity=1.0), k),
        "top": _choose_top,
        "random": _choose_random,
    }
)
