"""Markov chains over subsets: add, drop, swap (Kang, 2013).

The chain needs entries of the kernel only for the items it proposes.  The inverse of
``S_y`` is kept, in the order of the members, and updated in ``O(|y|²)`` a step: adding
an item borders it, dropping one takes its Schur complement, a swap does both.

Of rows that are dependent, or nearly so, the chain takes volumes by projecting twice,
as :mod:`variegate.linalg.volume` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.linalg.compiled import njit
from variegate.linalg.compiled.elementary import next_uniform


@njit(cache=True, nogil=True)
def _residual(
    F: Any,
    dense: bool,
    item: int,
    own: float,
    members: Any,
    size: int,
    inverse: Any,
    column: Any,
    work: Any,
) -> float:
    """Return ``s_ii - sᵀ S_y⁻¹ s``, and ``S_y⁻¹ s`` in ``work``."""
    for position in range(size):
        other = members[position]
        if dense:
            column[position] = F[other, item]
        else:
            total = 0.0
            for d in range(F.shape[1]):
                total += F[other, d] * F[item, d]
            column[position] = total
    explained = 0.0
    for i in range(size):
        total = 0.0
        for j in range(size):
            total += inverse[i, j] * column[j]
        work[i] = total
        explained += total * column[i]
    return own - explained


@njit(cache=True, nogil=True)
def _add(inverse: Any, work: Any, size: int, residual: float) -> None:
    for i in range(size):
        for j in range(size):
            inverse[i, j] += work[i] * work[j] / residual
    for i in range(size):
        inverse[i, size] = -work[i] / residual
        inverse[size, i] = inverse[i, size]
    inverse[size, size] = 1.0 / residual


@njit(cache=True, nogil=True)
def _drop(inverse: Any, members: Any, place: Any, size: int, position: int) -> None:
    """Move the last member into the gap, then take the Schur complement of the last."""
    last = size - 1
    gone = members[position]
    if position != last:
        for i in range(size):
            inverse[i, position], inverse[i, last] = (
                inverse[i, last],
                inverse[i, position],
            )
        for i in range(size):
            inverse[position, i], inverse[last, i] = (
                inverse[last, i],
                inverse[position, i],
            )
        members[position] = members[last]
        place[members[position]] = position
    members[last] = gone
    place[gone] = -1
    pivot = inverse[last, last]
    for i in range(last):
        for j in range(last):
            inverse[i, j] -= inverse[i, last] * inverse[last, j] / pivot


@njit(cache=True, nogil=True)
def run_chain(
    F: Any,
    dense: bool,
    diagonal: Any,
    log_scale: Any,
    tolerance: float,
    fixed_size: bool,
    members: Any,
    place: Any,
    inverse: Any,
    size: int,
    n_steps: int,
    state: Any,
) -> Any:
    """Take ``n_steps`` steps in place; return size, state, and accepted moves.

    ``members`` (capacity,), ``place`` (N,) with -1 outside, ``inverse`` (capacity,
    capacity).  Without ``fixed_size`` an item is drawn: if it is out it is added with
    the odds of that, if it is in it is dropped with the odds of that; with
    probability one half a swap is tried instead.  With ``fixed_size`` only swaps.
    """
    n_items = len(place)
    capacity = len(members)
    column = np.empty(capacity)
    work = np.empty(capacity)
    accepted = 0
    for _ in range(n_steps):
        state, uniform = next_uniform(state)
        item = min(int(uniform * n_items), n_items - 1)
        state, kind = next_uniform(state)
        state, uniform = next_uniform(state)
        if fixed_size or kind < 0.5:
            if size == 0 or size == n_items or place[item] >= 0:
                continue
            state, which = next_uniform(state)
            position = min(int(which * size), size - 1)
            other = members[position]
            before = 1.0 / inverse[position, position]
            _drop(inverse, members, place, size, position)
            size -= 1
            residual = _residual(
                F, dense, item, diagonal[item], members, size, inverse, column, work
            )
            odds = 0.0
            if residual > tolerance:
                odds = np.exp(
                    min(
                        np.log(residual / before)
                        + 2.0 * (log_scale[item] - log_scale[other]),
                        0.0,
                    )
                )
            if uniform < odds:
                accepted += 1
            else:
                item = other
                residual = _residual(
                    F, dense, item, diagonal[item], members, size, inverse, column, work
                )
            _add(inverse, work, size, residual)
            members[size] = item
            place[item] = size
            size += 1
        elif place[item] < 0:
            if size == capacity:
                continue
            residual = _residual(
                F, dense, item, diagonal[item], members, size, inverse, column, work
            )
            if residual <= tolerance:
                continue
            if np.log(uniform) < np.log(residual) + 2.0 * log_scale[item]:
                _add(inverse, work, size, residual)
                members[size] = item
                place[item] = size
                size += 1
                accepted += 1
        else:
            position = place[item]
            gain = -np.log(inverse[position, position]) + 2.0 * log_scale[item]
            if np.log(uniform) < -gain:
                _drop(inverse, members, place, size, position)
                size -= 1
                accepted += 1
    return size, state, accepted


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
    """Take the steps of :func:`run_chain`.

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
