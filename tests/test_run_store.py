"""Run stores: finished steps that are found again, and files that are refused."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variegate.files.run_store import CheckpointError, RunStore


def refuse():
    raise AssertionError("computed again")


def steps(count):
    return {f"step {k}": bytes([k]) * (3000 * k) for k in range(count)}


def written(path, count, run=None):
    with RunStore(path, run) as store:
        for key, value in steps(count).items():
            store.remember(key, lambda value=value: value)
    return path.read_bytes()


def test_a_step_is_computed_once_and_known_after_opening_again(tmp_path):
    path = tmp_path / "run"
    written(path, 4)
    with RunStore(path) as store:
        assert len(store) == 4
        assert store.keys() == list(steps(4))
        for key, value in steps(4).items():
            assert store.remember(key, refuse) == value
        assert store.get("another") is None


def test_a_value_is_replaced(tmp_path):
    with RunStore(tmp_path / "run") as store:
        store.put_all({"a": b"1", "b": b"2"})
        store.put("a", b"3")
        assert (store.get("a"), store.get("b")) == (b"3", b"2")


def test_without_a_file_steps_are_kept_in_memory():
    store = RunStore()
    assert store.remember("a", lambda: b"1") == b"1"
    assert store.remember("a", refuse) == b"1"


KILLED = """
import sys
from variegate.files.run_store import RunStore
store = RunStore(sys.argv[1], {"lam": 1})
for number in range(len(store), 10**6):
    store.put(str(number), b"x" * 5000)
    print(number, flush=True)
"""


@pytest.mark.faults
def test_every_step_that_was_stored_is_there_after_a_kill(tmp_path):
    path, known = tmp_path / "run", -1
    for n_more in (1, 2, 7, 20):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
        ) as process:
            for line in process.stdout:
                if int(line) >= known + n_more:
                    break
            process.send_signal(signal.SIGKILL)
        known = int(line)
        with RunStore(path, {"lam": 1}) as store:
            assert len(store) > known
            assert all(store.get(key) == b"x" * 5000 for key in store.keys())  # noqa: SIM118


def test_a_file_cut_at_any_place_is_refused_or_true(tmp_path):
    path = tmp_path / "run"
    whole = written(path, 4)
    for size in range(0, len(whole) + 1, 101):
        path.write_bytes(whole[:size])
        try:
            with RunStore(path) as store:
                check_steps(store)
        except CheckpointError as error:
            assert "is damaged" in str(error)  # noqa: PT017


def test_a_damaged_name_of_a_table_is_refused(tmp_path):
    path = tmp_path / "run"
    whole = bytearray(written(path, 1))
    whole[whole.index(b"run (name")] ^= 128  # SQLite quotes it in its message
    path.write_bytes(whole)
    with pytest.raises(CheckpointError, match="is damaged"):
        RunStore(path)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_changed_byte_is_never_believed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("store") / "run"
    whole = bytearray(written(path, 4))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    try:
        with RunStore(path) as store:
            check_steps(store)
    except CheckpointError:
        pass


def check_steps(store):
    """Every value is what was stored, or is not there."""
    for key, value in steps(4).items():
        assert store.get(key) in (None, value)


def test_the_store_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run"
    written(path, 1, {"lam": 1.0, "data": ("a", 2)})
    RunStore(path, {"lam": 1, "data": ["a", 2]}).close()
    with pytest.raises(
        CheckpointError, match=r"another run \(lam was 1.0 and is 2.0\): give the same"
    ):
        RunStore(path, {"lam": 2.0, "data": ("a", 2)})


@pytest.mark.parametrize(
    "content", [b"text\n", b"{}", b"\x00" * 50, b"\x00" * 5000, b"SQLite format 3\0"]
)
def test_a_file_of_another_kind_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "run"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="is not a checkpoint of variegate"):
        RunStore(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("pragma", "message"),
    [
        ("application_id = 7", "is not a checkpoint of variegate"),
        ("user_version = 9", "format version 9, but this variegate reads 1"),
    ],
)
def test_databases_of_other_programs_and_versions_are_refused(
    tmp_path, pragma, message
):
    path = tmp_path / "run"
    written(path, 1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA {pragma}")
    with pytest.raises(CheckpointError, match=message):
        RunStore(path)


def test_a_file_that_was_only_begun_is_taken_as_new(tmp_path):
    path = tmp_path / "run"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")  # a page, and no tables
    assert path.stat().st_size
    written(path, 2)
    with RunStore(path) as store:
        assert len(store) == 2


def test_a_run_with_nan_among_its_settings_is_the_same_run(tmp_path):
    run = {"least": float("nan")}
    RunStore(tmp_path / "run", run).close()
    RunStore(tmp_path / "run", run).close()


def test_a_store_in_use_is_refused(tmp_path):
    path = tmp_path / "run"
    with RunStore(path), pytest.raises(CheckpointError, match="in use by another"):
        RunStore(path)
    RunStore(path).close()


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot write the checkpoint"):
        RunStore(tmp_path / "nowhere" / "run")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs resource.setrlimit")
def test_a_full_disk_is_an_error_that_names_the_file(tmp_path):
    code = (
        "import resource, signal, sys\n"
        "from variegate.files.run_store import RunStore\n"
        "store = RunStore(sys.argv[1])\n"
        "store.put('a', b'1')\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, -1))\n"
        "try:\n"
        "    store.put_all({'a': b'2', 'b': b'x' * 10**6})\n"
        "except OSError as error:\n"
        "    print(error)\n"
        "store.put('c', b'3')\n"
        "print([(key, store.get(key)) for key in store.keys()])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=True,
    )
    message, stored = done.stdout.splitlines()
    assert message.startswith(f"cannot read or write {tmp_path / 'run'}: ")
    assert stored == "[('a', b'1'), ('c', b'3')]"


def test_removed_at_the_end(tmp_path):
    RunStore(tmp_path / "run").remove()
    assert list(tmp_path.iterdir()) == []
