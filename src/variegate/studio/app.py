"""The studio as an ASGI application: a page, and its API in JSON.

It is an object that can be called in process; :mod:`~variegate.studio.serving` puts it
behind an address.  Nothing that a request says is ever a path: pages and exports are
known by name, groups and items by number.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from math import isnan
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from variegate.files.json_text import load_json
from variegate.material.base import MaterialError
from variegate.studio.changes import EventResponse, Streams
from variegate.studio.export import EXPORTS, export_file
from variegate.studio.group_learner import LearningResult
from variegate.studio.security import Access, Guard
from variegate.studio.session import (
    ChangedError,
    NoSuchError,
    Session,
    SessionError,
    as_omega,
)
from variegate.studio.store import StoreError, StoreFullError

_STATIC = Path(__file__).parent / "static"
_PAGES = {
    "": ("page.html", "text/html"),
    "studio.js": ("studio.js", "text/javascript"),
    "studio.css": ("studio.css", "text/css"),
    "studio.svg": ("studio.svg", "image/svg+xml"),
}

#: Kinds of pictures that are shown; others could have scripts in them.
_PICTURES = ("image/jpeg", "image/png", "image/webp", "image/gif")

#: The most groups in one answer, the widest picture (pixels), and the threads that make
#: pictures and exports: others must stay free for picks.
_MOST_GROUPS = 1000
_WIDEST = 2048
_PAINTERS = 2

_STATUS = {
    NoSuchError: 404,
    MaterialError: 404,
    ChangedError: 409,
    SessionError: 400,
    StoreFullError: 507,
    StoreError: 500,
}

_Body = Mapping[str, Any]
_Endpoint = Callable[[Request], Awaitable[Response]]


def studio_app(session: Session, access: Access) -> Starlette:
    """Return the ASGI application of a started session.

    ``access`` has the token and the host names that requests must have.
    ``app.state.streams`` are streams of events, which would keep a server from ending:
    ``app.state.streams.end()``, called in its event loop, ends them.
    """
    api = _Api(session)
    app = Starlette(
        routes=api.routes(),
        middleware=[Middleware(Guard, access)],
        exception_handlers={
            HTTPException: _error_response,
            **dict.fromkeys(_STATUS, _error_response),
        },
    )
    app.state.streams = api.streams
    return app


async def _error_response(request: Request, error: Exception) -> Response:
    """Answer with JSON, ``{"error": message}``, and the status of the error."""
    if isinstance(error, HTTPException):
        return JSONResponse({"error": error.detail}, error.status_code)
    status = next(_STATUS[kind] for kind in type(error).mro() if kind in _STATUS)
    return JSONResponse({"error": " ".join(str(error).split())}, status)


class _Api:
    """The endpoints; bodies and answers are JSON objects as the page uses them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.streams = Streams(session.changes)
        self._painters = CapacityLimiter(_PAINTERS)

    def routes(self) -> list[Route]:
        """Return the routes of pages, files, answers (GET) and actions (POST)."""
        group = "/api/groups/{group:int}"
        answers = {
            "/api/state": lambda request: self.session.state(),
            "/api/learned": self.learned,
            "/api/groups": self.groups,
            group: self.items,
            f"{group}/choice": self.choice,
            f"{group}/proposal": self.proposal,
            f"{group}/why/{{item:int}}": self.why,
            f"{group}/map": self.map,
        }
        actions: dict[str, Callable[[_Body], None]] = {
            "pick": self.pick,
            "done": self.done,
            "undo": lambda body: self.session.undo(),
            "go": lambda body: self.session.go(_body_integer(body, "group")),
            "settings": self.session.set,
        }
        return [
            Route("/", _send_static_file),
            Route("/static/{name}", _send_static_file),
            Route("/image/{group:int}/{item:int}", self.image),
            Route("/export/{name}", self.export),
            Route("/api/events", self.events),
            *(Route(path, _json_endpoint(answer)) for path, answer in answers.items()),
            *(
                Route(f"/api/{name}", self._action_endpoint(act), methods=["POST"])
                for name, act in actions.items()
            ),
        ]

    def _action_endpoint(self, act: Callable[[_Body], None]) -> _Endpoint:
        """Return an endpoint that calls ``act`` with the body and sends the state."""

        def answer(request: Request) -> dict[str, Any]:
            """Call ``act`` with the parsed body; return the session's new state."""
            act(_parse_body(request.scope["body"]))
            return self.session.state()

        return _json_endpoint(answer)

    # Answers -------------------------------------------------------------------------

    def learned(self, request: Request) -> dict[str, Any]:
        """Return the last learning result as JSON values, an empty one before any."""
        learned = self.session.learned or LearningResult()
        return learned.to_json(self.session.material.items)

    def groups(self, request: Request) -> list[dict[str, Any]]:
        """Return number, name, size and state of ``count`` groups, from ``from`` on."""
        start = _query_integer(request, "from", 0)
        count = _query_integer(request, "count", 100)
        return self.session.groups(start, min(count, _MOST_GROUPS))

    def items(self, request: Request) -> dict[str, Any]:
        """Return the name and the items of the group in the path."""
        number = self._path_group(request)
        given = set(map(int, self.session.material.given(number)))
        return {
            "number": number,
            "name": self.session.material.names[number],
            "items": [
                {
                    "n": n,
                    "title": item.title,
                    "text": item.text,
                    "fields": [list(pair) for pair in item.fields],
                    "image": item.has_image,
                    "given": n in given,
                }
                for n, item in enumerate(self.session.material.items(number))
            ],
        }

    def choice(self, request: Request) -> dict[str, Any]:
        """Return sorted items as ``chosen``: those proposed in a group at an omega."""
        group = self._path_group(request)
        return {"chosen": self.session.choice(group, self._query_omega(request))}

    def proposal(self, request: Request) -> dict[str, Any]:
        """Return ``omega``, items ``chosen``, and ``probability``: a list or None."""
        group, omega = self._path_group(request), self._query_omega(request)
        found = self.session.proposer.propose(group, omega)
        probability = found.probability
        return {
            "omega": found.omega,
            "chosen": found.chosen.tolist(),
            "probability": None
            if probability is None
            else [None if isnan(p) else round(p, 6) for p in probability.tolist()],
        }

    def why(self, request: Request) -> dict[str, Any]:
        """Return why an item is proposed beside the picks: see ``Proposer.why``."""
        (group, item), omega = self._path_item(request), self._query_omega(request)
        picks = self.session.picks(group)
        return self.session.proposer.why(group, item, picks, omega)

    def map(self, request: Request) -> dict[str, Any]:
        """Return ``x`` and ``y`` of the items of a group: see ``Proposer.outline``."""
        return self.session.proposer.outline(self._path_group(request))

    def _path_group(self, request: Request) -> int:
        """Return the number of the group in the path; NoSuchError if there is none."""
        self.session.check(request.path_params["group"])
        return int(request.path_params["group"])

    def _path_item(self, request: Request) -> tuple[int, int]:
        """Return the numbers of group and item in the path, or raise NoSuchError."""
        group, item = request.path_params["group"], request.path_params["item"]
        self.session.check(group, item)
        return group, item

    def _query_omega(self, request: Request) -> float:
        """Return the omega in the query, else the session's; SessionError if bad."""
        text = request.query_params.get("omega")
        if text is None:
            return self.session.omega
        try:
            return as_omega(float(text))
        except ValueError:
            raise SessionError("omega is a positive number") from None

    # Actions -------------------------------------------------------------------------

    def pick(self, body: _Body) -> None:
        """Take (``picked`` true) or leave ``item`` of ``group``, values of the body."""
        picked = body.get("picked")
        if not isinstance(picked, bool):
            raise SessionError("picked is true or false")
        self.session.pick(
            _body_integer(body, "group"), _body_integer(body, "item"), picked
        )

    def done(self, body: _Body) -> None:
        """Finish ``group``; ``picks`` of the page, if any, must be the stored ones."""
        picks = body.get("picks")
        if picks is not None and not (
            isinstance(picks, list) and all(type(item) is int for item in picks)
        ):
            raise SessionError("picks are a list of whole numbers")
        self.session.done(_body_integer(body, "group"), picks)

    # Files and events ----------------------------------------------------------------

    async def image(self, request: Request) -> Response:
        """Answer with the picture of an item, at most ``width`` pixels wide."""
        group, item = self._path_item(request)
        width = min(max(_query_integer(request, "width", 320), 16), _WIDEST)
        paint = partial(self.session.material.image, group, item, width)
        content, kind = await to_thread.run_sync(paint, limiter=self._painters)
        if kind not in _PICTURES:
            raise HTTPException(404, "there is no picture that could be shown")
        headers = {"cache-control": "private, max-age=600"}
        return Response(content, media_type=kind, headers=headers)

    async def export(self, request: Request) -> Response:
        """Answer with the file of ``EXPORTS`` that the path names, from done groups."""
        name = request.path_params["name"]
        one = self.session
        picks = one.done_picks()
        learned, problem = one.learned, one.teacher.problem
        write = partial(
            export_file, name, one.material, picks, learned, one.omega, problem
        )
        content = await to_thread.run_sync(write, limiter=self._painters)
        headers = {
            "content-disposition": f'attachment; filename="{name}"',
            # A browser that opens it all the same gives the page none of our rights.
            "content-security-policy": "sandbox; default-src 'none'",
        }
        return Response(content, media_type=EXPORTS[name], headers=headers)

    async def events(self, request: Request) -> Response:
        """Answer with the stream of changes, as server-sent events."""
        return EventResponse(self.streams)


