"""Local search for a set whose items count less the more they are like a better one."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit

#: What a move must add at least.
_LEAST = 1e-12


@njit(cache=True, nogil=True)
def _is_better(weights: Any, i: int, j: int) -> bool:
    return weights[i] > weights[j] or (weights[i] == weights[j] and i < j)


@njit(cache=True, nogil=True)
def fill_likeness(
    members: Any, count: int, weights: Any, likeness: Any, out: Any
) -> None:
    """Fill ``out`` with how like each member is to the likest better one."""
    for a in range(count):
        out[a] = 0.0
        for b in range(count):
            if a != b and _is_better(weights, members[b], members[a]):
                out[a] = max(out[a], likeness[members[a], members[b]])


@njit(cache=True, nogil=True)
def value_of(
    members: Any, count: int, weights: Any, likeness: Any, repetition: float
) -> float:
    """Return ``Σ w_i (1 - repetition · likeness to the likest better member)``."""
    most = np.empty(count)
    fill_likeness(members, count, weights, likeness, most)
    total = 0.0
    for a in range(count):
        total += weights[members[a]] * (1.0 - repetition * most[a])
    return total


@njit(cache=True, nogil=True)
def _best_addition(
    members: Any,
    count: int,
    weights: Any,
    likeness: Any,
    repetition: float,
    costs: Any,
    budget: float,
    skipped: int,
) -> Any:
    """Return the item to add to some members, -1 if none fits, and the value then."""
    most = np.empty(count)
    fill_likeness(members, count, weights, likeness, most)
    spent = 0.0
    is_member = np.zeros(len(weights), dtype=np.bool_)
    for a in range(count):
        spent += costs[members[a]]
        is_member[members[a]] = True
    best, item = -np.inf, -1
    for j in range(len(weights)):
        if is_member[j] or j == skipped or spent + costs[j] > budget:
            continue
        own, total = 0.0, 0.0
        for a in range(count):
            i = members[a]
            alike = most[a]
            if _is_better(weights, i, j):
                own = max(own, likeness[i, j])
            else:
                alike = max(alike, likeness[i, j])
            total += weights[i] * (1.0 - repetition * alike)
        total += weights[j] * (1.0 - repetition * own)
        if total > best:
            best, item = total, j
    return item, best


@njit(cache=True, nogil=True)
def _fill_up(
    weights: Any,
    likeness: Any,
    repetition: float,
    costs: Any,
    budget: float,
    size: int,
    members: Any,
    count: int,
) -> int:
    """Add one item after the other while there are fewer than ``size`` and one fits."""
    while count < size:
        item, _ = _best_addition(
            members, count, weights, likeness, repetition, costs, budget, -1
        )
        if item < 0:
            break
        members[count] = item
        count += 1
    return count


@njit(cache=True, nogil=True)
def _best_move(
    table: Any,
    likeness: Any,
    repetition: float,
    costs: Any,
    budget: float,
    is_fixed: bool,
    members: Any,
    count: int,
    value: float,
) -> Any:
    """Return the value after the best move, the place it empties and what it adds.

    The place is -1 where nothing is dropped, the item where nothing is added.
    """
    best, place, item = value + _LEAST, -1, -1
    rest = np.empty_like(members)
    if not is_fixed and count < len(members):
        other, reached = _best_addition(
            members, count, table[count], likeness, repetition, costs, budget, -1
        )
        if other >= 0 and reached > best:
            best, item = reached, other
    for a in range(count):
        for b in range(count):
            rest[b - (b > a)] = members[b]
        weights = table[0 if is_fixed else count - 1]
        other, reached = _best_addition(
            rest, count - 1, weights, likeness, repetition, costs, budget, members[a]
        )
        if other >= 0 and reached > best:
            best, place, item = reached, a, other
        if not is_fixed and count > 1:
            weights = table[count - 2]
            reached = value_of(rest, count - 1, weights, likeness, repetition)
            if reached > best:
                best, place, item = reached, a, -1
    return best, place, item


@njit(cache=True, nogil=True)
def climb(
    table: Any,
    likeness: Any,
    repetition: float,
    costs: Any,
    budget: float,
    size: int,
    members: Any,
    count: int,
) -> Any:
    """Add, drop and exchange items, the best move first, until none helps.

    Parameters
    ----------
    table : (sizes, N)
        Row ``a - 1`` has the weights in a set of ``a`` items; one row if all sets have
        ``size`` items.
    likeness : (N, N)
    repetition : float
    costs : (N,)
    budget : float
    size : int
        The number of items; -1 for any number.
    members : (largest,), overwritten
        The first ``count`` are a set within the budget.

    Returns
    -------
    count : int
    value : float
        -inf where fewer than ``size`` were found within the budget.
    """
    is_fixed = size >= 0
    least = size if is_fixed else 1
    count = _fill_up(
        table[0], likeness, repetition, costs, budget, least, members, count
    )
    if count < least:
        return count, -np.inf
    weights = table[0 if is_fixed else count - 1]
    value = value_of(members, count, weights, likeness, repetition)
    while True:
        best, place, item = _best_move(
            table, likeness, repetition, costs, budget, is_fixed, members, count, value
        )
        if place < 0 and item < 0:
            return count, value
        value = best
        if place < 0:
            members[count] = item
            count += 1
        elif item >= 0:
            members[place] = item
        else:
            for b in range(place, count - 1):
                members[b] = members[b + 1]
            count -= 1
