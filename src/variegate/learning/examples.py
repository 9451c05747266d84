"""Checked examples: a ground set, its wanted subset, and the costs of errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import (
    GroundSet,
    check_error_costs,
    check_ground_sets,
    check_same_features,
    check_subsets,
    name_position_in_errors,
)
from variegate.subsets import as_members


class Example(NamedTuple):
    """A checked pair, with its place among all pairs and its error costs."""

    position: int
    ground_set: GroundSet
    members: IntArray
    false_positive: FloatArray | float
    false_negative: FloatArray | float


def check_examples(
    ground_sets: Any,
    subsets: Any,
    omega: float,
    false_positive: Sequence[Any] | None = None,
    false_negative: Sequence[Any] | None = None,
) -> list[Example]:
    """Check two lists, and the costs of errors if these are given."""
    checked = check_ground_sets(ground_sets)
    columns = (
        check_subsets(subsets, checked),
        _error_costs(false_positive, "false_positive", checked, 1.0),
        _error_costs(false_negative, "false_negative", checked, omega),
    )
    return list(map(Example, range(len(checked)), checked, *columns))


def check_pairs(
    pairs: Iterable[Any], omega: float, first: int = 0
) -> Iterator[Example]:
    """Yield the examples of (ground set, subset) pairs, numbered from ``first`` on."""
    like: GroundSet | None = None
    for position, pair in enumerate(pairs, start=first):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(
                f"pair {position} is a {type(pair).__name__}, not a (ground set, "
                "subset) pair; to learn from two lists, give both"
            )
        ground_set, subset = pair
        with name_position_in_errors(position):
            if not isinstance(ground_set, GroundSet):
                ground_set = GroundSet(ground_set)
            members = as_members(subset, len(ground_set))
            like = like or ground_set
            check_same_features(ground_set, like)
        yield Example(position, ground_set, members, 1.0, omega)


def _error_costs(
    given: Sequence[Any] | None,
    name: str,
    ground_sets: Sequence[GroundSet],
    default: float,
) -> Sequence[FloatArray | float]:
    if given is None:
        return [default] * len(ground_sets)
    if not hasattr(given, "__len__"):
        raise ValueError(f"{name} must be a list of arrays, got {given!r}")
    if len(given) != len(ground_sets):
        raise ValueError(f"{len(given)} {name} for {len(ground_sets)} ground sets")
    checked = []
    for position, costs in enumerate(given):
        with name_position_in_errors(position):
            n_items = len(ground_sets[position])
            checked.append(check_error_costs(costs, n_items, name))
    return checked
