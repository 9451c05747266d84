"""Changes as a stream of server-sent events, one for each page that is open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from variegate.studio.changes import Changes

__all__ = ["Streams"]

#: Seconds between signs of life.
_BEAT = 15.0


class Streams:
    """Streams of changes, which end when the server does."""

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

    def response(self) -> Response:
        """Return what answers with a stream; too many at once are refused."""
        return _EventResponse(self)

    @contextmanager
    def place(self) -> Iterator[_Pending]:
        """Give a page a place among those who listen."""
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

        Of those that a page is too slow for, the latest of each kind is enough: it
        asks for the state anyway.
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


class _EventResponse(StreamingResponse):
    """A stream that has its place from its first to its last byte."""

    def __init__(self, streams: Streams) -> None:
        super().__init__((), media_type="text/event-stream")
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.place() as pending:
            self.body_iterator = self._streams.stream(pending)
            await super().__call__(scope, receive, send)


class _Pending:
    """Changes that one page was not told of yet."""

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self._changes: dict[str, dict[str, Any]] = {}
        self._loop = asyncio.get_running_loop()

    def from_any_thread(self, change: dict[str, Any]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.add, change)

    def add(self, change: dict[str, Any]) -> None:
        self._changes[change["what"]] = change
        self.news.set()

    def take(self) -> list[dict[str, Any]]:
        self.news.clear()
        taken = sorted(self._changes.values(), key=lambda change: change["seq"])
        self._changes = {}
        return taken
