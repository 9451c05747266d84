"""The application in process: every page has its twin in JSON."""

import asyncio
import json
import threading

import pytest
from studio_fakes import Client, open_client, open_session, settle

from variegate.studio import app
from variegate.studio.export import EXPORTS
from variegate.studio.judging import verdict_on


def test_the_state_is_what_the_session_says(client, session):
    answer = client.get("/api/state")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == session.state()
    assert answer.json.keys() >= {
        *("seq", "kind", "nouns", "n_groups", "n_done", "group", "picks", "proposal"),
        *("omega", "target", "order", "accepted", "learning", "learned_from"),
        *("can_undo", "message"),
    }


def test_groups_and_their_items(client):
    assert client.get("/api/groups?from=4&count=10").json == [
        {"number": 4, "name": "group 4", "n_items": 5, "done": False},
        {"number": 5, "name": "group 5", "n_items": 5, "done": False},
    ]
    assert client.get("/api/groups?from=99").json == []
    group = client.get("/api/groups/1").json
    assert (group["number"], group["name"], len(group["items"])) == (1, "group 1", 5)
    assert group["items"][0] == {
        "n": 0,
        "title": "item 0",
        "text": "text",
        "fields": [["score", "0"]],
        "image": True,
        "given": False,
    }


def test_a_proposal_for_any_omega(client, session):
    assert client.get("/api/groups/0/choice").json == {"chosen": [0, 1]}
    assert client.get("/api/groups/0/choice?omega=4").json == {"chosen": [0, 1, 2, 3]}
    assert client.get("/api/groups/0/proposal").json["chosen"] == [0, 1]
    other = client.get("/api/groups/3/proposal?omega=4").json
    assert (other["omega"], other["chosen"]) == (4.0, [0, 1, 2, 3])
    assert len(other["probability"]) == 5
    # Looking changes nothing.
    assert session.state()["omega"] == 1.0


def test_why_and_the_map(client):
    assert client.get("/api/groups/0/why/0").json == {
        "probability": 0.5,
        "quality": [{"name": "score", "value": 1.0, "part": 0.25}],
        "like": {"n": 1, "similarity": 0.75},
    }
    client.post("/api/pick", {"group": 0, "item": 1, "picked": False})
    assert client.get("/api/groups/0/why/0").json["like"] is None
    assert client.get("/api/groups/0/map").json == {
        "kind": "components",
        "x": [0.0] * 5,
        "y": [1.0] * 5,
        "columns": None,
    }


def test_the_loop(client, session):
    state = client.post("/api/pick", {"group": 0, "item": 4, "picked": True}).json
    assert state["picks"] == [0, 1, 4]
    state = client.post("/api/done", {"group": 0, "picks": [0, 1, 4]}).json
    assert (state["n_done"], state["group"]["number"]) == (1, 1)
    settle(session)
    learned = client.get("/api/learned").json
    assert (learned["n_groups"], len(learned["path"])) == (1, 3)
    assert learned["verdict"] == verdict_on(())
    assert client.post("/api/undo").json["picks"] == [0, 1, 4]
    assert client.post("/api/settings", {"omega": 2}).json["picks"] == [0, 1, 2, 4]
    assert client.post("/api/go", {"group": 5}).json["group"]["number"] == 5


def test_before_anything_is_learned(client):
    assert client.get("/api/learned").json == {
        "n_groups": 0,
        "curve": [],
        "verdict": "From 4 groups on, this says whether learning pays.",
        "weights": [],
        "kinds": [],
        "path": [],
        "comparison": None,
    }


def test_pictures(client):
    answer = client.get("/image/0/0?width=100")
    assert (answer.status, answer.body) == (200, bytes([100]))
    assert answer.headers["content-type"] == "image/png"
    assert "private" in answer.headers["cache-control"]
    assert client.get("/image/0/0?width=5").body == bytes([16])
    assert client.get("/image/0/1").status == 404


@pytest.mark.parametrize("kind", ["image/svg+xml", "text/html"])
def test_pictures_that_could_have_scripts_are_not_shown(client, session, kind):
    session.material.image = lambda *asked: (b"<script>", kind)
    assert client.get("/image/0/0").status == 404


