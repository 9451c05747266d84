"""Damaged files of picks: a message, or all picks; and what a repair saves of them.

One row or page of a file is damaged.  Then the studio refuses the file, or has every
pick; and a repaired file has every pick of all groups but those that it names.
``python tests/studio/test_damaged_stores.py 500`` damages as many, and counts.
"""

import json
import random
import re
import sqlite3
import sys
import tempfile
from collections import Counter
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from studio_fakes import FakeMaterial, open_session

from variegate.studio.events import checksum
from variegate.studio.repair import repair
from variegate.studio.store import Store, StoreError

N_GROUPS = 4

#: Values that a cell or field is not, one of which it may be after all.
WRONG = [
    None, True, 0, 1, -1, 2, 3, 0.5, 1e308, 10**15, "", "nan", "{}", "[]", "=1", "undo",
    "done", "go", "group 1", "\x1b[2J", [], {}, [1], ["=1"], {"a": 1}, "\ud800",
    {"recall": 2.0}, {"recall": 0.5, "precision": 0.5}, "[" * 5000,
]  # fmt: skip


def act_at_random(session, generator, n):
    for _ in range(n):
        group, act = generator.randrange(N_GROUPS - 1), generator.random()
        if act < 0.6:
            item = generator.randrange(5)
            session.pick(group, item, item not in session.picks(group))
        elif act < 0.75:
            session.done(group)
        elif act < 0.8:
            session.go(group)
        elif act < 0.85:
            session.set({"omega": generator.choice([0.5, 2.0, 4.0])})
        else:
            session.undo()


def picks_of(session):
    """Return what every group has: whether it is done, its picks, and decisions."""
    groups = {}
    for number, name in enumerate(session.material.names):
        mine = session._history.group_picks(number)
        is_touched = mine.base is not None or bool(mine.decided)
        picks = sorted(session.picks(number)) if is_touched else None
        groups[name] = mine.is_done, picks
    return groups


