"""The studio as an ASGI application: a page, and its API in JSON.

It is an object that can be called in process; :mod:`~variegate.studio.serving` puts it
behind an address.  Nothing that a request says is ever a path: pages and exports are
known by name, groups and items by number.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

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

#: Groups that are listed at once, the widest picture, and pictures that are made at a
#: time: picks must not wait for them.
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
    """Return the application of a session that was started.

    ``app.state.streams`` are its streams of events, which would keep a server from
    ending: ``app.state.streams.end()``, called in its loop, ends them.
    """
    api = _Api(session)
    app = Starlette(
        routes=api.routes(),
        middleware=[Middleware(Guard, access)],
        exception_handlers={
            HTTPException: _as_json,
            **dict.fromkeys(_STATUS, _as_json),
        },
    )
    app.state.streams = api.streams
    return app


async def _as_json(request: Request, error: Exception) -> Response:
    """Answer an error by its message and the status of its class."""
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
            "go": lambda body: self.session.go(_integer(body, "group")),
            "settings": self.session.set,
        }
        return [
            Route("/", _static),
            Route("/static/{name}", _static),
            Route("/image/{group:int}/{item:int}", self.image),
            Route("/export/{name}", self.export),
            Route("/api/events", self.events),
            *(Route(path, _answering(answer)) for path, answer in answers.items()),
            *(
                Route(f"/api/{name}", self.acting(act), methods=["POST"])
                for name, act in actions.items()
            ),
        ]

    def acting(self, act: Callable[[_Body], None]) -> _Endpoint:
        """Return an endpoint that does something, then answers with the state."""

        def answer(request: Request) -> dict[str, Any]:
            """Do the action with the body, and return the state."""
            act(_parsed(request.scope["body"]))
            return self.session.state()

        return _answering(answer)

    # Answers -------------------------------------------------------------------------

    def learned(self, request: Request) -> dict[str, Any]:
        """Return the last result of learning, an empty one before the first."""
        learned = self.session.learned or LearningResult()
        return learned.to_json(self.session.material.items)

    def groups(self, request: Request) -> list[dict[str, Any]]:
        """Return summaries of up to ``count`` groups, from number ``from``."""
        start = _query_integer(request, "from", 0)
        count = _query_integer(request, "count", 100)
        return self.session.groups(start, min(count, _MOST_GROUPS))

    def items(self, request: Request) -> dict[str, Any]:
        """Return the name and the items of the group in the path."""
        number = self._group(request)
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
                }
                for n, item in enumerate(self.session.material.items(number))
            ],
        }

    def choice(self, request: Request) -> dict[str, Any]:
        """Return the newest proposal in a group, at the omega asked for."""
        group = self._group(request)
        return {"chosen": self.session.choice(group, self._omega(request))}

    def proposal(self, request: Request) -> dict[str, Any]:
        """Return a proposal with the probability of each item, if learned."""
        group, omega = self._group(request), self._omega(request)
        found = self.session.proposer.propose(group, omega)
        probability = found.probability
        return {
            "omega": found.omega,
            "chosen": found.chosen.tolist(),
            "probability": None
            if probability is None
            else [round(p, 6) for p in probability.tolist()],
        }

    def why(self, request: Request) -> dict[str, Any]:
        """Explain an item beside the picks of its group."""
        (group, item), omega = self._item(request), self._omega(request)
        picks = self.session.picks(group)
        return self.session.proposer.why(group, item, picks, omega)

    def map(self, request: Request) -> dict[str, Any]:
        """Return places of the items of a group in the plane."""
        return self.session.proposer.outline(self._group(request))

    def _group(self, request: Request) -> int:
        """Return the group of the path, or refuse one that is not there."""
        self.session.check(request.path_params["group"])
        return int(request.path_params["group"])

    def _item(self, request: Request) -> tuple[int, int]:
        """Return the group and item of the path, or refuse them."""
        group, item = request.path_params["group"], request.path_params["item"]
        self.session.check(group, item)
        return group, item

    def _omega(self, request: Request) -> float:
        """Return the omega that a request gives, or that of the session."""
        text = request.query_params.get("omega")
        if text is None:
            return self.session.omega
        try:
            return as_omega(float(text))
        except ValueError:
            raise SessionError("omega is a positive number") from None

    # Actions -------------------------------------------------------------------------

    def pick(self, body: _Body) -> None:
        """Take or leave an item: ``group``, ``item`` and ``picked``."""
        picked = body.get("picked")
        if not isinstance(picked, bool):
            raise SessionError("picked is true or false")
        self.session.pick(_integer(body, "group"), _integer(body, "item"), picked)

    def done(self, body: _Body) -> None:
        """Finish ``group``; ``picks``, if given, are those on the page."""
        picks = body.get("picks")
        if picks is not None and not (
            isinstance(picks, list) and all(type(item) is int for item in picks)
        ):
            raise SessionError("picks are a list of whole numbers")
        self.session.done(_integer(body, "group"), picks)

    # Files and events ----------------------------------------------------------------

    async def image(self, request: Request) -> Response:
        """Answer with the picture of an item, at most ``width`` pixels wide."""
        group, item = self._item(request)
        width = min(max(_query_integer(request, "width", 320), 16), _WIDEST)
        paint = partial(self.session.material.image, group, item, width)
        content, kind = await to_thread.run_sync(paint, limiter=self._painters)
        if kind not in _PICTURES:
            raise HTTPException(404, "there is no picture that could be shown")
        headers = {"cache-control": "private, max-age=600"}
        return Response(content, media_type=kind, headers=headers)

    async def export(self, request: Request) -> Response:
        """Answer with an exported file of the picks that are done."""
        name = request.path_params["name"]
        one = self.session
        picks = one.done_picks()
        write = partial(export_file, name, one.material, picks, one.learned, one.omega)
        content = await to_thread.run_sync(write, limiter=self._painters)
        headers = {
            "content-disposition": f'attachment; filename="{name}"',
            # A browser that opens it all the same gives the page none of our rights.
            "content-security-policy": "sandbox; default-src 'none'",
        }
        return Response(content, media_type=EXPORTS[name], headers=headers)

    async def events(self, request: Request) -> Response:
        """Answer with the stream of changes."""
        return EventResponse(self.streams)


def _answering(answer: Callable[[Request], Any]) -> _Endpoint:
    """Return an endpoint with the result of a function, in a thread, as JSON."""

    async def endpoint(request: Request) -> Response:
        return JSONResponse(await to_thread.run_sync(answer, request))

    return endpoint


async def _static(request: Request) -> Response:
    """Answer with the page, or with a file that belongs to it."""
    name = request.path_params.get("name", "")
    if name not in _PAGES:
        raise HTTPException(404, "there is no such page")
    file, kind = _PAGES[name]
    content = await to_thread.run_sync((_STATIC / file).read_bytes)
    return Response(content, media_type=kind)


def _parsed(body: bytes) -> _Body:
    """Return the JSON object in a body, an empty one of nothing."""
    try:
        parsed = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise SessionError("the request is not JSON") from None
    if not isinstance(parsed, dict):
        raise SessionError("the request is not a JSON object")
    return parsed


def _integer(body: _Body, name: str) -> int:
    """Return an integer of a body, or refuse it."""
    value = body.get(name)
    if type(value) is not int:
        raise SessionError(f"{name} is a whole number")
    return value


def _query_integer(request: Request, name: str, default: int) -> int:
    """Return an integer of at most 9 digits in the query."""
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise SessionError(f"{name} is a whole number")
    return int(text)
