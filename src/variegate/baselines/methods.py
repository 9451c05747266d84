r"""Seven ways to choose without learning.

A method sees ``F``, embeddings with rows of unit length (or zero), so that
``s_ij = f_i · f_j`` is the cosine similarity, and ``z``, the relevance less its mean
over its standard deviation (all zeros if it is constant).  With ``t`` the trade-off and
``Y`` the chosen items:

=================  ==================================================================
dpp                greedy on ``(1 - t) Σ_{j ∈ Y} z_j + t log det S_Y``, the MAP of
                   ``L = diag(q) F Fᵀ diag(q)`` with ``q = exp((1 - t) z / (2 t))``
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

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.baselines.medoids import k_medoids
from variegate.linalg.cosine import rounded
from variegate.linalg.greedy import choose_rows
from variegate.linalg.limits import MAX_PAIRED, RANK_TOLERANCE

__all__ = ["METHODS", "Candidates"]

#: Candidates whose coverage is brought up to date at a time.
_BATCH = 64

#: Squares of qualities further apart than exp(this) are not numbers.
_WIDEST_QUALITY = 600.0

#: Items are copies of each other from this cosine on.
_COPY = 1.0 - 1e-9


@dataclass(frozen=True, eq=False)
class Candidates:
    """What is chosen from.

    Attributes
    ----------
    F : array of shape (N, D)
        Embeddings, rows of unit length or zero.
    z : array of shape (N,)
        Standardized relevance.
    included : array of int
        Items that are chosen already.
    """

    F: FloatArray
    z: FloatArray
    included: IntArray

    def __len__(self) -> int:
        return len(self.F)

    def others(self) -> IntArray:
        """Return the items that are not chosen already, the most relevant first."""
        ranked = np.argsort(-self.z, kind="stable")
        return ranked[self.is_open()[ranked]]

    def is_open(self) -> BoolArray:
        """Return which items are not chosen already."""
        is_open = np.ones(len(self), dtype=bool)
        is_open[self.included] = False
        return is_open


class Method(Protocol):
    """From candidates to ``k`` more of them, in the order of choice."""

    def __call__(
        self, items: Candidates, k: int, trade_off: float, rng: np.random.Generator
    ) -> IntArray:
        """Choose ``k`` items that are not included already."""
        ...


def _top(
    items: Candidates, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    return items.others()[:k]


def _random(
    items: Candidates, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    others = np.sort(items.others())
    return np.asarray(rng.choice(others, size=k, replace=False), dtype=np.intp)


def _mmr(
    items: Candidates, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    F, z = items.F, items.z
    nearest = np.full(len(F), -np.inf)
    available = np.ones(len(F), dtype=bool)
    chosen: list[int] = []

    def take(item: int) -> None:
        chosen.append(item)
        available[item] = False
        np.maximum(nearest, rounded(F @ F[item]), out=nearest)

    for item in items.included.tolist():
        take(item)
    if not chosen:
        take(int(np.argmax(z)))
    while len(chosen) < len(items.included) + k:
        # Rounded, so that ties do not depend on the scale of relevance.
        score = rounded((1.0 - trade_off) * z - trade_off * nearest)
        preferred = available & (nearest < _COPY) if trade_off > 0.0 else available
        if not preferred.any():
            preferred = available
        take(int(np.argmax(np.where(preferred, score, -np.inf))))
    return np.array(chosen[len(items.included) :], dtype=np.intp)


def _max_min(
    items: Candidates, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    # On the sphere, the least similar is the farthest.
    return _mmr(items, k, 1.0, rng)


def _dpp(
    items: Candidates, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    if trade_off == 0.0:
        return _top(items, k, trade_off, rng)
    F, squared = _without(items.F, items.included)
    # A trade-off so small that the weight overflows is one of relevance alone.
    weight = min((1.0 - trade_off) / trade_off, 1e100)
    log_squared_quality = weight * (items.z - items.z[items.is_open()].max())
    count = min(k, F.shape[1])
    if log_squared_quality.min() > -_WIDEST_QUALITY:
        B = F * np.exp(log_squared_quality / 2.0)[:, None]
        # Not from the rows, whose squared lengths differ in the last digit.
        lengths = squared * np.exp(log_squared_quality)
        chosen, _ = choose_rows(B, lengths, count)
    else:
        chosen = _greedy_in_logarithms(F, log_squared_quality, squared, count)
    if len(chosen) == k:
        return chosen
    others = items.others()
    rest = others[~np.isin(others, chosen)]
    is_zero = ~items.F[rest].any(axis=1)
    rest = rest[np.argsort(is_zero, kind="stable")]
    return np.concatenate([chosen, rest[: k - len(chosen)]])


def _without(F: FloatArray, included: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return rows without their part in the included ones, and squared lengths."""
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
    F: FloatArray, log_squared_quality: FloatArray, lengths: FloatArray, count: int
) -> IntArray:
    """Choose greedily where qualities are too far apart to be numbers."""
    chosen: list[int] = []
    directions = np.empty((count, F.shape[1]))
    residual = lengths.copy()
    while len(chosen) < count:
        usable = residual > RANK_TOLERANCE
        if not usable.any():
            break
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
    return np.array(chosen, dtype=np.intp)


def _facility_location(
    items: Candidates, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    """Greedy with lazy evaluation: gains of coverage only shrink (Minoux, 1978)."""
    F, z, n_items = items.F, items.z, len(items)
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
        similarity = rounded(F @ F[candidates].T)
        more = np.maximum(similarity - covered[:, None], 0.0).sum(axis=0)
        return (1.0 - trade_off) * z[candidates] + trade_off * total * rounded(
            more / n_items
        )

    every = np.arange(n_items)
    score = np.concatenate(
        [gain(every[s : s + _BATCH]) for s in range(0, n_items, _BATCH)]
    )
    score[items.included] = -np.inf
    is_fresh = np.ones(n_items, dtype=bool)
    chosen: list[int] = []
    while len(chosen) < k:
        item = int(np.argmax(score))
        if is_fresh[item]:
            chosen.append(item)
            np.maximum(covered, rounded(F @ F[item]), out=covered)
            is_fresh[:] = False
            score[item] = -np.inf
        else:
            stale = np.flatnonzero(~is_fresh & (score > -np.inf))
            best = np.argsort(-score[stale], kind="stable")[:_BATCH]
            score[stale[best]] = gain(stale[best])
            is_fresh[stale[best]] = True
    return np.array(chosen, dtype=np.intp)


def _k_medoids(
    items: Candidates, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    """Choose from clusters of the items that are not included."""
    others = np.sort(items.others())
    return others[k_medoids(items.F[others], items.z[others], k, trade_off, rng)]


#: The names that :func:`variegate.select` takes.
#:
#: :meta hide-value:
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "dpp": _dpp,
        "mmr": _mmr,
        "facility-location": _facility_location,
        "k-medoids": _k_medoids,
        "max-min": _max_min,
        "top": _top,
        "random": _random,
    }
)
