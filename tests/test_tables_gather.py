"""Groups brought together: every row once, in order, in bounded memory, or nothing."""

import datetime
import errno
import json
import os
import pickle
import shutil
import subprocess
import time
from collections import namedtuple
from contextlib import contextmanager
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from table_instances import caller, fails, names_in, process
from variegate.partitions import PartitionChangedError, Serial
from variegate.tables import (
    TableError,
    TableFile,
    TableFileError,
    counts,
    gathering,
    shuffle,
    write_table,
)
from variegate.tables.gathering import gather
from variegate.tables.shuffle import file_bounds


@pytest.fixture
def call(monkeypatch, capsys):
    return caller(monkeypatch, capsys)


def write_folder(folder, tables, suffix=".parquet"):
    folder.mkdir()
    for number, table in enumerate(tables):
        write_table(table, folder / f"day-{number:02}{suffix}")
    return folder


def read(path):
    return pa.Table.from_batches(TableFile(path).batches(), TableFile(path).schema)


def read_folder(folder):
    return [read(path) for path in sorted(folder.iterdir())]


def scattered(n_rows=300, n_groups=40, seed=0):
    rng = np.random.default_rng(seed)
    groups = [f"query {number}" for number in rng.integers(0, n_groups, n_rows)]
    return pa.table({"query": groups, "row": np.arange(n_rows)})


def cut(table, n_files):
    """Return a table in parts that do not care for groups."""
    ends = np.linspace(0, len(table), n_files + 1).astype(int)
    return [table.slice(first, end - first) for first, end in pairwise(ends)]


def check_gathered(parts, table, group="query"):
    """Check that parts are the table with groups brought together, by pandas."""
    whole = pa.concat_tables(parts)
    assert whole.schema.equals(table.schema, check_metadata=True)
    groups_of = [set(pc.unique(part[group]).to_pylist()) for part in parts]
    assert sum(map(len, groups_of)) == len(set().union(*groups_of))
    # Sorted by name and otherwise as they are, both have the same rows in one order.
    expected = table.to_pandas().sort_values(group, kind="stable")
    found = whole.to_pandas()
    pd.testing.assert_frame_equal(
        found.sort_values(group, kind="stable").reset_index(drop=True),
        expected.reset_index(drop=True),
    )
    # Within a file, no group begins twice.
    names = found[group]
    assert (names != names.shift()).sum() == names.nunique()


# What is written ----------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("memory", [2**29, 4000, 1])
def test_every_row_is_there_once_and_in_order(tmp_path, suffix, memory):
    table = scattered()
    write_folder(tmp_path / "in", cut(table, 5), suffix)
    result = gather(tmp_path / "in", tmp_path / "out", group="query", memory=memory)
    assert result.files == tuple(sorted((tmp_path / "out").iterdir()))
    assert names_in(tmp_path / "out") == [f"part-0000{k}{suffix}" for k in range(5)]
    check_gathered(read_folder(tmp_path / "out"), table)
    assert (result.n_rows, result.n_groups) == (300, 40)
    assert names_in(tmp_path) == ["in", "out"]


keys = st.one_of(
    st.lists(st.text(max_size=3).filter(bool), min_size=1, max_size=60),
    st.lists(st.integers(-3, 3), min_size=1, max_size=60),
    st.lists(st.sampled_from([0.0, -0.0, 1.5, -2.0]), min_size=1, max_size=60),
    st.lists(st.booleans(), min_size=1, max_size=60),
    st.lists(st.binary(max_size=2), min_size=1, max_size=60),
    st.lists(st.dates(datetime.date(2020, 1, 1), datetime.date(2020, 1, 4)),
             min_size=1, max_size=60),
    st.lists(st.sampled_from([Decimal("1.5"), Decimal("-2.0")]),
             min_size=1, max_size=60),
)  # fmt: skip


