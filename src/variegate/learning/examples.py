"""Checked examples: a ground set, its wanted subset, and the costs of errors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import (
    GroundSet,
    GroundSetError,
    ValidationError,
    check_error_costs,
    check_ground_sets,
    check_same_features,
    check_subset,
    check_subsets,
    name_position_in_errors,
)


class Example(NamedTuple):
    """A ground set and its wanted items, checked, with the costs of errors.

    ``position`` is its number in messages and ``members`` are item numbers, sorted.
    ``false_positive`` and ``false_negative`` are the costs of choosing an item wrongly
    and of missing it: one number for all items, or an array of shape (N,).
    """

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
    """Return the examples of lists of ground sets and subsets, checked.

    Costs of errors are lists of arrays (N,), by default 1 and ``omega``.
    """
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
    """Yield a checked example of each (ground set, subset) pair.

    Costs of errors are 1 and ``omega``; positions are numbered from ``first`` on.
    """
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
            members = check_subset(subset, ground_set)
            like = like or ground_set
            check_same_features(ground_set, like)
        yield Example(position, ground_set, members, 1.0, omega)


def _error_costs(
    given: Sequence[Any] | None,
    name: str,
    ground_sets: Sequence[GroundSet],
    default: float,
) -> Sequence[FloatArray | float]:
    """Return costs for each ground set: those ``given``, checked, or ``default``.

    Errors call them ``name``.
    """
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


@contextmanager
def label_validation_errors() -> Iterator[None]:
    """Raise a GroundSetError in the block as a ``ValidationError`` (held-out data)."""
    try:
        yield
    except GroundSetError as error:
        raise ValidationError(error.position, error.problem) from error


def check_validation(validation: Any, omega: float) -> list[Example]:
    """Return checked examples of held-out data, a pair (ground sets, subsets).

    A ground set in error raises ValidationError; missing an item costs ``omega``.
    """
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise ValueError(
            "validation must be a pair of lists (ground_sets, subsets), got "
            f"{type(validation).__name__}"
        )
    ground_sets, subsets = validation
    with label_validation_errors():
        return check_examples(ground_sets, subsets, omega)


def fingerprint(examples: Sequence[Example]) -> str:
    """Return the number of examples and a hash of their arrays, as text."""
    digest = hashlib.sha256()
    for example in examples:
        arrays = [
            example.ground_set.quality,
            example.members,
            example.ground_set.given,
        ]
        for block in example.ground_set.blocks.values():
            arrays += [block.data, block.indices] if sparse.issparse(block) else [block]
        costs = (example.false_positive, example.false_negative)
        for array in [*arrays, *(np.asarray(cost) for cost in costs)]:
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return f"{len(examples)} pairs, {digest.hexdigest()[:16]}"
