"""Times of functions, medians with spread, and memory of this process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

Row = dict[str, Any]

#: Calls on end in a turn.
_CALLS = 4


class Timing(NamedTuple):
    """Seconds: the median, the largest less the smallest, and the smallest."""

    median: float
    spread: float
    least: float

    @classmethod
    def of(cls, times: Sequence[float], count: int = 1) -> Self:
        """Return what single times come to, ``count`` calls in each."""
        each = np.asarray(times) / count
        return cls(float(np.median(each)), float(np.ptp(each)), float(np.min(each)))


class Effort(NamedTuple):
    """Rounds that are always measured, and seconds to fill with further ones."""

    rounds: int
    seconds: float


def measure_time(function: Callable[[], Any], repeats: int, count: int = 1) -> Timing:
    """Time a function after a first call; it does ``count`` times what is timed."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return Timing.of(times, count)


def take_turns(functions: Sequence[Any], effort: Effort) -> list[Timing]:
    """Time all functions in turns, a few calls on end as a solver makes them.

    A function that can ``prepare`` its argument does so before its time begins.
    """
    times: list[list[float]] = [[] for _ in functions]
    begin = time.perf_counter()
    for turn in range(1000):
        spent = time.perf_counter() - begin
        if turn > effort.rounds and spent > effort.seconds:
            break
        for function, measured in zip(functions, times, strict=True):
            in_turn = []
            for _ in range(_CALLS):
                prepare = getattr(function, "prepare", None)
                arguments = (prepare(),) if prepare else ()
                start = time.perf_counter()
                function(*arguments)
                in_turn.append(time.perf_counter() - start)
            # The first call finds the caches full of what another left there.
            measured += in_turn[1:]
    # The first turn warms up.
    return [Timing.of(measured[_CALLS - 1 :]) for measured in times]


def row(
    case: str, ours: Timing, competitor: str, theirs: Timing | None, size: int
) -> Row:
    """Return one comparison; without a competitor's time the ratio is None."""
    return {
        "case": case,
        "n_items": size,
        "variegate_s": ours.median,
        "variegate_spread_s": ours.spread,
        "competitor": competitor,
        "competitor_s": None if theirs is None else theirs.median,
        "competitor_spread_s": None if theirs is None else theirs.spread,
        "ratio": None if theirs is None else theirs.median / ours.median,
    }


def compared(
    question: str,
    case: str,
    times: Sequence[Timing | None],
    competitor: str,
    n_items: int,
    **extra: Any,
) -> Row:
    """Return one comparison with its question and the ratio of the smallest times."""
    ours, theirs = times
    assert ours is not None
    ratio = None if theirs is None else theirs.least / ours.least
    least = {"variegate_least_s": ours.least, "least_ratio": ratio}
    entry = row(case, ours, competitor, theirs, n_items)
    return entry | least | {"question": question} | extra


def optional(name: str) -> Any:
    """Return a competitor's module, or None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def resident(field: str) -> float | None:
    """Return a field of /proc/self/status in MiB, or None where there is none."""
    status = Path("/proc/self/status")
    lines = status.read_text() if status.exists() else ""
    found = re.search(rf"^{field}:\s*(\d+)", lines, re.M)
    return int(found[1]) / 1024.0 if found else None


def forget_peak() -> bool:
    """Start the peak of resident memory anew; return whether that is possible."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def output_of(code: str) -> str:
    """Return what Python code prints in a process that ends with this one."""
    first = (
        "from variegate._processes import exit_when_parent_dies\n"
        f"exit_when_parent_dies({os.getpid()})"
    )
    return subprocess.run(
        [sys.executable, "-c", f"{first}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
        # Modules that can be imported here can be imported there.
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ).stdout
