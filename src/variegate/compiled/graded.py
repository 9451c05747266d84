"""Volumes of rows that are dependent, or nearly so.

Rows have unit length, or are zero.  A residual is what is left of a row without its
part in the span of others, found by projecting twice: unlike differences of entries of
``F Fᵀ`` it is right to rounding in the row itself, so squared residuals mean something
down to about 1e-28.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit
from variegate.compiled.random import next_uniform

#: Rounding in a unit row.
_ROUNDING = 16.0 * 2.0**-52


@njit(inline="always")
def _squared(rows: Any, i: int) -> float:
    total = 0.0
    for d in range(rows.shape[1]):
        total += rows[i, d] * rows[i, d]
    return total


@njit(inline="always")
def _find_longest(rows: Any, end: int) -> tuple[int, float]:
    """Return the place and the squared length of the longest of the first rows."""
    longest, best = 0, -1.0
    for i in range(end):
        squared = _squared(rows, i)
        if squared > best:
            longest, best = i, squared
    return longest, best


@njit(inline="always")
def _move_to_end(rows: Any, place: int, end: int, length: float) -> None:
    """Exchange a row with the last of the first ``end``, divided by its length."""
    for d in range(rows.shape[1]):
        unit = rows[place, d] / length
        rows[place, d] = rows[end - 1, d]
        rows[end - 1, d] = unit


@njit(inline="always")
def _project(rows: Any, size: int, directions: Any, place: int) -> None:
    """Take the part in one of some unit rows out of the first ``size``, twice."""
    for _ in range(2):
        for i in range(size):
            inner = 0.0
            for d in range(rows.shape[1]):
                inner += rows[i, d] * directions[place, d]
            for d in range(rows.shape[1]):
                rows[i, d] -= inner * directions[place, d]


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
    for i in range(n):
        residual[i], lost[i] = _squared(rows, i), 0.0
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
            for _ in range(2):
                inner = 0.0
                for d in range(width):
                    inner += rows[i, d] * direction[d]
                factor[i, rank] += inner
                for d in range(width):
                    rows[i, d] -= inner * direction[d]
            residual[i] = _squared(rows, i)
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
    for i in range(len(left)):
        noise[i] = _ROUNDING * _ROUNDING
    for end in range(len(given), 0, -1):
        longest, best = _find_longest(given, end)
        for i in range(len(left)):
            grown = _ROUNDING * _ROUNDING * _squared(left, i) / best
            noise[i] = max(noise[i], grown)
        _move_to_end(given, longest, end, np.sqrt(best))
        _project(given, end - 1, given, end - 1)
        _project(left, len(left), given, end - 1)


@njit(cache=True, nogil=True)
def log_volume(rows: Any, members: Any, floor: Any) -> float:
    """Return ``log det F_y F_yᵀ``, -inf where a pivoted residual is within ``floor``.

    Pivoted, so that whether ``y`` is possible does not hang on the order of its items.
    """
    size, width = len(members), rows.shape[1]
    left, places = np.empty((size, width)), np.empty(size, dtype=np.int64)
    for i in range(size):
        places[i] = members[i]
        for d in range(width):
            left[i, d] = rows[members[i], d]
    total = 0.0
    for end in range(size, 0, -1):
        longest, best = _find_longest(left, end)
        if not best > floor[places[longest]]:
            return -np.inf
        total += np.log(best)
        places[longest] = places[end - 1]
        _move_to_end(left, longest, end, np.sqrt(best))
        _project(left, end - 1, left, end - 1)
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
