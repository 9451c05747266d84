"""A Markov chain over subsets: add, drop, swap (Kang, 2013).

The chain needs entries of the kernel only for the items it proposes.  The inverse of
``S_y`` is kept, in the order of the members, and updated in ``O(|y|²)`` a step: adding
an item borders it, dropping one takes its Schur complement, a swap does both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit
from variegate.compiled.random import next_uniform


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