@pytest.mark.parametrize("name", ["", "static/studio.js", "static/studio.css"])
def test_pages(client, name):
    answer = client.get(f"/{name}")
    assert answer.status == 200
    assert answer.body
    kind = {"": "text/html", "static/studio.js": "text/javascript"}
    assert answer.headers["content-type"].startswith(kind.get(name, "text/css"))


def test_nothing_is_exported_before_a_group_is_done(client):
    answer = client.get("/export/picks.csv")
    assert answer.status == 404
    assert "no group is done yet" in answer.error


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_are_files_without_rights(client, session, name, monkeypatch):
    written = []

    def export(name, material, picks, learned, omega, problem):
        done = {group: list(items) for group, items in picks.items()}
        written.append((name, done, learned.n_groups, omega, problem))
        return b"content"

    monkeypatch.setattr(app, "export_file", export)
    client.post("/api/settings", {"omega": 2.0})
    client.post("/api/done", {"group": 0})
    settle(session)
    answer = client.get(f"/export/{name}")
    assert (answer.status, answer.body) == (200, b"content")
    assert written == [(name, {0: [0, 1, 2]}, 1, 2.0, None)]
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/api/pick", b"{", 400, "the request is not JSON"),
        ("/api/pick", b"[" * 30_000, 400, "the request is not JSON"),
        ("/api/pick", b"\xff\xfe", 400, "the request is not JSON"),
        ("/api/pick", [1], 400, "the request is not a JSON object"),
        ("/api/pick", {"group": 0, "item": 1}, 400, "picked is true or false"),
        (
            "/api/pick",
            {"group": 0, "item": "1", "picked": True},
            400,
            "item is a whole",
        ),
        (
            "/api/pick",
            {"group": True, "item": 1, "picked": True},
            400,
            "group is a who",
        ),
        (
            "/api/pick",
            {"group": 0, "item": 5, "picked": True},
            404,
            "there is no row 5",
        ),
        ("/api/pick", {"group": 9**99, "item": 0, "picked": True}, 404, "no group"),
        ("/api/done", {"group": 0, "picks": [0.5]}, 400, "picks are a list of whole"),
        ("/api/done", {"group": 0, "picks": [4]}, 409, "look again"),
        ("/api/done", {}, 400, "group is a whole number"),
        ("/api/go", {"group": -1}, 404, "there is no group -1"),
        ("/api/settings", {"omega": -1}, 400, "omega is a positive number"),
        ("/api/settings", b'{"omega": NaN}', 400, "omega is a positive number"),
        ("/api/nothing", {}, 404, "Not Found"),
        ("/api/state", {}, 405, "Method Not Allowed"),
    ],
)
def test_what_cannot_be_done_is_said(client, session, path, body, status, words):
    before = session.state()
    answer = client.post(path, body)
    assert (answer.status, words in answer.error) == (status, True), answer.body
    assert session.state() == before


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/groups/6", 404),
        ("/api/groups/x", 404),
        ("/api/groups/-1", 404),
        (f"/api/groups/{'9' * 2000}", 404),
        ("/api/groups/9/choice", 404),
        ("/api/groups/0/choice?omega=-1", 400),
        ("/api/groups/0/proposal?omega=inf", 400),
        ("/api/groups/0/proposal?omega=0", 400),
        ("/api/groups/0/proposal?omega=x", 400),
        ("/api/groups/0/why/5", 404),
        ("/api/groups?from=-1", 400),
        ("/api/groups?count=many", 400),
        ("/image/0/0?width=x", 400),
        ("/export/picks.pkl", 404),
        ("/static/page.html", 404),
    ],
)
def test_what_is_not_there_is_said(client, path, status):
    answer = client.get(path)
    assert answer.status == status
    assert answer.error


def test_a_full_disk_is_said_and_the_loop_goes_on(client, session, monkeypatch):
    from variegate.studio.store import StoreFullError

    def full(*arguments, **settings):
        raise StoreFullError("the disk is full: make room")

    with monkeypatch.context() as patch:
        patch.setattr(session.store, "record", full)
        answer = client.post("/api/pick", {"group": 0, "item": 4, "picked": True})
    assert (answer.status, answer.error) == (507, "the disk is full: make room")
    assert client.get("/api/state").json["picks"] == [0, 1]
    answer = client.post("/api/pick", {"group": 0, "item": 4, "picked": True})
    assert answer.json["picks"] == [0, 1, 4]


