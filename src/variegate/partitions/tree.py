"""One order of adding up, whoever adds.

Sums of floating-point numbers depend on their order.  Here it follows from the number
of summands alone: :data:`FAN_IN` neighbours are added from left to right, then as many
neighbouring sums, until one is left.  However many workers there are, and whichever is
done first, the result has the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

R = TypeVar("R")

#: How many neighbours are added in one go.
FAN_IN = 8


def bundles(summands: Sequence[R]) -> list[Sequence[R]]:
    """Return one level of the tree: neighbours that are added by :func:`add_up`."""
    return [summands[k : k + FAN_IN] for k in range(0, len(summands), FAN_IN)]


def add_up(add: Callable[[R, R], R], summands: Sequence[R]) -> R:
    """Add neighbours from left to right."""
    total = summands[0]
    for summand in summands[1:]:
        total = add(total, summand)
    return total


def add_in_tree(add: Callable[[R, R], R], summands: Iterable[R]) -> R:
    """Add summands as they come, holding no more than a bundle of each level.

    The same as adding up :func:`bundles`, then those of the sums, and so on.
    """
    levels: list[list[R]] = []
    for summand in summands:
        _insert(add, levels, 0, summand)
    if not levels:
        raise ValueError("there is nothing to add up")
    for height in range(len(levels) - 1):
        if levels[height]:
            _insert(add, levels, height + 1, add_up(add, levels[height]))
    return add_up(add, levels[-1])


def _insert(
    add: Callable[[R, R], R], levels: list[list[R]], height: int, value: R
) -> None:
    """Put a value on a level; one that is full goes up as its sum."""
    if height == len(levels):
        levels.append([])
    levels[height].append(value)
    if len(levels[height]) == FAN_IN:
        total = add_up(add, levels[height])
        levels[height] = []
        _insert(add, levels, height + 1, total)
