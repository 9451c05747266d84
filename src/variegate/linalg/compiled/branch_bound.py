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

from variegate.linalg.compiled import njit

#: Values that differ by no more than this are equal.  Bounds hold rounding, so that
#: without it every one of many equal subsets would be looked at.
TIE = 1e-9

#: Rounding in eigenvalues, for each of them, as a share of the largest.
_EIGENVALUE_ROUNDING = 1e-15


@njit(inline="always")
def _list_members(
    T: Any,
    is_open: Any,
    floor: Any,
    costs: Any,
    wanted: int,
    spent: float,
    budget: float,
    members: Any,
) -> int:
    """List the open items that may be taken, close the others, return how many."""
    size = 0
    for item in range(len(T)):
        if not is_open[item]:
            continue
        gone = T[item, item] <= floor[item]
        useless = wanted < 0 and T[item, item] <= 1.0
        dear = spent + costs[item] > budget
        if gone or useless or dear:
            is_open[item] = False
        else:
            members[size] = item
            size += 1
    return size


@njit(inline="always")
def _bound_by_diagonal(
    T: Any,
    slack: Any,
    costs: Any,
    members: Any,
    size: int,
    left: int,
    room: float,
    work: Any,
) -> float:
    """Return the largest gain of taking ``left`` more members.

    For any number of members, -1, what fractions of those of positive gain make of the
    room within the budget, the best ratio first.
    """
    logs, keys = work[0], work[1]
    total, taken = 0.0, 0
    for position in range(size):
        item = members[position]
        logs[position] = keys[position] = np.log(T[item, item] + slack[item])
        if left < 0:
            keys[position] /= costs[item]
            total += max(logs[position], 0.0)
    if left < 0 and room == np.inf:
        return total
    total = 0.0
    while taken < size and taken != left:
        best = 0
        for position in range(1, size):
            if keys[position] > keys[best]:
                best = position
        share = 1.0
        if left < 0:
            if logs[best] <= 0.0 or room <= 0.0:
                break
            share = min(1.0, room / costs[members[best]])
            room -= share * costs[members[best]]
        total += share * logs[best]
        keys[best] = -np.inf
        taken += 1
    return total


@njit(inline="always")
def _bound_by_spectrum(
    T: Any,
    slack: Any,
    members: Any,
    size: int,
    left: int,
    eigenvalues_of: Any,
    numbers: Any,
    work: Any,
    small: Any,
) -> float:
    """Return the same from the sums of the largest eigenvalues."""
    values = work[0]
    for i in range(size):
        for j in range(size):
            small[i * size + j] = T[members[i], members[j]]
    numbers[2] = size
    eigenvalues_of(
        numbers[0:].ctypes,
        numbers[1:].ctypes,
        numbers[2:].ctypes,
        small.ctypes,
        numbers[2:].ctypes,
        values.ctypes,
        work[1].ctypes,
        numbers[3:].ctypes,
        numbers[4:].ctypes,
    )
    if numbers[4] != 0:
        return np.inf
    # No eigenvalue is further from the truth than rounding in the matrix, and in the
    # largest of them: what is added makes each a bound.
    error = _EIGENVALUE_ROUNDING * size * max(values[size - 1], 0.0)
    for i in range(size):
        error += slack[members[i]]
    total = 0.0
    for i in range(size - 1, -1, -1):  # they ascend
        gain = np.log(max(values[i], 0.0) + error)
        if left == size - 1 - i or (left < 0 and gain <= 0.0):
            break
        total += gain
    return total


@njit(inline="always")
def _take(levels: Any, count: int, members: Any, size: int, item: int) -> None:
    """Fill the level of ``count + 1`` items by Schur complements."""
    T, child = levels[count], levels[count + 1]
    pivot = T[item, item]
    for a in range(size):
        i = members[a]
        ratio = T[i, item] / pivot
        for b in range(size):
            j = members[b]
            child[i, j] = T[i, j] - ratio * T[item, j]


