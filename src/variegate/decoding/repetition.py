"""Expected F where an item counts less the more it is like a better one chosen."""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.decoding.base import Constraint
from variegate.decoding.size_search import Best, SizeSearch, largest
from variegate.linalg.limits import REPEATED_ITEMS
from variegate.linalg.representations import Representation

#: The power of a similarity that counts as repetition.  Learned similarities of unlike
#: items are often 0.5 to 0.7, which is not to count: 0.03 at most is left of them, of
#: 0.9 there is 0.43.  On generated tables the second power cost 0.07 of the F-score.
_POWER = 8


def without_copies(
    search: SizeSearch,
    plain: Best,
    kernel: Representation,
    constraint: Constraint,
    repetition: float,
) -> Best:
    """Climb from the best set without regard to repetition, and from the empty set."""
    from variegate.linalg.compiled import read_only

    if search.largest == 0 or constraint.k == 0:
        return plain
    pool = _pool(search, plain)
    most = min(search.largest, len(pool), 2 * len(plain.members) + 16)
    sizes = np.arange(1, most + 1) if constraint.k is None else np.array([constraint.k])
    table = search.weights.at(sizes, pool)
    likeness = kernel.submatrix(pool) ** _POWER
    starts = [np.searchsorted(pool, plain.members), np.zeros(0, dtype=np.intp)]
    found: list[tuple[float, IntArray]] = []
    if constraint.k is None:
        found.append((search.weights.empty, starts[1]))
    given = (
        read_only(table), read_only(likeness), float(repetition),
        read_only(search.costs[pool]), float(search.budget),
    )  # fmt: skip
    for start in starts:
        members = np.zeros(sizes[-1], dtype=np.int64)
        members[: len(start)] = start
        value, count = _climb(given, members, len(start), constraint.k)
        found.append((value, np.sort(pool[members[:count]])))
    value, best = max(found, key=lambda pair: pair[0])
    return Best(best, float(value), plain.bound)


def _climb(
    given: tuple[FloatArray, FloatArray, float, FloatArray, float],
    members: IntArray,
    count: int,
    k: int | None,
) -> tuple[float, int]:
    """Add, drop and exchange items, the best move first, until none helps.

    ``given`` are the first arguments of the compiled search for a move.  The first
    ``count`` of ``members`` are a set within the budget; they are overwritten.

    Returns
    -------
    value : float
        -inf where fewer than ``k`` were found within the budget.
    count : int
    """
    from variegate.linalg.compiled.weighted_sets import best_move, value_of

    table, likeness, repetition = given[:3]
    while count < (1 if k is None else k):
        _, _, item = best_move(*given, members, count, -np.inf, True, False, False)
        if item < 0:
            return -np.inf, count
        members[count] = item
        count += 1
    weights = table[min(count, len(table)) - 1]
    value = value_of(members, count, weights, likeness, repetition)
    while True:
        can_grow = k is None and count < len(members)
        best, place, item = best_move(
            *given, members, count, value, can_grow, k is None, True
        )
        if place < 0 and item < 0:
            return value, count
        value = best
        if place < 0:
            members[count] = item
            count += 1
        elif item >= 0:
            members[place] = item
        else:
            members[place : count - 1] = members[place + 1 : count].copy()
            count -= 1


def _pool(search: SizeSearch, plain: Best) -> IntArray:
    size = max(len(plain.members), 1)
    if size > REPEATED_ITEMS:
        raise ValueError(
            f"with repetition at most {REPEATED_ITEMS} items are chosen, and the best "
            f"set has {size}: give a smaller k or a budget, or set repetition=0"
        )
    weights: FloatArray = search.weights.at(np.array([size]))[0]
    pool = largest(weights, min(REPEATED_ITEMS, len(weights)))
    return np.union1d(pool, plain.members)