@cache
def whole(seed):
    """Return the bytes of a file of picks, and the picks of its groups."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picks.sqlite"
        session = open_session(path, FakeMaterial(N_GROUPS))
        act_at_random(session, random.Random(seed), 8 + 16 * (seed % 5))
        picks = picks_of(session)
        session.close()
        return path.read_bytes(), picks


def check_message(error, path):
    assert str(path) in str(error)


def check_damaged(path, picks):
    """Open a damaged file, and repair it; return what was possible."""
    outcome = "opened"
    try:
        session = open_session(path, FakeMaterial(N_GROUPS))
    except StoreError as error:
        check_message(error, path)
        outcome = "refused"
    else:
        assert picks_of(session) == picks
        session.close()
    try:
        done = repair(path)
    except StoreError as error:
        check_message(error, path)
        return outcome
    assert outcome == "refused" or not done.doubtful
    session = open_session(done.path, FakeMaterial(N_GROUPS))
    for name, found in picks_of(session).items():
        if name in done.doubtful:
            assert not found[0], name
        else:
            # Groups of which no event can be read are as new.
            assert found == picks[name] or (found == (False, None) and done.dropped)
    session.close()
    return "repaired"


# Messages -----------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    """Return a file of picks: group 0 is finished, then items of 1 are picked."""
    path = tmp_path / "picks.sqlite"
    session = open_session(path, FakeMaterial(N_GROUPS))
    session.pick(0, 3, True)
    session.done(0)
    session.pick(1, 4, True)
    session.pick(1, 3, True)
    session.undo()
    session.close()
    return path


def body_of(path, seq):
    with closing(sqlite3.connect(path)) as file:
        query = "SELECT body FROM events WHERE seq = ?"
        return json.loads(file.execute(query, (seq,)).fetchone()[0])


def rewrite(path, seq, kind=None, **changes):
    """Change the kind and body of an event, with the right checksum."""
    with closing(sqlite3.connect(path)) as file:
        row = file.execute("SELECT * FROM events WHERE seq = ?", (seq,)).fetchone()
        body = json.loads(row[3]) | changes
        body = {name: value for name, value in body.items() if value is not None}
        cells = (seq, row[1], kind or row[2], json.dumps(body))
        marks = (*cells, checksum(*cells))
        file.execute("REPLACE INTO events VALUES (?, ?, ?, ?, ?)", marks)
        file.commit()


def test_the_events_are_those_that_the_cases_below_change(path):
    with Store(path, "data.csv") as store:
        kinds = [event.kind for event in store.events()]
    assert kinds == ["go", "pick", "done", "pick", "pick", "undo"]


@pytest.mark.parametrize(
    ("seq", "change", "words"),
    [
        (2, {"group": None}, 'event 2: the section "pick.group" is missing'),
        (2, {"item": 3}, 'event 2: "pick.item" is 3, not a text'),
        (2, {"picked": "yes"}, "is 'yes', not true or false"),
        (2, {"base": {"a": 1}}, "\"pick.base\" is {'a': 1}, not a list"),
        (2, {"mood": "x"}, "event 2: unknown 'pick.mood'"),
        (3, {"next": [1]}, '"done.next" is [1], not a text'),
        (2, {"kind": "dance"}, "event 2 is of the unknown kind 'dance'"),
        (6, {"undone": 0}, "not a whole number of at least 1"),
        (6, {"undone": 77}, "event 6 takes back event 77 of 'group 1', which cannot"),
        (6, {"group": "group 0"}, "event 6 takes back event 5 of 'group 0'"),
    ],
)
def test_events_that_make_no_sense(path, seq, change, words):
    rewrite(path, seq, **change)
    with pytest.raises(StoreError, match=re.escape(words)) as caught:
        open_session(path)
    assert f"{path} is damaged" in str(caught.value)
    assert "add --repair" in str(caught.value)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE events SET body = '[1' WHERE seq = 2", "event 2 does not have its"),
        ("UPDATE events SET body = x'ff' WHERE seq = 2", "event 2 is not JSON"),
        ("DELETE FROM events WHERE seq = 2", "1 event is missing, of numbers 2 to 2"),
        ("DELETE FROM events WHERE seq > 4", "2 events are missing, of numbers 5 to 6"),
        ("UPDATE settings SET value = 9 WHERE name = 'runs'", "'runs' does not have"),
        ("DELETE FROM settings WHERE name = 'runs'", "setting 'runs' is missing"),
        ("DELETE FROM settings WHERE name = 'data'", "setting 'data' is missing"),
        ("DROP TABLE events", "no such table: events"),
        ("ALTER TABLE events DROP COLUMN body", "no such column: body"),
    ],
)
def test_rows_that_are_damaged_or_missing(path, statement, words):
    with closing(sqlite3.connect(path)) as file:
        file.execute(statement)
        file.commit()
    with pytest.raises(StoreError, match=re.escape(words)) as caught:
        open_session(path)
    assert f"{path} is damaged" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("omega", "much", "the setting \"omega\" is 'much', not a number above 0"),
        ("omega", 10**200, "not a number above 0"),
        ("target", {"recall": 7}, "not such as"),
        ("target", {"recall": 0.5, "precision": 0.5}, "not such as"),
        ("order", "random", "not one of unsure, given"),
        ("runs", 10**15, "not a whole number"),
        ("n_events", 10**15, "not a whole number"),
        ("n_events", 3, "event 4 is one too many"),
        ("mood", 1, "there is no setting 'mood'"),
    ],
)
def test_settings_that_make_no_sense(path, name, value, words):
    cells = (name, json.dumps(value))
    with closing(sqlite3.connect(path)) as file:
        row = (*cells, checksum(*cells))
        file.execute("REPLACE INTO settings VALUES (?, ?, ?)", row)
        file.commit()
    with pytest.raises(StoreError, match=re.escape(words)):
        open_session(path)
    if name != "n_events":
        done = repair(path)
        assert re.search(re.escape(words), " ".join(done.dropped))
        assert not done.doubtful
        open_session(done.path, FakeMaterial(N_GROUPS)).close()


@pytest.mark.parametrize("size", [1, 50, 99, 100, 400, 511, 512, 4095, 4096])
def test_a_file_that_was_cut(path, size):
    content = path.read_bytes()[:size]
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged|not a file of the studio"):
        open_session(path)
    assert path.read_bytes() == content
    with pytest.raises(StoreError, match=f"nothing in {re.escape(str(path))} can be"):
        repair(path)


# Repairs ------------------------------------------------------------------------------


def test_a_repair_names_what_it_drops_and_whom_that_may_concern(path):
    rewrite(path, 4, item=[1])
    done = repair(path)
    assert done.dropped == ['event 4: "pick.item" is [1], not a text']
    assert done.doubtful == ["group 0", "group 1"]
    assert "are open again: look at them" in done.notes()[-1]
    session = open_session(done.path, FakeMaterial(N_GROUPS))
    assert sorted(session.picks(0)) == [0, 1, 3]
    assert session.state()["n_done"] == 0
    assert len(done.notes()) == 2
    session.done(0)
    session.close()
    session = open_session(done.path, FakeMaterial(N_GROUPS))
    assert session.done_picks()[0].tolist() == [0, 1, 3]
    session.close()


def test_groups_that_were_finished_after_the_damage_stay_finished(path):
    rewrite(path, 2, item=[1])
    done = repair(path)
    assert done.doubtful == ["group 1"]
    session = open_session(done.path, FakeMaterial(N_GROUPS))
    assert session.done_picks()[0].tolist() == [0, 1, 3]
    session.close()


def test_a_group_that_was_finished_again_before_the_damage_is_open(path):
    session = open_session(path, FakeMaterial(N_GROUPS))
    session.done(1)
    session.pick(0, 4, True)  # event 8, in a finished group
    session.done(0)
    session.undo()  # event 10 takes back event 9
    session.close()
    rewrite(path, 8, item=[1])
    done = repair(path)
    assert done.doubtful == ["group 0", "group 1"]


def test_an_undo_of_a_dropped_event_is_dropped(path):
    rewrite(path, 5, item=[1])
    done = repair(path)
    assert len(done.dropped) == 2
    assert "event 6 takes back event 5" in done.dropped[1]
    assert done.n_events == 4


def test_the_end_of_the_events_may_be_lost_without_their_number(path):
    with closing(sqlite3.connect(path)) as file:
        file.execute("DELETE FROM settings WHERE name = 'n_events'")
        file.commit()
    done = repair(path)
    assert done.dropped == ["the setting 'n_events' is missing"]
    assert done.doubtful == ["group 0", "group 1"]


def test_a_repair_that_cannot_be(path, tmp_path):
    with pytest.raises(StoreError, match=r"is not damaged: leave out --repair"):
        repair(path)
    with pytest.raises(StoreError, match=r"no file of picks .*: leave out --repair"):
        repair(tmp_path / "nothing.sqlite")
    with (
        Store(path, "data.csv"),
        pytest.raises(StoreError, match=r"a studio has .* open: end it first"),
    ):
        repair(path)
    rewrite(path, 4, item=[1])
    before = path.read_bytes()
    repair(path)
    assert path.read_bytes() == before
    with pytest.raises(StoreError, match=r"repaired.sqlite exists already"):
        repair(path)


# By structure -------------------------------------------------------------------------


def change_row(path, table, place, column, value, is_signed):
    """Set one cell of a row, or delete the row; return whether there is such a row.

    With ``is_signed``, the row gets the checksum of its new values.
    """
    with closing(sqlite3.connect(path)) as file:
        rows = file.execute(f"SELECT rowid, * FROM {table}").fetchall()
        number, *cells = rows[place % len(rows)]
        if column is None:
            file.execute(f"DELETE FROM {table} WHERE rowid = ?", (number,))
        else:
            cells[column % len(cells)] = value
            if is_signed:
                try:
                    cells[-1] = checksum(*cells[:-1])
                except TypeError:
                    cells[-1] = 0
            marks = ", ".join("?" * len(cells))
            file.execute(f"DELETE FROM {table} WHERE rowid = ?", (number,))
            try:
                file.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", cells)
            except (sqlite3.Error, UnicodeEncodeError):
                return
        file.commit()


def change_field(path, place, field, value):
    """Change or remove one value in the body of an event, and sign it."""
    with closing(sqlite3.connect(path)) as file:
        rows = file.execute("SELECT seq, time, kind, body FROM events").fetchall()
        *row, body = rows[place % len(rows)]
        body = json.loads(body)
        name = sorted(body)[field % len(body)]
        body[name] = value
        if value is None:
            del body[name]
        cells = (*row, json.dumps(body))
        file.execute(
            "REPLACE INTO events VALUES (?, ?, ?, ?, ?)", (*cells, checksum(*cells))
        )
        file.commit()


PLACES = st.integers(0, 200)
CELLS = st.sampled_from([w for w in WRONG if not isinstance(w, list | dict)])
FUZZ = settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.mark.fuzz
@FUZZ
@given(
    seed=st.integers(0, 9),
    table=st.sampled_from(["events", "events", "settings"]),
    place=PLACES,
    column=st.none() | st.integers(0, 4),
    value=CELLS,
)
def test_one_row_is_damaged(seed, table, place, column, value, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "picks.sqlite"
    content, picks = whole(seed)
    path.write_bytes(content)
    change_row(path, table, place, column, value, is_signed=False)
    check_damaged(path, picks)


@pytest.mark.fuzz
@settings(FUZZ, max_examples=100)
@given(
    seed=st.integers(0, 9),
    place=PLACES,
    field=st.integers(0, 9),
    value=st.sampled_from(WRONG),
    column=st.none() | st.integers(0, 4),
    table=st.sampled_from(["events", "settings"]),
)
def test_rows_of_another_program(
    seed, place, field, value, column, table, tmp_path_factory
):
    """With the right checksum, another event cannot be told from the first one."""
    path = tmp_path_factory.mktemp("store") / "picks.sqlite"
    path.write_bytes(whole(seed)[0])
    if column is None:
        change_field(path, place, field, value)
    elif not isinstance(value, list | dict):
        change_row(path, table, place, column, value, is_signed=True)
    for _ in range(2):
        try:
            session = open_session(path, FakeMaterial(N_GROUPS))
        except StoreError as error:
            check_message(error, path)
            try:
                path = repair(path).path
            except StoreError as problem:
                check_message(problem, path)
                return
        else:
            session.state()
            session.groups(0, N_GROUPS)
            while session.state()["can_undo"]:
                session.undo()
            session.close()
            return
    raise AssertionError("the repaired file was refused")


# By page ------------------------------------------------------------------------------


@st.composite
def page_damages(draw):
    """Return a function from bytes to damaged bytes."""
    place, length = draw(st.floats(0, 1)), draw(st.sampled_from([1, 4, 100, 4096]))
    how = draw(st.sampled_from(["flip", "zero", "noise", "cut", "page"]))
    noise = draw(st.randoms(use_true_random=False))

    def damage(content):
        content = bytearray(content)
        start = int(place * (len(content) - 1))
        if how == "page":
            start = start // 4096 * 4096
            content[start : start + 4096] = noise.randbytes(4096)
        elif how == "cut":
            del content[start:]
        elif how == "flip":
            content[start] ^= 1 << noise.randrange(8)
        else:
            end = min(start + length, len(content))
            new = bytes(end - start) if how == "zero" else noise.randbytes(end - start)
            content[start:end] = new
        return bytes(content)

    return damage


@pytest.mark.fuzz
@FUZZ
@given(seed=st.integers(0, 9), damage=page_damages())
def test_one_page_is_damaged(seed, damage, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "picks.sqlite"
    content, picks = whole(seed)
    path.write_bytes(damage(content))
    if path.stat().st_size:
        check_damaged(path, picks)


def damage_at_random(path, content, generator):
    """Write a file with one row or page damaged."""
    path.write_bytes(content)
    if generator.random() < 0.5:
        table = generator.choice(["events", "events", "settings"])
        column = generator.choice([None, 0, 1, 2, 3, 4])
        value = generator.choice([w for w in WRONG if not isinstance(w, list | dict)])
        place = generator.randrange(200)
        change_row(path, table, place, column, value, is_signed=False)
        return
    damaged = bytearray(content)
    start = generator.randrange(len(content)) // 4096 * 4096
    if generator.random() < 0.5:
        damaged[start : start + 4096] = generator.randbytes(4096)
    else:
        damaged[start + generator.randrange(4096)] ^= 1 << generator.randrange(8)
    path.write_bytes(damaged)


if __name__ == "__main__":
    outcomes = Counter()
    for number in range(int(sys.argv[1])):
        content, picks = whole(number % 10)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "picks.sqlite"
            damage_at_random(path, content, random.Random(number))
            outcomes[check_damaged(path, picks)] += 1
    print(dict(outcomes))
