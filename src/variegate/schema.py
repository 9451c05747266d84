"""Shapes of plain values: what a file may hold, said once and checked whole.

A shape says in words what it takes, and refuses anything else by the place where it
stands: ``"training.n_rows" is [3], not a whole number of at least 0``.  Whoever uses a
value after its shape was checked need not look at it again.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

__all__ = [
    "LARGEST",
    "Anything",
    "Columns",
    "Flag",
    "ListOf",
    "MapOf",
    "Matrix",
    "Maybe",
    "Null",
    "Number",
    "Pair",
    "Record",
    "SchemaError",
    "Section",
    "Shape",
    "Text",
]

#: The largest number that a file may hold: its square is a number too.
LARGEST = 1e150

#: Characters of a wrong value that a message shows.
_SHOWN = 60


class SchemaError(ValueError):
    """A value has another shape than it should."""


class Shape(ABC):
    """What a value may be."""

    #: Whether it holds others, so that nothing in its place means that it is missing.
    is_section: ClassVar[bool] = False

    @property
    @abstractmethod
    def words(self) -> str:
        """What it is called in a message: "a number"."""

    @abstractmethod
    def admits(self, value: Any) -> bool:
        """Tell whether a value is of this shape, as far as the value itself goes."""

    def check(self, value: Any, place: str = "") -> None:
        """Refuse a value that is not of this shape, anywhere inside it."""
        if not self.admits(value):
            if self.is_section and value in (None, []):
                raise SchemaError(f'the section "{place}" is missing')
            raise SchemaError(f'"{place}" is {_shown(value)}, not {self.words}')


@dataclass(frozen=True)
class Anything(Shape):
    """What is checked elsewhere."""

    @property
    def words(self) -> str:
        """Nothing is refused."""
        return "anything"

    def admits(self, value: Any) -> bool:
        """Admit it."""
        return True


@dataclass(frozen=True)
class Number(Shape):
    """A number of at least ``least``, which itself may be left out; or a whole one.

    It may be ``most`` at the most.
    """

    least: float = -LARGEST
    is_above: bool = False
    is_whole: bool = False
    most: float = LARGEST

    @property
    def words(self) -> str:
        """Say which numbers."""
        noun = "a whole number" if self.is_whole else "a number"
        if self.most < LARGEST:
            return f"{noun} from {self.least:g} to {self.most:g}"
        if self.least == -LARGEST:
            return noun
        if self.is_above:
            return f"{noun} above {self.least:g}"
        return f"{noun} of at least {self.least:g}"

    def admits(self, value: Any) -> bool:
        """Admit numbers, of which True and False are none."""
        kinds = int if self.is_whole else int | float
        if not isinstance(value, kinds) or isinstance(value, bool):
            return False
        if not self.least <= value <= self.most or not math.isfinite(value):
            return False
        return not (self.is_above and value == self.least)


@dataclass(frozen=True)
class Text(Shape):
    """A text, of some choices if there are any."""

    choices: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Say which texts."""
        return "one of " + ", ".join(self.choices) if self.choices else "a text"

    def admits(self, value: Any) -> bool:
        """Admit texts."""
        return isinstance(value, str) and (not self.choices or value in self.choices)


@dataclass(frozen=True)
class Flag(Shape):
    """True or false."""

    @property
    def words(self) -> str:
        """Say both."""
        return "true or false"

    def admits(self, value: Any) -> bool:
        """Admit both."""
        return isinstance(value, bool)


@dataclass(frozen=True)
class Null(Shape):
    """Null: what a file cannot hold, code for example."""

    @property
    def words(self) -> str:
        """Say null."""
        return "null"

    def admits(self, value: Any) -> bool:
        """Admit nothing else."""
        return value is None


@dataclass(frozen=True)
class Maybe(Shape):
    """A shape, or null."""

    shape: Shape

    @property
    def words(self) -> str:
        """Say both."""
        return f"{self.shape.words} or null"

    def admits(self, value: Any) -> bool:
        """Admit both."""
        return value is None or self.shape.admits(value)

    def check(self, value: Any, place: str = "") -> None:
        """Refuse what is neither."""
        if value is not None:
            self.shape.check(value, place)


@dataclass(frozen=True)
class ListOf(Shape):
    """A list of so many values of one shape."""

    is_section = True

    shape: Shape
    least: int = 0
    most: float = math.inf

    @property
    def words(self) -> str:
        """Say a list of what."""
        if self.least == self.most:
            return f"a list of {self.least}"
        plain = isinstance(self.shape, Number)
        return "a list of numbers" if plain else "a list"

    def admits(self, value: Any) -> bool:
        """Admit lists."""
        return isinstance(value, list) and self.least <= len(value) <= self.most

    def check(self, value: Any, place: str = "") -> None:
        """Refuse another list, or an entry of another shape."""
        super().check(value, place)
        for number, entry in enumerate(value):
            self.shape.check(entry, f"{place}[{number}]")


class Section(Shape):
    """Names and values."""

    is_section = True

    @property
    def words(self) -> str:
        """Say names and values."""
        return "a section of names and values"

    def admits(self, value: Any) -> bool:
        """Admit mappings."""
        return isinstance(value, dict)


@dataclass(frozen=True)
class MapOf(Section):
    """Values of one shape under any names."""

    shape: Shape

    def check(self, value: Any, place: str = "") -> None:
        """Refuse what is no mapping, or a value of another shape."""
        super().check(value, place)
        for name, entry in value.items():
            self.shape.check(entry, _inside(place, name))


@dataclass(frozen=True)
class Record(Section):
    """Values under given names, of which some may be absent; there are no others."""

    required: Mapping[str, Shape]
    optional: Mapping[str, Shape] = field(default_factory=dict)

    def check(self, value: Any, place: str = "") -> None:
        """Refuse absent and unknown names, and values of another shape."""
        super().check(value, place)
        shapes = {**self.optional, **self.required}
        if unknown := sorted(value.keys() - shapes.keys()):
            found = ", ".join(_shown(_inside(place, name)) for name in unknown)
            raise SchemaError(f"unknown {found}")
        for name in self.required:
            if name not in value:
                raise SchemaError(f'the section "{_inside(place, name)}" is missing')
        for name, entry in value.items():
            shapes[name].check(entry, _inside(place, name))


@dataclass(frozen=True)
class Columns(Record):
    """Lists of one length under given names."""

    def check(self, value: Any, place: str = "") -> None:
        """Refuse lists of different lengths."""
        super().check(value, place)
        if len({len(column) for column in value.values()}) > 1:
            raise SchemaError(f'the lists of "{place}" are not of one length')


@dataclass(frozen=True)
class Pair(Shape):
    """A list of two values, each of its own shape."""

    first: Shape
    second: Shape

    @property
    def words(self) -> str:
        """Say two."""
        return f"a list of {self.first.words} and {self.second.words}"

    def admits(self, value: Any) -> bool:
        """Admit lists of two such."""
        return (
            isinstance(value, list)
            and len(value) == 2
            and self.first.admits(value[0])
            and self.second.admits(value[1])
        )


@dataclass(frozen=True)
class Matrix(Shape):
    """Rows of numbers, all of one length, and at least one number."""

    @property
    def words(self) -> str:
        """Say a matrix."""
        return "a matrix of numbers"

    def admits(self, value: Any) -> bool:
        """Admit lists of equal lists of numbers."""
        row = ListOf(Number(), least=1)
        if not isinstance(value, list) or not value or not all(map(row.admits, value)):
            return False
        numbers = chain.from_iterable(value)
        return len({len(row) for row in value}) == 1 and all(
            map(row.shape.admits, numbers)
        )


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
