"""A progress bar on standard error: on a terminal, for what takes over two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from variegate.experiments.runner import Progress

_PATIENCE = 2.0


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
            if time.monotonic() - started < _PATIENCE:
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
