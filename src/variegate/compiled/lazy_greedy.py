"""Greedy selection from a factor with lazy evaluation.

Residuals only shrink as items are chosen, so a residual from an earlier step is an
upper bound (Minoux, 1978).  An item is brought up to date only where its bound reaches
the best residual found so far in this step.  Items are held in blocks that know their
largest bound, so that a step passes over most of them.  Where bounds tell little, as
among items of one quality, many are looked at, and rows read here and there cost more
than rows read in order: then all are brought up to date in one sweep.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit

#: Residuals that differ by no more than this share are equal.
_TIE = 1e-10

#: Items that share a largest bound.
_BLOCK = 64

#: The share of items looked at since the last sweep that makes another one pay.
_WORTH_A_SWEEP = 0.03


# Sums may be reordered, which is what lets the processor add several at a time.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _explained(row: Any, directions: Any, first: int) -> float:
    """Return the squared length of a row's part in four directions.

    Four at a time read the row once.
    """
    a = b = c = d = 0.0
    for j in range(len(row)):
        x = np.float64(row[j])
        a += x * directions[first, j]
        b += x * directions[first + 1, j]
        c += x * directions[first + 2, j]
        d += x * directions[first + 3, j]
    return a * a + b * b + c * c + d * d


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _explained_of_two(
    row: Any, other: Any, directions: Any, first: int
) -> tuple[float, float]:
    """Return the same of two rows, reading the directions once for both."""
    a = b = c = d = 0.0
    e = f = g = h = 0.0
    for j in range(len(row)):
        x, y = np.float64(row[j]), np.float64(other[j])
        a += x * directions[first, j]
        b += x * directions[first + 1, j]
        c += x * directions[first + 2, j]
        d += x * directions[first + 3, j]
        e += y * directions[first, j]
        f += y * directions[first + 1, j]
        g += y * directions[first + 2, j]
        h += y * directions[first + 3, j]
    return a * a + b * b + c * c + d * d, e * e + f * f + g * g + h * h


@njit(cache=True, nogil=True)
def _look(
    B: Any, directions: Any, bound: Any, floor: Any, seen: Any, item: int, count: int
) -> None:
    """Bring one item up to date; a residual of zero becomes -inf."""
    row, left = B[item], bound[item]
    for first in range(seen[item], count, 4):
        left -= _explained(row, directions, first)
    bound[item] = left if left > floor[item] else -np.inf
    seen[item] = count


@njit(cache=True, nogil=True)
def _sweep(
    B: Any, directions: Any, bound: Any, floor: Any, seen: Any, largest: Any, count: int
) -> None:
    """Bring everything up to date."""
    for item in range(0, len(bound) - 1, 2):
        other, start = item + 1, seen[item]
        if start == seen[other] and bound[item] > -np.inf and bound[other] > -np.inf:
            row, beside = B[item], B[other]
            left, right = bound[item], bound[other]
            for first in range(start, count, 4):
                one, two = _explained_of_two(row, beside, directions, first)
                left -= one
                right -= two
            bound[item], bound[other] = left, right
            seen[item] = seen[other] = count
    for block in range(len(largest)):
        largest[block] = -np.inf
        for item in range(block * _BLOCK, min((block + 1) * _BLOCK, len(bound))):
            if seen[item] < count and bound[item] > -np.inf:
                _look(B, directions, bound, floor, seen, item, count)
            elif not bound[item] > floor[item]:
                bound[item] = -np.inf
            largest[block] = max(largest[block], bound[item])


@njit(cache=True, nogil=True)
def _search(
    B: Any,
    directions: Any,
    bound: Any,
    floor: Any,
    seen: Any,
    block: int,
    count: int,
    best: float,
) -> tuple[float, float, int]:
    """Bring up to date what may be best in one block.

    Returns the best residual so far, the largest bound of the block, and how many
    items were looked at.
    """
    largest, n_looks = -np.inf, 0
    for item in range(block * _BLOCK, min((block + 1) * _BLOCK, len(bound))):
        if bound[item] > -np.inf and bound[item] >= best * (1.0 - _TIE):
            if seen[item] < count:
                _look(B, directions, bound, floor, seen, item, count)
                n_looks += 1
            best = max(best, bound[item])
        largest = max(largest, bound[item])
    return best, largest, n_looks


@njit(cache=True, nogil=True)
def _first_of_equals(bound: Any, largest: Any, best: float) -> int:
    """Return the smallest number among the items that are best to rounding."""
    equal = best * (1.0 - _TIE)
    for block in range(len(largest)):
        if largest[block] >= equal:
            for item in range(block * _BLOCK, min((block + 1) * _BLOCK, len(bound))):
                if bound[item] >= equal:
                    return item
    return -1


@njit(cache=True, nogil=True)
def _add_direction(row: Any, directions: Any, count: int) -> None:
    """Store what a row adds to the directions, at unit length."""
    new = row.astype(np.float64)
    for _ in range(2):  # once more, to be orthogonal to rounding
        for s in range(count):
            new -= np.sum(new * directions[s]) * directions[s]
    directions[count] = new / np.sqrt(np.sum(new * new))


@njit(cache=True, nogil=True)
def lazy_greedy(
    B: Any, bound: Any, tolerance: float, threshold: float, chosen: Any
) -> tuple[int, bool]:
    """Fill ``chosen`` with item numbers, in the order in which they were taken.

    Parameters
    ----------
    B : (N, D), rows contiguous, of single or double precision
    bound : (N,)
        Squared lengths of the rows; changed to bounds of residuals.
    tolerance : float
        A residual of at most this share of the squared length is zero.
    threshold : float
        Stop at a residual of no more than this: 1 where the probability must rise.
    chosen : (k,), filled

    Returns
    -------
    count : int
        How many were taken.
    reached : bool
        Whether the threshold ended it, rather than ``chosen`` being full or nothing
        being left.
    """
    n_items, n_columns = B.shape
    # Zero rows beyond the last: items are looked at four directions at a time.
    directions = np.zeros((len(chosen) + 3, n_columns))
    seen = np.zeros(n_items, dtype=np.int32)
    floor = tolerance * bound
    for item in range(n_items):
        if not bound[item] > 0.0:
            bound[item] = -np.inf
    largest = np.empty((n_items + _BLOCK - 1) // _BLOCK)
    for block in range(len(largest)):
        largest[block] = bound[block * _BLOCK : (block + 1) * _BLOCK].max()
    n_looks = 0
    for count in range(len(chosen)):
        # The most promising block first, for a high mark to begin with.
        best, foremost = -np.inf, int(largest.argmax())
        for number in range(-1, len(largest)):
            if n_looks > _WORTH_A_SWEEP * n_items:
                _sweep(B, directions, bound, floor, seen, largest, count)
                n_looks = 0
            block = foremost if number < 0 else number
            if largest[block] >= best * (1.0 - _TIE):
                best, largest[block], n_new = _search(
                    B, directions, bound, floor, seen, block, count, best
                )
                n_looks += n_new
        if best == -np.inf:
            return count, False
        if not best > threshold:
            return count, True
        item = _first_of_equals(bound, largest, best)
        _add_direction(B[item], directions, count)
        bound[item] = -np.inf
        chosen[count] = item
    return len(chosen), False
