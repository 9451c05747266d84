"""Choosing from a folder on an engine: files that are whole, once, or refused."""

import os
import signal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from folder_instances import (
    COLUMNS,
    Pickling,
    cut,
    folder_of,
    rows_of,
    select_folder,
    some_table,
    write_folder,
)
from table_instances import names_in, process, with_cell
from variegate import load
from variegate.partitions import PartitionError, Serial
from variegate.tables import (
    FolderTable,
    TableError,
    TableFileError,
    TableSelector,
    selecting,
)
from variegate.tables.selecting import hash_of_model

FILES = [f"part-{number:03d}.parquet" for number in range(4)]


@pytest.fixture(scope="module")
def fitted():
    settings = COLUMNS | {"cost": "tokens", "kernel": "linear", "omega": 0.5}
    return TableSelector(**settings).fit(some_table(random_state=5))


@pytest.fixture
def folder(tmp_path):
    return folder_of(tmp_path / "t")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


OPTIONS = [
    {},
    {"k": 2},
    {"omega": 0.7},
    {"budget": 200.0},
    {"at_most": (1, 2), "per": ("kind", "freshness")},
    {"keep_all": True},
    {"drop": ["embedding", "f*"], "k": 1},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_rows_are_those_of_home(fitted, folder, out, options):
    found = select_folder(fitted, folder, out, Pickling(), **options)
    home = fitted.select(folder, **options)
    assert rows_of(out).equals(home)
    assert names_in(out) == [".manifest.sqlite", *FILES]
    if not options:
        # Rows keep their files, too.
        for name in FILES:
            here, there = (
                parquet.read_table(folder / name),
                fitted.select(folder / name),
            )
            assert parquet.read_table(out / name).equals(there)
            assert set(there["query"].to_pylist()) <= set(here["query"].to_pylist())
    assert (found.n_files, found.n_written, found.n_groups) == (4, 4, 24)
    assert found.n_rows == rows_of(folder).num_rows
    if "keep_all" not in options:
        assert found.n_chosen == home.num_rows
        assert found.n_empty == 24 - len(set(home["query"].to_pylist()))
    assert sum(found.stop_reasons.values()) == 24


def test_files_of_arrow_and_files_without_rows(fitted, tmp_path, out):
    table = some_table()
    folder = write_folder(
        tmp_path / "t", [table[:0], *cut(table, 60), table[:0]], ".arrow"
    )
    select_folder(fitted, folder, out, Serial())
    assert FolderTable(out).schema.names[-1] == "inclusion_probability"
    chosen = pa.Table.from_batches(list(FolderTable(out).batches()))
    assert chosen.equals(fitted.select(table))


def test_a_folder_of_chosen_rows_is_a_table(fitted, folder, out):
    select_folder(fitted, folder, out, Serial(), keep_all=True)
    assert len(fitted.evaluate(out).scores["model"]) == 24


def test_values_that_were_not_there_in_training_are_counted(fitted, tmp_path, out):
    table = with_cell(with_cell(some_table(), "kind", 3, "new"), "kind", 99, "newer")
    folder = write_folder(tmp_path / "t", cut(table, 60))
    assert select_folder(fitted, folder, out, Serial()).unknown_levels == {"kind": 2}


# Again -----------------------------------------------------------------------------


class Stopping(Serial):
    """Stops after some files, as a killed process does, with one more written."""

    def __init__(self, n_files):
        self.n_files = n_files

    def map(self, function, items, progress=lambda *_: None, ordered=True):
        if function.func is selecting._select_file:
            yield from map(function, items[: self.n_files])
            function(items[self.n_files])
            raise KeyboardInterrupt  # before the last result has come back
        yield from super().map(function, items, progress)


def test_a_run_that_was_stopped_goes_on_with_what_is_missing(fitted, folder, out):
    for n_files in (2, 1):
        with pytest.raises(KeyboardInterrupt):
            select_folder(fitted, folder, out, Stopping(n_files))
    written = {name: (out / name).stat().st_ino for name in FILES[:3]}
    assert names_in(out) == [".manifest.sqlite", *FILES]
    engine = Pickling()
    found = select_folder(fitted, folder, out, engine)
    assert (found.n_files, found.n_written) == (4, 1)
    assert engine.n_items == 4 + 1  # files are counted, one is written
    assert {name: (out / name).stat().st_ino for name in FILES[:3]} == written
    assert rows_of(out).equals(fitted.select(folder))
    assert names_in(out) == [".manifest.sqlite", *FILES]
    assert found.n_chosen == rows_of(out).num_rows


CHILD = """
import sys, time
from variegate import load
from variegate.partitions import Serial

def progress(stage, done, total):
    print(stage, done, flush=True)
    time.sleep(0.1)  # so that it is killed before the end

model, folder, out = sys.argv[1:]
load(model).select(
    folder, keep_all=True, out=out, progress=progress, engine=Serial()
)
"""


@pytest.mark.faults
def test_killed_twice_every_row_is_there_once_and_in_order(fitted, tmp_path, out):
    folder = write_folder(tmp_path / "t", cut(some_table(), *range(12, 144, 12)))
    fitted.save(tmp_path / "m.json")
    for n_done in (3, 2):
        child = process(tmp_path / "m.json", folder, out, code=CHILD)
        while child.stdout.readline() != f"choosing {n_done}\n":
            assert child.poll() is None
        child.kill()
        child.communicate()
        assert child.returncode == -signal.SIGKILL
    n_there = len(list(out.glob("*.parquet")))
    found = select_folder(fitted, folder, out, Serial(), keep_all=True)
    # Progress is told before a file is stored: the last of each run is written again.
    assert 3 <= 12 - found.n_written <= n_there < 12
    everything = rows_of(out).select(some_table().column_names)
    assert everything.equals(some_table())
    assert rows_of(out).equals(fitted.select(folder, keep_all=True))


def test_run_again_nothing_is_done(fitted, folder, out, tmp_path):
    select_folder(fitted, folder, out, Serial())
    fitted.save(tmp_path / "m.json")
    engine = Pickling()
    found = select_folder(load(tmp_path / "m.json"), folder, out, engine)
    assert (found.n_files, found.n_written, engine.n_items) == (4, 0, 0)


def test_what_is_gone_or_cut_off_is_written_again(fitted, folder, out):
    select_folder(fitted, folder, out, Serial())
    (out / FILES[1]).unlink()
    (out / FILES[3]).write_bytes(b"PAR1")
    assert select_folder(fitted, folder, out, Serial()).n_written == 2
    assert rows_of(out).equals(fitted.select(folder))


def test_new_files_are_added(fitted, tmp_path, out):
    table = some_table()
    folder = write_folder(tmp_path / "t", cut(table, 60)[:1])
    select_folder(fitted, folder, out, Serial())
    write_folder(tmp_path / "more", cut(table, 60))
    (tmp_path / "more" / FILES[1]).rename(folder / FILES[1])
    found = select_folder(fitted, folder, out, Serial())
    assert (found.n_files, found.n_written) == (2, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 3}, r"with other settings \(k was 2 and is 3\): name"),
        ({"k": 2, "keep_all": True}, r"\(keep_all was False and is True\)"),
        ({"k": 2, "drop": ["kind"]}, r"\(drop was \[\] and is \['kind'\]\)"),
    ],
)
def test_other_settings(fitted, folder, out, options, message):
    select_folder(fitted, folder, out, Serial(), k=2)
    with pytest.raises(TableFileError, match=message):
        select_folder(fitted, folder, out, Serial(), **options)


