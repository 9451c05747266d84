"""Searches for the set of items with the largest sum of weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.linalg.compiled import njit


@njit(cache=True, nogil=True)
def search_knapsack(
    weights: Any,
    costs: Any,
    labels: Any,
    room: Any,
    price: float,
    budget: float,
    floor: float,
    max_nodes: int,
    chosen: Any,
) -> Any:
    """Find the ``len(chosen)`` items with the largest sum of weights, above ``floor``.

    The costs of the items sum to at most ``budget``.  ``labels`` (M, N) are a label of
    each item for each of M limits; of label ``g`` at most ``room[g]`` items are taken.

    Items must come in descending order of ``weights - price * costs``, their reduced
    weights.  Whatever the price, no choice of ``m`` items from index ``j`` on that cost
    at most ``b`` has a larger sum of weights than ``price * b`` plus the reduced
    weights of items ``j`` to ``j + m - 1``.  Depth first, with an item before without.

    Returns the largest sum, and the number of nodes visited, which is more than
    ``max_nodes`` if the search was cut short.  ``chosen`` is filled with the indices of
    the items; where no sum exceeds ``floor`` it stays, and ``floor`` is returned.
    """
    n, count = len(weights), len(chosen)
    sums = np.empty(n + 1)
    sums[0] = 0.0
    for j in range(n):
        sums[j + 1] = sums[j] + weights[j] - price * costs[j]
    picks = np.empty(count, dtype=np.int64)
    value, spent = np.empty(count + 1), np.empty(count + 1)
    value[0] = spent[0] = 0.0
    unused = room.copy()
    best, taken, j, n_nodes = floor, 0, 0, 0
    while n_nodes <= max_nodes:
        n_nodes += 1
        left = count - taken
        if left == 0:
            if value[taken] > best:
                best = value[taken]
                for place in range(count):
                    chosen[place] = picks[place]
        elif n - j >= left:
            bound = value[taken] + price * (budget - spent[taken])
            bound += sums[j + left] - sums[j]
            if bound > best + 1e-13 * abs(best):
                fits = spent[taken] + costs[j] <= budget
                for row in range(len(labels)):
                    fits = fits and unused[labels[row, j]] > 0
                if fits:
                    for row in range(len(labels)):
                        unused[labels[row, j]] -= 1
                    picks[taken] = j
                    value[taken + 1] = value[taken] + weights[j]
                    spent[taken + 1] = spent[taken] + costs[j]
                    taken += 1
                j += 1
                continue
        if taken == 0:
            break
        taken -= 1
        for row in range(len(labels)):
            unused[labels[row, picks[taken]]] += 1
        j = picks[taken] + 1
    return best, n_nodes


#: A move is made only if it raises the value by more than this.
_LEAST = 1e-12


@njit(inline="always")
def _ranks_before(weights: Any, i: int, j: int) -> bool:
    """Tell whether item ``i`` has a larger weight than ``j``, or an equal and i < j."""
    return weights[i] > weights[j] or (weights[i] == weights[j] and i < j)


class Problem(NamedTuple):
    """A sum of weights, less repetition, to be maximized."""

    #: (sizes, N): row ``a - 1``, or else the last, has the weights in a set of ``a``.
    table: FloatArray
    likeness: FloatArray  # (N, N)
    repetition: float  # how much likeness counts: see :func:`set_value`
    costs: FloatArray  # (N,)
    budget: float
    labels: IntArray  # (M, N), for each of M limits
    room: IntArray  # (G,), the largest number of items of each label


@njit(cache=True, nogil=True)
def _fill_likeness(
    members: Any, count: int, weights: Any, likeness: Any, out: Any
) -> None:
    """Fill ``out`` with each member's largest likeness to a member of larger weight.

    ``members`` has ``count`` items; 0 where there is none of larger weight.  Of equal
    weights that of the smaller item number counts as larger.
    """
    for a in range(count):
        out[a] = 0.0
        for b in range(count):
            if a != b and _ranks_before(weights, members[b], members[a]):
                out[a] = max(out[a], likeness[members[a], members[b]])


@njit(cache=True, nogil=True)
def set_value(problem: Any, members: Any, count: int) -> float:
    """Return the value of a set: the sum of ``w_i (1 - repetition · l_i)``.

    The set are the first ``count`` of ``members``, ``w`` their weights and ``l_i`` the
    largest likeness of ``i`` to a member of larger weight, 0 if there is none.
    ``problem`` is a :class:`Problem`.
    """
    weights = problem.table[min(count, len(problem.table)) - 1]
    most = np.empty(count)
    _fill_likeness(members, count, weights, problem.likeness, most)
    total = 0.0
    for a in range(count):
        total += weights[members[a]] * (1.0 - problem.repetition * most[a])
    return total


@njit(inline="always")
def _best_addition(problem: Any, members: Any, count: int, skipped: int) -> Any:
    """Return the item whose addition gives the set of largest value, and that value.

    (-1, -inf) if no item fits the budget and the labels.  The set are the first
    ``count`` of ``members``; the item ``skipped`` is not added (N: every item may be).
    """
    weights = problem.table[min(count, len(problem.table) - 1)]
    likeness, costs = problem.likeness, problem.costs
    most = np.empty(count)
    _fill_likeness(members, count, weights, likeness, most)
    spent, left = 0.0, problem.room.copy()
    is_member = np.empty(len(weights), dtype=np.bool_)
    for j in range(len(weights)):
        is_member[j] = j == skipped
    for a in range(count):
        spent += costs[members[a]]
        is_member[members[a]] = True
        for row in range(len(problem.labels)):
            left[problem.labels[row, members[a]]] -= 1
    best, item = -np.inf, -1
    for j in range(len(weights)):
        is_closed = is_member[j] or spent + costs[j] > problem.budget
        for row in range(len(problem.labels)):
            is_closed = is_closed or left[problem.labels[row, j]] <= 0
        if is_closed:
            continue
        own, total = 0.0, 0.0
        for a in range(count):
            i = members[a]
            alike = most[a]
            if _ranks_before(weights, i, j):
                own = max(own, likeness[i, j])
            else:
                alike = max(alike, likeness[i, j])
            total += weights[i] * (1.0 - problem.repetition * alike)
        total += weights[j] * (1.0 - problem.repetition * own)
        if total > best:
            best, item = total, j
    return item, best


@njit(cache=True, nogil=True)
def best_move(
    problem: Any,
    members: Any,
    count: int,
    value: float,
    can_grow: bool,
    can_shrink: bool,
    can_exchange: bool,
) -> Any:
    """Find the move, one item added, dropped or exchanged, to the set of largest value.

    The first ``count`` of ``members`` are the set, of value ``value``, and ``problem``
    is a :class:`Problem`; nothing is changed.  Items are added if ``can_grow``,
    exchanged if ``can_exchange``, and dropped if both ``can_shrink`` and
    ``can_exchange``, but never the last one.

    Returns the value after the move, the index in ``members`` of the item to drop, -1
    for none, and the item to add, -1 for none.  Where no move raises the value by more
    than ``_LEAST``, both are -1, and the number returned first has no meaning.
    """
    best, place, item = value + _LEAST, -1, -1
    rest = np.empty(len(members), dtype=np.int64)
    for a in range(-1 if can_grow else 0, count if can_exchange else 0):
        size, skipped = count, problem.table.shape[1]
        if a >= 0:
            size, skipped = count - 1, members[a]
        for b in range(count):
            if b != a:
                rest[b - (0 <= a < b)] = members[b]
        other, reached = _best_addition(problem, rest, size, skipped)
        if other >= 0 and reached > best:
            best, place, item = reached, a, other
        if a >= 0 and can_shrink and count > 1:
            reached = set_value(problem, rest, size)
            if reached > best:
                best, place, item = reached, a, -1
    return best, place, item
