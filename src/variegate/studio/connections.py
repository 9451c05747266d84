"""Connections that neither many nor slow ones can keep others from.

uvicorn waits for a request as long as it takes; this waits a few seconds.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Connection"]


class Connection(H11Protocol):
    """A connection of HTTP/1.1 that is not waited for forever.

    It is closed where a request is not there in time, where an answer is not taken in
    time, and, if nothing is being answered on it, where there are too many others.
    """

    #: How many there may be.
    MOST = 256

    #: Seconds for the head of a request to arrive, and for an answer to be taken.
    REQUEST_SECONDS = 10.0
    ANSWER_SECONDS = 30.0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._since = 0.0
        self._waiting: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, in place of one that is idle if there are too many."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._wait()
        others = [
            each
            for each in self.connections
            if isinstance(each, Connection) and not each.transport.is_closing()
        ]
        if len(others) > self.MOST:
            idle = [each for each in others if each.is_idle]
            min(idle, key=lambda each: each._since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        super().connection_lost(exc)
        for timer in (self._waiting, self._sending):
            if timer is not None:
                timer.cancel()
        self._waiting = self._sending = None

    def data_received(self, data: bytes) -> None:
        """Take what arrives, and wait for the rest of a request if there is one."""
        super().data_received(data)
        if not self.is_idle and self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        elif self.is_idle:
            self._wait()

    def pause_writing(self) -> None:
        """Begin to wait for somebody who takes an answer slowly."""
        super().pause_writing()
        if self._sending is None:
            self._sending = self.loop.call_later(
                self.ANSWER_SECONDS, self.transport.abort
            )

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self.REQUEST_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._waiting = None
        if self.is_idle:
            self.transport.abort()
