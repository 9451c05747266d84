"""What is printed on a terminal about a fitted selector."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from variegate.tables.report_facts import (
    about_columns,
    about_data,
    about_empty_cells,
    about_path,
    about_training,
    decimals,
    has_validation,
    kernel_parts,
    omega_name,
    path_points,
    shortened,
    strongest,
)

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["text"]

#: Weights that are printed.
_MOST = 30

#: Characters of the longest bar to one side.
_BAR = 16


def text(selector: TableSelector) -> str:
    """Return what a selector was learned from, how well it does, and its weights."""
    parts = [
        _facts("learned from", about_data(selector)),
        _columns(selector),
        _scores(selector),
        _path(selector),
        _weights(selector),
        _kernel(selector),
        _facts("training", about_training(selector)),
    ]
    return "\n\n".join(part for part in parts if part)


def _facts(title: str, facts: Mapping[str, str]) -> str:
    if not facts:
        return ""
    rows = [(name[:1].lower() + name[1:], value) for name, value in facts.items()]
    return "\n".join([title, *_aligned(rows)])


def _columns(selector: TableSelector) -> str:
    rows = [
        (part, shortened(name, 30), shortened(how, 110))
        for part, name, how in about_columns(selector)
    ]
    return "\n".join(["columns", *_aligned(rows), f"  {about_empty_cells(selector)}"])


def _scores(selector: TableSelector) -> str:
    if not has_validation(selector):
        return ""
    record = selector.training_
    rows = [("", "mean", "95 % interval")]
    for name, (mean, low, high) in record["validation"].items():
        digits = 2 if name == "size" else 3
        label = {"f": "F-score", "size": "rows chosen"}.get(name, name)
        rows.append(
            (label, f"{mean:.{digits}f}", f"{low:.{digits}f} to {high:.{digits}f}")
        )
    title = f"on {record['n_held_out']:,} held-out groups, at omega = "
    return "\n".join([f"{title}{omega_name(selector.omega_)}", *_aligned(rows)])


def _path(selector: TableSelector) -> str:
    if not path_points(selector):
        return ""
    words = textwrap.wrap(about_path(selector), 86)
    lines = [*words, *str(selector.path_).splitlines()]
    return "\n".join(["from precision to recall", *(f"  {line}" for line in lines)])


def _weights(selector: TableSelector) -> str:
    shown, note = strongest(selector, _MOST)
    values = [weight.value for weight in shown]
    names = [
        shortened(weight.name, 40)
        + (f" (length of {weight.n_features})" if weight.n_features > 1 else "")
        for weight in shown
    ]
    title = (
        f"weights of the quality (intercept {selector.model_.intercept_:.3g}); numbers "
        "are standardised"
    )
    lines = [title, *_with_bars(names, values)]
    return "\n".join([*lines, f"  {note}"] if note else lines)


def _kernel(selector: TableSelector) -> str:
    parts = kernel_parts(selector)
    if not parts:
        return ""
    names, values = [part.label for part in parts], [part.weight for part in parts]
    return "\n".join(["weights of the similarity", *_with_bars(names, values)])


def _with_bars(names: Sequence[str], values: Sequence[float]) -> list[str]:
    """Return names, numbers and bars, those of negative numbers to the left."""
    digits = decimals(values)
    # No sign for what is zero as far as it is written.
    numbers = [f"{round(value, digits) + 0.0:.{digits}f}" for value in values]
    name_width = max(map(_width, names), default=0)
    number_width = max(map(len, numbers), default=0)
    largest = max(map(abs, values), default=0.0) or 1.0
    room = _BAR if any(value < 0.0 for value in values) else 0
    return [
        f"  {_padded(name, name_width)}  {number:>{number_width}}  "
        + _bar(value / largest, room)
        for name, number, value in zip(names, numbers, values, strict=True)
    ]


def _bar(share: float, room: int) -> str:
    halves = round(2 * _BAR * abs(share))
    full, half = divmod(halves, 2)
    if share < 0.0:
        return ("▐" * half + "█" * full).rjust(room) + "│"
    return " " * room + "│" + "█" * full + "▌" * half


def _aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows as lines, all columns but the last padded."""
    rows = list(rows)
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            [*map(_padded, row[:-1], widths[:-1]), row[-1]],
        ).rstrip()
        for row in rows
    ]


def _width(text: str) -> int:
    """Return how many places on a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    none = sum(unicodedata.combining(c) > 0 for c in text)
    return len(text) + wide - none


def _padded(text: str, width: int) -> str:
    return text + " " * (width - _width(text))
