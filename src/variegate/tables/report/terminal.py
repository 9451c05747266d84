"""What is printed on a terminal about a fitted selector."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from variegate.application.description.parts import kernel_parts, shortened
from variegate.application.description.terminal import (
    aligned,
    kernel_lines,
    weight_lines,
)
from variegate.tables.report.facts import (
    about_columns,
    about_data,
    about_empty_cells,
    about_path,
    about_training,
    has_validation,
    omega_name,
    path_points,
    weights,
)

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["text"]


def text(selector: TableSelector) -> str:
    """Return what a selector was learned from, how well it does, and its weights."""
    parts = [
        _facts("learned from", about_data(selector)),
        _columns(selector),
        _scores(selector),
        _path(selector),
        "\n".join(weight_lines(weights(selector), selector.model_.intercept_)),
        "\n".join(kernel_lines(kernel_parts(selector.model_))),
        _facts("training", about_training(selector)),
    ]
    return "\n\n".join(part for part in parts if part)


def _facts(title: str, facts: Mapping[str, str]) -> str:
    if not facts:
        return ""
    rows = [(name[:1].lower() + name[1:], value) for name, value in facts.items()]
    return "\n".join([title, *aligned(rows)])


def _columns(selector: TableSelector) -> str:
    rows = [
        (part, shortened(name, 30), shortened(how, 110))
        for part, name, how in about_columns(selector)
    ]
    return "\n".join(["columns", *aligned(rows), f"  {about_empty_cells(selector)}"])


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
    return "\n".join([f"{title}{omega_name(selector.omega_)}", *aligned(rows)])


def _path(selector: TableSelector) -> str:
    if not path_points(selector):
        return ""
    words = textwrap.wrap(about_path(selector), 86)
    lines = [*words, *str(selector.path_).splitlines()]
    return "\n".join(["from precision to recall", *(f"  {line}" for line in lines)])