def test_a_bug_is_an_answer_and_a_line_for_the_terminal(client, session, caplog):
    def fail(*asked):
        raise ZeroDivisionError("a bug")

    # A cluster of other tests, as long as it lives, keeps errors from being taken down.
    caplog.set_level("ERROR")
    session.proposer.outline = fail
    answer = client.get("/api/groups/0/map")
    assert answer.status == 500
    assert "the terminal has the details" in answer.error
    assert "ZeroDivisionError" not in answer.error
    assert "/api/groups/0/map failed" in caplog.text
    assert client.get("/api/state").status == 200


# Events ------------------------------------------------------------------------------


async def told(client, n_changes, act=None, read=lambda: None):
    """Return the changes that a page is told of, until there are so many."""
    events = []
    changes = asyncio.Event()
    over = asyncio.Event()

    async def send(message):
        for line in message.get("body", b"").decode().splitlines():
            if line.startswith("data: "):
                events.append(json.loads(line.removeprefix("data: ")))
                changes.set()
        await asyncio.sleep(0)

    async def receive():
        await over.wait()
        return {"type": "http.disconnect"}

    headers = {"host": "localhost", **client.headers}
    scope = {
        "type": "http",
        "asgi": {"spec_version": "2.3"},
        "method": "GET",
        "path": "/api/events",
        "root_path": "",
        "query_string": b"",
        "headers": [(n.encode(), v.encode()) for n, v in headers.items()],
    }
    stream = asyncio.create_task(client.app(scope, receive, send))
    async with asyncio.timeout(20):
        await changes.wait()
        if act is not None:
            threading.Thread(target=act).start()
        while len(events) < n_changes:
            changes.clear()
            await changes.wait()
        over.set()
        await stream
    return events


def test_a_page_is_told_of_changes_that_another_makes(client, session):
    seq = session.changes.seq

    def act():
        session.pick(0, 4, True)
        session.set({"omega": 2.0})

    events = asyncio.run(told(client, 3, act))
    assert events == [
        {"seq": seq, "what": "picks"},
        {"seq": seq + 1, "what": "picks"},
        {"seq": seq + 2, "what": "settings"},
    ]
    assert not client.app.state.streams.open
    assert not session.changes._listeners


def test_streams_end_with_the_server(client):
    async def run():
        stream = asyncio.create_task(told(client, 99))
        await asyncio.sleep(0.1)
        client.app.state.streams.end()
        with pytest.raises(asyncio.TimeoutError):
            # All that is left is that no more events come.
            await asyncio.wait_for(stream, 0.3)
        assert not client.app.state.streams.open

    asyncio.run(run())


def test_too_many_pages(client):
    client.app.state.streams.MOST = 0
    answer = client.get("/api/events")
    assert (answer.status, answer.error) == (503, "too many pages are open")


def test_two_pages_at_once_end_in_the_same_state(tmp_path):
    session = open_session(tmp_path / "picks.sqlite")
    client = open_client(session)
    clients = [Client(client.app, client.headers) for _ in range(2)]
    states = []

    def work(mine, seed):
        import random

        generator = random.Random(seed)
        for _ in range(60):
            choice = generator.random()
            if choice < 0.85:
                body = {"group": generator.randrange(6), "item": generator.randrange(5)}
                mine.post("/api/pick", {**body, "picked": generator.random() < 0.5})
            elif choice < 0.95:
                mine.post("/api/undo")
            else:
                mine.post("/api/done", {"group": generator.randrange(6)})
        states.append(None)

    threads = [
        threading.Thread(target=work, args=(mine, seed))
        for seed, mine in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(states) == 2
    settle(session)
    first, second = (mine.get("/api/state").json for mine in clients)
    assert first == second
    kept = [sorted(session.picks(n)) for n in range(6)]
    session.close()
    session = open_session(tmp_path / "picks.sqlite")
    assert [sorted(session.picks(n)) for n in range(6)] == kept
    session.close()
