"""Calls in a process of their own: the page must not wait for them, nor its end.

Learning a model to take along takes seconds of work that would keep picks from being
answered at once, and a thread at work cannot be ended.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from variegate._processes import Piped, end_piped, own_output, start_piped

__all__ = ["Apart", "ApartError", "main"]

#: What the priority of such a process is lowered by.
_NICENESS = 10


class ApartError(RuntimeError):
    """A call failed, for a reason that the message says."""


class Apart:
    """Calls functions in processes of their own, which end with it.

    Functions, and what they return, have to be fit for pickles.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: set[Piped] = set()
        self._is_closed = False

    def call(self, function: Callable[[], Any]) -> Any:
        """Return what a function returns; waits for it."""
        with self._lock:
            if self._is_closed:
                raise ApartError("the studio is ending")
            process = start_piped("variegate.studio.apart", _NICENESS)
            self._running.add(process)
        try:
            result, problem = _asked(process, function)
        finally:
            with self._lock:
                self._running.discard(process)
            end_piped(process)
        if problem is not None:
            raise ApartError(problem)
        return result

    def close(self) -> None:
        """End all calls, which fail; later ones are refused."""
        with self._lock:
            self._is_closed = True
            for process in self._running:
                process.kill()


def _asked(process: Piped, function: Callable[[], Any]) -> tuple[Any, str | None]:
    """Send a function to a process, and return what came of it, or what went wrong."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with process.stdin, process.stdout:
            pickle.dump(function, process.stdin)
            process.stdin.flush()
            answer: tuple[Any, str | None] = pickle.load(process.stdout)
            return answer
    except (EOFError, OSError, pickle.UnpicklingError):
        return None, "the process that was to do this ended too early"


def main() -> None:
    """Call what comes on standard input, and send what it returns."""
    from threadpoolctl import threadpool_limits

    out = own_output()
    function = pickle.load(sys.stdin.buffer)
    Thread(target=_end_with, args=(sys.stdin.fileno(),), daemon=True).start()
    answer: tuple[Any, str | None]
    with threadpool_limits(1):
        try:
            answer = function(), None
        except Exception as error:
            answer = None, f"{type(error).__name__}: {error}"
    # The other side may have closed its end meanwhile.
    with suppress(BrokenPipeError):
        pickle.dump(answer, out)
        out.flush()


def _end_with(descriptor: int) -> None:
    """End, in the middle of whatever is done, with the process that started this."""
    while os.read(descriptor, 1):
        pass
    os._exit(1)
