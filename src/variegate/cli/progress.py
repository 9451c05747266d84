"""Progress on standard error: on a terminal, for work of more than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from variegate._progress import Progress, ignore

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

#: Called as a progress callback is; returns the text to the right of the bar.
Note = Callable[[str, float, float], str]

PATIENCE = 2.0  # seconds before anything is shown


def rows_note(stage: str, done: float, total: float) -> str:
    """Return text such as "2,000 rows" for rows done; "" for 0, or with a total."""
    return "" if total or not done else f"{done:,} rows"


def video_note() -> Note:
    """Return a function that notes the time in a video, and frames read a second."""
    from variegate.video.reading import time_label

    started, n_frames = time.monotonic(), 0

    def time_and_pace(stage: str, done: float, total: float) -> str:
        """Count one more frame, and return its note; times are in seconds."""
        nonlocal n_frames
        n_frames += 1
        end = f" of {time_label(total)}" if total else ""
        rate = n_frames / max(time.monotonic() - started, 1e-9)
        return f"{time_label(done)}{end}  {rate:.0f} frames/s"

    return time_and_pace


@contextmanager
def show_progress(
    label: str = "", note: Note = rows_note, at_once: bool = False
) -> Iterator[Progress]:
    """Yield a progress callback that shows one line, which is wiped at the end.

    Nothing is shown where standard error is not a terminal.  A ``label`` stands in
    place of the stage; ``at_once`` shows it before the first call.
    """
    bars = _make_progress_line()
    if bars is None:
        yield ignore
        return
    started = time.monotonic()
    task: TaskID | None = None

    def update_line(stage: str, done: float, total: float) -> None:
        """Update the line, or begin one for a new stage."""
        nonlocal task
        stage, text = label or stage, note(stage, done, total)
        if not at_once and time.monotonic() - started < PATIENCE:
            return
        if task is None or stage != bars.tasks[0].description:
            # A new task, as the pace of another says nothing about this one.
            if task is not None:
                bars.remove_task(task)
            task = bars.add_task(stage, total=total or None, note=text)
            bars.start()
        bars.update(task, completed=done, total=total or None, note=text)

    try:
        if at_once:
            update_line(label, 0, 0)
        yield update_line
    finally:
        if task is not None:
            bars.stop()


def _make_progress_line() -> Bars | None:
    """Return a rich progress line, not yet shown; None without a terminal for it."""
    if not sys.stderr.isatty():
        return None
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_interactive:  # a terminal that cannot wipe a line
        return None
    return progress.Progress(
        # Names may have brackets, and are not markup.
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
