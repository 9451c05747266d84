"""Picks in a file: kept, found again, refused, and whole on a full disk."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading

import pytest

from variegate.files import path_lock
from variegate.studio.store import Store, StoreError, StoreFullError


def opened(path):
    return Store(path, "data.csv")


def pick(n, **more):
    """Return the body of an event: the item number ``n`` is picked."""
    body = {"group": "a", "content": "all", "item": f"={n}", "name": f"item {n}"}
    return body | {"picked": True} | more


@pytest.fixture
def path(tmp_path):
    return tmp_path / "picks.sqlite"


def numbers(store):
    return [int(event.body["item"][1:]) for event in store.events()]


def test_what_was_recorded_is_found_again(path):
    store = opened(path)
    first = store.record("pick", pick(1, base=[]))
    second = store.record("go", {"group": "b"})
    assert first.seq < second.seq
    store.close()
    store = opened(path)
    assert store.events() == [first, second]
    assert store.record("pick", pick(3)).seq > second.seq
    store.close()


def test_settings_are_kept_with_an_event_or_alone(path):
    store = opened(path)
    store.set(omega=2.0, target=None)
    store.record("pick", pick(1), {"omega": 3.0})
    store.close()
    store = opened(path)
    known = store.settings()
    assert (known["omega"], known["target"], known["runs"]) == (3.0, None, 2)
    assert known["data"] == "data.csv"
    store.close()


def test_every_commit_is_synchronized_to_a_write_ahead_log(path):
    store = opened(path)
    ask = store._connection.execute
    assert ask("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ask("PRAGMA synchronous").fetchone() == (2,)
    store.close()


def test_an_event_that_is_not_json_is_not_kept(path):
    store = opened(path)
    with pytest.raises(TypeError):
        store.record("pick", pick(1, base={1, 2}))
    with pytest.raises(TypeError):
        store.record("pick", pick(1), {"omega": {1, 2}})
    store.record("pick", pick(2))
    assert numbers(store) == [2]
    store.close()


def test_threads_record_one_after_the_other(path):
    store = opened(path)

    def record(start):
        for n in range(start, start + 50):
            store.record("pick", pick(n))

    threads = [threading.Thread(target=record, args=(s,)) for s in (0, 50, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = store.events()
    assert sorted(numbers(store)) == list(range(150))
    assert [event.seq for event in events] == list(range(1, 151))
    store.close()


# What is refused ---------------------------------------------------------------------


def test_a_file_of_something_else_is_left_as_it_is(path):
    path.write_text("a file, and not of SQLite; " * 100)
    with pytest.raises(StoreError, match="is not a file of the studio"):
        opened(path)
    assert path.read_text().startswith("a file, and not of SQLite")


def test_a_database_of_something_else_is_left_as_it_is(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE events (a)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is not a file of the studio"):
        opened(path)
    assert path.read_bytes() == before


def test_another_format_is_refused(path):
    opened(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 7")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match=r"format 7, this one knows 1"):
        opened(path)


def test_a_damaged_file_is_refused(path):
    store = opened(path)
    for n in range(200):
        store.record("pick", pick(n))
    store.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="damaged"):
        opened(path).events()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(StoreError, match="there is no folder"):
        opened(tmp_path / "nowhere" / "picks.sqlite")


def test_a_folder_in_place_of_the_file(tmp_path):
    with pytest.raises(StoreError, match="cannot be opened"):
        opened(tmp_path)


@pytest.mark.faults
def test_a_second_process_is_refused_while_the_first_is_there(path):
    code = (
        "import sys; from variegate.studio.store import Store; "
        "store = Store(sys.argv[1], 'data'); print('open', flush=True); "
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(StoreError, match=r"another studio has .* open"):
            opened(path)
        other.kill()
    opened(path).close()


# A file that vanishes -----------------------------------------------------------------

GONE = r"was deleted, moved or replaced .*, and no more picks are kept: put the file"


def check_refused(store, path):
    """Assert that no more is kept, and that no second studio starts beside it."""
    with pytest.raises(StoreError, match=GONE):
        store.record("pick", pick(2))
    with pytest.raises(StoreError, match=GONE):
        store.set(omega=2.0)
    with pytest.raises(StoreError, match=r"another studio has .* open"):
        opened(path)


@pytest.fixture
def store(path):
    store = opened(path)
    store.record("pick", pick(1))
    yield store
    store.close()


def test_a_file_that_is_deleted_while_it_is_open(store, path):
    path.unlink()
    check_refused(store, path)
    assert numbers(store) == [1]
    store.close()
    with opened(path) as new:
        assert numbers(new) == []


def test_a_file_that_is_deleted_with_its_log(store, path):
    for name in path.parent.iterdir():
        name.unlink()
    check_refused(store, path)


def test_a_log_that_is_deleted_alone(store, path):
    path.with_name(f"{path.name}-wal").unlink()
    check_refused(store, path)


def test_a_file_that_is_replaced_while_it_is_open(store, path):
    other = path.with_name("other.sqlite")
    opened(other).close()
    other.replace(path)
    check_refused(store, path)


def test_a_file_that_is_overwritten_while_it_is_open(store, path):
    other = path.with_name("other.sqlite")
    with opened(other) as one:
        one.record("pick", pick(7))
    content = other.read_bytes()
    assert len(content) == path.stat().st_size
    path.write_bytes(content)
    check_refused(store, path)


def test_a_file_that_is_put_back_is_kept_in_again(store, path):
    away = path.rename(path.with_name("away.sqlite"))
    check_refused(store, path)
    away.rename(path)
    store.record("pick", pick(2))
    assert numbers(store) == [1, 2]


def test_another_time_of_the_same_content_is_no_harm(store, path):
    os.utime(path, (1, 1))
    store.record("pick", pick(2))
    os.utime(path, (2, 2))
    store.record("pick", pick(3))
    assert numbers(store) == [1, 2, 3]


def test_stores_under_other_names_are_no_harm(store, path):
    with opened(path.with_name("other.sqlite")) as other:
        other.record("pick", pick(1))


def test_no_folder_for_locks(tmp_path, monkeypatch, path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with opened(path) as store:
        store.record("pick", pick(1))


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs users with numbers")
def test_the_folder_for_locks_of_another_user(tmp_path, monkeypatch, path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = os.getuid()
    (tmp_path / f"variegate-locks-{own + 1}").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        path_lock._own_folder()
    with opened(path) as store:
        store.record("pick", pick(1))


KILLED = """
import os, sys
from variegate.studio.store import Store
store = Store(sys.argv[1], "data")
for n in range(20):
    body = {"group": "a", "content": "all", "item": f"={n}", "name": f"item {n}"}
    store.record("pick", body | {"picked": True})
