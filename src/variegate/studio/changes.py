"""Changes of a session, and streams of them as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

__all__ = ["Changes", "EventResponse", "Streams"]

#: A number no run of the studio reaches, so that later runs count on from higher.
_OF_A_RUN = 10**9

#: Seconds between signs of life.
_BEAT = 15.0

#: ``{"seq": ..., "what": ...}``
_Change = dict[str, Any]


class Changes:
    """Numbers changes, and notifies listeners in that order.

    A page that comes back to a later run of the studio finds a higher number than it
    knew.
    """

    def __init__(self) -> None:
        self.seq = 0
        self._lock = Lock()
        self._listeners: dict[object, Callable[[_Change], None]] = {}

    def start(self, run: int) -> None:
        """Count from where no earlier run has come to."""
        self.seq = run * _OF_A_RUN

    def notify(self, what: str) -> None:
        """Count a change, and notify all listeners."""
        with self._lock:
            self.seq += 1
            for listener in self._listeners.values():
                listener({"seq": self.seq, "what": what})

    def listen(self, listener: Callable[[_Change], None]) -> Callable[[], None]:
        """Notify a listener of each change; the returned function ends that.

        It must return at once.
        """
        key = object()
        with self._lock:
            self._listeners[key] = listener

        def leave() -> None:
            with self._lock:
                self._listeners.pop(key, None)

        return leave


class Streams:
    """Streams of changes, one for each page, which end when the server does."""

    #: How many pages may listen at once.
    MOST = 64

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._open: set[_Pending] = set()
        self._is_ending = False

    def end(self) -> None:
        """End all streams; called in their loop."""
        self._is_ending = True
        for pending in self._open:
            pending.news.set()

    @contextmanager
    def place(self) -> Iterator[_Pending]:
        """Give a page a place among the listeners; refuse too many."""
        if len(self._open) >= self.MOST:
            raise HTTPException(503, "too many pages are open")
        pending = _Pending()
        self._open.add(pending)
        leave = self._changes.listen(pending.from_any_thread)
        try:
            yield pending
        finally:
            leave()
            self._open.discard(pending)

    async def stream(self, pending: _Pending) -> AsyncIterator[bytes]:
        """Yield the latest change, and every one that follows.

        A slow page gets the latest of each kind: it asks for the state anyway.
        """
        yield b"retry: 1000\n\n"
        pending.add({"seq": self._changes.seq, "what": "picks"})
        while not self._is_ending:
            try:
                async with asyncio.timeout(_BEAT):
                    await pending.news.wait()
            except TimeoutError:
                yield b": still here\n\n"
            for change in pending.take():
                yield f"data: {json.dumps(change)}\n\n".encode()


class EventResponse(StreamingResponse):
    """A stream that has its place from its first to its last byte."""

    def __init__(self, streams: Streams) -> None:
        super().__init__((), media_type="text/event-stream")
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the stream."""
        with self._streams.place() as pending:
            self.body_iterator = self._streams.stream(pending)
            await super().__call__(scope, receive, send)


class _Pending:
    """Changes that were not sent to one page yet."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self._changes: dict[str, _Change] = {}
        self._loop = asyncio.get_running_loop()

    def from_any_thread(self, change: _Change) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.add, change)

    def add(self, change: _Change) -> None:
        self._changes[change["what"]] = change
        self.news.set()

    def take(self) -> list[_Change]:
        self.news.clear()
        taken = sorted(self._changes.values(), key=lambda change: change["seq"])
        self._changes = {}
        return taken
