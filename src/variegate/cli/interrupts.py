"""Ctrl-C: one line and status 130, at any moment of a command.

Python raises KeyboardInterrupt wherever it is.  In the import of a library this may
become another error, or be printed and lost in a callback.  So every error after an
interrupt counts as the interrupt, and one that was lost is raised again.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType, TracebackType
from typing import Any

#: Status of a command that was interrupted.
STATUS = 130

#: Seconds until an interrupt that was lost in a callback is raised again.
_AGAIN = 0.05


def exit_on_interrupt() -> None:
    """Let an interrupt end this process at once, with one line.

    Only while there are no results and no processes.  Where interrupts are ignored, as
    in the background of a shell, they still are.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


def ignore_interrupts() -> None:
    """Ignore interrupts from now on, as there is nothing left to interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _exit(number: int, frame: FrameType | None) -> None:
    """End this process, with one line on standard error."""
    os.write(2, b"variegate: interrupted; it must start again\n")
    os._exit(STATUS)


class InterruptWatch:
    """Raises KeyboardInterrupt at an interrupt in the with block, and remembers it.

    ``arrived`` is whether there was one.  Where interrupts are ignored, and in other
    threads than the main one, nothing changes.
    """

    def __init__(self) -> None:
        self.arrived = False
        self._former: dict[signal.Signals, Any] = {}
        self._former_hook = sys.unraisablehook

    def __enter__(self) -> InterruptWatch:
        """Take over SIGINT, and SIGALRM to raise again."""
        if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _exit):
            numbers = [signal.SIGINT]
            if hasattr(signal, "setitimer"):
                numbers.append(signal.SIGALRM)
                sys.unraisablehook = self._raise_again
            self._former = {one: signal.signal(one, self._raise) for one in numbers}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore the signals; raise KeyboardInterrupt for errors of an interrupt."""
        if self._former:
            sys.unraisablehook = self._former_hook
            if hasattr(signal, "setitimer"):
                signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._former.items():
            signal.signal(number, handler)
        if self.arrived and isinstance(error, Exception):
            raise KeyboardInterrupt from error

    def _raise(self, number: int, frame: FrameType | None) -> None:
        """Remember the interrupt, and raise KeyboardInterrupt."""
        self.arrived = True
        raise KeyboardInterrupt

    def _raise_again(self, lost: sys.UnraisableHookArgs) -> None:
        """Raise an interrupt again that Python would print and forget."""
        if issubclass(lost.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
        elif not self.arrived:
            self._former_hook(lost)
