"""Reports in Markdown from templates, one for each experiment, and their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from variegate.report.markdown import markdown_table
from variegate.report.page import environment

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["interval", "load_template", "render", "verdict"]


def load_template(name: str) -> Template:
    """Return the template of a report."""
    templates = environment("experiments", autoescape=False, extra="cli")
    templates.filters |= {"interval": interval, "mean": _mean, "numbers": _numbers}
    return templates.get_template(name)


def render(template: Template, facts: Mapping[str, Any]) -> str:
    """Return a report, the columns of its tables padded to equal width."""
    lines = template.render(facts).splitlines()
    parts = []
    for is_table, members in groupby(lines, lambda line: line.startswith("|")):
        part = list(members)
        if is_table:
            header, _, *rows = (
                [cell.strip() for cell in line[1:-1].split("|")] for line in part
            )
            part = [markdown_table(header, rows)]
        parts += part
    return "\n".join(parts) + "\n"


def interval(comparison: dict[str, Any], score: str, digits: int) -> str:
    """Return a difference with its 95% interval, in points."""
    middle, low, high = (
        f"{100 * comparison[key][score]:+.{digits}f}"
        for key in ("difference", "low", "high")
    )
    return f"{middle} [{low}, {high}]"


def verdict(comparison: dict[str, Any], score: str) -> str:
    """Return whether a difference is above zero, as far as its interval tells."""
    if comparison["low"][score] > 0.0:
        return "yes"
    return "no" if comparison["high"][score] < 0.0 else "not told apart"


def _mean(row: dict[str, Any], score: str, digits: int) -> str:
    """Return a mean with its standard error, where it has one, in points."""
    error = row["se"][score]
    more = "" if error is None else f" ± {100 * error:.{digits}f}"
    return f"{100 * row[score]:.{digits}f}{more}"


def _numbers(values: Iterable[float]) -> str:
    return "{" + ", ".join(f"{value:g}" for value in values) + "}"
