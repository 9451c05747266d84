"""A material, a teacher and a proposer that are known by heart, and a client."""

import asyncio
import json
import threading
from dataclasses import dataclass, field

import numpy as np

from variegate.material.base import Item, MaterialError
from variegate.studio.app import studio_app
from variegate.studio.group_learner import LearningResult
from variegate.studio.proposals import Proposal
from variegate.studio.security import Access
from variegate.studio.session import Session
from variegate.studio.store import Store
from variegate.tuning import PathPoint

TOKEN = "a-token-of-the-tests"


class FakeMaterial:
    """Groups of five items each, with pictures of one byte."""

    kind = "table"
    nouns = ("row", "rows")
    groups_are_files = False
    feature_names = ("score",)

    def __init__(self, n_groups=6, n_items=5):
        self.names = [f"group {number}" for number in range(n_groups)]
        self.sizes = [n_items] * n_groups

    def items(self, group):
        return [
            Item(f"item {n}", "text", (("score", str(n)),), n == 0)
            for n in range(self.sizes[group])
        ]

    def identities(self, group):
        return [f"={n}" for n in range(self.sizes[group])]

    def item_name(self, group, item):
        return f"item {item}"

    def image(self, group, item, width):
        if item:
            raise MaterialError("there is no picture of this row")
        return bytes([width % 256]), "image/png"

    def given(self, group):
        return []


class FakeFamily:
    omegas = (0.25, 4.0)


class FakeTeacher:
    """Has learned as soon as it is let: ``gate`` is set unless a test clears it."""

    def __init__(self):
        self.taught = []
        self.learned = None
        self.is_learning = False
        self.problem = None
        self.is_closed = False
        self.news = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        threading.Thread(target=self.learn, daemon=True).start()

    def teach(self, picks):
        self.taught.append([(g, chosen.tolist()) for g, chosen in picks.items()])
        self.is_learning = bool(picks)
        self.news.set()

    def learn(self):
        """Wait for picks; learn from them if the gate is open, or soon is."""
        while not self.is_closed:
            self.news.wait()
            if self.gate.wait(0.05) and not self.is_closed:
                self.news.clear()
                path = tuple(
                    PathPoint(w, 0.5, 0.5, 0.5, 2.0, 0.1, 0.1, 0.1, 0.1)
                    for w in (0.25, 1.0, 4.0)
                )
                n_groups = len(self.taught[-1])
                learned = LearningResult(n_groups, FakeFamily(), path=path)
                self.learned = learned if n_groups else None
                self.is_learning = False
            self.listener()

    def close(self):
        self.is_closed = True
        self.news.set()


class FakeProposer:
    """Chooses the first two items, one more for each doubling of omega.

    With ``follows``, one more for each group that was learned from.
    """

    def __init__(self, material, follows=False):
        self.material = material
        self.follows = follows
        self.learned = None

    def using(self, learned, picks):
        self.learned = learned
        return self

    def omegas(self):
        return 0.25, 4.0

    def choose(self, group, omega=1.0):
        return self.propose(group, omega).chosen

    def propose(self, group, omega=1.0):
        omega = min(max(omega, 0.25), 4.0)
        count = 2 + round(np.log2(omega))
        if self.follows and self.learned is not None:
            count += self.learned.n_groups
        n_items = self.material.sizes[group]
        chosen = np.arange(min(max(count, 0), n_items))
        return Proposal(omega, chosen, np.linspace(0.9, 0.1, n_items))

    def why(self, group, item, chosen, omega=1.0):
        others = [other for other in sorted(chosen) if other != item]
        like = {"n": others[0], "similarity": 0.75} if others else None
        quality = [{"name": "score", "value": 1.0, "part": 0.25}]
        return {"probability": 0.5, "quality": quality, "like": like}

    def outline(self, group):
        n_items = self.material.sizes[group]
        x, y = [0.0] * n_items, [1.0] * n_items
        return {"kind": "components", "x": x, "y": y, "columns": None}

    def next_group(self, done, order="unsure"):
        left = [n for n in range(len(self.material.names)) if n not in done]
        if not left:
            return None
        # The last one is that of least confidence.
        return left[0] if order == "given" else left[-1]

    def omega_for(self, name, value):
        return 2.0 if name == "recall" else 0.5


def start_session(path, material, follows=False, **settings):
    """Return a session over the fakes, and what changed in DATA since its picks."""
    store = Store(path, "data.csv")
    try:
        proposer = FakeProposer(material, follows)
        session = Session(material, store, FakeTeacher(), proposer)
        return session, session.start(**{"order": "given", **settings})
    except BaseException:
        store.close()
        raise


def open_session(path, material=None, follows=False, **settings):
    """Return a session over the fakes, started; groups in the order given."""
    return start_session(path, material or FakeMaterial(), follows, **settings)[0]


def settle(session, timeout=10.0):
    """Wait until what was taught is learned and taken."""
    ended = threading.Event()
    leave = session.changes.listen(lambda change: ended.set())
    try:
        for _ in range(round(timeout / 0.05)):
            state = session.state()
            if not state["learning"] and (
                state["learned_from"] == state["n_done"] or session.teacher.problem
            ):
                return state
            ended.wait(0.05)
    finally:
        leave()
    raise AssertionError("nothing was learned in time")


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


@dataclass
class Client:
    """Asks an application in process, as a browser on this machine would."""

    app: object
    headers: dict = field(default_factory=dict)

    def request(self, method, path, body=None, headers=None, chunks=None):
        return asyncio.run(self.asked(method, path, body, headers, chunks))

    async def asked(self, method, path, body=None, headers=None, chunks=None):
        given = {"host": "127.0.0.1:8000", **self.headers, **(headers or {})}
        content = b"" if body is None else body
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        if body is not None:
            given = {"content-type": "application/json", **given}
            if chunks is None:
                given = {"content-length": str(len(content)), **given}
        route, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": route,
            "raw_path": route.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [
                (name.lower().encode(), value.encode("latin-1"))
                for name, value in given.items()
                if value is not None
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        incoming = [
            {"type": "http.request", "body": chunk, "more_body": True}
            for chunk in chunks or [content]
        ]
        incoming.append({"type": "http.request", "body": b"", "more_body": False})
        sent = []

        async def receive():
            if incoming:
                return incoming.pop(0)
            await asyncio.sleep(3600)

        async def send(message):
            sent.append(message)

        await self.app(scope, receive, send)
        headers = {n.decode(): v.decode() for n, v in sent[0]["headers"]}
        return Answer(
            sent[0]["status"], headers, b"".join(m.get("body", b"") for m in sent[1:])
        )

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.request("POST", path, {} if body is None else body, **options)


def open_client(session, **options):
    """Return a client that came in with the token."""
    access = Access(TOKEN, **options)
    client = Client(studio_app(session, access))
    client.headers["cookie"] = f"{access.cookie}={TOKEN}"
    return client
