"""Access control: the person at this machine is let in, and no page of others.

A request is answered only if all of this holds:

- its ``Host`` is a name of this machine, so that a foreign name that was made to lead
  here (DNS rebinding) leads nowhere.  The rule is that of Django's ``ALLOWED_HOSTS``:
  names are compared whole, without regard to case and one dot at the end; the port is
  not compared, as a tunnel or a container has another one;
- it comes from our page: its ``Origin`` and ``Sec-Fetch-Site`` say so;
- it has the token, in the address of the first page and in a cookie from then on;
- it is as small as what the page itself sends, and is there in time.

Every answer forbids the browser to run or load anything that is not ours, and to be
shown within another page.

Starlette's ``TrustedHostMiddleware`` knows names only: not the addresses of a machine,
not the dot at the end, not two ``Host`` headers in one request, and not that a refusal
is to say why.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_logger = logging.getLogger(__name__)

#: Names by which a browser on this machine asks for it.
LOOPBACK = ("127.0.0.1", "localhost", "::1")

#: The longest address, the largest body, and the seconds for it to arrive.
MOST_LETTERS = 2048
MOST_BYTES = 65536
BODY_SECONDS = 10.0

#: A name or address, IPv6 in brackets, and perhaps a port.
_HOST = re.compile(r"(?:([a-z0-9._-]+)|\[([0-9a-f:.]*:[0-9a-f:.]*)\])(?::[0-9]*)?")

_TOO_LARGE = f"a request has at most {MOST_BYTES} bytes"

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """The token and the hosts that requests must have."""

    token: str = field(repr=False)
    #: Names of this machine, as ``normalize_name`` returns them.
    hosts: Collection[str] = LOOPBACK
    #: Whether all numeric addresses are allowed; foreign names cannot lead to them.
    any_address: bool = False

    @property
    def cookie(self) -> str:
        """The name of the cookie, own to the token, as ports share their cookies."""
        return f"studio-{hashlib.sha256(self.token.encode()).hexdigest()[:16]}"

    def check_origin(self, headers: Headers, path: str) -> None:
        """Raise HTTPException for other hosts, and for other pages but links to "/"."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_this_machine(hosts[0]):
            raise HTTPException(
                HTTPStatus.MISDIRECTED_REQUEST, "this is not the machine asked for"
            )
        origin = headers.get("origin", f"http://{hosts[0]}")
        site = headers.get("sec-fetch-site", "none")
        # A link of another page may lead to our page, but gets nothing of it.
        is_link = path == "/" and headers.get("sec-fetch-mode") == "navigate"
        if origin.lower() != f"http://{hosts[0].lower()}" or (
            site not in ("none", "same-origin") and not is_link
        ):
            raise HTTPException(HTTPStatus.FORBIDDEN, "other pages get nothing here")

    def _is_this_machine(self, host: str) -> bool:
        """Return whether a ``Host`` header, perhaps with a port, names this machine."""
        match = _HOST.fullmatch(host.lower())
        if match is None:
            return False
        name = normalize_name(match[1] or match[2])
        return name in self.hosts or (self.any_address and as_address(name) is not None)

    def has_token(self, given: Iterable[str | None]) -> bool:
        """Return whether one of these texts is the token, compared in constant time."""
        ours, texts = self.token.encode(), [one or "" for one in given]
        known = [text.encode("utf-8", "replace") for text in texts]
        return any(secrets.compare_digest(one, ours) for one in known)


def normalize_name(host: str) -> str:
    """Return the one spelling of a host's name or address: lower case, no last dot."""
    name = host.lower().removesuffix(".")
    address = as_address(name)
    return name if address is None else str(address)


def as_address(host: str) -> IPv4Address | IPv6Address | None:
    """Return a host as an IP address, or None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


class Guard:
    """ASGI middleware that lets in requests that :class:`Access` allows.

    The body of a request is then ``scope["body"]``.  An error behind the guard becomes
    an answer with a message, and never ends the server.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        has_started = False

        async def send_protected(message: Message) -> None:
            """Send a message, with ``_HEADERS`` added where an answer starts."""
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            response = self._check_access(scope)
            if response is None:
                scope["body"] = await _read_body(scope, receive)
                await self.app(scope, receive, send_protected)
                return
        except HTTPException as error:
            response = _refusal_response(scope, error.status_code, error.detail)
        except Exception:
            _logger.exception("%s %s failed", scope["method"], scope["path"])
            if has_started:
                raise
            reason = "something went wrong here; the terminal has the details"
            response = _refusal_response(
                scope, HTTPStatus.INTERNAL_SERVER_ERROR, reason
            )
        await response(scope, receive, send_protected)

    def _check_access(self, scope: Scope) -> Response | None:
        """Return None if the app may answer; raise HTTPException to refuse a request.

        If the token is in the address, return a redirect to "/" that sets the cookie.
        """
        headers = Headers(scope=scope)
        self.access.check_origin(headers, scope["path"])
        if len(scope["path"]) + len(scope["query_string"]) > MOST_LETTERS:
            raise HTTPException(
                HTTPStatus.REQUEST_URI_TOO_LONG,
                f"an address has at most {MOST_LETTERS} letters",
            )
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["path"] == "/" and self.access.has_token(query.get("token", ())):
            response = Response(status_code=303, headers={"location": "/"})
            response.set_cookie(
                self.access.cookie, self.access.token, httponly=True, samesite="strict"
            )
            return response
        cookies = cookie_parser(headers.get("cookie", ""))
        if not self.access.has_token([cookies.get(self.access.cookie)]):
            raise HTTPException(
                HTTPStatus.FORBIDDEN,
                "open the address that 'variegate studio' printed, with its token",
            )
        return None


async def _read_body(scope: Scope, receive: Receive) -> bytes:
    """Return the body of a POST, b"" of a GET; HTTPException if bad, large or slow."""
    if scope["method"] in ("GET", "HEAD"):
        return b""
    headers = Headers(scope=scope)
    if scope["method"] != "POST":
        raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, "GET and POST are known")
    if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        # A type that forms of other pages cannot send.
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send application/json")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()) or int(length[:20]) > MOST_BYTES:
        raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE)
    body = b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in Request(scope, receive).stream():
                body += part
                if len(body) > MOST_BYTES:
                    raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE)
    except ClientDisconnect:
        raise HTTPException(
            HTTPStatus.BAD_REQUEST, "the request is not whole"
        ) from None
    except TimeoutError:
        raise HTTPException(
            HTTPStatus.REQUEST_TIMEOUT, "the request took too long to arrive"
        ) from None
    return body


def _refusal_response(scope: Scope, status: int, reason: str) -> Response:
    """Return an answer that ends the connection: JSON for the API, else plain text."""
    # The rest of the request is not waited for.
    headers = {"connection": "close"}
    if scope["path"].startswith("/api/"):
        return JSONResponse({"error": reason}, status, headers)
    return PlainTextResponse(f"{reason}\n", status, headers)
