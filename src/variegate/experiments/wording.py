"""Numbers and verdicts as the reports of documents and videos write them, in points."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["interval", "numbers", "verdict", "with_error"]


def numbers(values: Iterable[float]) -> str:
    """Return a set of numbers."""
    return "{" + ", ".join(f"{value:g}" for value in values) + "}"


def with_error(row: dict[str, Any], score: str, digits: int) -> str:
    """Return a mean with its standard error, where it has one."""
    error = row["se"][score]
    more = "" if error is None else f" ± {100 * error:.{digits}f}"
    return f"{100 * row[score]:.{digits}f}{more}"


def interval(comparison: dict[str, Any], score: str, digits: int) -> str:
    """Return a difference with its 95% interval."""
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