@pytest.mark.fuzz
@given(keys, st.integers(1, 4), st.integers(1, 5), st.sampled_from([1, 500, 2**29]))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_table_is_gathered_as_pandas_would(tmp_path, names, n_in, n_out, memory):
    for name in ("in", "out"):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
    table = pa.table({"group": names, "row": range(len(names))})
    write_folder(tmp_path / "in", cut(table, n_in))
    result = gather(
        tmp_path / "in", tmp_path / "out", group="group", n_files=n_out, memory=memory
    )
    check_gathered(read_folder(tmp_path / "out"), table, "group")
    assert result.n_groups == len(set(names))
    assert len(result.files) <= n_out


def test_the_same_is_written_whatever_the_memory_and_the_cut(tmp_path):
    table = scattered(2000, 300)
    for number, (n_files, memory) in enumerate([(1, 2**29), (3, 20_000), (5, 4000)]):
        write_folder(tmp_path / f"in {number}", cut(table, n_files))
        gather(
            tmp_path / f"in {number}",
            tmp_path / f"out {number}",
            group="query",
            n_files=4,
            memory=memory,
        )
    first, *others = [read_folder(tmp_path / f"out {number}") for number in range(3)]
    assert len(first) == 4
    for other in others:
        assert [part.to_pydict() for part in other] == [p.to_pydict() for p in first]


def rich_table(n_rows=60):
    """Return a table of types that are easily lost."""
    rng = np.random.default_rng(1)
    kinds = pa.array(rng.choice(["b", "a"], n_rows))
    ordered = pa.DictionaryArray.from_arrays(
        pa.array(rng.integers(0, 2, n_rows), pa.int8()),
        pa.array(["low", "high", "never"]),
        ordered=True,
    )
    numbers = list(range(n_rows))
    columns = {
        "query": pa.array(rng.choice(["x", "y", "z", "ü"], n_rows)).dictionary_encode(),
        "kind": kinds.dictionary_encode(),
        "level": ordered,
        "vector": pa.array([[i] * 3 for i in numbers], pa.list_(pa.float32(), 3)),
        "nested": pa.array([{"a": [str(i)] * (i % 3), "b": None} for i in numbers]),
        "empty": pa.array([None if i % 3 else i for i in numbers], pa.int16()),
        "when": pa.array(numbers, pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal(i) / 4 for i in numbers], pa.decimal128(10, 2)),
        "note": pa.array([f"note {i}" * 5 for i in numbers], pa.string_view()),
        "hash": pa.array(numbers),
    }  # fmt: skip
    schema = pa.schema(
        [
            pa.field(
                name, column.type, nullable=name != "hash", metadata={"about": name}
            )
            for name, column in columns.items()
        ],
        metadata={"made by": "hand"},
    )
    return pa.table(list(columns.values()), schema=schema)


@pytest.mark.parametrize("memory", [2**29, 2000])
def test_types_and_metadata_are_kept(tmp_path, memory):
    table = rich_table()
    write_folder(tmp_path / "in", cut(table, 3), ".arrow")
    gather(tmp_path / "in", tmp_path / "out", group="query", n_files=2, memory=memory)
    parts = read_folder(tmp_path / "out")
    for part in parts:
        assert part.schema.equals(table.schema, check_metadata=True)
    rows = pa.concat_tables(parts).unify_dictionaries().to_pylist()
    assert sorted(rows, key=lambda row: row["hash"]) == table.to_pylist()
    levels = parts[0]["level"].chunk(0).dictionary.to_pylist()
    assert levels == ["low", "high", "never"]  # an order that means something


def test_files_with_other_categories_go_together(tmp_path):
    tables = [
        pa.table({"query": pa.array(names).dictionary_encode(), "row": [0, 1]})
        for names in (["b", "a"], ["c", "a"])
    ]
    write_folder(tmp_path / "in", tables, ".arrow")
    gather(tmp_path / "in", tmp_path / "out", group="query", n_files=1)
    (part,) = read_folder(tmp_path / "out")
    assert sorted(part["query"].to_pylist()) == ["a", "a", "b", "c"]
    assert part.schema.equals(tables[0].schema)


