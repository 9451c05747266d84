"""Kinds of values that options take."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import click

__all__ = ["NAMES", "POSITIVE", "SIZE", "Names", "Number", "Size", "parsed"]


class Number(click.FloatRange):
    """A range of numbers, without "nan" and "inf"."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the number, or refuse it."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names with commas between them."""

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Return the names."""
        if not isinstance(value, str):
            return tuple(value)
        names = tuple(name.strip() for name in value.split(","))
        if not all(names):
            self.fail(f"{value!r} has nothing between two commas.", param, ctx)
        return names


_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class Size(click.ParamType):  # type: ignore[type-arg]
    """An amount of memory, such as 512MB."""

    name = "size"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return bytes."""
        if isinstance(value, int):
            return value
        number = r"(\d+\.?\d*|\.\d+)"
        match = re.fullmatch(rf"{number}\s*([KMGT]?)(?:i?B)?", value.strip(), re.I)
        if match is None or float(match[1]) <= 0.0:
            self.fail(f"{value!r} is no amount of memory such as 512MB.", param, ctx)
        return max(1, int(float(match[1]) * _UNITS[match[2].upper()]))


NAMES = Names()
SIZE = Size()
POSITIVE = Number(min=0.0, min_open=True)


def parsed(parse: Callable[[str], Any]) -> Callable[..., Any]:
    """Return the callback of an option that ``parse`` reads, if it is given."""

    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return callback
