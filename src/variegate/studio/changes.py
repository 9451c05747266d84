"""Changes, counted, and those who are told of them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

__all__ = ["Changes", "Listener"]

#: Called with ``{"seq": ..., "what": ...}`` after each change; must return at once.
Listener = Callable[[dict[str, Any]], None]

#: A number no run of the studio reaches, so that later runs count on from higher.
_OF_A_RUN = 10**9


class Changes:
    """Numbers changes, and tells listeners in that order.

    A page that went away and comes back to a later run of the studio finds a higher
    number than it knew.
    """

    def __init__(self) -> None:
        self.seq = 0
        self._lock = Lock()
        self._listeners: dict[object, Listener] = {}

    def start(self, run: int) -> None:
        """Count from where no earlier run has come to."""
        self.seq = run * _OF_A_RUN

    def tell(self, what: str) -> None:
        """Count a change, and tell everybody."""
        with self._lock:
            self.seq += 1
            for listener in self._listeners.values():
                listener({"seq": self.seq, "what": what})

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell somebody of each change; what is returned ends that."""
        key = object()
        with self._lock:
            self._listeners[key] = listener

        def leave() -> None:
            with self._lock:
                self._listeners.pop(key, None)

        return leave