def test_files_by_number_of_rows(tmp_path):
    table = scattered(4000, 1000)
    write_folder(tmp_path / "in", cut(table, 2))
    gather(tmp_path / "in", tmp_path / "out", group="query", rows_a_file=400)
    parts = read_folder(tmp_path / "out")
    assert len(parts) == 10
    assert all(200 < len(part) < 600 for part in parts)
    check_gathered(parts, table)


def test_files_without_groups_are_not_written(tmp_path):
    table = scattered(50, n_groups=2)
    write_folder(tmp_path / "in", cut(table, 2))
    result = gather(tmp_path / "in", tmp_path / "out", group="query", n_files=100)
    assert len(result.files) == 2
    check_gathered(read_folder(tmp_path / "out"), table)


def test_files_without_rows_are_no_trouble(tmp_path):
    table = scattered()
    write_folder(tmp_path / "in", [table.slice(0, 0), table, table.slice(0, 0)])
    result = gather(tmp_path / "in", tmp_path / "out", group="query")
    assert result.n_rows == 300
    check_gathered(read_folder(tmp_path / "out"), table)


def test_streams_of_arrow_are_read(tmp_path):
    table = scattered()
    (tmp_path / "in").mkdir()
    for number, part in enumerate(cut(table, 2)):
        with ipc.new_stream(tmp_path / "in" / f"{number}.arrow", table.schema) as out:
            out.write_table(part)
    gather(tmp_path / "in", tmp_path / "out", group="query", rows_a_file=100)
    parts = read_folder(tmp_path / "out")
    assert len(parts) == 3
    check_gathered(parts, table)


# Memory -------------------------------------------------------------------------------


def test_a_group_larger_than_memory_is_not_held(tmp_path, monkeypatch):
    """Nor is any other bucket: what is put in order is within the bounds."""
    rng = np.random.default_rng(3)
    names = np.where(rng.random(20_000) < 0.5, "giant", rng.integers(0, 500, 20_000))
    table = pa.table({"query": names, "row": np.arange(20_000)})
    write_folder(tmp_path / "in", cut(table, 20))
    sizes = []

    def watched(batches, schema, order):
        sizes.append(sum(batch.nbytes for batch in batches))
        return rearranged(batches, schema, order)

    rearranged = shuffle.reorder_rows
    monkeypatch.setattr(shuffle, "reorder_rows", watched)
    memory = 100_000
    gather(tmp_path / "in", tmp_path / "out", group="query", n_files=2, memory=memory)
    check_gathered(read_folder(tmp_path / "out"), table)
    assert len(sizes) > 5
    assert max(sizes) <= memory // 5


def test_groups_of_one_hash_are_refused(tmp_path, monkeypatch):
    write_folder(tmp_path / "in", cut(scattered(), 3))
    hash_of = counts.hash_of
    monkeypatch.setattr(counts, "hash_of", lambda name: hash_of(name) % 3)
    with pytest.raises(TableError, match=r"two groups of .* names of the same hash"):
        gather(tmp_path / "in", tmp_path / "out", group="query")
    assert not (tmp_path / "out").exists()


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=40),
    st.integers(1, 9),
    st.integers(1, 60),
)
def test_files_and_buckets_hold_all_groups_once(sizes, n_files, rows_a_bucket):
    bounds, starts = file_bounds(np.array(sizes), n_files, rows_a_bucket)
    assert (bounds[0], bounds[-1]) == (0, len(sizes))
    assert (np.diff(bounds) > 0).all()
    assert (starts[0], starts[-1]) == (0, len(bounds) - 1)
    assert (np.diff(starts) > 0).all()
    assert len(starts) - 1 <= n_files
    for first, end in pairwise(bounds.tolist()):
        assert end - first == 1 or sum(sizes[first:end]) <= rows_a_bucket


