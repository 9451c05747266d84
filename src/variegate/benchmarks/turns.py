"""Timing in turns, so that a machine that slows down slows all competitors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from variegate.benchmarks.competitors import Floor
from variegate.benchmarks.instances import Evaluation
from variegate.benchmarks.timing import Row, row

_TOLERANCE = 1e-8

#: Calls on end in a turn.
_CALLS = 4


class Timing(NamedTuple):
    """Seconds: the median, the largest less the smallest, and the smallest."""

    median: float
    spread: float
    least: float


class Effort(NamedTuple):
    """Rounds that are always measured, and seconds to fill with further ones."""

    rounds: int
    seconds: float


def take_turns(functions: Sequence[Evaluation | Floor], effort: Effort) -> list[Timing]:
    """Time all functions in turns, a few calls on end as a solver makes them."""
    times: list[list[float]] = [[] for _ in functions]
    begin = time.perf_counter()
    for turn in range(1000):
        spent = time.perf_counter() - begin
        if turn > effort.rounds and spent > effort.seconds:
            break
        for function, measured in zip(functions, times, strict=True):
            in_turn = []
            for _ in range(_CALLS):
                arguments = (function.prepare(),) if isinstance(function, Floor) else ()
                start = time.perf_counter()
                function(*arguments)
                in_turn.append(time.perf_counter() - start)
            # The first call finds the caches full of what another left there.
            measured += in_turn[1:]
    # The first turn warms up.
    return [_timing(measured[_CALLS - 1 :]) for measured in times]


def _timing(times: list[float]) -> Timing:
    return Timing(float(np.median(times)), float(np.ptp(times)), min(times))


def compared(
    question: str,
    case: str,
    times: Sequence[Timing | None],
    competitor: str,
    n_items: int,
    **extra: Any,
) -> Row:
    """Return the row of a comparison: our time, and the competitor's if there is."""
    ours, theirs = times
    assert ours is not None
    their_seconds = None if theirs is None else theirs[:2]
    entry = row(case, ours[:2], competitor, their_seconds, n_items)
    ratio = None if theirs is None else theirs.least / ours.least
    least = {"variegate_least_s": ours.least, "least_ratio": ratio}
    return entry | least | {"question": question} | extra


def check_agreement(ours: Evaluation, theirs: Evaluation, name: str) -> None:
    """Refuse to time a competitor that computes something else."""
    (value, gradient), (their_value, their_gradient) = ours(), theirs()
    here, there = np.append(gradient, value), np.append(their_gradient, their_value)
    scale = np.append(np.full_like(gradient, np.abs(gradient).max()), abs(value))
    apart = float(np.max(np.abs(here - there) / np.maximum(1.0, scale)))
    if not apart <= _TOLERANCE:
        raise RuntimeError(
            f"{name} and variegate differ by {apart:.2g}: nothing to compare"
        )


def with_growth(rows: list[Row]) -> list[Row]:
    """Add to the rows of one case how time grows with the number of items."""
    sizes = [row["n_items"] for row in rows]
    growth = exponent(sizes, [row["variegate_s"] for row in rows])
    theirs = exponent(sizes, [row["competitor_s"] for row in rows])
    found = {"growth": growth, "competitor_growth": theirs}
    case = f"{rows[0]['case']}, ~n^{growth:.2f}"
    return [row | found | {"case": case} for row in rows]


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Return ``e`` of ``time ~ size^e``, by least squares of logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
