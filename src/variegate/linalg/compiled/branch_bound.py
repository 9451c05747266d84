"""Branch and bound for the most probable subset, in steps that can be interrupted.

A node has decided on some items: ``count`` of them are in, and ``levels[count]`` holds
the Schur complement ``T`` of the rest, so that taking ``y`` more multiplies the
determinant by ``det T_y``.  No ``y`` can gain more than

- ``Σ log T_ii`` over its items (Hadamard), nor
- the sum of as many of the largest ``log λ_i(T)`` (Cauchy's interlacing),

of which only positive terms count unless the number of items is given.  Residuals
shrink along a branch: without a given number, an item with ``T_ii ≤ 1`` is excluded
below it.  Depth first, with an item before without it, so that one matrix a level is
enough.

With a limit on the items of each label, the items of a used up label are excluded
below a node, and the first sum is bounded by the largest terms within each limit alone.

In functions, the *members* are the first ``size`` entries of ``arrays.members``, the
items that may still be taken; ``n_more`` is how many of them are to be taken, -1 for
any number; and ``arrays`` are :class:`WorkArrays`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.linalg.compiled import njit

#: Values that differ by no more than this are equal.  As bounds include rounding, each
#: of many equal subsets would be visited without it.
TIE = 1e-9

#: Rounding in eigenvalues, for each of them, as a share of the largest.
_EIGENVALUE_ROUNDING = 1e-15


class Problem(NamedTuple):
    """The tolerances and the constraint of a search; arrays are (N,) unless noted."""

    floor: FloatArray  # residuals up to these are zero
    slack: FloatArray  # rounding in diagonal entries of Schur complements
    costs: FloatArray
    wanted: int  # the number of items, or -1
    budget: float
    labels: IntArray  # (M, N), for each of M limits
    room: IntArray  # (G,), the largest number of items of each label


class OpenNodes(NamedTuple):
    """The open nodes of a search, one a row, as a stack: the last is visited next."""

    undecided: BoolArray  # (2 N + 2, N): items neither chosen nor excluded
    path: IntArray  # (2 N + 2, N): the first ``counts`` of a row are chosen items
    counts: IntArray  # (2 N + 2,), as are the arrays below
    values: FloatArray  # log det of the chosen items
    bounds: FloatArray  # upper bounds of the values of all sets below the node
    spent: FloatArray  # sums of costs of the chosen items


class WorkArrays(NamedTuple):
    """Work arrays, and LAPACK's ``dsyev`` with its arguments."""

    eigenvalues_of: Any  # dsyev
    numbers: npt.NDArray[np.int32]  # of lapack.dsyev_arguments
    work: FloatArray  # (2, at least N); the second row is LAPACK's workspace
    small: FloatArray  # (N²,)
    members: IntArray  # (N,)
    left: IntArray  # (G,), the number of items of each label that still fit


@njit(inline="always")
def _count_left(problem: Any, path: Any, count: int, left: Any) -> None:
    """Fill ``left`` (G,): how many of each label fit beside ``path[:count]``."""
    left[:] = problem.room
    for row in range(len(problem.labels)):
        for position in range(count):
            left[problem.labels[row, path[position]]] -= 1


@njit(inline="always")
def _list_candidates(
    T: Any, is_open: Any, problem: Any, spent: float, members: Any, left: Any
) -> int:
    """Fill ``members`` with the open items that may be taken; return their number.

    Others are closed, ``is_open`` (N,) False: those in the span of chosen items, beyond
    the budget after ``spent``, of a label without room in ``left`` (G,), or, where any
    number may be taken, without gain.
    """
    size = 0
    for item in range(len(T)):
        if not is_open[item]:
            continue
        gone = T[item, item] <= problem.floor[item]
        useless = problem.wanted < 0 and T[item, item] <= 1.0
        dear = spent + problem.costs[item] > problem.budget
        for row in range(len(problem.labels)):
            gone = gone or left[problem.labels[row, item]] <= 0
        if gone or useless or dear:
            is_open[item] = False
        else:
            members[size] = item
            size += 1
    return size


