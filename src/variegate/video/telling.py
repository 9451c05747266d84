"""Progress on videos that is also told on standard error: ``verbose=True``."""

from __future__ import annotations

from collections.abc import Callable

from variegate.application.base import Progress
from variegate.report.telling import Teller
from variegate.video.times import time_label

__all__ = ["Position", "told_frames", "told_steps"]

#: Called with the number and the time of a frame.
Position = Callable[[int, float], None]


def told_steps(name: str, progress: Progress | None) -> Progress:
    """Return a callback that tells of steps, and calls another."""
    teller = Teller(name)

    def told(done: int, total: int) -> None:
        teller.steps(done, total)
        if progress is not None:
            progress(done, total)

    return told


def told_frames(name: str, progress: Position | None) -> Position:
    """Return a callback that tells of frames, and calls another."""
    teller = Teller(name)

    def told(number: int, time: float) -> None:
        teller(f"frame {number:,} at {time_label(max(time, 0.0))}")
        if progress is not None:
            progress(number, time)

    return told