# Interrupted --------------------------------------------------------------------------

#: Gathers in a child that is killed when it begins with some file, for every line.
KILLING = """
import os, signal, sys, time
from variegate.tables import gathering

def begin(function, number):
    original = getattr(gathering, function)

    def stopping(item, **how):
        if item[0] == number:
            os.write(writing, b"ready")
            time.sleep(600)
        return original(item, **how)

    setattr(gathering, function, stopping)
    gathering.gather(sys.argv[1], sys.argv[2], group="query", memory=3000)

for line in sys.stdin:
    function, number = line.split()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        begin(function, int(number))
        os._exit(1)
    assert os.read(reading, 5) == b"ready"
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    print("killed", flush=True)
"""


class Sending(Serial):
    """Sends what it is given as another engine would."""

    def map(self, function, items, progress=lambda n_done, n_items: None, ordered=True):
        # What travels must be small and whole after the journey.
        function = pickle.loads(pickle.dumps(function))
        yield from super().map(function, pickle.loads(pickle.dumps(items)), progress)


class Weighing(Serial):
    """Tells how large the items are that it is given."""

    def __init__(self):
        self.n_bytes = []

    def map(self, function, items, progress=lambda n_done, n_items: None, ordered=True):
        self.n_bytes += [len(pickle.dumps(item)) for item in items]
        yield from super().map(function, items, progress)


def test_what_a_worker_is_told_does_not_grow_with_the_files(tmp_path):
    weights = []
    for n_files in (2, 60):
        source = write_folder(tmp_path / f"in{n_files}", cut(scattered(), n_files))
        engine, out = Weighing(), tmp_path / f"out{n_files}"
        gather(source, out, group="query", n_files=2, engine=engine)
        check_gathered(read_folder(out), scattered())
        weights.append(max(engine.n_bytes))
    assert weights[1] < weights[0] + 20


def test_an_empty_folder_is_filled(tmp_path):
    source = write_folder(tmp_path / "in", cut(scattered(), 3))
    (tmp_path / "out").mkdir()
    gather(source, tmp_path / "out", group="query")
    check_gathered(read_folder(tmp_path / "out"), scattered())
    assert names_in(tmp_path) == ["in", "out"]


@pytest.mark.faults
def test_killed_twice_and_run_again(tmp_path, monkeypatch):
    table = scattered(2000, 100)
    source = write_folder(tmp_path / "in", cut(table, 5))
    hidden = tmp_path / ".out.gathering"
    started = process(source, tmp_path / "out", code=KILLING, stdin=subprocess.PIPE)

    def killed(line):
        """Kill a run, and return what it leaves: when each file was written."""
        started.stdin.write(f"{line}\n")
        started.stdin.flush()
        assert started.stdout.readline() == "killed\n", started.communicate()[1]
        assert names_in(tmp_path) == [".out.gathering", "in"]
        files = [path for path in hidden.glob("*/*") if path.is_file()]
        return {path.name: path.stat().st_mtime_ns for path in files}

    with started:
        first = killed("_deal_out_file 2")
        second = killed("_write_file 3")
        started.stdin.close()
    dealt = [name for name in first if name.endswith(".npz")]
    assert sorted(dealt) == ["00000.npz", "00001.npz"]
    assert first.items() <= second.items()
    monkeypatch.delattr(gathering, "deal_out")  # all is dealt out
    gather(source, tmp_path / "out", group="query", memory=3000, engine=Sending())
    check_gathered(read_folder(tmp_path / "out"), table)
    # Files that were finished are the same, not the same again.
    kept = [
        path.name
        for path in sorted((tmp_path / "out").iterdir())
        if path.stat().st_mtime_ns == second.get(path.name)
    ]
    assert kept == [f"part-0000{number}.parquet" for number in range(3)]
    assert names_in(tmp_path) == ["in", "out"]


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path):
    table = scattered(3000, 200)
    source = write_folder(tmp_path / "in", cut(table, 6))
    command = ("gather", source, "-o", tmp_path / "out", "--group", "query")
    command = (*command, "--memory", "20KB")
    begun = time.monotonic()
    started = process(*command)
    started.communicate(timeout=120)
    whole = time.monotonic() - begun
    shutil.rmtree(tmp_path / "out")
    for share in (0.5, 0.6, 0.7, 0.8, 0.9):
        started = process(*command)
        time.sleep(whole * share)
        started.kill()
        started.communicate()
        if (tmp_path / "out").exists():
            break
    else:
        started = process(*command)
        started.communicate(timeout=120)
        assert started.returncode == 0
    check_gathered(read_folder(tmp_path / "out"), table)


