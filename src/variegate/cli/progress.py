"""Progress on standard error: on a terminal, for what takes over two seconds."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

#: Called with the numbers of finished and of all pieces.
Progress = Callable[[int, int], None]

#: Called with the number and the time of each frame.
Position = Callable[[int, float], None]

#: Called with what is being done, and the numbers of finished and of all steps.
Stage = Callable[[str, int, int], None]

#: Seconds before anything is shown.
PATIENCE = 2.0


@contextmanager
def progress_bar(label: str) -> Iterator[Progress | None]:
    """Yield a callback ``(done, total)``, or None where nobody is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    started = time.monotonic()
    bar = None
    shown = 0

    def advance(done: int, total: int) -> None:
        nonlocal bar, shown
        if bar is None:
            if time.monotonic() - started < PATIENCE:
                return
            bar = click.progressbar(length=total, label=label, file=sys.stderr)
            bar.render_progress()
        bar.update(done - shown)
        shown = done

    try:
        yield advance
    finally:
        if bar is not None:
            bar.render_finish()


@contextmanager
def stage_progress() -> Iterator[Stage | None]:
    """Yield a callback ``(stage, done, total)`` that shows the stage being worked on.

    Where there is no total, what is counted is rows.
    """
    if not sys.stderr.isatty():
        yield None
        return
    started = time.monotonic()
    drawn = -math.inf

    def show(stage: str, done: int, total: int) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - started < PATIENCE or now - drawn < 0.1:
            return
        drawn = now
        line = f"{stage}  {_bar(done / total)}" if total else f"{stage}  {done:,} rows"
        click.echo(f"\r{line[: _width()].ljust(_width())}", nl=False, err=True)

    try:
        yield show
    finally:
        if drawn > started:
            click.echo(f"\r{' ' * _width()}\r", nl=False, err=True)


def _bar(share: float) -> str:
    share = min(1.0, share)
    return f"[{('#' * round(20 * share)).ljust(20, '-')}] {share:4.0%}"


@contextmanager
def video_progress(label: str, video: Path) -> Iterator[Position | None]:
    """Yield a callback that shows how far a video is read, where one is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    from variegate.video.reading import promised_duration

    duration = promised_duration(video)
    started = time.monotonic()
    drawn = -math.inf

    def show(number: int, seconds: float) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - started < PATIENCE or now - drawn < 0.1:
            return
        drawn = now
        line = position_line(label, seconds, duration, (number + 1) / (now - started))
        click.echo(f"\r{line}", nl=False, err=True)

    try:
        yield show
    finally:
        if drawn > started:
            click.echo(f"\r{' ' * _width()}\r", nl=False, err=True)


def position_line(
    label: str, seconds: float, duration: float | None, rate: float
) -> str:
    """Return a line as wide as the terminal."""
    from variegate.video.storyboard import time_label

    label = label if len(label) <= 30 else f"{label[:29]}…"
    line = f"{label}  {time_label(max(seconds, 0.0))}"
    if duration is not None:
        share = min(1.0, seconds / duration)
        line = f"{label}  {_bar(share)}  {time_label(seconds)}"
        line += f" of {time_label(duration)}"
    line += f"  {rate:.0f} frames/s"
    return line[: _width()].ljust(_width())


def _width() -> int:
    return max(20, shutil.get_terminal_size().columns - 1)
