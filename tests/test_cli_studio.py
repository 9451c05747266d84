"""``variegate studio`` as a person starts it, over real tables."""

import json
import os
import signal
import sqlite3
import urllib.error
import urllib.request
from contextlib import closing
from http.cookiejar import CookieJar
from urllib.parse import urlsplit

import pytest

from table_instances import (
    INTERRUPTIBLE,
    MAIN,
    caller,
    fails,
    process,
    small_table,
    with_cell,
)
from variegate.tables import write_table

pytest.importorskip("starlette", reason="needs 'variegate[studio]'")
from variegate.studio.store import Store

COLUMNS = ("--group", "query", "--item", "item", "--quality", "score,freshness")
COLUMNS = (*COLUMNS, "--similarity", "embedding")


@pytest.fixture
def call(monkeypatch, capsys):
    return caller(monkeypatch, capsys)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.parquet"
    write_table(small_table().drop_columns(["chosen"]), path)
    return path


class Person:
    """Starts the studio, and has a browser."""

    def __init__(self, *arguments):
        code = INTERRUPTIBLE + MAIN
        self.process = process(
            *("studio", *arguments, "--no-browser"), code=code, start_new_session=True
        )
        self.address = self.process.stdout.readline().strip()
        jar = urllib.request.HTTPCookieProcessor(CookieJar())
        self.browser = urllib.request.build_opener(jar)

    def get(self, path):
        parts = urlsplit(self.address)
        with self.browser.open(f"http://{parts.netloc}{path}", timeout=60) as answer:
            return answer.read()

    def state(self):
        return json.loads(self.get("/api/state"))

    def post(self, path, body):
        parts = urlsplit(self.address)
        request = urllib.request.Request(
            f"http://{parts.netloc}{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with self.browser.open(request, timeout=60) as answer:
            return json.loads(answer.read())

    def leave(self):
        """Press Ctrl-C, which every process hears; return what was said."""
        os.killpg(self.process.pid, signal.SIGINT)
        output, messages = self.process.communicate(timeout=60)
        return self.process.returncode, output, messages


@pytest.fixture
def person():
    people = []

    def start(*arguments):
        people.append(Person(*arguments))
        return people[-1]

    yield start
    for each in people:
        each.process.kill()
        each.process.communicate()


def test_a_person_picks_goes_and_comes_back(person, table, tmp_path):
    first = person(table, *COLUMNS, "--order", "given")
    parts = urlsplit(first.address)
    assert (parts.scheme, parts.hostname, parts.path) == ("http", "127.0.0.1", "/")
    assert b"<html" in first.get(f"/?{parts.query}")
    state = first.state()
    assert (state["kind"], state["n_groups"], state["n_done"]) == ("table", 12, 0)
    item = next(n for n in range(6) if n not in state["picks"])
    first.post("/api/pick", {"group": 0, "item": item, "picked": True})
    state = first.post("/api/done", {"group": 0})
    assert (state["n_done"], state["group"]["number"]) == (1, 1)
    status, output, messages = first.leave()
    assert (status, output) == (0, "")
    store = tmp_path / "table.parquet.studio.sqlite"
    assert f"picks are kept in {store}" in messages
    assert messages.strip().endswith(f"the picks are in {store}")
    assert "Traceback" not in messages

    again = person(table, *COLUMNS)
    again.get(f"/?{urlsplit(again.address).query}")
    state = again.state()
    assert (state["n_done"], state["group"]["number"], state["order"]) == (
        1,
        1,
        "given",
    )
    assert item in again.post("/api/undo", {})["picks"]
    status, _, messages = again.leave()
    assert status == 0
    assert "1 of them done" in messages


def test_limits_columns_and_empty_cells(person, tmp_path):
    path = tmp_path / "table.parquet"
    made = small_table().drop_columns(["chosen"])
    write_table(with_cell(made, "score", 3, None), path)
    limits = ("--at-most", "1", "--per", "kind", "--show", "tokens")
    one = person(path, *COLUMNS, *limits, "--order", "given")
    one.get(f"/?{urlsplit(one.address).query}")
    items = json.loads(one.get("/api/groups/0"))["items"]
    assert [name for name, _ in items[0]["fields"]] == ["tokens"]
    kinds = made["kind"].to_pylist()[:6]
    proposal = one.post("/api/settings", {"omega": 64.0})["proposal"]
    proposed = [kinds[item] for item in proposal]
    assert len(proposed) == len(set(proposed)) == len(set(kinds))
    _, _, messages = one.leave()
    assert (
        "note: empty cells count as the mean of their column: 1 of 'score'" in messages
    )


def test_a_limit_that_cannot_be(call, table):
    result = call("studio", table, *COLUMNS, "--at-most", "1", "--per", "kinds")
    assert fails(result, "there is no column 'kinds' (did you mean 'kind'?)")
    result = call("studio", table, *COLUMNS, "--per", "kind")
    assert fails(result, "give a number at_most for each per")


def test_picks_of_other_data_are_refused(call, table, tmp_path):
    store = tmp_path / "picks.sqlite"
    with Store(store, "other.parquet") as other:
        pick = {"group": "a", "content": "all", "item": "=b", "name": "b"}
        other.record("pick", pick | {"picked": True})
    result = call("studio", table, *COLUMNS, "--store", store, "--no-browser")
    assert fails(result, "holds picks from other data (other.parquet)", "--store")


def test_a_table_in_another_order_with_a_row_less(person, table, tmp_path):
    first = person(table, *COLUMNS, "--order", "given")
    first.get(f"/?{urlsplit(first.address).query}")
    first.post("/api/settings", {"omega": 0.001})
    for item in (1, 2):
        first.post("/api/pick", {"group": 0, "item": item, "picked": True})
    first.post("/api/done", {"group": 0})
    first.leave()
    made = small_table().drop_columns(["chosen"])
    names = made["item"].to_pylist()
    kept = [row for row in reversed(range(len(made))) if row != 1]
    write_table(made.take(kept), table)
    again = person(table, *COLUMNS)
    again.get(f"/?{urlsplit(again.address).query}")
    groups = {g["name"]: g["number"] for g in json.loads(again.get("/api/groups"))}
    number = groups[str(made["query"][0])]
    assert json.loads(again.get("/api/groups"))[number]["done"] is False
    shown = again.post("/api/go", {"group": number})
    items = json.loads(again.get(f"/api/groups/{number}"))["items"]
    picked = {items[item]["title"] for item in shown["picks"]}
    assert names[2] in picked
    _, _, messages = again.leave()
    assert (
        f"1 picked row cannot be found in DATA, or not with certainty: {names[1]!r}"
        in (messages)
    )


def test_repair_saves_picks_of_a_damaged_file(person, call, table, tmp_path):
    store = tmp_path / "table.parquet.studio.sqlite"
    assert fails(call("studio", table, "--repair"), "there is no file of picks")
    first = person(table, *COLUMNS, "--order", "given")
    first.get(f"/?{urlsplit(first.address).query}")
    first.post("/api/done", {"group": 0})
    first.post("/api/done", {"group": 1})
    first.leave()
    with closing(sqlite3.connect(store)) as file:
        file.execute("UPDATE events SET body = '7' WHERE seq = 2")
        file.commit()
    result = call("studio", table, *COLUMNS, "--no-browser")
    assert fails(result, "is damaged (event 2 does not have its checksum)", "--repair")
    status, _, messages = call("studio", table, "--repair")
    assert status == 0
    saved = tmp_path / "table.parquet.studio.repaired.sqlite"
    assert "note: dropped: event 2 does not have its checksum" in messages
    assert f"2 events of {store} saved; continue with --store {saved}" in messages
    again = person(table, *COLUMNS, "--store", saved)
    again.get(f"/?{urlsplit(again.address).query}")
    assert again.state()["n_done"] == 1
    again.leave()


def test_a_file_that_is_deleted_while_the_studio_runs(person, table, tmp_path):
    store = tmp_path / "table.parquet.studio.sqlite"
    first = person(table, *COLUMNS, "--order", "given")
    first.get(f"/?{urlsplit(first.address).query}")
    for name in tmp_path.glob(f"{store.name}*"):
        name.unlink()
    with pytest.raises(urllib.error.HTTPError, match="500") as caught:
        first.post("/api/pick", {"group": 0, "item": 3, "picked": True})
    with caught.value as answer:
        assert "was deleted, moved or replaced" in json.loads(answer.read())["error"]
    assert "no more picks are kept" in first.state()["message"]
    second = process("studio", table, *COLUMNS, "--no-browser", code=MAIN)
    _, messages = second.communicate(timeout=60)
    assert second.returncode == 2
    assert "another studio has" in messages
    status, _, messages = first.leave()
    assert status == 2
    assert "was deleted, moved or replaced" in messages


def test_a_store_that_cannot_be(call, table, tmp_path):
    store = tmp_path / "nowhere" / "picks.sqlite"
    result = call("studio", table, *COLUMNS, "--store", store)
    assert fails(result, "there is no folder")
    store = tmp_path / "text.sqlite"
    store.write_text("this is not a file of the studio" * 100)
    result = call("studio", table, *COLUMNS, "--store", store)
    assert fails(result, "is not a file of the studio")


def test_data_that_is_not_there(call, tmp_path):
    assert fails(call("studio", tmp_path / "nothing.csv"), "nothing.csv")


@pytest.mark.faults
def test_another_host_says_what_it_means(person, table, tmp_path):
    one = person(table, *COLUMNS, "--host", "0.0.0.0")
    status, _, messages = one.leave()
    assert status == 0
    assert "whoever can reach this machine and knows the address" in messages
    assert "nothing is encrypted" in messages