def test_what_was_begun_otherwise_is_not_used(tmp_path):
    source = write_folder(tmp_path / "in", cut(scattered(), 3))
    hidden = tmp_path / ".out.gathering"
    (hidden / "files").mkdir(parents=True)
    (hidden / "files" / "part-00000.parquet").write_text("half a table")
    (hidden / "gather.sqlite").write_text("{}")
    gather(source, tmp_path / "out", group="query")
    check_gathered(read_folder(tmp_path / "out"), scattered())
    assert names_in(tmp_path) == ["in", "out"]


def test_a_folder_that_another_process_gathers_is_left_alone(tmp_path):
    source = write_folder(tmp_path / "in", cut(scattered(), 3))
    refused = []

    def progress(stage, done, total):
        if not refused:
            with pytest.raises(TableError, match="in use by another process") as caught:
                gather(source, tmp_path / "out", group="query")
            refused.append(caught.value)

    gather(source, tmp_path / "out", group="query", progress=progress)
    assert refused
    check_gathered(read_folder(tmp_path / "out"), scattered())


def test_killed_after_the_last_step(tmp_path, monkeypatch):
    """The folder is there, and what is hidden beside it is not taken for it."""
    source = write_folder(tmp_path / "in", cut(scattered(), 3))
    rename = os.rename

    def killed(old, new):
        rename(old, new)
        if new == tmp_path / "out":
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        gather(source, tmp_path / "out", group="query")
    monkeypatch.undo()
    assert (tmp_path / ".out.gathering").exists()
    gather(source, tmp_path / "out", group="query", replace=True)
    check_gathered(read_folder(tmp_path / "out"), scattered())
    assert names_in(tmp_path) == ["in", "out"]


