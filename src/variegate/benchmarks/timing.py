"""Medians with spread, on one thread, warmed up."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

Row = dict[str, Any]


def measure_time(function: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Return the median and the spread (largest less smallest) in seconds."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times)), float(np.ptp(times))


def row(
    case: str,
    ours: tuple[float, float],
    competitor: str,
    theirs: tuple[float, float] | None,
    size: int,
) -> Row:
    """Return one comparison; without a competitor's time the ratio is None."""
    return {
        "case": case,
        "n_items": size,
        "variegate_s": ours[0],
        "variegate_spread_s": ours[1],
        "competitor": competitor,
        "competitor_s": None if theirs is None else theirs[0],
        "competitor_spread_s": None if theirs is None else theirs[1],
        "ratio": None if theirs is None else theirs[0] / ours[0],
    }


def optional(name: str) -> Any:
    """Return a competitor's module, or None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None
