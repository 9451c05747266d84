"""Numbers as a terminal shows them: in columns, with bars beside them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from variegate.application.description.parts import (
    KernelPart,
    Weight,
    decimals,
    shortened,
    strongest,
)

__all__ = ["aligned", "kernel_lines", "weight_lines", "with_bars"]

#: Weights that are printed.
_MOST = 30

#: Characters of the longest bar to one side.
_BAR = 16


def weight_lines(weights: Sequence[Weight], intercept: float) -> list[str]:
    """Return a heading and a line for each of the largest weights."""
    shown, note = strongest(weights, _MOST)
    values = [weight.value for weight in shown]
    names = [
        shortened(weight.name, 40)
        + (f" (length of {weight.n_features})" if weight.n_features > 1 else "")
        for weight in shown
    ]
    title = f"weights of the quality (intercept {intercept:.3g})"
    lines = [title, *with_bars(names, values)]
    return [*lines, f"  {note}"] if note else lines


def kernel_lines(parts: Sequence[KernelPart]) -> list[str]:
    """Return a heading and a line for each part of a kernel, or nothing."""
    if not parts:
        return []
    names, values = [part.label for part in parts], [part.weight for part in parts]
    return ["weights of the similarity", *with_bars(names, values)]


def with_bars(names: Sequence[str], values: Sequence[float]) -> list[str]:
    """Return names, numbers and bars, those of negative numbers to the left."""
    digits = decimals(values)
    # No sign for what is zero as far as it is written.
    numbers = [f"{round(value, digits) + 0.0:.{digits}f}" for value in values]
    name_width = max(map(_width, names), default=0)
    number_width = max(map(len, numbers), default=0)
    largest = max(map(abs, values), default=0.0) or 1.0
    room = _BAR if any(value < 0.0 for value in values) else 0
    return [
        f"  {padded(name, name_width)}  {number:>{number_width}}  "
        + _bar(value / largest, room)
        for name, number, value in zip(names, numbers, values, strict=True)
    ]


def _bar(share: float, room: int) -> str:
    halves = round(2 * _BAR * abs(share))
    full, half = divmod(halves, 2)
    if share < 0.0:
        return ("▐" * half + "█" * full).rjust(room) + "│"
    return " " * room + "│" + "█" * full + "▌" * half


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows as lines, all columns but the last padded."""
    rows = list(rows)
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            [*map(padded, row[:-1], widths[:-1]), row[-1]],
        ).rstrip()
        for row in rows
    ]


def _width(text: str) -> int:
    """Return how many places on a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    none = sum(unicodedata.combining(c) > 0 for c in text)
    return len(text) + wide - none


def padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