def test_a_replaced_folder_is_there_until_the_other_is(tmp_path, monkeypatch):
    source = write_folder(tmp_path / "in", cut(scattered(), 3))
    write_folder(tmp_path / "out", [scattered(seed=9)])
    rename = os.rename

    def killed(old, new):
        if new == tmp_path / "out":
            raise KeyboardInterrupt
        rename(old, new)

    monkeypatch.setattr(os, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        gather(source, tmp_path / "out", group="query", replace=True)
    monkeypatch.undo()
    (replaced,) = read_folder(tmp_path / ".out.gathering" / "replaced")
    assert replaced.equals(scattered(seed=9))
    gather(source, tmp_path / "out", group="query")
    check_gathered(read_folder(tmp_path / "out"), scattered())
    assert names_in(tmp_path) == ["in", "out"]


def test_a_file_that_changes_is_refused(tmp_path):
    source = write_folder(tmp_path / "in", cut(scattered(), 3))

    class Changing(Serial):
        def map(self, function, items, progress=None, ordered=True):
            write_table(scattered(400), source / "day-01.parquet")
            yield from super().map(function, items)

    with pytest.raises(PartitionChangedError, match=r"day-01\.parquet has changed"):
        gather(source, tmp_path / "out", group="query", engine=Changing())
    assert not (tmp_path / "out").exists()


# A disk that is full ------------------------------------------------------------------


class FullFile:
    """A file on a disk with room for some bytes."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("name", ["00001.arrow", "part-00001"])
def test_a_full_disk(tmp_path, monkeypatch, name, suffix):
    source = write_folder(tmp_path / "in", cut(scattered(), 3), suffix)

    @contextmanager
    def full(path):
        with new_file(path) as file:
            yield FullFile(file, 1000) if path.name.startswith(name) else file

    from variegate.tables import writing

    new_file = writing.new_file
    monkeypatch.setattr(writing, "new_file", full)
    with pytest.raises(OSError, match=r"has no room: about .* make room and run it"):
        gather(source, tmp_path / "out", group="query")
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    gather(source, tmp_path / "out", group="query")
    check_gathered(read_folder(tmp_path / "out"), scattered())


def test_a_disk_without_room_is_seen_before_the_work(tmp_path, monkeypatch):
    source = write_folder(tmp_path / "in", cut(scattered(), 3))
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(gathering.shutil, "disk_usage", lambda folder: usage(1000))
    with pytest.raises(OSError, match=r"has no room: .* and 0\.0 GB are free"):
        gather(source, tmp_path / "out", group="query")
    assert names_in(tmp_path) == ["in"]


# What is refused ----------------------------------------------------------------------


def test_files_that_do_not_go_together(tmp_path):
    table = scattered()
    text = table.set_column(1, "row", table["row"].cast(pa.string()))
    source = write_folder(tmp_path / "in", [table, text])
    message = r"day-01\.parquet holds string in column 'row', where .* has int64"
    with pytest.raises(TableError, match=message):
        gather(source, tmp_path / "out", group="query")
    assert not (tmp_path / "out").exists()


def test_files_that_differ_in_the_order_of_columns_and_in_what_may_be_empty(tmp_path):
    first, second = cut(scattered(), 2)
    strict = pa.schema([first.schema.field("query"), first.schema.field("row")])
    strict = strict.set(1, strict.field("row").with_nullable(False))
    hole = pa.array([None, *second["row"].to_pylist()[1:]])
    second = second.set_column(1, "row", hole).select(["row", "query"])
    source = write_folder(tmp_path / "in", [first.cast(strict), second])
    gather(source, tmp_path / "out", group="query")
    parts = read_folder(tmp_path / "out")
    assert parts[0].schema.equals(first.schema)
    found = pa.concat_tables(parts)["row"].to_pylist()
    assert sorted(row for row in found if row is not None) == [
        *range(150),
        *range(151, 300),
    ]
    assert len(found) == 300


def test_a_row_without_a_group(tmp_path):
    table = scattered()
    empty = table.set_column(0, "query", pa.array([None] + ["a"] * 299))
    source = write_folder(tmp_path / "in", [table, empty])
    message = r"column 'query' is empty in row 1 of .*day-01\.parquet"
    with pytest.raises(TableError, match=message):
        gather(source, tmp_path / "out", group="query")
    assert not (tmp_path / "out").exists()


def test_columns_that_cannot_be_gathered(tmp_path):
    table = scattered(10)
    vectors = table.append_column("vector", pa.array([[1.0]] * 10))
    source = write_folder(tmp_path / "vectors", [vectors])
    with pytest.raises(TableError, match=r"'vector' holds list<.*> values, no names"):
        gather(source, tmp_path / "out", group="vector")
    runs = pc.run_end_encode(pa.array(["a"] * 10))
    table = pa.record_batch({"query": ["a"] * 10, "runs": runs})
    (tmp_path / "runs").mkdir()
    with ipc.new_file(tmp_path / "runs" / "a.arrow", table.schema) as out:
        out.write_batch(table)
    with pytest.raises(TableError, match=r"'runs' holds run_end_encoded.* convert it"):
        gather(tmp_path / "runs", tmp_path / "out", group="query")


def test_categories_that_are_too_many_together(tmp_path):
    def part(first):
        kinds = [f"kind {first + number}" for number in range(100)]
        kinds = pa.array(kinds).dictionary_encode()
        small = pa.dictionary(pa.int8(), pa.string())
        return pa.table({"query": ["a"] * 100, "kind": kinds.cast(small)})

    source = write_folder(tmp_path / "in", [part(0), part(100)], ".arrow")
    with pytest.raises(TableError, match="'kind' has more different values in all"):
        gather(source, tmp_path / "out", group="query", n_files=1)


def test_a_damaged_file(tmp_path):
    source = write_folder(tmp_path / "in", cut(scattered(), 2))
    path = source / "day-01.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(TableFileError, match=r"day-01\.parquet is not a Parquet"):
        gather(source, tmp_path / "out", group="query")


def test_options_that_do_not_go_together(tmp_path):
    source = write_folder(tmp_path / "in", [scattered()])
    with pytest.raises(TableError, match="how many files, or how many rows"):
        gather(source, tmp_path / "out", group="query", n_files=1, rows_a_file=5)


# The command --------------------------------------------------------------------------


def test_the_command(tmp_path, call):
    source = write_folder(tmp_path / "in", cut(scattered(), 3))
    command = ("gather", source, "-o", tmp_path / "out", "--group", "query")
    status, output, messages = call(*command)
    assert (status, output) == (0, "300 rows of 40 groups gathered in 3 files\n")
    assert messages == f"written: {tmp_path / 'out'}\n"
    check_gathered(read_folder(tmp_path / "out"), scattered())
    status, output, _ = call(*command, "--files", 2, "--force", "--json")
    assert status == 0
    files = [str(tmp_path / "out" / f"part-0000{k}.parquet") for k in range(2)]
    assert json.loads(output) == {"rows": 300, "groups": 40, "files": files}
    assert sorted(map(str, (tmp_path / "out").iterdir())) == files


def test_an_interrupted_command_says_what_remains(tmp_path, call, monkeypatch):
    source = write_folder(tmp_path / "in", cut(scattered(), 3))

    def interrupted(*args, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr(gathering, "_write_file", interrupted)
    command = ("gather", source, "-o", tmp_path / "out", "--group", "query")
    status, _, messages = call(*command)
    assert status == 130
    assert "variegate: interrupted; run it again, and it resumes" in messages
    assert not (tmp_path / "out").exists()


def test_bad_input_of_the_command(tmp_path, call):
    source = write_folder(tmp_path / "in", cut(scattered(), 2))
    out = tmp_path / "out"

    def gathered(folder=source, target=out, group="query", *more):
        return call("gather", folder, "-o", target, "--group", group, *more)

    assert fails(gathered(tmp_path / "no"), "there is no folder", "no")
    assert fails(gathered(source / "day-00.parquet"), "cannot read", "day-00.parquet")
    assert fails(gathered(target=source / "out"), "overlap: name another folder")
    assert fails(gathered(target=source), "not empty")
    assert fails(gathered(source, source, "query", "--force"), "overlap")
    assert fails(gathered(source, tmp_path, "query", "--force"), "overlap")
    assert fails(gathered(target=tmp_path / "a" / "b"), "there is no folder")
    assert fails(
        gathered(group="qurey"),
        "no column 'qurey' (did you mean 'query'?); the table has query, row",
    )
    assert fails(
        gathered(source, out, "query", "--files", 2, "--rows", 2), "one of the"
    )
    assert fails(gathered(source, out, "query", "--files", 0), "--files")
    (tmp_path / "empty").mkdir()
    assert fails(gathered(tmp_path / "empty"), "there are no Parquet or Arrow files in")
    write_folder(tmp_path / "csv", [scattered()], ".csv")
    assert fails(gathered(tmp_path / "csv"), "day-00.csv: ", "convert this one")
    assert not out.exists()
    out.mkdir()
    (out / "thesis.tex").write_text("all my work")
    assert fails(gathered(), "is not empty", "--force")
    assert fails(gathered(source, out, "query", "--force"), "'thesis.tex'", "be lost")
    assert names_in(out) == ["thesis.tex"]
