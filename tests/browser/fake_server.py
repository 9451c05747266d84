"""A stand-in for the studio's server: the same routes, made-up groups, and faults.

It learns nothing: proposals follow a fixed score, and the path and the curve are drawn
by hand.  What it is for is what a real server does not do when asked: refuse, be slow,
go away, or show 2,000 rows with scripts in their names.
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import socket
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from fake_material import FakeMaterial

import variegate

STATIC = Path(variegate.__file__).parent / "studio" / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
OMEGAS = (0.0625, 0.25, 1.0, 4.0, 16.0)


@dataclass
class FakeStudio:
    """What the server holds, and what is to go wrong with it."""

    material: FakeMaterial
    group: int = 0
    omega: float = 1.0
    target: dict[str, float] | None = None
    order: str = "unsure"
    decided: dict[int, dict[int, bool]] = field(default_factory=dict)
    done: dict[int, bool] = field(default_factory=dict)
    past: list[tuple[str, int, Any]] = field(default_factory=list)
    learned_from: int = 0
    learning: bool = False
    seq: int = 0
    #: What the next posts are answered with: (status, words).
    refusals: list[tuple[int, str]] = field(default_factory=list)
    delay: float = 0.0
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    listeners: list[queue.Queue[str | None]] = field(default_factory=list)
    connections: set[socket.socket] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def score(self, group: int) -> np.ndarray:
        size = len(self.material.items[group])
        return (np.arange(size) * 29 % 97) / 97 + 0.002 * np.arange(size) / size

    def proposal(self, group: int, omega: float | None = None) -> dict[str, Any]:
        omega = self.omega if omega is None else omega
        size = len(self.material.items[group])
        share = 0.3 * 2.0 ** (np.log2(omega) / 4)
        score = self.score(group)
        count = max(1, min(size, round(share * size)))
        chosen = np.sort(np.argsort(-score)[:count])
        return {
            "omega": omega,
            "chosen": chosen.tolist(),
            "probability": np.clip(score**2 * share * 3, 0.01, 0.99).round(4).tolist()
            if self.learned_from
            else None,
        }

    def picks(self, group: int) -> list[int]:
        picks = set(self.proposal(group)["chosen"])
        for item, picked in self.decided.get(group, {}).items():
            (picks.add if picked else picks.discard)(item)
        return sorted(picks)

    def describe(self, group: int) -> dict[str, Any]:
        return {
            "number": group,
            "name": self.material.names[group],
            "n_items": len(self.material.items[group]),
            "done": group in self.done,
        }

    def state(self) -> dict[str, Any]:
        return {
            "seq": self.seq,
            "kind": self.material.kind,
            "nouns": list(self.material.nouns),
            "n_groups": len(self.material.names),
            "n_done": len(self.done),
            "group": self.describe(self.group),
            "picks": self.picks(self.group),
            "proposal": self.proposal(self.group)["chosen"],
            "omega": self.omega,
            "target": self.target,
            "order": self.order,
            "accepted": {"unchanged": sum(self.done.values()), "of": len(self.done)},
            "learning": self.learning,
            "learned_from": self.learned_from,
            "can_undo": bool(self.past),
            "omegas": [OMEGAS[0], OMEGAS[-1]] if self.learned_from else [1.0, 1.0],
            "message": "All groups are done."
            if len(self.done) == len(self.material.names)
            else None,
        }

    def learned(self) -> dict[str, Any]:
        n = self.learned_from
        path = [
            {
                "omega": omega,
                "precision": 0.9 - 0.1 * i,
                "recall": 0.4 + 0.13 * i,
                "size": 3.0 + 2.0 * i,
                "f": 0.6,
            }
            for i, omega in enumerate(OMEGAS)
        ]
        return {
            "n_groups": n,
            "curve": [
                {"n": k, "f": 0.8 - 0.4 / k, "untrained_f": 0.42}
                for k in range(1, n + 1)
            ],
            "weights": [
                {"name": "sharpness", "weight": 1.4 - 0.9 / max(1, n)},
                {"name": "ink", "weight": 0.6},
                {"name": "width", "weight": -0.45},
                {"name": "centred", "weight": 0.2},
            ]
            if n
            else [],
            "kinds": [
                {
                    "name": f"kind {k + 1}",
                    "share": 0.4 / (k + 1),
                    "description": "round",
                }
                for k in range(4)
            ]
            if n > 3
            else [],
            "path": path if n else [],
            "verdict": f"Learned proposals are judged from 4 groups on: {n}.",
            "comparison": "8 kinds choose better than Gaussians." if n > 3 else None,
        }

    def why(self, group: int, item: int) -> dict[str, Any]:
        like = next((n for n in self.picks(group) if n != item), None)
        quality = [
            {"name": "sharpness", "value": "3.2", "part": 0.9},
            {"name": "ink", "value": "31 %", "part": -0.35},
            {"name": "centred", "value": "yes", "part": 0.12},
        ]
        return {
            "probability": self.proposal(group)["probability"][item]
            if self.learned_from
            else None,
            "quality": quality if self.learned_from else [],
            "like": None if like is None else {"n": like, "similarity": 0.74},
        }

    def map(self, group: int) -> dict[str, Any]:
        size = len(self.material.items[group])
        rng = np.random.default_rng(group)
        if self.learned_from > 3:
            return {
                "kind": "kinds",
                "x": rng.integers(0, 4, size).tolist(),
                "y": rng.uniform(0.2, 1, size).tolist(),
                "columns": [f"kind {k + 1}" for k in range(4)],
            }
        x, y = np.clip(rng.normal(0, 0.4, (2, size)), -1, 1)
        return {"kind": "components", "x": x.tolist(), "y": y.tolist(), "columns": None}

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Do what a page asks for, and tell the others."""
        with self.lock:
            what = "picks"
            if path == "/api/pick":
                group, item = body["group"], body["item"]
                before = dict(self.decided.get(group, {}))
                self.decided.setdefault(group, {})[item] = body["picked"]
                self.past.append(("pick", group, before))
            elif path == "/api/done":
                what = "done"
                group = body["group"]
                same = self.picks(group) == self.proposal(group)["chosen"]
                self.past.append(("done", group, self.done.get(group)))
                self.done[group] = same
                rest = [
                    g for g in range(len(self.material.names)) if g not in self.done
                ]
                self.group = rest[0] if rest else group
                self.learning = True
            elif path == "/api/undo":
                if self.past:
                    kind, group, before = self.past.pop()
                    if kind == "pick":
                        self.decided[group] = before
                    elif before is None:
                        self.done.pop(group)
                    self.group = group
            elif path == "/api/go":
                self.group = body["group"]
            elif path == "/api/settings":
                what = "settings"
                for name, value in body.items():
                    setattr(self, name, value)
                if "omega" in body:
                    self.target = None
            self.tell(what)
            state = self.state()
        if what == "done":
            threading.Timer(0.15, self.learn).start()
        return state

    def learn(self) -> None:
        with self.lock:
            self.learning = False
            self.learned_from = len(self.done)
            self.tell("learned")

    def tell(self, what: str) -> None:
        self.seq += 1
        for listener in self.listeners:
            listener.put(json.dumps({"seq": self.seq, "what": what}))


