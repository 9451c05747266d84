"""Branch and bound for the most probable subset, in steps that can be interrupted.

A node has decided on some items: ``count`` of them are in, and ``levels[count]`` holds
the Schur complement ``T`` of the rest, so that taking ``y`` more multiplies the
determinant by ``det T_y``.  No ``y`` can gain more than

- ``Σ log T_ii`` over its items (Hadamard), nor
- the sum of as many of the largest ``log λ_i(T)`` (Cauchy's interlacing),

of which only positive terms count unless a number of items is asked for.  Residuals
shrink along a branch: without such a number, an item with ``T_ii ≤ 1`` is never worth
taking again.  Taking an item is tried before leaving it out, depth first, so that one
matrix a level is enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.graded import log_volume
from variegate.compiled.jit import njit

#: Values that differ by no more than this are equal.  Bounds hold rounding, so that
#: without it every one of many equal subsets would be looked at.
TIE = 1e-9

#: Rounding in eigenvalues, for each of them, as a share of the largest.
_EIGENVALUE_ROUNDING = 1e-15


@njit(cache=True, nogil=True)
def _top_sum(logs: Any, wanted: int) -> float:
    """Sum the ``wanted`` largest, or all positive ones if ``wanted`` is negative."""
    ordered = np.sort(logs)[::-1]
    total = 0.0
    for position in range(len(ordered)):
        if wanted < 0:
            if ordered[position] <= 0.0:
                break
        elif position >= wanted:
            break
        total += ordered[position]
    return total


@njit(cache=True, nogil=True)
def _knapsack(logs: Any, costs: Any, room: float) -> float:
    """Fill ``room`` with fractions of items of positive value, best ratio first."""
    total = 0.0
    for position in np.argsort(-logs / costs):
        if logs[position] <= 0.0 or room <= 0.0:
            break
        share = min(1.0, room / costs[position])
        total += share * logs[position]
        room -= share * costs[position]
    return total


@njit(cache=True, nogil=True)
def _take_from_rows(
    rows: Any, levels: Any, count: int, members: Any, item: int
) -> None:
    """Fill the level of ``count + 1`` items from residuals of rows."""
    before, after, T = rows[count], rows[count + 1], levels[count + 1]
    direction = before[item] / np.sqrt(levels[count, item, item])
    for i in members:
        after[i] = before[i]
        for _ in range(2):
            inner = 0.0
            for d in range(len(direction)):
                inner += after[i, d] * direction[d]
            for d in range(len(direction)):
                after[i, d] -= inner * direction[d]
    for i in members:
        for j in members:
            total = 0.0
            for d in range(len(direction)):
                total += after[i, d] * after[j, d]
            T[i, j] = total


@njit(cache=True, nogil=True)
def search(
    levels: Any,
    rows: Any,
    units: Any,
    log_scale: Any,
    floor_share: Any,
    floor: Any,
    slack: Any,
    costs: Any,
    wanted: int,
    budget: float,
    open_nodes: Any,
    open_values: Any,
    open_bounds: Any,
    open_counts: Any,
    open_spent: Any,
    path: Any,
    top: int,
    best_value: float,
    best_set: Any,
    best_count: int,
    max_nodes: int,
) -> Any:
    """Look at up to ``max_nodes`` nodes; return what has changed.

    Parameters
    ----------
    levels : (N + 1, N, N)
        ``levels[0]`` is ``L``; the rest is filled.
    rows : (N + 1, N, R), or empty
        ``rows[0]`` is a factor of ``L`` whose products would lose digits: Schur
        complements are then made of residuals of its rows.  The rest is filled.
    units, log_scale, floor_share : (N, R), (N,), (N,)
        Those rows at unit length, which say whether a set is possible.
    floor : (N,)
        Residuals up to these are zero.
    slack : (N,)
        Rounding that diagonal entries of Schur complements may hold.
    costs : (N,)
    wanted : int
        The number of items, or -1.
    budget : float
    open_nodes : (2 N + 2, N) of bool
        The undecided items of each open node; the last is looked at next.
    open_values, open_bounds, open_counts, open_spent : (2 N + 2,)
    path : (2 N + 2, N)
        The items that are in, of each open node.
    top : int
        How many nodes are open.
    best_value, best_set, best_count
        The best subset so far.
    """
    n_items = levels.shape[1]
    looked_at = 0
    while top > 0 and looked_at < max_nodes:
        top -= 1
        looked_at += 1
        if open_bounds[top] <= best_value + TIE:
            continue
        count, value, spent = open_counts[top], open_values[top], open_spent[top]
        is_whole = wanted < 0 or count == wanted
        if is_whole and len(rows) and value > best_value:
            value = log_volume(units, path[top, :count], floor_share)
            for position in range(count):
                value += 2.0 * log_scale[path[top, position]]
            if value == -np.inf:
                continue  # and so is every set with these items
        if is_whole and value > best_value:
            best_value, best_count = value, count
            for position in range(count):
                best_set[position] = path[top, position]
        left = wanted - count if wanted >= 0 else -1
        if left == 0:
            continue
        T = levels[count]
        members = np.empty(n_items, dtype=np.int64)
        size = 0
        for item in range(n_items):
            if not open_nodes[top, item]:
                continue
            gone = T[item, item] <= floor[item]
            useless = wanted < 0 and T[item, item] <= 1.0
            dear = spent + costs[item] > budget
            if gone or useless or dear:
                open_nodes[top, item] = False
            else:
                members[size] = item
                size += 1
        if size == 0 or size < left:
            continue
        members = members[:size]
        logs = np.empty(size)
        for position in range(size):
            own = T[members[position], members[position]]
            logs[position] = np.log(own + slack[members[position]])
        bound = value + _top_sum(logs, left)
        if wanted < 0:
            bound = min(bound, value + _knapsack(logs, costs[members], budget - spent))
        if bound <= best_value + TIE:
            continue
        small = np.empty((size, size))
        for i in range(size):
            for j in range(size):
                small[i, j] = T[members[i], members[j]]
        eigenvalues = np.linalg.eigvalsh(small)
        # No eigenvalue is further from the truth than rounding in the matrix, and in
        # the largest of them: what is added makes each a bound.
        error = _EIGENVALUE_ROUNDING * size * max(eigenvalues[size - 1], 0.0)
        for position in range(size):
            error += slack[members[position]]
        for position in range(size):
            logs[position] = np.log(max(eigenvalues[position], 0.0) + error)
        bound = min(bound, value + _top_sum(logs, left))
        if bound <= best_value + TIE:
            continue
        item = members[0]
        for position in range(1, size):
            if T[members[position], members[position]] > T[item, item]:
                item = members[position]
        pivot = T[item, item]
        # Without the item: stays where it is, and is looked at after all with it.
        open_nodes[top, item] = False
        open_bounds[top] = bound
        top += 1
        if len(rows):
            _take_from_rows(rows, levels, count, members, item)
        else:
            child = levels[count + 1]
            for i in members:
                ratio = T[i, item] / pivot
                for j in members:
                    child[i, j] = T[i, j] - ratio * T[item, j]
        open_nodes[top] = open_nodes[top - 1]
        path[top, :count] = path[top - 1, :count]
        path[top, count] = item
        open_counts[top] = count + 1
        open_values[top] = value + np.log(pivot)
        open_bounds[top] = bound
        open_spent[top] = spent + costs[item]
        top += 1
    return top, best_value, best_count, looked_at