def _json_endpoint(answer: Callable[[Request], Any]) -> _Endpoint:
    """Return an endpoint that calls ``answer`` in a thread, and sends its result."""

    async def endpoint(request: Request) -> Response:
        """Answer a request with the result as JSON."""
        return JSONResponse(await to_thread.run_sync(answer, request))

    return endpoint


async def _send_static_file(request: Request) -> Response:
    """Answer with the file ``name`` of ``_PAGES``, the page itself without a name."""
    name = request.path_params.get("name", "")
    if name not in _PAGES:
        raise HTTPException(404, "there is no such page")
    file, kind = _PAGES[name]
    content = await to_thread.run_sync((_STATIC / file).read_bytes)
    return Response(content, media_type=kind)


def _parse_body(body: bytes) -> _Body:
    """Return the JSON object in a body, {} for an empty body; else SessionError."""
    try:
        parsed = load_json(body or b"{}")
    except ValueError:
        raise SessionError("the request is not JSON") from None
    if not isinstance(parsed, dict):
        raise SessionError("the request is not a JSON object")
    return parsed


def _body_integer(body: _Body, name: str) -> int:
    """Return the integer ``name`` of a body; SessionError if it is not one."""
    value = body.get(name)
    if type(value) is not int:
        raise SessionError(f"{name} is a whole number")
    return value


def _query_integer(request: Request, name: str, default: int) -> int:
    """Return integer ``name`` of the query, or ``default``; SessionError if bad."""
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise SessionError(f"{name} is a whole number")
    return int(text)
