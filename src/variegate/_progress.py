"""The progress callback of long work, and its printing for ``verbose=True``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

__all__ = ["Progress", "ProgressPrinter", "StageProgress", "ignore", "offset_progress"]

#: Called as ``progress(stage, done, total)`` with the name of a stage of the work and
#: its finished and all steps: rows, groups, files, fits, or seconds of a video.
#: ``total`` is 0 where it is not known.
Progress = Callable[[str, float, float], object]

#: A progress callback of one stage, ``partial(progress, stage)``.
StageProgress = Callable[[int, int], object]

#: Seconds between lines.
_PAUSE = 1.0


def ignore(*step: object) -> None:
    """Do nothing: the default progress callback of both kinds."""


def offset_progress(progress: Progress | None, before: int, total: int) -> Progress:
    """Return a callback for a part of the work, after ``before`` of ``total`` steps.

    It calls ``progress``, unless None, with the stage, ``before + done`` and ``total``.
    """
    if progress is None:
        return ignore
    return lambda stage, done, _: progress(stage, before + done, total)


class ProgressPrinter:
    """Prints lines on standard error, at most one a second.

    Parameters
    ----------
    name : str
        The estimator at work; every line begins with it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._start = self._last = time.monotonic()

    def __call__(self, text: str, *, always: bool = False) -> None:
        """Print a line with the seconds so far; drop it within a second of the last.

        A line that is to be printed ``always`` is not dropped.
        """
        now = time.monotonic()
        if not always and now - self._last < _PAUSE:
            return
        self._last = now
        seconds = now - self._start
        print(f"{self.name}: {text} ({seconds:.0f} s)", file=sys.stderr, flush=True)

    def progress(self, stage: str, done: float, total: float) -> None:
        """Print the finished steps of a stage: a ``Progress`` callback."""
        end = f" of {round(total, 1):,}" if total else ""
        self(f"{stage}, {round(done, 1):,}{end}", always=bool(total) and done == total)
