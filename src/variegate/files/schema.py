"""Shapes of plain values: the format of a file, declared once and checked at once.

A message names the place (dotted names from the root of the file), the value and the
shape: ``"training.n_rows" is [3], not a whole number of at least 0``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from variegate._progress import ignore

#: The largest number that a file may hold: its square is finite.
LARGEST = 1e150

#: Characters of a wrong value that a message shows.
_SHOWN = 60


class SchemaError(ValueError):
    """A value does not have the shape that it should."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A set of plain values, such as numbers or lists of texts, with a check."""

    #: The name of such a value in messages.
    words: str
    #: Tells whether a value has this shape, regardless of the values inside it.
    admits: Callable[[Any], bool]
    #: Checks the values inside a value, whose place is the second argument.
    inside: Callable[[Any, str], object] = ignore
    #: Whether it holds other values, so that None or [] means that it is missing.
    is_section: bool = False

    def check(self, value: Any, place: str = "") -> None:
        """Raise SchemaError unless a value and all inside it have this shape."""
        if not self.admits(value):
            if self.is_section and value in (None, []):
                raise SchemaError(f'the section "{place}" is missing')
            raise SchemaError(f'"{place}" is {_abbreviate(value)}, not {self.words}')
        self.inside(value, place)


#: Any value, checked by its reader.
ANYTHING = Shape("anything", lambda value: True)
FLAG = Shape("true or false", lambda value: isinstance(value, bool))
#: In place of code for example, which a file cannot hold.
NULL = Shape("null", lambda value: value is None)


def Number(
    least: float = -LARGEST,
    is_above: bool = False,
    is_whole: bool = False,
    most: float = LARGEST,
) -> Shape:
    """Return the shape of finite numbers from ``least``, or above it, to ``most``."""
    words = "a whole number" if is_whole else "a number"
    if most < LARGEST:
        words += f" from {least:g} to {most:g}"
    elif least != -LARGEST:
        words += f" {'above' if is_above else 'of at least'} {least:g}"
    known = int if is_whole else int | float

    def admits(value: Any) -> bool:
        """Return whether a value is a number in the range."""
        if isinstance(value, bool) or not isinstance(value, known):
            return False
        # NaN is not between any two numbers.
        return least <= value <= most and not (is_above and value == least)

    return Shape(words, admits)


def String(choices: tuple[str, ...] = ()) -> Shape:
    """Return the shape of text, one of ``choices`` if there are any."""
    words = "one of " + ", ".join(choices) if choices else "a text"
    return Shape(
        words, lambda text: isinstance(text, str) and (not choices or text in choices)
    )


def Maybe(shape: Shape) -> Shape:
    """Return the shape of null and of the values of a shape."""
    return Shape(
        f"{shape.words} or null",
        lambda value: True,
        lambda value, place: None if value is None else shape.check(value, place),
    )


def ListOf(shape: Shape, least: int = 0, most: float = math.inf) -> Shape:
    """Return the shape of lists of ``least`` to ``most`` values of one shape."""
    words = "a list"
    if least == most:
        words = f"a list of {least}"
    elif shape.words.startswith(("a number", "a whole number")):
        words = "a list of numbers"

    def check_entries(value: list[Any], place: str) -> None:
        """Raise SchemaError unless every entry has the shape."""
        for number, entry in enumerate(value):
            shape.check(entry, f"{place}[{number}]")

    return Shape(
        words,
        lambda value: isinstance(value, list) and least <= len(value) <= most,
        check_entries,
        is_section=True,
    )


def NamedValues(inside: Callable[[Any, str], object]) -> Shape:
    """Return the shape of dicts, in which ``inside(value, place)`` checks values."""
    words = "a section of names and values"
    return Shape(words, lambda value: isinstance(value, dict), inside, is_section=True)


def MapOf(shape: Shape) -> Shape:
    """Return the shape of values of one shape under any names."""

    def check_values(value: Mapping[str, Any], place: str) -> None:
        """Raise SchemaError unless every value has the shape."""
        for name, entry in value.items():
            shape.check(entry, _join_path(place, name))

    return NamedValues(check_values)


def Record(
    required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None
) -> Shape:
    """Return the shape of values under required and optional names, and no others."""
    shapes = {**(optional or {}), **required}

    def check_record(value: Mapping[str, Any], place: str) -> None:
        """Raise SchemaError for unknown or missing names, or values of wrong shapes."""
        if unknown := sorted(value.keys() - shapes.keys()):
            found = ", ".join(_abbreviate(_join_path(place, name)) for name in unknown)
            raise SchemaError(f"unknown {found}")
        for name in required:
            if name not in value:
                raise SchemaError(f'the section "{_join_path(place, name)}" is missing')
        for name, entry in value.items():
            shapes[name].check(entry, _join_path(place, name))

    return NamedValues(check_record)


def EqualLists(lists: Mapping[str, Shape]) -> Shape:
    """Return the shape of ``lists``, shapes of lists by name, all of one length."""
    record = Record(lists)

    def check_lists(value: Mapping[str, Any], place: str) -> None:
        """Raise SchemaError unless lists have their shapes and one length."""
        record.inside(value, place)
        if len({len(column) for column in value.values()}) > 1:
            raise SchemaError(f'the lists of "{place}" are not of one length')

    return NamedValues(check_lists)


def Pair(first: Shape, second: Shape) -> Shape:
    """Return the shape of lists of two values, each of its own shape."""

    def admits(value: Any) -> bool:
        """Return whether a value is a list of two values that the shapes admit."""
        is_pair = isinstance(value, list) and len(value) == 2
        return is_pair and first.admits(value[0]) and second.admits(value[1])

    return Shape(f"a list of {first.words} and {second.words}", admits)


def _is_matrix(value: Any) -> bool:
    """Return whether a value is a list of rows of numbers, all of one length."""
    row, number = ListOf(Number(), least=1), Number()
    return (
        ListOf(row, least=1).admits(value)
        and all(map(row.admits, value))
        and len({len(each) for each in value}) == 1
        and all(number.admits(entry) for each in value for entry in each)
    )


#: Rows of numbers, all of one length, and at least one number.
MATRIX = Shape("a matrix of numbers", _is_matrix)


def _join_path(place: str, name: str) -> str:
    """Return the place of a value by dotted names."""
    return f"{place}.{name}" if place else name


def _abbreviate(value: Any) -> str:
    """Return the ``repr`` of a value, shortened."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
