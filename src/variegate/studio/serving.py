"""The studio behind an address of this machine, until it is interrupted."""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Callable
from contextlib import closing
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from variegate.studio.app import studio_app
from variegate.studio.security import LOOPBACK, Access, as_address
from variegate.studio.session import Session

#: Connections that may wait to be taken.
_BACKLOG = 128

#: Seconds that answers on their way have left when the server ends.
_GRACE = 1


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
    with closing(_bound(host, port)) as listener:
        port = listener.getsockname()[1]
        is_open = not is_loopback(host)
        own_name = [socket.gethostname().lower()] if is_open else []
        names = {*LOOPBACK, host.lower(), *own_name}
        access = Access(token, names, any_address=is_open)
        server = _Server(studio_app(session, access))
        try:
            on_start(f"http://{_as_name(host)}:{port}/?token={token}")
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            pass  # interrupted before the server had started


def is_loopback(host: str) -> bool:
    """Return whether a host can be reached from this machine alone."""
    address = as_address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens: early requests wait for the server."""
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


def _as_name(host: str) -> str:
    """Return a host as it stands in an address that this machine can open."""
    address = as_address(host)
    if address is not None and address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"
    return f"[{host}]" if ":" in host else host


class _Server(uvicorn.Server):
    """Uvicorn that ends quietly."""

    def __init__(self, app: Starlette) -> None:
        for name in ("uvicorn.error", "uvicorn.asgi"):
            # The application itself says all that a user has to know.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
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

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Not raised again at the end: to be interrupted is how a server ends.
        self.force_exit = self.should_exit
        self.should_exit = True
