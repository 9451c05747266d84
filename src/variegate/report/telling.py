"""Lines on standard error that say how far long work has come: ``verbose=True``."""

from __future__ import annotations

import sys
import time

__all__ = ["Teller"]

#: Seconds between lines.
_PAUSE = 1.0


class Teller:
    """Says what somebody who waits wants to know, at most once a second.

    Parameters
    ----------
    name : str
        Who is at work; every line begins with it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._start = self._last = time.monotonic()

    def __call__(self, text: str, *, always: bool = False) -> None:
        """Say it, unless something was said a moment ago."""
        now = time.monotonic()
        if not always and now - self._last < _PAUSE:
            return
        self._last = now
        seconds = now - self._start
        print(f"{self.name}: {text} ({seconds:.0f} s)", file=sys.stderr, flush=True)

    def steps(self, done: int, total: int) -> None:
        """Say how many steps are done, and that all are."""
        self(f"{done} of {total} steps", always=done == total)

    def stages(self, stage: str, done: int, total: int) -> None:
        """Say the same of a stage of the work; its end may not be known."""
        if total:
            self(f"{stage}, {done:,} of {total:,}", always=done == total)
        else:
            self(f"{stage}, {done:,}")
