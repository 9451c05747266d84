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


@njit(cache=True, nogil=True)
def _project(rows: Any, size: int, direction: Any) -> None:
    """Take the part in one unit direction out of the first ``size`` rows."""
    for i in range(size):
        inner = 0.0
        for d in range(rows.shape[1]):
            inner += rows[i, d] * direction[d]
        for d in range(rows.shape[1]):
            rows[i, d] -= inner * direction[d]


@njit(cache=True, nogil=True)
def _squared(row: Any) -> float:
    total = 0.0
    for d in range(len(row)):
        total += row[d] * row[d]
    return total


@njit(cache=True, nogil=True)
def log_volume(rows: Any, members: Any, floor: Any) -> float:
    """Return ``log det F_y F_yᵀ``, -inf where a pivoted residual is within ``floor``.

    Pivoted, so that whether ``y`` is possible does not hang on the order of its items.
    """
    open_items = members.copy()
    left = np.empty((len(members), rows.shape[1]))
    for i in range(len(members)):
        left[i] = rows[members[i]]
    total = 0.0
    for end in range(len(members), 0, -1):
        pivot, best = 0, -1.0
        for i in range(end):
            squared = _squared(left[i])
            if squared > best:
                pivot, best = i, squared
        if not best > floor[open_items[pivot]]:
            return -np.inf
        total += np.log(best)
        direction = left[pivot] / np.sqrt(best)
        left[pivot] = left[end - 1]
        open_items[pivot] = open_items[end - 1]
        for _ in range(2):
            _project(left, end - 1, direction)
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
        proposed[:size] = members[:size]
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
        members[:now] = proposed[:now]
        for j in range(now):
            place[members[j]] = j
        size, here = now, there
        accepted += 1
    return size, state, accepted