@njit(inline="always")
def _bound_by_diagonal(
    T: Any,
    problem: Any,
    arrays: Any,
    size: int,
    n_more: int,
    affordable: float,
    row: int,
) -> float:
    """Return an upper bound on the log det gained by taking ``n_more`` members.

    By the diagonal of the Schur complement ``T``: the largest gains, without regard to
    costs, within the limits ``arrays.left`` (overwritten) of the labels in ``row``, -1
    for no limits.  For any number and no limits, a fractional knapsack of positive
    gains within ``affordable``, the budget left.  -inf if fewer than ``n_more`` fit.
    """
    logs, keys = arrays.work[0], arrays.work[1]
    members, costs = arrays.members, problem.costs
    total, taken = 0.0, 0
    for position in range(size):
        item = members[position]
        logs[position] = keys[position] = np.log(T[item, item] + problem.slack[item])
        if n_more < 0 and row < 0:
            keys[position] /= costs[item]
            total += max(logs[position], 0.0)
    if n_more < 0 and row < 0 and affordable == np.inf:
        return total
    total = 0.0
    while taken != n_more:
        best = 0
        for position in range(1, size):
            if keys[position] > keys[best]:
                best = position
        if keys[best] == -np.inf or (n_more < 0 and logs[best] <= 0.0):
            break
        keys[best], share = -np.inf, 1.0
        if row >= 0:
            label = problem.labels[row, members[best]]
            if arrays.left[label] <= 0:
                continue
            arrays.left[label] -= 1
        elif n_more < 0:
            if affordable <= 0.0:
                break
            share = min(1.0, affordable / costs[members[best]])
            affordable -= share * costs[members[best]]
        total += share * logs[best]
        taken += 1
    return total if taken >= n_more else -np.inf


@njit(inline="always")
def _bound_by_spectrum(
    T: Any, problem: Any, arrays: Any, size: int, n_more: int
) -> float:
    """Return an upper bound on the log det gained by taking ``n_more`` members.

    From the largest eigenvalues of ``T``, without costs and labels; infinite where
    LAPACK fails.
    """
    values, members = arrays.work[0], arrays.members
    numbers, small = arrays.numbers, arrays.small
    for i in range(size):
        for j in range(size):
            small[i * size + j] = T[members[i], members[j]]
    numbers[2] = size
    arrays.eigenvalues_of(
        numbers[0:].ctypes,
        numbers[1:].ctypes,
        numbers[2:].ctypes,
        small.ctypes,
        numbers[2:].ctypes,
        values.ctypes,
        arrays.work[1].ctypes,
        numbers[3:].ctypes,
        numbers[4:].ctypes,
    )
    if numbers[4] != 0:
        return np.inf
    # No eigenvalue is further from the truth than rounding in the matrix, and in the
    # largest of them: what is added makes each a bound.
    error = _EIGENVALUE_ROUNDING * size * max(values[size - 1], 0.0)
    for i in range(size):
        error += problem.slack[members[i]]
    total = 0.0
    for i in range(size - 1, -1, -1):  # they ascend
        gain = np.log(max(values[i], 0.0) + error)
        if n_more == size - 1 - i or (n_more < 0 and gain <= 0.0):
            break
        total += gain
    return total


@njit(inline="always")
def _fill_schur_complement(
    levels: Any, count: int, members: Any, size: int, item: int
) -> None:
    """Fill ``levels[count + 1]`` with that of ``levels[count]`` after taking an item.

    Only the rows and columns of the members are filled.
    """
    T, child = levels[count], levels[count + 1]
    pivot = T[item, item]
    for a in range(size):
        i = members[a]
        ratio = T[i, item] / pivot
        for b in range(size):
            j = members[b]
            child[i, j] = T[i, j] - ratio * T[item, j]


@njit(inline="always")
def _fill_schur_complement_of_rows(
    rows: Any, levels: Any, count: int, members: Any, size: int, item: int
) -> None:
    """Do as ``_fill_schur_complement``, by residuals of the rows of a factor.

    Fills ``rows[count + 1]`` with the rows of the members less their projections on the
    row of the item, and ``levels[count + 1]`` with their inner products.
    """
    before, after, T = rows[count], rows[count + 1], levels[count + 1]
    # The residual of the item itself is not read again.
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


