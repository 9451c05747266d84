"""Shapes of plain values: the format of a file, declared once and checked at once.

A message names the place, the value and the shape: ``"training.n_rows" is [3], not a
whole number of at least 0``.  After the check, values are used without looking again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

#: The largest number that a file may hold: its square is finite.
LARGEST = 1e150

#: Characters of a wrong value that a message shows.
_SHOWN = 60


class SchemaError(ValueError):
    """A value does not have the shape that it should."""


class Shape:
    """A set of plain values."""

    #: Whether it holds other values, so that None or [] means that it is missing.
    is_section: ClassVar[bool] = False

    @property
    def words(self) -> str:
        """The name of such a value in messages."""
        return "anything"

    def admits(self, value: Any) -> bool:
        """Return whether a value has this shape, regardless of the values inside it."""
        return True

    def check(self, value: Any, place: str = "") -> None:
        """Raise an error unless a value and all values inside it have this shape."""
        if not self.admits(value):
            if self.is_section and value in (None, []):
                raise SchemaError(f'the section "{place}" is missing')
            raise SchemaError(f'"{place}" is {_shown(value)}, not {self.words}')


class Anything(Shape):
    """Any value, checked by its reader."""


@dataclass(frozen=True)
class Number(Shape):
    """A finite number from ``least`` to ``most``, or above ``least``."""

    least: float = -LARGEST
    is_above: bool = False
    is_whole: bool = False
    most: float = LARGEST

    @property
    def words(self) -> str:
        noun = "a whole number" if self.is_whole else "a number"
        if self.most < LARGEST:
            return f"{noun} from {self.least:g} to {self.most:g}"
        if self.least == -LARGEST:
            return noun
        return f"{noun} {'above' if self.is_above else 'of at least'} {self.least:g}"

    def admits(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(
            value, int if self.is_whole else int | float
        ):
            return False
        # NaN is not between any two numbers.
        return self.least <= value <= self.most and not (
            self.is_above and value == self.least
        )


@dataclass(frozen=True)
class String(Shape):
    """A text, one of ``choices`` if there are any."""

    choices: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return "one of " + ", ".join(self.choices) if self.choices else "a text"

    def admits(self, value: Any) -> bool:
        return isinstance(value, str) and (not self.choices or value in self.choices)


class Flag(Shape):
    """True or false."""

    words = "true or false"

    def admits(self, value: Any) -> bool:
        return isinstance(value, bool)


class Null(Shape):
    """Null, in place of code for example, which a file cannot hold."""

    words = "null"

    def admits(self, value: Any) -> bool:
        return value is None


@dataclass(frozen=True)
class Maybe(Shape):
    """A shape, or null."""

    shape: Shape

    @property
    def words(self) -> str:
        return f"{self.shape.words} or null"

    def admits(self, value: Any) -> bool:
        return value is None or self.shape.admits(value)

    def check(self, value: Any, place: str = "") -> None:
        if value is not None:
            self.shape.check(value, place)


@dataclass(frozen=True)
class ListOf(Shape):
    """A list of ``least`` to ``most`` values of one shape."""

    is_section = True

    shape: Shape
    least: int = 0
    most: float = math.inf

    @property
    def words(self) -> str:
        if self.least == self.most:
            return f"a list of {self.least}"
        return "a list of numbers" if isinstance(self.shape, Number) else "a list"

    def admits(self, value: Any) -> bool:
        return isinstance(value, list) and self.least <= len(value) <= self.most

    def check(self, value: Any, place: str = "") -> None:
        super().check(value, place)
        for number, entry in enumerate(value):
            self.shape.check(entry, f"{place}[{number}]")


class Names(Shape):
    """Names and values."""

    is_section = True
    words = "a section of names and values"

    def admits(self, value: Any) -> bool:
        return isinstance(value, dict)


@dataclass(frozen=True)
class MapOf(Names):
    """Values of one shape under any names."""

    shape: Shape

    def check(self, value: Any, place: str = "") -> None:
        super().check(value, place)
        for name, entry in value.items():
            self.shape.check(entry, _inside(place, name))


@dataclass(frozen=True)
class Record(Names):
    """Values under required and optional names, and no others."""

    required: Mapping[str, Shape]
    optional: Mapping[str, Shape] = field(default_factory=dict)

    def check(self, value: Any, place: str = "") -> None:
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


class EqualLists(Record):
    """Lists of one length under given names."""

    def check(self, value: Any, place: str = "") -> None:
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
        return f"a list of {self.first.words} and {self.second.words}"

    def admits(self, value: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) == 2
            and self.first.admits(value[0])
            and self.second.admits(value[1])
        )


class Matrix(Shape):
    """Rows of numbers, all of one length, and at least one number."""

    words = "a matrix of numbers"

    def admits(self, value: Any) -> bool:
        row, number = ListOf(Number(), least=1), Number()
        return (
            ListOf(row, least=1).admits(value)
            and all(map(row.admits, value))
            and len({len(each) for each in value}) == 1
            and all(number.admits(entry) for each in value for entry in each)
        )


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
