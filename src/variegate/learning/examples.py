"""Checked examples, in memory or read from a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import (
    GroundSet,
    check_error_costs,
    check_ground_sets,
    check_same_features,
    check_subsets,
    naming,
)
from variegate.subsets import as_members


class Example(NamedTuple):
    """A checked pair, with its place in the stream and its error costs."""

    position: int
    ground_set: GroundSet
    members: IntArray
    false_positive: FloatArray | float
    false_negative: FloatArray | float


def check_stream(pairs: Any) -> None:
    """Refuse what cannot be iterated over again and again."""
    try:
        iterator = iter(pairs)
    except TypeError:
        raise ValueError(
            "without subsets, the first argument must be an iterable of "
            f"(ground set, subset) pairs, got {pairs!r}"
        ) from None
    if iterator is pairs:
        raise ValueError(
            f"a {type(pairs).__name__} can be read only once, but learning reads the "
            "pairs several times (for the kernel, for every epoch, to go on from a "
            "checkpoint). Pass an object whose iter() begins again: a list, a "
            "variegate.streaming.PairFolder (write_pairs makes one of a generator), "
            "or an object of your own with an __iter__ method"
        )


class Examples:
    """The checked examples of a stream of pairs.

    Parameters
    ----------
    pairs : re-iterable of (GroundSet, subset)
        One that has a method ``starting_at(position)`` is asked for it when a run goes
        on from a checkpoint; otherwise pairs are read and thrown away.
    omega : float
        The cost of missing an item.
    """

    def __init__(self, pairs: Iterable[Any], omega: float) -> None:
        check_stream(pairs)
        self._pairs = pairs
        self._omega = omega
        self._first: GroundSet | None = None

    def __len__(self) -> int:
        return len(self._pairs)  # type: ignore[arg-type]

    def starting_at(self, position: int) -> Iterator[Example]:
        """Yield the examples from ``position`` on."""
        if hasattr(self._pairs, "starting_at"):
            pairs = self._pairs.starting_at(position)
        else:
            pairs = islice(self._pairs, position, None)
        for here, pair in enumerate(pairs, start=position):
            yield self._checked(here, pair)

    def _checked(self, position: int, pair: Any) -> Example:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(
                f"pair {position} of the stream is a {type(pair).__name__}, not a "
                "(ground set, subset) pair; to learn from two lists, give both"
            )
        ground_set, subset = pair
        with naming(position):
            if not isinstance(ground_set, GroundSet):
                ground_set = GroundSet(ground_set)
            members = as_members(subset, len(ground_set))
            self._first = self._first or ground_set
            check_same_features(ground_set, self._first)
        return Example(position, ground_set, members, 1.0, self._omega)


class ListedExamples:
    """Examples that are all in memory."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self.examples = examples

    @classmethod
    def of(
        cls,
        ground_sets: Any,
        subsets: Any,
        omega: float,
        false_positive: Sequence[Any] | None = None,
        false_negative: Sequence[Any] | None = None,
    ) -> ListedExamples:
        """Check two lists, and the costs of errors if these are given."""
        checked = check_ground_sets(ground_sets)
        columns = (
            check_subsets(subsets, checked),
            _error_costs(false_positive, "false_positive", checked, 1.0),
            _error_costs(false_negative, "false_negative", checked, omega),
        )
        return cls(list(map(Example, range(len(checked)), checked, *columns)))

    def __len__(self) -> int:
        return len(self.examples)

    def starting_at(self, position: int) -> Iterator[Example]:
        """Yield the examples from ``position`` on."""
        return islice(self.examples, position, None)


def as_examples(
    ground_sets: Any,
    subsets: Any,
    omega: float,
    false_positive: Sequence[Any] | None = None,
    false_negative: Sequence[Any] | None = None,
) -> Examples | ListedExamples:
    """Return the examples of two lists or, without ``subsets``, of a stream."""
    if subsets is not None:
        return ListedExamples.of(
            ground_sets, subsets, omega, false_positive, false_negative
        )
    if false_positive is not None or false_negative is not None:
        raise ValueError(
            "false_positive and false_negative are for lists, not for a stream"
        )
    return Examples(ground_sets, omega)


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
    for position, (costs, ground_set) in enumerate(
        zip(given, ground_sets, strict=True)
    ):
        with naming(position):
            checked.append(check_error_costs(costs, len(ground_set), name))
    return checked