class Handler(BaseHTTPRequestHandler):
    """The routes."""

    protocol_version = "HTTP/1.1"
    studio: FakeStudio

    def setup(self) -> None:
        super().setup()
        self.studio.connections.add(self.connection)

    def finish(self) -> None:
        self.studio.connections.discard(self.connection)
        with contextlib.suppress(ConnectionError):
            super().finish()

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, body: Any, kind: str = "application/json", status: int = 200):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        with contextlib.suppress(ConnectionError):
            self.post()

    def post(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        path = urlsplit(self.path).path
        self.studio.requests.append(("POST", path, body))
        time.sleep(self.studio.delay)
        if self.studio.refusals:
            status, words = self.studio.refusals.pop(0)
            self.answer({"error": words}, status=status)
        else:
            self.answer(self.studio.post(path, body))

    def do_GET(self) -> None:
        with contextlib.suppress(ConnectionError):
            self.get()

    def get(self) -> None:
        studio = self.studio
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        studio.requests.append(("GET", url.path, query))
        files = {
            "/": ("page.html", "text/html; charset=utf-8"),
            "/static/studio.js": ("studio.js", "text/javascript"),
            "/static/studio.css": ("studio.css", "text/css"),
            "/static/studio.svg": ("studio.svg", "image/svg+xml"),
        }
        found = re.fullmatch(
            r"/api/groups/(\d+)(?:/(choice|proposal|map|why)(?:/(\d+))?)?", url.path
        )
        if url.path in files:
            name, kind = files[url.path]
            self.answer((STATIC / name).read_bytes(), kind)
        elif url.path == "/api/state":
            with studio.lock:
                self.answer(studio.state())
        elif url.path == "/api/learned":
            self.answer(studio.learned())
        elif url.path == "/api/groups":
            first = int(query.get("from", 0))
            last = min(len(studio.material.names), first + int(query.get("count", 100)))
            self.answer([studio.describe(g) for g in range(first, last)])
        elif found:
            self.group(int(found[1]), found[2], found[3], query)
        elif url.path == "/api/events":
            self.events()
        elif url.path.startswith("/image/") and studio.material.picture:
            group, item = map(int, url.path.split("/")[2:])
            self.answer(studio.material.picture(group, item), "image/png")
        elif url.path.startswith("/export/picks"):
            self.answer(b"group,item,picked\n", "text/csv")
        else:
            self.answer({"error": "there is no such page"}, status=404)

    def group(self, group: int, what: str | None, item: str | None, query: Any) -> None:
        studio = self.studio
        if what in ("choice", "proposal"):
            omega = float(query["omega"]) if "omega" in query else None
            self.answer(studio.proposal(group, omega))
        elif what == "map":
            self.answer(studio.map(group))
        elif what == "why":
            self.answer(studio.why(group, int(item or 0)))
        else:
            items = [{"n": n, **i} for n, i in enumerate(studio.material.items[group])]
            name = studio.material.names[group]
            self.answer({"number": group, "name": name, "items": items})

    def events(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        listener: queue.Queue[str | None] = queue.Queue()
        self.studio.listeners.append(listener)
        try:
            self.wfile.write(b"retry: 300\n\n")
            self.wfile.flush()
            while (event := listener.get()) is not None:
                self.wfile.write(f"data: {event}\n\n".encode())
                self.wfile.flush()
        finally:
            self.studio.listeners.remove(listener)
            self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Browsers leave when they like."""


class FakeServer:
    """Serves a studio from a thread; ``stop`` and ``start`` again at the same port."""

    def __init__(self, studio: FakeStudio) -> None:
        self.studio = studio
        self.port = 0
        self.start()

    def start(self) -> None:
        handler = type("Bound", (Handler,), {"studio": self.studio})
        self._http = _Server(("127.0.0.1", self.port), handler)
        self.port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        for listener in list(self.studio.listeners):
            listener.put(None)
        for connection in list(self.studio.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