os._exit(1)
"""


@pytest.mark.parametrize("damage", ["delete", "cut", "noise"])
def test_a_damaged_log_loses_nothing_that_was_kept(path, damage):
    subprocess.run([sys.executable, "-c", KILLED, path])
    log = path.with_name(f"{path.name}-wal")
    if damage == "delete":
        log.unlink()
    else:
        size = log.stat().st_size
        log.write_bytes(b"" if damage == "cut" else b"\x55" * max(size, 5000))
    with opened(path) as store:
        assert numbers(store) == list(range(20))


# A full disk -------------------------------------------------------------------------

#: Files of this process have room for a few pages more, and later for all again.
FULL = """
import resource, sys
from variegate.studio.store import Store, StoreFullError
store = Store(sys.argv[1], "data")
def pick(n):
    body = {"group": "a", "content": "all", "item": f"={n}", "name": f"item {n}"}
    return body | {"picked": True}
def numbers(events):
    return [int(event.body["item"][1:]) for event in events]
kept = numbers(store.record("pick", pick(n)) for n in range(3))
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (24_000, unlimited[1]))
refused = 0
for n in range(3, 60):
    try:
        store.record("pick", pick(n))
        assert not refused
        kept.append(n)
    except StoreFullError as error:
        assert "not kept" in str(error), error
        refused += 1
assert refused > 10, refused
assert numbers(store.events()) == kept
resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
kept += numbers(store.record("pick", pick(n)) for n in range(60, 63))
assert numbers(store.events()) == kept
print(kept, flush=True)
# Without a good-bye.
import os; os._exit(1)
"""


@pytest.mark.faults
def test_a_full_disk_is_said_and_passes(path):
    pytest.importorskip(
        "resource", reason="needs limits of a process, to fill a disk up"
    )
    done = subprocess.run(
        [sys.executable, "-c", FULL, path], capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    assert "Error" not in done.stderr, done.stderr
    store = opened(path)
    assert str(numbers(store)) == done.stdout.strip()
    store.close()


def test_a_disk_without_room_for_the_file(tmp_path, monkeypatch):
    # What SQLite says where the system says that the disk is full.
    store = opened(tmp_path / "picks.sqlite")
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFullError, match=r"is full, and this was not kept"):
        store.record("pick", pick("long " * 10_000))
    store._connection.execute("PRAGMA max_page_count = 100000")
    store.record("pick", pick(1))
    assert numbers(store) == [1]
    store.close()
