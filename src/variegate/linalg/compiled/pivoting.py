"""Rows of a factor: their lengths, a greedy choice of them, and pivoted Cholesky.

Residuals only shrink as rows are chosen, so a residual from an earlier step is an upper
bound (Minoux, 1978).  A row is updated only where its bound reaches the best residual
of this step so far, and blocks of rows with their largest bounds let a step skip most.
Where bounds are loose, as among items of one quality, many rows are updated, and rows
read in order cost less than scattered ones: then one sweep updates all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.linalg.compiled import njit

#: Residuals that differ by no more than this share are equal.
_TIE = 1e-10

#: Items that share a largest bound.
BLOCK = 64

#: The share of items updated since the last sweep that makes another one pay.
_WORTH_A_SWEEP = 0.03


# Sums may be reordered, so that the processor adds several at a time.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _squared_projection(B: Any, item: int, directions: Any, first: int) -> float:
    """Return the squared length of a row's projection on four rows of ``directions``.

    They are orthonormal or zero, and begin with number ``first``.
    """
    a = b = c = d = 0.0
    for j in range(B.shape[1]):
        x = np.float64(B[item, j])
        a += x * directions[first, j]
        b += x * directions[first + 1, j]
        c += x * directions[first + 2, j]
        d += x * directions[first + 3, j]
    return a * a + b * b + c * c + d * d


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _squared_projections_of_two(
    B: Any, item: int, directions: Any, first: int
) -> tuple[float, float]:
    """Return ``_squared_projection`` of rows ``item`` and ``item + 1``."""
    a = b = c = d = 0.0
    e = f = g = h = 0.0
    for j in range(B.shape[1]):
        x, y = np.float64(B[item, j]), np.float64(B[item + 1, j])
        a += x * directions[first, j]
        b += x * directions[first + 1, j]
        c += x * directions[first + 2, j]
        d += x * directions[first + 3, j]
        e += y * directions[first, j]
        f += y * directions[first + 1, j]
        g += y * directions[first + 2, j]
        h += y * directions[first + 3, j]
    return a * a + b * b + c * c + d * d, e * e + f * f + g * g + h * h


@njit(inline="always")
def _update_residual(
    B: Any, directions: Any, bound: Any, floor: Any, seen: Any, item: int, count: int
) -> None:
    """Make the bound of one item exact for the first ``count`` directions, in place.

    A residual of at most its floor becomes -inf.  For arrays see
    :func:`find_largest_residual`.
    """
    left = bound[item]
    for first in range(seen[item], count, 4):
        left -= _squared_projection(B, item, directions, first)
    bound[item] = left if left > floor[item] else -np.inf
    seen[item] = count


@njit(inline="always")
def _update_all_residuals(
    B: Any, directions: Any, bound: Any, floor: Any, seen: Any, largest: Any, count: int
) -> None:
    """Make all bounds exact for the first ``count`` directions, in place.

    In pairs where both are as far behind; arrays as of :func:`find_largest_residual`.
    """
    for block in range(len(largest)):
        largest[block] = -np.inf
    for item in range(0, len(bound), 2):
        other, start = min(item + 1, len(bound) - 1), seen[item]
        are_possible = bound[item] > -np.inf and bound[other] > -np.inf
        if other > item and start == seen[other] and are_possible:
            left, right = bound[item], bound[other]
            for first in range(start, count, 4):
                one, two = _squared_projections_of_two(B, item, directions, first)
                left -= one
                right -= two
            bound[item] = left if left > floor[item] else -np.inf
            bound[other] = right if right > floor[other] else -np.inf
            seen[item] = seen[other] = count
        else:
            for one in range(item, other + 1):
                if seen[one] < count and bound[one] > -np.inf:
                    _update_residual(B, directions, bound, floor, seen, one, count)
        block = item // BLOCK  # of both: blocks are even
        largest[block] = max(largest[block], bound[item], bound[other])


@njit(cache=True, nogil=True)
def find_largest_residual(
    B: Any,
    directions: Any,
    bound: Any,
    floor: Any,
    seen: Any,
    largest: Any,
    count: int,
    n_looks: int,
) -> tuple[float, int, int]:
    """Find the item with the largest squared residual, the first of equal ones.

    Parameters
    ----------
    B : (N, D), rows contiguous, of single or double precision
    directions : (at least count + 3, D)
        An orthonormal basis of the ``count`` chosen rows; zero beyond.
    bound : (N,)
        Bounds of squared residuals, -inf of chosen items and where nothing is left;
        updated, and so are ``seen`` and ``largest``.
    floor : (N,)
        A squared residual of at most this is zero.
    seen : (N,) of int32
        The number of directions that each bound takes into account.
    largest : (blocks,)
        An upper bound of the bounds of each ``BLOCK`` items.
    n_looks : int
        The number of items updated since the last sweep.

    Returns the largest squared residual, its item, and ``n_looks`` for the next call;
    the residual is -inf if no item is left.
    """
    # The most promising block first, so that most others are skipped.
    best, foremost = -np.inf, 0
    for block in range(1, len(largest)):
        if largest[block] > largest[foremost]:
            foremost = block
    for number in range(-1, len(largest)):
        if n_looks > _WORTH_A_SWEEP * len(B):
            _update_all_residuals(B, directions, bound, floor, seen, largest, count)
            n_looks = 0
        block = foremost if number < 0 else number
        if largest[block] < best * (1.0 - _TIE):
            continue
        largest[block] = -np.inf
        for item in range(block * BLOCK, min((block + 1) * BLOCK, len(B))):
            if bound[item] > -np.inf and bound[item] >= best * (1.0 - _TIE):
                if seen[item] < count:
                    _update_residual(B, directions, bound, floor, seen, item, count)
                    n_looks += 1
                best = max(best, bound[item])
            largest[block] = max(largest[block], bound[item])
    for block in range(len(largest)):
        if largest[block] >= best * (1.0 - _TIE):
            for item in range(block * BLOCK, min((block + 1) * BLOCK, len(B))):
                if bound[item] >= best * (1.0 - _TIE):
                    return best, item, n_looks
    return best, -1, n_looks


@njit(cache=True, nogil=True)
def pivoted_cholesky(
    S: Any, log_scale: Any, tolerance: float, rounding: float, factor: Any
) -> int:
    """Fill the first columns of ``factor`` with ``F``, ``S = F Fᵀ``; return its rank.

    The next pivot is the item with the largest residual in ``diag(e^u) S diag(e^u)``,
    ``u = log_scale``.  Residuals of at most ``tolerance``, or within the effect of
    errors ``rounding`` in ``S``, are zero.  The same as ``pivoted_cholesky`` of
    :mod:`variegate.linalg.determinants`.
    """
    n = S.shape[0]
    residual = np.empty(n)
    weights = np.empty((n, n))  # each entry is written before it is read
    for i in range(n):
        residual[i] = S[i, i]
    for rank in range(n):
        pivot, best = -1, -np.inf
        for i in range(n):
            if residual[i] > tolerance:
                value = np.log(residual[i]) + 2.0 * log_scale[i]
                if value > best:
                    pivot, best = i, value
        if pivot < 0:
            return int(rank)
        root = np.sqrt(residual[pivot])
        for i in range(n):
            # Zero from the start, or explained by the pivots so far.
            if residual[i] <= tolerance:
                factor[i, rank] = 0.0
                continue
            entry = S[i, pivot]
            for k in range(rank):
                entry -= factor[i, k] * factor[pivot, k]
            factor[i, rank] = entry / root
            residual[i] -= factor[i, rank] * factor[i, rank]
            if i == pivot:
                continue
            share = factor[i, rank] / root
            total = 1.0 + abs(share)
            for k in range(rank):
                weights[i, k] -= share * weights[pivot, k]
                total += abs(weights[i, k])
            weights[i, rank] = share
            if residual[i] <= max(tolerance, rounding * total * total):
                residual[i] = 0.0
        residual[pivot] = 0.0
    return int(n)


# Sums may be reordered, so that the processor adds several at a time.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def squared_lengths(B: Any) -> Any:
    """Return the squared lengths (N,) of the rows of ``B`` (N, D), in double."""
    squared = np.empty(len(B))
    for i in range(len(B)):
        total = 0.0
        for j in range(B.shape[1]):
            x = np.float64(B[i, j])
            total += x * x
        squared[i] = total
    return squared
