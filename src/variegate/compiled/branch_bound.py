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
from numba import njit


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
def search(
    levels: Any,
    floor: Any,
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
    floor : (N,)
        Residuals up to these are zero.
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
        if open_bounds[top] <= best_value:
            continue
        count, value, spent = open_counts[top], open_values[top], open_spent[top]
        if (wanted < 0 or count == wanted) and value > best_value:
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
            logs[position] = np.log(T[members[position], members[position]])
        bound = value + _top_sum(logs, left)
        if wanted < 0:
            bound = min(bound, value + _knapsack(logs, costs[members], budget - spent))
        if bound <= best_value:
            continue
        small = np.empty((size, size))
        for i in range(size):
            for j in range(size):
                small[i, j] = T[members[i], members[j]]
        eigenvalues = np.linalg.eigvalsh(small)
        for position in range(size):
            logs[position] = np.log(max(eigenvalues[position], 1e-300))
        bound = min(bound, value + _top_sum(logs, left))
        if bound <= best_value:
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
