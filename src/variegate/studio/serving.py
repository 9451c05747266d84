"""The studio behind an address of this machine, until it is interrupted."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable
from contextlib import closing
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from variegate.studio.app import studio_app
from variegate.studio.security import LOOPBACK, Access, as_address, normalize_name
from variegate.studio.session import Session

#: Connections that may wait to be taken.
_BACKLOG = 128

#: Seconds that answers on their way have left when the server ends.
_GRACE = 2


def serve(
    session: Session,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    on_start: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve a started session until the process is interrupted or asked to end.

    Only a loopback ``host`` cannot be reached from other machines.  Port 0 is one that
    is free; the ``token`` is by default one that cannot be guessed.  ``on_start`` is
    called with the address to open, before the first request.
    """
    token = token or secrets.token_urlsafe(32)
    with closing(_bind(host, port)) as listener:
        port = listener.getsockname()[1]
        is_open = not is_loopback(host)
        own_name = [socket.gethostname()] if is_open else []
        names = {*map(normalize_name, [*LOOPBACK, host, *own_name])}
        access = Access(token, names, any_address=is_open)
        server = _Server(studio_app(session, access))
        try:
            on_start(f"http://{_url_host(host)}:{port}/?token={token}")
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            pass  # interrupted before the server had started


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached from this machine alone."""
    name = normalize_name(host)
    address = as_address(name)
    return name == "localhost" if address is None else address.is_loopback


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens on ``host`` and ``port``; OSError if it cannot."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        listener = socket.create_server(
            address, family=family, backlog=_BACKLOG, dualstack_ipv6=both
        )
        # Or the body of an answer waits until its head is acknowledged.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror or error
        raise OSError(
            f"cannot listen on {host}, port {port} ({reason}): name others with "
            "--host and --port"
        ) from error


def _url_host(host: str) -> str:
    """Return a host for a URL: loopback for "any address", IPv6 in brackets."""
    address = as_address(host)
    if address is not None and address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"
    return f"[{host}]" if ":" in host else host


class _Server(uvicorn.Server):
    """Uvicorn that ends quietly, and ends the streams of the application with it."""

    def __init__(self, app: Starlette) -> None:
        for name in ("uvicorn.error", "uvicorn.asgi"):
            # The application itself says all that a user has to know.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        super().__init__(
            uvicorn.Config(
                app,
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=_BACKLOG,
                timeout_graceful_shutdown=_GRACE,
            )
        )
        self._streams = app.state.streams

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Let the server end after a first signal, and end at once after a second."""
        # Not raised again at the end: to be interrupted is how a server ends.
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then the server."""
        self._streams.end()
        await asyncio.sleep(0)
        await super().shutdown(sockets)


class Connection(H11Protocol):
    """A connection of HTTP/1.1 that is not waited for forever.

    It is closed where a request is not there in time, where an answer is not taken in
    time, and, while it is idle, where there are too many others.  uvicorn's own limits
    would not do: ``limit_concurrency`` refuses the new request and keeps the idle
    connections, and ``timeout_keep_alive`` begins after an answer only.
    """

    #: The largest number of open connections.
    MOST = 256

    #: Seconds for the head of a request to arrive, and for an answer to be taken.
    REQUEST_SECONDS = 10.0
    ANSWER_SECONDS = 30.0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._since = 0.0  # time of the event loop at which it was made
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @property
    def is_idle(self) -> bool:
        """Whether the connection has no request that is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Time the first request; close the oldest idle connection if too many."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._start_timer("request", self.REQUEST_SECONDS, self._close_if_idle)
        others = [one for one in self.connections if isinstance(one, Connection)]
        others = [one for one in others if not one.transport.is_closing()]
        if len(others) > self.MOST:
            idle = [one for one in others if one.is_idle]
            min(idle, key=lambda one: one._since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers of this connection, which is closed."""
        super().connection_lost(exc)
        self._stop_timer("request")
        self._stop_timer("answer")

    def data_received(self, data: bytes) -> None:
        """Take bytes; stop the timer of a request if it is complete, or start it."""
        super().data_received(data)
        if self.is_idle:
            self._start_timer("request", self.REQUEST_SECONDS, self._close_if_idle)
        else:
            self._stop_timer("request")

    def pause_writing(self) -> None:
        """Start the timer that ends the connection, as the client reads too slowly."""
        super().pause_writing()
        self._start_timer("answer", self.ANSWER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timer for the answer, as the client reads it again."""
        super().resume_writing()
        self._stop_timer("answer")

    def _start_timer(self, name: str, seconds: float, act: Callable[[], None]) -> None:
        """Call ``act`` after some seconds, unless timer ``name`` is already running."""
        if name not in self._timers:
            self._timers[name] = self.loop.call_later(seconds, act)

    def _stop_timer(self, name: str) -> None:
        """Cancel the timer "request" or "answer", if it is running."""
        if name in self._timers:
            self._timers.pop(name).cancel()

    def _close_if_idle(self) -> None:
        """Close the connection if it is idle."""
        self._stop_timer("request")
        if self.is_idle:
            self.transport.abort()
