"""A process that learns, as seen by the one that started it."""

from __future__ import annotations

import contextlib
import pickle
import queue
import threading
from collections.abc import Callable
from typing import Any

from variegate._processes import Piped, end_piped, start_piped
from variegate.studio.worker import Open, Outcome

__all__ = ["Partner"]

#: Times in a row that a process which ended by itself is started again.
_RESTARTS = 3


class Partner:
    """A worker process that is started again if it ends by itself.

    Parameters
    ----------
    opening : Open
        The first message to every process.
    on_outcome : callable
        Called, in a thread of its own, with all that comes back.
    on_end : callable
        Called when a process has ended by itself, with whether another was started;
        messages that were not answered are lost.
    niceness : int
        What its priority is lowered by.
    """

    def __init__(
        self,
        opening: Open,
        on_outcome: Callable[[Outcome], None],
        on_end: Callable[[bool], None],
        niceness: int = 0,
    ) -> None:
        self._opening = opening
        self._on_outcome = on_outcome
        self._on_end = on_end
        self._niceness = niceness
        self._is_closed = False
        self._n_ended = 0
        self._lock = threading.Lock()
        self._start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def send(self, message: Any) -> None:
        """Send a message; returns at once."""
        self._outbox.put(message)

    def _start(self) -> None:
        self._process = start_piped("variegate.studio.worker", self._niceness)
        self._outbox: queue.Queue[Any] = queue.Queue()
        self._outbox.put(self._opening)
        for work in (self._write, self._read):
            arguments = (self._process, self._outbox)
            threading.Thread(target=work, args=arguments, daemon=True).start()

    def _write(self, process: Piped, outbox: queue.Queue[Any]) -> None:
        assert process.stdin is not None
        # What a process does not take any more is taught again to the next one.
        with contextlib.suppress(OSError, ValueError):
            while (message := outbox.get()) is not None:
                pickle.dump(message, process.stdin)
                process.stdin.flush()

    def _read(self, process: Piped, outbox: queue.Queue[Any]) -> None:
        assert process.stdout is not None
        with contextlib.suppress(EOFError, OSError, ValueError, pickle.PickleError):
            while True:
                self._on_outcome(pickle.load(process.stdout))
                self._n_ended = 0
        process.wait()
        outbox.put(None)
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        with self._lock:
            if self._is_closed:
                return
            self._n_ended += 1
            if self._n_ended <= _RESTARTS:
                self._start()
        self._on_end(self._n_ended <= _RESTARTS)

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._is_closed = True
        end_piped(self._process)