def test_another_model(fitted, folder, out):
    select_folder(fitted, folder, out, Serial())
    other = TableSelector(**COLUMNS, kernel="linear", omega=1).fit(folder)
    with pytest.raises(TableFileError, match=r"out were chosen by another model: name"):
        select_folder(other, folder, out, Serial())


def test_the_hash_of_a_model_is_that_of_its_file(fitted, tmp_path):
    fitted.save(tmp_path / "m.json")
    assert hash_of_model(load(tmp_path / "m.json")) == hash_of_model(fitted)
    other = fitted.with_columns(cost="popularity")
    assert hash_of_model(other) != hash_of_model(fitted)


def test_files_that_changed_meanwhile(fitted, folder, out):
    select_folder(fitted, folder, out, Serial())
    os.utime(folder / FILES[2], ns=(1, 1))
    with pytest.raises(
        TableFileError, match=r"part-002.parquet has changed since rows were chosen"
    ):
        select_folder(fitted, folder, out, Serial())
    (folder / FILES[2]).unlink()
    with pytest.raises(TableFileError, match=r"part-002.parquet is gone, from which"):
        select_folder(fitted, folder, out, Serial())


def test_a_file_that_changes_while_it_is_read(fitted, folder, out, monkeypatch):
    write = selecting.Output.deliver

    def changing(self, table, choices):
        write(self, table, choices)
        os.utime(table.path, ns=(1, 1))

    monkeypatch.setattr(selecting.Output, "deliver", changing)
    with pytest.raises(PartitionError, match=r"part-000.parquet has changed since"):
        select_folder(fitted, folder, out, Serial())
    assert names_in(out) == [".manifest.sqlite"]


