"""Progress on standard error: on a terminal, for what takes over two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from variegate.report.words import shortened

#: Called with the numbers of finished and of all pieces.
Progress = Callable[[int, int], None]

#: Called with the number and the time of each frame.
Position = Callable[[int, float], None]

#: Called with what is being done, and the numbers of finished and of all steps.
Stage = Callable[[str, int, int], None]

#: Called with what is being done, how far it is and where it ends if that is known,
#: and a note.
Show = Callable[[str, float, float | None, str], None]

#: Seconds before anything is shown.
PATIENCE = 2.0


@contextmanager
def progress_bar(label: str, at_once: bool = False) -> Iterator[Progress | None]:
    """Yield a callback ``(done, total)``, or None where nobody is watching.

    ``at_once`` is for work that surely takes long: the bar is there before the first
    call.
    """
    with _line(at_once) as show:
        if show is not None and at_once:
            show(label, 0, None, "")
        yield show and (lambda done, total: show(label, done, total, ""))


@contextmanager
def stage_progress() -> Iterator[Stage | None]:
    """Yield a callback ``(stage, done, total)`` that shows the stage being worked on.

    Where there is no total, what is counted is rows.
    """
    with _line() as show:
        yield show and (
            lambda stage, done, total: show(
                stage, done, total or None, "" if total else f"{done:,} rows"
            )
        )


@contextmanager
def noted_progress() -> Iterator[Show | None]:
    """Yield a callback ``(stage, done, total, note)``, or None where nobody watches."""
    with _line() as show:
        yield show


@contextmanager
def video_progress(label: str, video: Path) -> Iterator[Position | None]:
    """Yield a callback that shows how far a video is read, where one is watching."""
    with _line() as show:
        if show is None:
            yield None
            return
        from variegate.video.reading import promised_duration, time_label

        duration = promised_duration(video)
        end = "" if duration is None else f" of {time_label(duration)}"
        started = time.monotonic()

        def position(number: int, seconds: float) -> None:
            rate = (number + 1) / max(time.monotonic() - started, 1e-9)
            note = f"{time_label(max(seconds, 0.0))}{end}  {rate:.0f} frames/s"
            show(shortened(label, 30), seconds, duration, note)

        yield position


@contextmanager
def _line(at_once: bool = False) -> Iterator[Show | None]:
    """Yield what shows one line, which is wiped at the end; None where none is seen."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_interactive:  # a terminal that cannot wipe what it has shown
        yield None
        return
    bars = progress.Progress(
        # Names are no markup, whatever brackets are in them.
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=20),
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.fields[note]}", markup=False),
        progress.TimeRemainingColumn(compact=True),
        console=console,
        transient=True,
        # Results are for standard output, which may be a file.
        redirect_stdout=False,
    )
    started = time.monotonic()
    task: progress.TaskID | None = None

    def show(label: str, done: float, total: float | None, note: str) -> None:
        nonlocal task
        if not at_once and time.monotonic() - started < PATIENCE:
            return
        if task is None or label != bars.tasks[0].description:
            # A new task, as the pace of another says nothing about this one.
            if task is not None:
                bars.remove_task(task)
            task = bars.add_task(label, total=total, note=note)
            bars.start()
        bars.update(task, completed=done, total=total, note=note)

    try:
        yield show
    finally:
        if task is not None:
            bars.stop()