@njit(inline="always")
def _take_from_rows(
    rows: Any, levels: Any, count: int, members: Any, size: int, item: int
) -> None:
    """Fill the level of ``count + 1`` items from residuals of rows."""
    before, after, T = rows[count], rows[count + 1], levels[count + 1]
    # What is left of the item itself is not looked at again.
    direction = after[item]
    root = np.sqrt(levels[count, item, item])
    for d in range(len(direction)):
        direction[d] = before[item, d] / root
    for a in range(size):
        i = members[a]
        if i == item:
            continue
        for d in range(len(direction)):
            after[i, d] = before[i, d]
        for _ in range(2):
            inner = 0.0
            for d in range(len(direction)):
                inner += after[i, d] * direction[d]
            for d in range(len(direction)):
                after[i, d] -= inner * direction[d]
        for b in range(a + 1):
            j = members[b]
            total = 0.0
            for d in range(len(direction)):
                total += after[i, d] * after[j, d]
            T[i, j] = T[j, i] = total


@njit(cache=True, nogil=True)
def search(
    levels: Any,
    rows: Any,
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
    is_certain: bool,
    best_value: float,
    best_set: Any,
    best_count: int,
    max_nodes: int,
    eigenvalues_of: Any,
    numbers: Any,
    work: Any,
    small: Any,
    members: Any,
) -> Any:
    """Look at up to ``max_nodes`` nodes; return what has changed.

    With ``rows``, values do not tell whether a set is possible: before a node with a
    better set than the best, unless its value is certain, the search stops.

    Parameters
    ----------
    levels : (N + 1, N, N)
        ``levels[0]`` is ``L``; the rest is filled.
    rows : (N + 1, N, R), or empty
        ``rows[0]`` is a factor of ``L`` whose products would lose digits: Schur
        complements are then made of residuals of its rows.  The rest is filled.
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
    is_certain : bool
        Whether the value of the next node is certain although there are ``rows``.
    best_value, best_set, best_count
        The best subset so far.
    eigenvalues_of, numbers
        LAPACK's ``dsyev``, and its arguments that are characters or integers: which
        values, which triangle, ``n``, the size of its workspace, whether it failed.
    work, small, members : (2, at least N), (N²,), (N,)
        Room to work in; of ``work``, the second row is the workspace of LAPACK.
    """
    n_items = levels.shape[1]
    looked_at, is_in_doubt = 0, False
    while top > 0 and looked_at < max_nodes:
        top -= 1
        if open_bounds[top] <= best_value + TIE:
            looked_at += 1
            continue
        count, value, spent = open_counts[top], open_values[top], open_spent[top]
        is_whole = wanted < 0 or count == wanted
        if is_whole and value > best_value:
            is_in_doubt = len(rows) > 0 and not is_certain
            if is_in_doubt:
                top += 1
                break
            best_value, best_count = value, count
            for position in range(count):
                best_set[position] = path[top, position]
        looked_at, is_certain = looked_at + 1, False
        left = wanted - count if wanted >= 0 else -1
        if left == 0:
            continue
        T = levels[count]
        size = _list_members(
            T, open_nodes[top], floor, costs, wanted, spent, budget, members
        )
        if size == 0 or size < left:
            continue
        room = budget - spent
        bound = value + _bound_by_diagonal(
            T, slack, costs, members, size, left, room, work
        )
        if bound <= best_value + TIE:
            continue
        gain = _bound_by_spectrum(
            T, slack, members, size, left, eigenvalues_of, numbers, work, small
        )
        bound = min(bound, value + gain)
        if bound <= best_value + TIE:
            continue
        item = members[0]
        for position in range(1, size):
            if T[members[position], members[position]] > T[item, item]:
                item = members[position]
        # Without the item: stays where it is, and is looked at after all with it.
        open_nodes[top, item] = False
        open_bounds[top] = bound
        top += 1
        if len(rows):
            _take_from_rows(rows, levels, count, members, size, item)
        else:
            _take(levels, count, members, size, item)
        for other in range(n_items):
            open_nodes[top, other] = open_nodes[top - 1, other]
        for position in range(count):
            path[top, position] = path[top - 1, position]
        path[top, count] = item
        open_counts[top] = count + 1
        open_values[top] = value + np.log(T[item, item])
        open_bounds[top] = bound
        open_spent[top] = spent + costs[item]
        top += 1
    return top, best_value, best_count, looked_at, is_in_doubt
