"""Changes of a session, and streams of them as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from threading import Lock
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

#: Seconds without an event after which a stream sends a comment, to stay open.
_BEAT = 15.0

#: ``{"seq": number, "what": kind}``, such as the kind "picks".
_Change = dict[str, Any]


class Changes:
    """Numbers changes, and notifies listeners in that order."""

    def __init__(self) -> None:
        #: The number of the last change.
        self.seq = 0
        self._lock = Lock()
        self._listeners: set[Callable[[_Change], None]] = set()

    def notify(self, what: str) -> None:
        """Count a change of the kind ``what``, and notify all listeners."""
        with self._lock:
            self.seq += 1
            for listener in tuple(self._listeners):
                listener({"seq": self.seq, "what": what})

    def listen(self, listener: Callable[[_Change], None]) -> Callable[[], None]:
        """Call ``listener`` after every change; return a function that removes it.

        The listener is called by the thread of the change, and has to return at once.
        """
        with self._lock:
            self._listeners.add(listener)
        return partial(self._listeners.discard, listener)


class Streams:
    """The streams of all pages, which end when the server does."""

    #: How many pages may listen at once.
    MOST = 64

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        self.open: set[EventResponse] = set()
        self.is_ending = False

    def end(self) -> None:
        """Set ``is_ending``, and wake all streams to end; call it in their loop."""
        self.is_ending = True
        for response in self.open:
            response.news.set()


class EventResponse(StreamingResponse):
    """The stream of one page: the latest change, and every one that follows.

    A slow page gets the latest of each kind: it asks for the state anyway.  The stream
    counts as open from its first to its last byte; too many at once are refused.
    """

    def __init__(self, streams: Streams) -> None:
        super().__init__(self._stream(), media_type="text/event-stream")
        self.news = asyncio.Event()
        self._streams = streams
        self._pending: dict[str, _Change] = {}
        self._loop = asyncio.get_running_loop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream until either side ends it; 503 if too many are open."""
        streams = self._streams
        if len(streams.open) >= streams.MOST:
            raise HTTPException(503, "too many pages are open")
        streams.open.add(self)
        leave = streams.changes.listen(self._add_from_any_thread)
        try:
            await super().__call__(scope, receive, send)
        finally:
            leave()
            streams.open.discard(self)

    async def _stream(self) -> AsyncIterator[bytes]:
        """Yield changes as server-sent events; a comment after ``_BEAT`` s without."""
        yield b"retry: 1000\n\n"
        self._add({"seq": self._streams.changes.seq, "what": "picks"})
        while not self._streams.is_ending:
            try:
                async with asyncio.timeout(_BEAT):
                    await self.news.wait()
            except TimeoutError:
                yield b": still here\n\n"
            self.news.clear()
            pending, self._pending = self._pending, {}
            for change in sorted(pending.values(), key=lambda change: change["seq"]):
                yield f"data: {json.dumps(change)}\n\n".encode()

    def _add(self, change: _Change) -> None:
        """Add a change to send, in place of one of its kind that waits to be sent."""
        self._pending[change["what"]] = change
        self.news.set()

    def _add_from_any_thread(self, change: _Change) -> None:
        """Add a change from any thread, by a call in the event loop of the stream."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._add, change)