# What is refused ---------------------------------------------------------------------


def test_folders_that_hold_something_else(fitted, folder, out, tmp_path):
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(TableFileError, match=r"out holds 'mine.txt' and no .manifest"):
        select_folder(fitted, folder, out, Serial())
    (out / ".manifest.sqlite").write_text("other")
    with pytest.raises(TableFileError, match=r"manifest.sqlite is damaged, or not a m"):
        select_folder(fitted, folder, out, Serial())
    with pytest.raises(TableFileError, match=r"mine.txt is a file; name a folder"):
        select_folder(fitted, folder, out / "mine.txt", Serial())
    with pytest.raises(TableFileError, match=r"t is the folder to read: name another"):
        select_folder(fitted, folder, folder, Serial())
    with pytest.raises(TableFileError, match=r"cannot make the folder .*No such file"):
        select_folder(fitted, folder, tmp_path / "gone" / "out", Serial())


def test_what_cannot_be_chosen(fitted, folder, out):
    with pytest.raises(ValueError, match="k must be"):
        select_folder(fitted, folder, out, Serial(), k=0)
    with pytest.raises(ValueError, match="k fixes the number of rows, which omega"):
        select_folder(fitted, folder, out, Serial(), omega=9.0, k=2)
    with pytest.raises(ValueError, match="no column 'brand'"):
        select_folder(fitted, folder, out, Serial(), at_most=2, per="brand")
    with pytest.raises(TableError, match="there is no column 'nothing'"):
        select_folder(fitted, folder, out, Serial(), drop=["nothing"])
    without = TableSelector(**COLUMNS, kernel="linear", omega=1).fit(folder)
    with pytest.raises(TableError, match="a budget needs a column of costs"):
        select_folder(without, folder, out, Serial(), budget=3.0)
    assert not out.exists()


def test_columns_of_another_table(fitted, tmp_path, out):
    table = some_table().drop_columns("score")
    folder = write_folder(tmp_path / "t", [table])
    with pytest.raises(TableError, match=r"t does not fit the model: .*'score'"):
        select_folder(fitted, folder, out, Serial())


@pytest.mark.parametrize("rows", [(7,), (7, 60, 61)])
@pytest.mark.parametrize("is_scattered", [False, True])
def test_groups_in_several_files(fitted, tmp_path, out, rows, is_scattered):
    table = some_table()
    if is_scattered:
        table = table.take(np.random.default_rng(0).permutation(table.num_rows))
    folder = write_folder(tmp_path / "t", cut(table, *rows))
    found = select_folder(fitted, folder, out, Pickling())
    assert rows_of(out).equals(fitted.select(table))
    assert found.n_rows == 144
    assert names_in(tmp_path) == ["out", "t"]


def test_an_empty_cell_names_file_and_row(fitted, tmp_path, out):
    table = with_cell(some_table(), "score", 61, None)
    folder = write_folder(tmp_path / "t", cut(table, 60))
    with pytest.raises(
        TableError,
        match=r"'score' has no value in row 2 of .*part-001.parquet "
        r"\(1 of \d+ cells is empty\): corr",
    ):
        select_folder(fitted, folder, out, Pickling())


def test_files_that_cannot_be_read(fitted, folder, out):
    path = folder / FILES[2]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(TableFileError, match=r"part-002.parquet is not a"):
        select_folder(fitted, folder, out, Serial())
    found = select_folder(fitted, folder, out, Serial(), skip_unreadable=True)
    assert found.unreadable == (FILES[2],)
    assert (found.n_files, found.n_groups) == (3, 13)
    # Whoever does not ask for it is told again.
    with pytest.raises(TableFileError, match=r"part-002.parquet is not a"):
        select_folder(fitted, folder, out, Serial())
    again = select_folder(fitted, folder, out, Serial(), skip_unreadable=True)
    assert again.n_written == 0


def test_an_engine_needs_a_folder_to_write_to(fitted, folder):
    with pytest.raises(ValueError, match="written to a folder: name both, X and out"):
        fitted.select(folder, engine=Serial())
