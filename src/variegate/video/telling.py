"""Progress on videos that is also printed: ``verbose=True``."""

from __future__ import annotations

from variegate._progress import Progress, ProgressPrinter
from variegate.video.times import time_label

__all__ = ["told_frames", "told_steps"]


def told_steps(name: str, progress: Progress | None) -> Progress:
    """Return a callback that prints steps, and calls another."""
    printer = ProgressPrinter(name)

    def told(stage: str, done: float, total: float) -> None:
        printer.progress(stage, done, total)
        if progress is not None:
            progress(stage, done, total)

    return told


def told_frames(name: str, progress: Progress | None) -> Progress:
    """Return a callback that prints times in a video, and calls another."""
    printer = ProgressPrinter(name)

    def told(stage: str, done: float, total: float) -> None:
        end = f" of {time_label(total)}" if total else ""
        printer(f"{stage}, {time_label(done)}{end}")
        if progress is not None:
            progress(stage, done, total)

    return told
