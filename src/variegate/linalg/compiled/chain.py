"""Markov chains over subsets: add, drop, swap (Kang, 2013).

The chain needs entries of the kernel only for the items it proposes.  The inverse of
``S_y`` is kept, in the order of the members, and updated in ``O(|y|²)`` a step: adding
an item borders it, dropping one takes its Schur complement, a swap does both.

Of rows that are dependent, or nearly so, the chain takes volumes by projecting twice,
as :mod:`variegate.linalg.volume` does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.linalg.compiled import njit
from variegate.linalg.compiled.elementary import next_uniform


class Kernel(NamedTuple):
    """A kernel as compiled chains read it: similarity or factor, and its scale."""

    F: FloatArray  # the similarity (N, N) if ``dense``, else a factor (N, D) of it
    dense: bool
    graded: bool  # whether rows may be dependent, or nearly so
    diagonal: FloatArray  # (N,)
    log_scale: FloatArray  # (N,)
    floor: FloatArray  # (N,), squared residuals up to this are zero


class State(NamedTuple):
    """The current subset of a chain."""

    members: IntArray  # (capacity,): the first ``size`` entries are the subset
    place: IntArray  # (N,): the index of each item in ``members``, -1 outside
    inverse: FloatArray  # (capacity, capacity), of the similarity of the members


@njit(cache=True, nogil=True)
def _compute_residual(
    kernel: Any,
    item: int,
    members: Any,
    size: int,
    inverse: Any,
    column: Any,
    work: Any,
) -> float:
    """Return the squared residual ``S_ii - sᵀ S_y⁻¹ s`` of item ``i``, ``s = S_yi``.

    ``y`` are the first ``size`` members, and ``inverse`` holds ``S_y⁻¹``.  Fills the
    first entries of ``column`` with ``s``, and of ``work`` with ``S_y⁻¹ s``.
    """
    F = kernel.F
    for position in range(size):
        other = members[position]
        if kernel.dense:
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
    own: float = kernel.diagonal[item]
    return own - explained


@njit(cache=True, nogil=True)
def _add_item(state: Any, work: Any, size: int, item: int, residual: float) -> int:
    """Add an item to a state of ``size`` members, in place; return the new size.

    ``work`` and ``residual`` are the results of ``_compute_residual``.
    """
    inverse = state.inverse
    for i in range(size):
        for j in range(size):
            inverse[i, j] += work[i] * work[j] / residual
    for i in range(size):
        inverse[i, size] = -work[i] / residual
        inverse[size, i] = inverse[i, size]
    inverse[size, size] = 1.0 / residual
    state.members[size] = item
    state.place[item] = size
    return size + 1


@njit(cache=True, nogil=True)
def _drop_item(state: Any, size: int, position: int) -> int:
    """Drop the member at a position from a state, in place; return the new size.

    The last member takes its position; the inverse becomes that of the members left.
    """
    members, place, inverse = state.members, state.place, state.inverse
    last = size - 1
    gone = members[position]
    if position != last:
        for i in range(size):
            kept = inverse[i, position]
            inverse[i, position] = inverse[i, last]
            inverse[i, last] = kept
        for i in range(size):
            kept = inverse[position, i]
            inverse[position, i] = inverse[last, i]
            inverse[last, i] = kept
        members[position] = members[last]
        place[members[position]] = position
    members[last] = gone
    place[gone] = -1
    pivot = inverse[last, last]
    for i in range(last):
        for j in range(last):
            inverse[i, j] -= inverse[i, last] * inverse[last, j] / pivot
    return last


@njit(cache=True, nogil=True)
def log_volume(rows: Any, members: Any, floor: Any) -> float:
    """Return ``log det F_y F_yᵀ`` for ``y`` the members and ``F`` the rows (N, R).

    -inf where a pivot is at most ``floor`` (N,) of its item.  The same as
    :func:`variegate.linalg.volume.log_volumes`.
    """
    size, width = len(members), rows.shape[1]
    left, places = np.empty((size, width)), np.empty(size, dtype=np.int64)
    for i in range(size):
        places[i] = members[i]
        for d in range(width):
            left[i, d] = rows[members[i], d]
    total = 0.0
    for end in range(size, 0, -1):
        longest, best = 0, -1.0
        for i in range(end):
            squared = 0.0
            for d in range(width):
                squared += left[i, d] * left[i, d]
            if squared > best:
                longest, best = i, squared
        if not best > floor[places[longest]]:
            return -np.inf
        total += np.log(best)
        last, length = end - 1, np.sqrt(best)
        places[longest] = places[last]
        for d in range(width):
            unit = left[longest, d] / length
            left[longest, d] = left[last, d]
            left[last, d] = unit
        for _ in range(2):
            for i in range(last):
                inner = 0.0
                for d in range(width):
                    inner += left[i, d] * left[last, d]
                for d in range(width):
                    left[i, d] -= inner * left[last, d]
    return total


@njit(inline="always")
def _propose_members(
    members: Any, size: int, entering: int, position: int, proposed: Any
) -> int:
    """Fill ``proposed`` with the members after a move, and return their number.

    Item ``entering`` (-1: none) is added, the member at ``position`` (-1: none) is
    dropped; in an exchange the one takes the position of the other.
    """
    for j in range(size):
        proposed[j] = members[j]
    if position < 0:
        proposed[size] = entering
        return size + 1
    if entering >= 0:
        proposed[position] = entering
        return size
    proposed[position] = members[size - 1]
    return size - 1


@njit(cache=True, nogil=True)
def run_chain(
    kernel: Any, state: Any, size: int, fixed_size: bool, n_steps: int, seed: Any
) -> Any:
    """Take ``n_steps`` steps from a :class:`State`, which is changed in place.

    Every step draws an item, and proposes with probability one half to add it, or to
    drop it if it is a member, else to exchange it for a random member; with
    ``fixed_size``, always the exchange.  A move is accepted with probability
    ``min(1, det L_after / det L_before)``.  ``seed`` is a uint64.  Returns the size of
    the subset, the seed for the next call, and the number of accepted moves.

    Of a graded kernel no inverse is kept: the volume of every proposed set is computed
    anew, so that the chain never enters a set that is impossible.
    """
    members, place, inverse = state.members, state.place, state.inverse
    n_items, capacity = len(place), len(members)
    column, work = np.empty(capacity), np.empty(capacity)
    proposed = np.empty(n_items + 1, dtype=np.int64)
    here = there = 0.0  # log volumes of the current and of the proposed set
    if kernel.graded:
        here = log_volume(kernel.F, members[:size], kernel.floor)
    accepted, now = 0, size
    for _ in range(n_steps):
        seed, uniform = next_uniform(seed)
        item = min(int(uniform * n_items), n_items - 1)
        seed, kind = next_uniform(seed)
        seed, uniform = next_uniform(seed)
        position, entering = place[item], item
        if fixed_size or kind < 0.5:
            if size == 0 or position >= 0:
                continue
            seed, which = next_uniform(seed)
            position = min(int(which * size), size - 1)
        elif position >= 0:
            entering = -1
        elif size == capacity:
            continue
        gain, ratio, freed = 0.0, 1.0, 1.0
        if entering >= 0:
            gain += 2.0 * kernel.log_scale[entering]
        if position >= 0:
            gain -= 2.0 * kernel.log_scale[members[position]]
            freed = inverse[position, position]
        if kernel.graded:
            now = _propose_members(members, size, entering, position, proposed)
            there = log_volume(kernel.F, proposed[:now], kernel.floor)
            gain += there - here
        elif entering < 0:
            gain += np.log(freed)
        else:
            ratio = _compute_residual(
                kernel, entering, members, size, inverse, column, work
            )
            if position >= 0:
                ratio = freed * ratio + work[position] ** 2
            if ratio <= kernel.floor[entering] * freed:
                continue
            gain += np.log(ratio)
        if not np.log(uniform) < gain:
            continue
        accepted += 1
        if kernel.graded:
            for j in range(size):
                place[members[j]] = -1
            for j in range(now):
                members[j] = proposed[j]
                place[members[j]] = j
            size, here = now, there
            continue
        if position >= 0:
            # The weights of the members that stay, in their new order.
            share = work[position] / freed
            for j in range(size):
                work[j] -= share * inverse[j, position]
            work[position] = work[size - 1]
            size = _drop_item(state, size, position)
        if entering >= 0:
            size = _add_item(state, work, size, entering, ratio / freed)
    return size, seed, accepted