@njit(inline="always")
def _open_child(nodes: Any, parent: int, item: int, value: float, cost: float) -> None:
    """Fill row ``parent + 1`` of the open nodes: that of row ``parent`` and an item.

    ``value`` and ``cost`` are the log det and the total cost with the item.
    """
    child, count = parent + 1, nodes.counts[parent]
    for other in range(nodes.undecided.shape[1]):
        nodes.undecided[child, other] = nodes.undecided[parent, other]
    for position in range(count):
        nodes.path[child, position] = nodes.path[parent, position]
    nodes.path[child, count] = item
    nodes.counts[child] = count + 1
    nodes.values[child] = value
    nodes.bounds[child] = nodes.bounds[parent]
    nodes.spent[child] = cost


@njit(cache=True, nogil=True)
def search_nodes(
    problem: Any,
    levels: Any,
    rows: Any,
    nodes: Any,
    arrays: Any,
    max_nodes: int,
    progress: Any,
    best_set: Any,
) -> Any:
    """Visit up to ``max_nodes`` open nodes of a search, depth first.

    With ``rows``, values do not tell whether a set is possible: before a node with a
    better set than the best, unless its value is certain, the search stops.

    Parameters
    ----------
    problem, nodes, arrays : Problem, OpenNodes, WorkArrays; the last two are updated
    levels : (N + 1, N, N)
        ``levels[0]`` is ``L``; the rest is filled.
    rows : (N + 1, N, R), or empty
        ``rows[0]`` is a factor of ``L`` whose products would lose digits: Schur
        complements are then made of residuals of its rows.  The rest is filled.
    progress : tuple
        The number of open nodes, the value of the best subset so far, its number of
        items, and whether the value of the next node is certain despite ``rows``.
    best_set : (N,)
        Its first entries are the best subset so far; overwritten by a better one.

    Returns
    -------
    n_open, best_value, best_count, n_visited, is_in_doubt
        The number of nodes still open (0: the best subset is proved), value and number
        of items of the best subset, the number of nodes visited now, and whether the
        search stopped at a node whose value is not certain.
    """
    top, best_value, best_count, is_certain = progress
    members, wanted = arrays.members, problem.wanted
    looked_at, is_in_doubt = 0, False
    while top > 0 and looked_at < max_nodes:
        top -= 1
        if nodes.bounds[top] <= best_value + TIE:
            looked_at += 1
            continue
        count, value, spent = nodes.counts[top], nodes.values[top], nodes.spent[top]
        is_whole = wanted < 0 or count == wanted
        if is_whole and value > best_value:
            is_in_doubt = len(rows) > 0 and not is_certain
            if is_in_doubt:
                top += 1
                break
            best_value, best_count = value, count
            for position in range(count):
                best_set[position] = nodes.path[top, position]
        looked_at, is_certain = looked_at + 1, False
        n_more = wanted - count if wanted >= 0 else -1
        if n_more == 0:
            continue
        T = levels[count]
        _count_left(problem, nodes.path[top], count, arrays.left)
        size = _list_candidates(
            T, nodes.undecided[top], problem, spent, members, arrays.left
        )
        if size == 0 or size < n_more:
            continue
        affordable = problem.budget - spent
        bound = np.inf
        for row in range(-1, len(problem.labels)):
            gain = _bound_by_diagonal(T, problem, arrays, size, n_more, affordable, row)
            bound = min(bound, value + gain)
        if bound <= best_value + TIE:
            continue
        gain = _bound_by_spectrum(T, problem, arrays, size, n_more)
        bound = min(bound, value + gain)
        if bound <= best_value + TIE:
            continue
        item = members[0]
        for position in range(1, size):
            if T[members[position], members[position]] > T[item, item]:
                item = members[position]
        # Without the item: stays in place, and is visited after all nodes with it.
        nodes.undecided[top, item] = False
        nodes.bounds[top] = bound
        if len(rows):
            _fill_schur_complement_of_rows(rows, levels, count, members, size, item)
        else:
            _fill_schur_complement(levels, count, members, size, item)
        reached = value + np.log(T[item, item])
        _open_child(nodes, top, item, reached, spent + problem.costs[item])
        top += 2
    return top, best_value, best_count, looked_at, is_in_doubt
