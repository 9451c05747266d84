"""Volumes of rows that are dependent, or nearly so.

Rows have unit length, or are zero.  A residual is what is left of a row without its
part in the span of others, found by projecting twice: unlike differences of entries of
``F Fᵀ`` it is right to rounding in the row itself, so squared residuals mean something
down to about 1e-28.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import helper, njit
from variegate.compiled.random import next_uniform

#: Rounding in a unit row.
_ROUNDING = 16.0 * 2.0**-52


@helper()
def take_out(rows: Any, i: int, direction: Any) -> tuple[float, float]:
    """Take the part in a unit direction out of row ``i``, twice.

    Returns how long that part was, and the squared length of what is left.
    """
    part = 0.0
    for _ in range(2):
        inner = 0.0
        for d in range(len(direction)):
            inner += rows[i, d] * direction[d]
        for d in range(len(direction)):
            rows[i, d] -= inner * direction[d]
        part += inner
    squared = 0.0
    for d in range(len(direction)):
        squared += rows[i, d] * rows[i, d]
    return part, squared


@helper()
def _fill_squared(rows: Any, squared: Any) -> None:
    for i in range(len(rows)):
        squared[i] = 0.0
        for d in range(rows.shape[1]):
            squared[i] += rows[i, d] * rows[i, d]


@helper()
def _find_longest(rows: Any, squared: Any, direction: Any) -> int:
    """Return the place of the longest row; fill ``direction``, unless it is zero."""
    longest = 0
    for i in range(1, len(squared)):
        if squared[i] > squared[longest]:
            longest = i
    if squared[longest] > 0.0:
        root = np.sqrt(squared[longest])
        for d in range(len(direction)):
            direction[d] = rows[longest, d] / root
    return longest


@njit(cache=True, nogil=True)
def pivoted_rows(rows: Any, log_scale: Any, floor: Any, factor: Any, lost: Any) -> int:
    """Fill ``factor`` (N, N) so that ``F Fᵀ`` is that of ``rows`` (N, D).

    ``rows`` are changed.  The next pivot is the item with the largest residual in
    ``L``.  A squared residual of at most ``floor`` (N,) is exactly zero from there on,
    and what was so given up is ``lost`` (N,).  Returns the number of columns.
    """
    n, width = rows.shape
    residual = np.empty(n)
    direction = np.empty(width)
    _fill_squared(rows, residual)
    for i in range(n):
        lost[i] = 0.0
    for rank in range(min(n, width)):
        pivot, best = -1, -np.inf
        for i in range(n):
            if residual[i] > 0.0:
                value = np.log(residual[i]) + 2.0 * log_scale[i]
                if value > best:
                    pivot, best = i, value
        if pivot < 0:
            return int(rank)
        root = np.sqrt(residual[pivot])
        for d in range(width):
            direction[d] = rows[pivot, d] / root
        for i in range(n):
            factor[i, rank] = 0.0
            if residual[i] == 0.0:
                continue
            factor[i, rank], residual[i] = take_out(rows, i, direction)
            if i == pivot or residual[i] <= floor[i]:
                lost[i] = 0.0 if i == pivot else residual[i]
                residual[i] = 0.0
    return int(min(n, width))


@njit(cache=True, nogil=True)
def reduce_rows(given: Any, left: Any, noise: Any) -> None:
    """Take the span of ``given`` (K, D) out of ``left`` (N, D); both are changed.

    ``noise`` (N,) is filled with rounding in what is left, squared.  The given are
    taken in the order of their residuals.  A direction of which little was left is off
    by as much more, and so is every row that has a part in it.
    """
    of_given, of_left = np.empty(len(given)), np.empty(len(left))
    direction = np.empty(given.shape[1])
    _fill_squared(given, of_given)
    _fill_squared(left, of_left)
    for i in range(len(left)):
        noise[i] = _ROUNDING * _ROUNDING
    for _ in range(len(given)):
        pivot = _find_longest(given, of_given, direction)
        for i in range(len(left)):
            grown = _ROUNDING * _ROUNDING * of_left[i] / of_given[pivot]
            noise[i] = max(noise[i], grown)
            _, of_left[i] = take_out(left, i, direction)
        of_given[pivot] = -1.0  # which marks it as taken
        for i in range(len(given)):
            if of_given[i] >= 0.0:
                _, of_given[i] = take_out(given, i, direction)


@helper()
def log_volume(rows: Any, members: Any, floor: Any) -> float:
    """Return ``log det F_y F_yᵀ``, -inf where a pivoted residual is within ``floor``.

    Pivoted, so that whether ``y`` is possible does not hang on the order of its items.
    """
    size, width = len(members), rows.shape[1]
    left = np.empty((size, width))
    squared = np.empty(size)
    direction = np.empty(width)
    for i in range(size):
        for d in range(width):
            left[i, d] = rows[members[i], d]
    _fill_squared(left, squared)
    total = 0.0
    for _ in range(size):
        pivot = _find_longest(left, squared, direction)
        if not squared[pivot] > floor[members[pivot]]:
            return -np.inf
        total += np.log(squared[pivot])
        squared[pivot] = -1.0  # which marks it as taken
        for i in range(size):
            if squared[i] >= 0.0:
                _, squared[i] = take_out(left, i, direction)
    return total


@njit(cache=True, nogil=True)
def fill_log_volumes(rows: Any, log_scale: Any, floor: Any, out: Any) -> None:
    """Fill ``out`` (2^N,) with ``log det L_y``; bit ``i`` of a place is item ``i``."""
    n = rows.shape[0]
    members = np.empty(n, dtype=np.int64)
    for mask in range(len(out)):
        size, scale = 0, 0.0
        for item in range(n):
            if mask >> item & 1:
                members[size] = item
                scale += 2.0 * log_scale[item]
                size += 1
        out[mask] = -np.inf
        if size <= rows.shape[1]:
            out[mask] = log_volume(rows, members[:size], floor) + scale


@njit(cache=True, nogil=True)
def run_graded_chain(
    rows: Any,
    log_scale: Any,
    floor: Any,
    fixed_size: bool,
    members: Any,
    place: Any,
    size: int,
    n_steps: int,
    state: Any,
) -> Any:
    """Take the steps of :func:`variegate.compiled.chain.run_chain`.

    Nothing is updated: the volume of every proposed set is computed anew, so that the
    chain never enters a set that is impossible.
    """
    n_items, capacity = len(place), rows.shape[1]
    proposed = np.empty(n_items, dtype=np.int64)
    here = log_volume(rows, members[:size], floor)
    accepted = 0
    for _ in range(n_steps):
        state, uniform = next_uniform(state)
        item = min(int(uniform * n_items), n_items - 1)
        state, kind = next_uniform(state)
        state, uniform = next_uniform(state)
        for j in range(size):
            proposed[j] = members[j]
        position, gain, now = place[item], 2.0 * log_scale[item], size
        if fixed_size or kind < 0.5:
            if size == 0 or position >= 0:
                continue
            state, which = next_uniform(state)
            position = min(int(which * size), size - 1)
            gain -= 2.0 * log_scale[members[position]]
            proposed[position] = item
        elif position < 0:
            if size == capacity:
                continue
            proposed[size] = item
            now += 1
        else:
            proposed[position] = members[size - 1]
            gain = -gain
            now -= 1
        there = log_volume(rows, proposed[:now], floor)
        if there == -np.inf or np.log(uniform) >= there - here + gain:
            continue
        for j in range(size):
            place[members[j]] = -1
        for j in range(now):
            members[j] = proposed[j]
            place[members[j]] = j
        size, here = now, there
        accepted += 1
    return size, state, accepted
