r"""Choosing without learning: one function, seven methods.

All methods see the same two things.  ``F`` holds the embeddings with rows of unit
length (or zero), so that ``s_ij = f_i · f_j`` is the cosine similarity; ``z`` holds the
relevance less its mean, over its standard deviation (all zeros if it is constant).
With ``t`` the trade-off and ``Y`` the chosen items:

=================  ==================================================================
dpp                greedy on ``(1 - t) Σ_{j ∈ Y} z_j + t log det S_Y``, the MAP of
                   ``L = diag(q) F Fᵀ diag(q)`` with ``q = exp((1 - t) z / (2 t))``
mmr                next is the largest ``(1 - t) z_j - t max_{i ∈ Y} s_ij``
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

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from variegate._random import generator
from variegate._typing import FloatArray, IntArray, RandomState
from variegate._validation import check_real
from variegate.baselines.medoids import k_medoids
from variegate.linalg.cosine import chunks, rounded, unit_rows
from variegate.linalg.determinants import RANK_TOLERANCE
from variegate.linalg.limits import MAX_PAIRED

__all__ = ["METHODS", "select"]

#: ``(F, z, k, trade_off, generator)`` to item numbers in the order of choice.
Method: TypeAlias = Callable[
    [FloatArray, FloatArray, int, float, np.random.Generator], IntArray
]

#: Candidates whose coverage is brought up to date at a time.
_BATCH = 64

#: Squares of qualities further apart than exp(this) are not numbers.
_WIDEST_QUALITY = 600.0


def select(
    embeddings: Any,
    relevance: Any = None,
    k: int = 10,
    method: str = "dpp",
    *,
    trade_off: float = 0.5,
    random_state: RandomState = None,
) -> IntArray:
    """Choose ``k`` items that are relevant and unlike each other, without learning.

    What each method maximizes is written at the top of this module.

    Parameters
    ----------
    embeddings : array of shape (N, D)
        One row an item; only directions matter.  A row of zeros is like nothing.
    relevance : array of shape (N,), optional
        Any finite numbers, larger is better; where and how they are centred and scaled
        makes no difference.  All equal if not given.
    k : int, default=10
        Between 1 and ``N``.
    method : str, default="dpp"
        "dpp", "mmr", "facility-location", "k-medoids", "max-min", "top" or "random".
    trade_off : float, default=0.5
        From 0 (relevance only) to 1 (diversity only).  For "k-medoids" it acts within
        each cluster.  "top", "max-min" and "random" have none and ignore it.
    random_state : None, int or numpy.random.Generator
        Used by "k-medoids" and "random"; the others involve no chance.

    Returns
    -------
    array of shape (k,)
        Item numbers in the order in which they were chosen; from "k-medoids" that of
        the largest cluster first.  Ties go to the smaller number (in "k-medoids" to
        the more relevant item first).

    Notes
    -----
    "dpp" can choose no more items than the embeddings have dimensions that are in use
    (the rank).  If ``k`` is larger, the most relevant of the other items follow, rows
    of zeros last.  With ``trade_off=0`` it is "top".

    "mmr" and "max-min" start at the most relevant item.

    No N x N matrix is made.  "facility-location" looks at all pairs and takes at most
    20,000 items.

    Examples
    --------
    >>> import numpy as np
    >>> from variegate.baselines.selecting import select
    >>> articles = np.array([[1.0, 0.1], [1.0, 0.0], [0.1, 1.0]])
    >>> select(articles, [3.0, 2.9, 1.0], k=2, method="top")
    array([0, 1])
    >>> select(articles, [3.0, 2.9, 1.0], k=2)  # the second is nearly the first again
    array([0, 2])
    """
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"unknown method {method!r}; there are {', '.join(METHODS)}")
    is_number = isinstance(trade_off, Real) and not isinstance(trade_off, bool)
    if not is_number or not 0.0 <= trade_off <= 1.0:
        raise ValueError(
            "trade_off must be a number from 0 (relevance only) to 1 (diversity only), "
            f"got {trade_off!r}"
        )
    rng = generator(random_state)
    F = _unit_rows(embeddings)
    z = _standardized(relevance, len(F))
    is_count = isinstance(k, Integral) and not isinstance(k, bool)
    if not is_count or not 1 <= k <= len(F):
        raise ValueError(
            f"k must be a whole number from 1 to the {len(F)} items there are, got "
            f"{k!r}"
        )
    return METHODS[method](F, z, int(k), float(trade_off), rng)


def _numbers(name: str, values: Any) -> FloatArray:
    check_real(name, values)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    return array


def _unit_rows(embeddings: Any) -> FloatArray:
    array = _numbers("embeddings", embeddings)
    if array.ndim != 2 or len(array) == 0:
        raise ValueError(
            f"embeddings must be a matrix with one row an item, got shape {array.shape}"
        )
    F = np.empty(array.shape)
    for rows in chunks(len(array)):
        part = array[rows]
        bad = ~np.isfinite(part).all(axis=1)
        if bad.any():
            raise ValueError(
                f"embeddings holds NaN or infinite values in row "
                f"{rows.start + int(np.argmax(bad))}: drop or fill such rows"
            )
        F[rows] = unit_rows(part)
    return F


def _standardized(relevance: Any, n_items: int) -> FloatArray:
    if relevance is None:
        return np.zeros(n_items)
    array = _numbers("relevance", relevance)
    if array.shape != (n_items,):
        raise ValueError(
            f"relevance has shape {array.shape}, expected ({n_items},): one number for "
            "each row of embeddings"
        )
    if not np.isfinite(array).all():
        item = int(np.argmin(np.isfinite(array)))
        raise ValueError(
            f"relevance of item {item} is {array[item]}: give every item a finite "
            "number"
        )
    if array.min() == array.max():
        # The mean of equal numbers need not be that number.
        return np.zeros(n_items)
    array = array / np.abs(array).max()
    array = array - array.mean()
    array = array / np.abs(array).max()
    return np.asarray(array / array.std())


def _top(
    F: FloatArray, z: FloatArray, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    return np.argsort(-z, kind="stable")[:k]


def _random(
    F: FloatArray, z: FloatArray, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    return np.asarray(rng.choice(len(F), size=k, replace=False), dtype=np.intp)


def _mmr(
    F: FloatArray, z: FloatArray, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    chosen = [int(np.argmax(z))]
    nearest = np.full(len(F), -np.inf)
    available = np.ones(len(F), dtype=bool)
    while len(chosen) < k:
        available[chosen[-1]] = False
        np.maximum(nearest, rounded(F @ F[chosen[-1]]), out=nearest)
        # Rounded, so that ties do not depend on the scale of relevance.
        score = rounded((1.0 - trade_off) * z - trade_off * nearest)
        chosen.append(int(np.argmax(np.where(available, score, -np.inf))))
    return np.array(chosen, dtype=np.intp)


def _max_min(
    F: FloatArray, z: FloatArray, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    # On the sphere, the least similar is the farthest.
    return _mmr(F, z, k, 1.0, rng)


def _dpp(
    F: FloatArray, z: FloatArray, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    if trade_off == 0.0:
        return _top(F, z, k, trade_off, rng)
    is_zero = ~F.any(axis=1)
    # A trade-off so small that the weight overflows is one of relevance alone.
    weight = min((1.0 - trade_off) / trade_off, 1e100)
    log_squared_quality = weight * (z - z.max())
    count = min(k, F.shape[1])
    if log_squared_quality.min() > -_WIDEST_QUALITY:
        chosen = _greedy_lazily(F, log_squared_quality, is_zero, count)
    else:
        chosen = _greedy_in_logarithms(F, log_squared_quality, is_zero, count)
    if len(chosen) == k:
        return chosen
    rest = np.lexsort((-z, is_zero))
    rest = rest[~np.isin(rest, chosen)]
    return np.concatenate([chosen, rest[: k - len(chosen)]])


def _greedy_lazily(
    F: FloatArray, log_squared_quality: FloatArray, is_zero: Any, count: int
) -> IntArray:
    """Choose by :mod:`variegate.compiled.lazy_greedy`, fewer if the rank is less."""
    from variegate.compiled.lazy_greedy import lazy_greedy

    B = F * np.exp(log_squared_quality / 2.0)[:, None]
    # The compiled loop is kept for arrays that cannot be written to.
    B.flags.writeable = False
    # Not from the rows, whose squared lengths differ in the last digit.
    squared = np.where(is_zero, 0.0, np.exp(log_squared_quality))
    chosen = np.empty(count, dtype=np.int64)
    taken, _ = lazy_greedy(B, squared, RANK_TOLERANCE, 0.0, chosen)
    return chosen[:taken].astype(np.intp)


def _greedy_in_logarithms(
    F: FloatArray, log_squared_quality: FloatArray, is_zero: Any, count: int
) -> IntArray:
    """Do the same where qualities are too far apart to be numbers."""
    chosen: list[int] = []
    directions = np.empty((count, F.shape[1]))
    residual = np.where(is_zero, 0.0, 1.0)
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
    F: FloatArray, z: FloatArray, k: int, trade_off: float, rng: np.random.Generator
) -> IntArray:
    """Greedy with lazy evaluation: gains of coverage only shrink (Minoux, 1978)."""
    n_items = len(F)
    if n_items > MAX_PAIRED:
        raise ValueError(
            f"facility-location looks at all pairs and takes at most {MAX_PAIRED} "
            f"items, got {n_items}: use 'dpp' or 'mmr', or choose from a sample"
        )
    covered = np.zeros(n_items)

    def gain(candidates: IntArray) -> FloatArray:
        similarity = rounded(F @ F[candidates].T)
        more = np.maximum(similarity - covered[:, None], 0.0).sum(axis=0)
        return (1.0 - trade_off) * z[candidates] + trade_off * k * rounded(
            more / n_items
        )

    every = np.arange(n_items)
    score = np.concatenate(
        [gain(every[s : s + _BATCH]) for s in range(0, n_items, _BATCH)]
    )
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


#: The names that :func:`variegate.select` takes.
#:
#: :meta hide-value:
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "dpp": _dpp,
        "mmr": _mmr,
        "facility-location": _facility_location,
        "k-medoids": k_medoids,
        "max-min": _max_min,
        "top": _top,
        "random": _random,
    }
)
