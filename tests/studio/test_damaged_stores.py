"""Damaged files of picks: a message, or all picks; and what a repair saves of them.

One row or page of a file is damaged.  Then the studio refuses the file, or has every
pick; and a repaired file has every pick of all groups but those that it names.
"""

import json
import random
import re
import sqlite3
from contextlib import closing
from functools import cache

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
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picks.sqlite"
        session = open_session(path, FakeMaterial(N_GROUPS))
        act_at_random(session, random.Random(seed), 8 + 16 * (seed % 5))
        picks = picks_of(session)
        session.close()
        return path.read_bytes(), picks


def check_damaged(path, picks):
    """Open a damaged file, and repair it; return what was possible."""
    outcome = "opened"
    try:
        session = open_session(path, FakeMaterial(N_GROUPS))
    except StoreError as error:
        assert str(path) in str(error)
        outcome = "refused"
    else:
        assert picks_of(session) == picks
        session.close()
    try:
        done = repair(path)
    except StoreError as error:
        assert str(path) in str(error)
        return outcome
    assert outcome == "refused" or not done.doubtful
    session = open_session(done.path, FakeMaterial(N_GROUPS))
    for name, found in picks_of(session).items():
        if name in done.doubtful:
            assert not found[0], name
        else:
            # Groups of which no event can be read are as new.
            assert found == picks[name] or (found == (False, None) and done.dropped), done
    session.close()
    return "repaired"


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
@FUZZ
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
            assert str(path) in str(error)
            try:
                path = repair(path).path
            except StoreError as problem:
                assert str(path) in str(problem)
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
