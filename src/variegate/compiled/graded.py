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
