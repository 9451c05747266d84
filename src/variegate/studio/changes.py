"""Changes of a session, and streams of them as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from threading import Lock
from typing import Any

#: Seconds between signs of life.
_BEAT = 15.0

#: ``{"seq": ..., "what": ...}``
_Change = dict[str, Any]


class Changes:
    """Numbers changes, and notifies listeners in that order."""

    def __init__(self) -> None:
        self.seq = 0
        self._lock = Lock()
        self._listeners: set[Callable[[_Change], None]] = set()

    def notify(self, what: str) -> None:
        """Count a change, and notify all listeners."""
        with self._lock:
            self.seq += 1
            for listener in tuple(self._listeners):
                listener({"seq": self.seq, "what": what})

    def listen(self, listener: Callable[[_Change], None]) -> Callable[[], None]:
        """Notify a listener of each change; the returned function ends that.

        It must return at once.
        """
        with self._lock:
            self._listeners.add(listener)
        return partial(self._listeners.discard, listener)


async def event_stream(changes: Changes) -> AsyncIterator[bytes]:
    """Yield the latest change and every one that follows, as server-sent events.

    A slow page gets the latest of each kind: it asks for the state anyway.
    """
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    pending: dict[str, _Change] = {}

    def add(change: _Change) -> None:
        pending[change["what"]] = change
        news.set()

    def add_from_any_thread(change: _Change) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(add, change)

    leave = changes.listen(add_from_any_thread)
    try:
        yield b"retry: 1000\n\n"
        add({"seq": changes.seq, "what": "picks"})
        while True:
            try:
                async with asyncio.timeout(_BEAT):
                    await news.wait()
            except TimeoutError:
                yield b": still here\n\n"
            news.clear()
            latest = sorted(pending.values(), key=lambda change: change["seq"])
            pending.clear()
            for change in latest:
                yield f"data: {json.dumps(change)}\n\n".encode()
    finally:
        leave()
