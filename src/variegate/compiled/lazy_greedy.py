"""Greedy selection from a factor with lazy evaluation.

Residuals only shrink as items are chosen, so a residual from an earlier step is an
upper bound.  Items wait in a heap by their last known residual; only the one on top is
brought up to date, against the directions chosen since it was looked at last, and it is
chosen if it stays on top (Minoux, 1978).  Ties go to the smallest number, as in plain
greedy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


# Sums may be reordered, which is what lets the processor add several at a time.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(a: Any, b: Any) -> float:
    total = 0.0
    for d in range(len(a)):
        total += a[d] * b[d]
    return total


@njit(cache=True, inline="always")
def _before(residual: Any, a: int, b: int) -> bool:
    if residual[a] != residual[b]:
        return bool(residual[a] > residual[b])
    return a < b


@njit(cache=True, nogil=True)
def _sift_down(heap: Any, size: int, position: int, residual: Any) -> None:
    item = heap[position]
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        if child + 1 < size and _before(residual, heap[child + 1], heap[child]):
            child += 1
        if not _before(residual, heap[child], item):
            break
        heap[position] = heap[child]
        position = child
    heap[position] = item


@njit(cache=True, nogil=True)
def _heapify(heap: Any, size: int, residual: Any) -> None:
    for position in range(size // 2 - 1, -1, -1):
        _sift_down(heap, size, position, residual)


@njit(cache=True, nogil=True)
def _pop(heap: Any, size: int, residual: Any) -> int:
    """Take the first item out; return the new size."""
    size -= 1
    heap[0] = heap[size]
    if size > 0:
        _sift_down(heap, size, 0, residual)
    return size


@njit(cache=True, nogil=True)
def _push(heap: Any, size: int, item: int, residual: Any) -> int:
    """Put an item in; return the new size."""
    position = size
    while position > 0:
        parent = (position - 1) // 2
        if not _before(residual, item, heap[parent]):
            break
        heap[position] = heap[parent]
        position = parent
    heap[position] = item
    return size + 1


@njit(cache=True, nogil=True)
def _bring_up_to_date(
    B: Any, directions: Any, squared: Any, stamp: Any, item: int, count: int
) -> int:
    """Take off what was chosen since; return the number of inner products."""
    first = stamp[item]
    left = squared[item]
    for s in range(first, count):
        inner = _dot(B[item], directions[s])
        left -= inner * inner
    squared[item] = left
    stamp[item] = count
    return int(count - first)


#: Residuals that differ by no more than this share are equal.
_TIE = 1e-10

#: Inner products since the last refresh, as a share of the items, that make one pay.
_WORTH_A_REFRESH = 0.5


@njit(cache=True, nogil=True)
def lazy_greedy(
    B: Any, squared: Any, tolerance: float, threshold: float, chosen: Any
) -> tuple[int, bool]:
    """Fill ``chosen`` with item numbers, in the order in which they were taken.

    Parameters
    ----------
    B : (N, D), rows contiguous
    squared : (N,)
        Squared lengths of the rows; changed to residuals.
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
    directions = np.empty((len(chosen), n_columns))
    stamp = np.zeros(n_items, dtype=np.int64)
    floor = np.empty(n_items)
    heap = np.empty(n_items, dtype=np.int64)
    ties = np.empty(n_items, dtype=np.int64)
    for i in range(n_items):
        floor[i] = tolerance * squared[i]
        heap[i] = i
    size = n_items
    _heapify(heap, size, squared)
    count = 0
    refreshed, at_refresh, n_dots = 0, squared.copy(), 0
    while size > 0 and count < len(chosen):
        if n_dots > _WORTH_A_REFRESH * n_items:
            # So many are looked at that all at once, in one matrix product, is cheaper.
            inner = np.dot(B, directions[refreshed:count].T)
            for i in range(n_items):
                left = at_refresh[i]
                for s in range(count - refreshed):
                    left -= inner[i, s] * inner[i, s]
                squared[i] = at_refresh[i] = left
                stamp[i] = count
            refreshed, n_dots = count, 0
            _heapify(heap, size, squared)
        item = heap[0]
        n_dots += _bring_up_to_date(B, directions, squared, stamp, item, count)
        if not squared[item] > max(floor[item], 0.0):
            size = _pop(heap, size, squared)
            continue
        _sift_down(heap, size, 0, squared)
        if heap[0] != item:
            continue
        if not squared[item] > threshold:
            return count, True
        # Of all that are equal to rounding, the smallest number.
        equal = squared[item] * (1.0 - _TIE)
        n_ties = 0
        while size > 0 and squared[heap[0]] >= equal:
            other = heap[0]
            n_dots += _bring_up_to_date(B, directions, squared, stamp, other, count)
            if squared[other] >= equal:
                ties[n_ties] = other
                n_ties += 1
                size = _pop(heap, size, squared)
            else:
                _sift_down(heap, size, 0, squared)
        item = ties[:n_ties].min()
        for position in range(n_ties):
            if ties[position] != item:
                size = _push(heap, size, ties[position], squared)
        direction = directions[count]
        direction[:] = B[item]
        for _ in range(2):  # once more, to be orthogonal to rounding
            for s in range(count):
                inner = _dot(direction, directions[s])
                for d in range(n_columns):
                    direction[d] -= inner * directions[s, d]
        direction /= np.sqrt(_dot(direction, direction))
        chosen[count] = item
        count += 1
    return count, False
