"""A folder of files as one table, on one machine."""

import os

import numpy as np
import pyarrow as pa
import pytest

from folder_instances import COLUMNS, cut, folder_of, rows_of, some_table, write_folder
from table_instances import QUICK, caller, fails, succeeds, with_cell, with_column
from variegate.partitions import PartitionChangedError
from variegate.tables import (
    FolderTable,
    TableError,
    TableFileError,
    TableSelector,
    write_table,
)
from variegate.tables.table import as_table


@pytest.fixture
def call(monkeypatch, capsys):
    return caller(monkeypatch, capsys)


def read(table, columns=None):
    return pa.Table.from_batches(list(table.batches(columns)))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_the_rows_are_those_of_the_files_in_the_order_of_their_names(tmp_path, suffix):
    table = some_table()
    write_folder(tmp_path / "t", cut(table, 7, 60, 61), suffix)
    assert read(as_table(tmp_path / "t")).equals(table)
    few = read(as_table(str(tmp_path / "t")), ["score", "query"])
    assert few.equals(table.select(["score", "query"]))


def test_a_folder_may_hold_both_formats_columns_in_any_order_and_other_things(tmp_path):
    first, second = cut(some_table(), 60)
    folder = tmp_path / "t"
    folder.mkdir()
    write_table(first, folder / "b.parquet")
    write_table(second.select(second.column_names[::-1]), folder / "a.ipc")
    (folder / "manifest.json").write_text("{}")
    (folder / "_SUCCESS").write_text("")
    (folder / ".b.parquet.crc").write_text("")
    (folder / "_old.csv").write_text("a,b")
    (folder / "inner.parquet").mkdir()
    found = read(FolderTable(folder))
    # The order of the columns is that of the first file.
    expected = pa.concat_tables([second, first])
    assert found.equals(expected.select(expected.column_names[::-1]))
    assert "9 columns in 2 files of" in repr(FolderTable(folder))


def test_an_empty_file_adds_nothing(tmp_path):
    table = some_table()
    write_folder(tmp_path / "t", [table.slice(0, 0), table.slice(0, 30), table[:0]])
    assert read(as_table(tmp_path / "t")).equals(table.slice(0, 30))


def test_learning_and_choosing_are_those_of_the_one_table(tmp_path):
    # A group may lie in several files here: rows are brought together.
    table = some_table()
    folder = write_folder(tmp_path / "t", cut(table, 7, 60))
    write_table(table, tmp_path / "t.parquet")
    settings = {"omega": 1.0, "kernel": "linear", "validation_fraction": 0.25}
    by_file = TableSelector(**COLUMNS, **settings).fit(tmp_path / "t.parquet")
    by_folder = TableSelector(**COLUMNS, **settings).fit(folder)
    # Means are put together of files, and rounded elsewhere.
    np.testing.assert_allclose(
        by_folder.model_.theta_, by_file.model_.theta_, rtol=1e-9
    )
    assert by_folder.training_["n_held_out"] == 6
    chosen = by_folder.select(folder)
    assert chosen.select(table.column_names).equals(
        by_file.select(table).select(table.column_names)
    )
    assert len(by_folder.evaluate(folder).scores["model"]) == 24


def test_commands_take_a_folder(tmp_path, call):
    folder = folder_of(tmp_path / "t")
    model, out = tmp_path / "m.json", tmp_path / "out.parquet"
    succeeds(call("fit", folder, *QUICK, "-o", model, "--jobs", "1"))
    succeeds(call("select", folder, "--model", model, "--all", "-o", out))
    assert as_table(out).n_rows == rows_of(folder).num_rows
    train = folder_of(tmp_path / "train", random_state=1)
    found = succeeds(call("evaluate", folder, "--model", model, "--train", train))
    assert "24 groups" in found


# What is refused -------------------------------------------------------------------


def test_no_folder_and_nothing_in_it(tmp_path):
    with pytest.raises(TableFileError, match=r"there is no folder .*nowhere"):
        FolderTable(tmp_path / "nowhere")
    (tmp_path / "inner").mkdir()
    with pytest.raises(
        TableFileError, match=r"no Parquet or Arrow files in .*; folders inside it"
    ):
        as_table(tmp_path)


def test_files_without_types(tmp_path, call):
    folder = folder_of(tmp_path / "t")
    (folder / "more.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableFileError, match=r"more.csv: a folder is read as one"):
        as_table(folder)
    fails(call("fit", folder, *QUICK, "-o", tmp_path / "m.json"), "more.csv")


def test_other_columns(tmp_path):
    table = some_table()
    folder = write_folder(tmp_path / "t", [table, table.drop_columns("kind")])
    with pytest.raises(
        TableError, match=r"part-001.parquet has no column 'kind', which the first"
    ):
        list(as_table(folder).files())
    write_folder(folder, [table, with_column(table, "more", table["score"])])
    with pytest.raises(TableError, match=r"part-001.parquet has a column 'more'"):
        list(as_table(folder).files())
    whole = with_column(table, "score", [1] * table.num_rows)
    write_folder(folder, [table, whole])
    with pytest.raises(
        TableError, match=r"holds int64 in column 'score', where the first file has"
    ):
        list(as_table(folder).files())


def test_a_damaged_file(tmp_path):
    folder = folder_of(tmp_path / "t")
    path = folder / "part-002.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(TableFileError, match=r"part-002.parquet is not a Parquet file"):
        list(as_table(folder).files())
    (folder / "part-000.parquet").write_bytes(b"")
    with pytest.raises(TableFileError, match=r"part-000.parquet is empty"):
        FolderTable(folder)
    assert len(FolderTable(folder, skip_unreadable=True).schema) == 9


def test_a_file_that_changes_while_it_is_worked_on(tmp_path):
    folder = folder_of(tmp_path / "t")
    table = as_table(folder)
    os.utime(folder / "part-003.parquet", ns=(1, 1))
    batches = table.batches()
    next(batches)
    with pytest.raises(PartitionChangedError, match=r"part-003.parquet has changed"):
        list(batches)


def test_rows_are_counted_through_all_files(tmp_path):
    # In what is wrong with a number, and with a cell that is empty.
    for value, message in (
        (np.inf, "holds inf in row 62"),
        (None, "no value in row 62"),
    ):
        table = with_cell(some_table(), "score", 61, value)
        folder = write_folder(tmp_path / "t", cut(table, 7, 60))
        with pytest.raises(TableError, match=f"^column 'score' (has )?{message}"):
            TableSelector(**COLUMNS).fit(folder)


def test_a_separator_is_for_text(tmp_path, call):
    folder = folder_of(tmp_path / "t")
    arguments = ("fit", folder, *QUICK, "--separator", ";", "-o", tmp_path / "m.json")
    fails(call(*arguments), "which need no --separator")
