"""The scan of a folder on an engine: groups are counted, or refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from folder_instances import (
    COLUMNS,
    Pickling,
    cut,
    folder_of,
    some_table,
    write_folder,
)
from table_instances import with_cell, with_column
from variegate.partitions import PartitionError, Serial, UnreadablePartitionError
from variegate.tables import Columns, FolderTable, TableError
from variegate.tables.folder import repeated_groups
from variegate.tables.folder import scan as scanning
from variegate.tables.folder.groups import FolderGroups, encoding_on
from variegate.tables.folder.parts import FileReader
from variegate.tables.folder.repeated_groups import hash_of, repeated
from variegate.tables.folder.scan import FolderSurvey, scan, split_by_file
from variegate.tables.groups import Groups
from variegate.tables.model_file import encode_encoding
from variegate.tables.survey import learn_encoding, survey
from variegate.tables.table import as_table


def reader_of(folder, **changed):
    columns = Columns.of(**COLUMNS | changed).resolve(folder.schema)
    return FileReader(folder.schema, columns)


def scanned(path, engine=None, skip_unreadable=False, **changed):
    folder = FolderTable(path, skip_unreadable=skip_unreadable)
    reader = reader_of(folder, **changed)
    return scan(folder, reader, engine or Serial(), skip_unreadable=skip_unreadable)


# Counting --------------------------------------------------------------------------


def test_groups_are_those_of_the_one_table(tmp_path):
    table = some_table()
    parts = [table[:0], *cut(table, 30, 36), table[:0]]
    folder = write_folder(tmp_path / "t", parts)
    found = scanned(folder, Pickling())
    home = survey(as_table(folder), found.columns)
    assert found.n_rows == home.n_rows == 144
    assert found.index.sizes.tolist() == home.index.sizes.tolist()
    assert found.n_chosen.tolist() == home.n_chosen.tolist()
    assert list(found.index.names) == list(home.index.names)
    assert [found.index.names[k] for k in (3, 4)] == home.index.names[3:5]
    assert [p.first_group for p in found.partitions] == [0, 0, 5, 6, 24]
    assert [p.first_row for p in found.partitions] == [0, 0, 30, 36, 144]


def test_what_was_counted_can_be_written_down(tmp_path):
    folder = FolderTable(folder_of(tmp_path / "t"))
    found = scan(folder, reader_of(folder), Serial())
    again = FolderSurvey.from_bytes(found.to_bytes(), folder, found.reader)
    assert again.partitions == found.partitions
    assert again.n_chosen.tolist() == found.n_chosen.tolist()
    assert again.index.names[7] == found.index.names[7]
    unlabelled = scan(folder, reader_of(folder, label=None), Serial())
    assert unlabelled.n_chosen is None
    content = unlabelled.to_bytes()
    assert FolderSurvey.from_bytes(content, folder, found.reader).n_chosen is None


@given(st.sets(st.integers(0, 23), min_size=1))
def test_some_groups_by_file(numbers):
    # Files of 5, 0, 1, 11 and 7 groups.
    sizes, firsts = [5, 0, 1, 11, 7], [0, 5, 5, 6, 17]
    parts = [
        scanning.FolderPartition("x", None, 0, 0, n_groups=n, first_group=first)
        for n, first in zip(sizes, firsts, strict=True)
    ]
    wanted = np.array(sorted(numbers))
    found = list(split_by_file(parts, wanted))
    assert [p.flags().tolist() for p in found] == [
        [first + k in numbers for k in range(n)]
        for n, first in zip(sizes, firsts, strict=True)
    ]
    assert [p.first_example for p in found] == [
        sum(number < first for number in numbers) for first in firsts
    ]


# Straddling ------------------------------------------------------------------------


def test_a_group_in_two_files(tmp_path):
    folder = write_folder(tmp_path / "t", cut(some_table(), 7, 60))
    with pytest.raises(
        TableError,
        match=r"1 group of .*t lies in more than one file, 'q0002' in part-000.parquet,"
        r" part-001.parquet. Files .* 'variegate gather .*t -o OTHER' brings the rows",
    ):
        scanned(folder, Pickling())


def test_many_groups_in_many_files(tmp_path):
    table = some_table()
    folder = write_folder(tmp_path / "t", [table] * 5)
    with pytest.raises(
        TableError,
        match=r"24 groups of .* lie in more than one file, such as 'q0001' in "
        r"part-000.parquet, part-001.parquet, part-002.parquet and 2 more files; 'q00",
    ):
        scanned(folder)


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.date32(), pa.binary()])
def test_groups_of_any_type(tmp_path, kind):
    table = some_table()
    numbers = pa.array([int(name[1:]) for name in table["query"].to_pylist()])
    if kind == pa.binary():
        names = table["query"].cast(kind)
    elif kind == pa.date32():
        names = numbers.cast(pa.int32()).cast(kind)
    else:
        names = numbers.cast(kind)
    table = with_column(table, "query", names.to_pylist(), kind)
    folder = write_folder(tmp_path / "t", cut(table, 36))
    assert len(scanned(folder, quality=["score"]).index) == 24
    folder = write_folder(tmp_path / "u", cut(table, 40))
    with pytest.raises(TableError, match="1 group of"):
        scanned(folder, quality=["score"])


@given(st.lists(st.sets(st.integers(0, 40)), min_size=1, max_size=6))
def test_hashes_that_several_files_have(files):
    # Spread over all of 64 bits, the ends among them.
    spread = {k: (k * (2**64 - 1)) // 40 for k in range(41)}
    hashes = [
        np.array(sorted(spread[k] for k in numbers), dtype=np.uint64)
        for numbers in files
    ]
    expected = [
        (spread[k], [n for n, numbers in enumerate(files) if k in numbers])
        for k in range(41)
        if sum(k in numbers for numbers in files) > 1
    ]
    assert list(repeated(hashes)) == expected


def test_names_that_share_a_hash_are_told_apart(tmp_path, monkeypatch):
    # All names have one of two hashes, and none lies in two files.
    for module in (scanning, repeated_groups):
        monkeypatch.setattr(module, "hash_of", lambda name: hash_of(name) % 2)
    assert len(scanned(folder_of(tmp_path / "t")).index) == 24
    folder = write_folder(tmp_path / "u", cut(some_table(), 7))
    with pytest.raises(TableError, match=r"1 group of .* 'q0002' in part-000"):
        scanned(folder)


def test_zeros_of_two_signs_are_one_group():
    assert hash_of(0.0) == hash_of(-0.0)
    assert hash_of("0.0") != hash_of(0.0)


def test_without_groups_there_is_one_in_all_files(tmp_path):
    folder = folder_of(tmp_path / "t")
    with pytest.raises(
        TableError, match=r"all rows are one group, which lies in 4 files: .* group"
    ):
        scanned(folder, group=None)
    single = write_folder(tmp_path / "u", [some_table(), some_table()[:0]])
    assert scanned(single, group=None).index.names[0] == "all rows"


# Files that cannot be read -----------------------------------------------------------


def damaged(tmp_path):
    """Return a folder of which two files are no Parquet."""
    folder = folder_of(tmp_path / "t")
    (folder / "part-000.parquet").write_bytes(b"PAR1 and nothing else")
    path = folder / "part-002.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    return folder


def test_files_that_cannot_be_read_are_named(tmp_path):
    folder = damaged(tmp_path)
    listed = FolderTable(folder, skip_unreadable=True)
    with pytest.raises(
        UnreadablePartitionError,
        match=r"part-000.parquet cannot be read: is not a Parquet file, or is damaged "
        r".*; 1 other file cannot be read either: .*part-002.parquet. With skip_unread",
    ):
        scan(listed, reader_of(listed), Pickling())


def test_files_that_cannot_be_read_are_left_out_if_asked(tmp_path):
    found = scanned(damaged(tmp_path), Pickling(), skip_unreadable=True)
    assert [path[-16:] for path in found.unreadable] == [
        "part-000.parquet",
        "part-002.parquet",
    ]
    assert list(found.index.names) == ["q0006", *(f"q{n:04d}" for n in range(18, 25))]


def test_damage_to_a_column_is_found_before_files_are_left_out(tmp_path):
    folder = folder_of(tmp_path / "t")
    path = folder / "part-002.parquet"
    names = parquet.ParquetFile(path).schema_arrow.names
    column = (
        parquet.ParquetFile(path).metadata.row_group(0).column(names.index("score"))
    )
    content = bytearray(path.read_bytes())
    middle = column.data_page_offset + column.total_compressed_size // 2
    content[middle] ^= 0xFF
    path.write_bytes(content)
    assert not scanned(folder).unreadable  # groups and labels are well
    assert len(scanned(folder, skip_unreadable=True).unreadable) == 1


def test_nothing_can_be_read(tmp_path):
    folder = write_folder(tmp_path / "t", [some_table()] * 2)
    listed = FolderTable(folder)
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(UnreadablePartitionError, match=r"part-000.parquet cannot be"):
        scan(listed, reader_of(listed), Serial(), skip_unreadable=True)


def test_files_that_do_not_fit_are_never_left_out(tmp_path):
    table = some_table()
    folder = write_folder(tmp_path / "t", [table, table.drop_columns("kind")])
    with pytest.raises(PartitionError, match=r"part-001.parquet has no column 'kind'"):
        scanned(folder, skip_unreadable=True)


def test_a_file_that_has_changed(tmp_path):
    folder = folder_of(tmp_path / "t")
    listed = FolderTable(folder)
    folder_of(folder, random_state=1)
    with pytest.raises(PartitionError, match=r"part-000.parquet has changed since"):
        scan(listed, reader_of(listed), Serial())


def test_what_is_wrong_in_a_file_names_it(tmp_path):
    first, second = cut(some_table(), 60)
    second = with_column(second, "chosen", [2] * second.num_rows)
    first = with_column(first, "chosen", [1] * first.num_rows)
    folder = write_folder(tmp_path / "t", [first, second])
    with pytest.raises(
        TableError, match=r"part-001.parquet: column 'chosen' holds 2 in row 1: labels"
    ):
        scanned(folder, Pickling())


def test_no_rows(tmp_path):
    folder = write_folder(tmp_path / "t", [some_table()[:0]])
    with pytest.raises(TableError, match="t has no rows"):
        scanned(folder)


# Features ----------------------------------------------------------------------------


def encodings(folder, numbers, engine=None, **changed):
    """Return how columns become features, on an engine and at home."""
    found = scanned(folder, **changed)
    numbers = np.array(numbers)
    table = as_table(folder)
    home = learn_encoding(table, survey(table, found.columns), numbers)
    there = encoding_on(engine or Pickling(), found, numbers)
    return encode_encoding(there), encode_encoding(home)


def test_columns_become_features_as_at_home_bit_by_bit(tmp_path):
    # Enough files for a tree of two levels; some with none of the groups.
    table = some_table(40)
    parts = cut(table, *range(6, 114, 12))
    folder = write_folder(tmp_path / "t", [*parts, table[:0]])
    there, home = encodings(folder, [0, 1, 2, 3, 17, 30, 39])
    assert there == home


def test_the_moments_of_all_files_are_those_of_all_rows(tmp_path):
    table = some_table(40)
    scores = np.array(table["score"].to_pylist())
    scores[5] *= 1e200  # squares of which overflow
    scores[100:] += 7.0
    table = with_column(table, "score", scores.tolist())
    folder = write_folder(tmp_path / "t", cut(table, 6, 60, 102, 150))
    (column, *_), _ = (found["quality"] for found in encodings(folder, range(40)))
    assert column["mean"] == pytest.approx([scores.mean()])
    largest = np.abs(scores).max()
    assert column["scale"] == pytest.approx([(scores / largest).std() * largest])


def test_empty_cells_and_levels_of_any_file(tmp_path):
    table = with_cell(some_table(), "kind", 100, None)
    table = with_cell(table, "score", 143, None)
    table = with_cell(table, "kind", 3, "only here")
    folder = write_folder(tmp_path / "t", cut(table, 60))
    there, home = encodings(folder, range(24), missing="indicator")
    assert there == home
    kind = next(c for c in there["quality"] if c["name"] == "kind")
    assert "only here" in kind["levels"]
    assert kind["has_indicator"]


def test_vectors_of_two_lengths(tmp_path):
    first, second = cut(some_table(), 60)
    longer = [[*vector, 0.0] for vector in second["embedding"].to_pylist()]
    second = with_column(second, "embedding", longer, pa.list_(pa.float32()))
    folder = write_folder(tmp_path / "t", [first, second])
    with pytest.raises(TableError, match="vectors of 4 numbers in some files and of 5"):
        encoding_on(Serial(), scanned(folder), np.arange(24))


def test_too_many_levels_in_all(tmp_path):
    table = some_table(200)
    parts = [
        with_column(part, "kind", [f"{n}-{k}" for k in range(part.num_rows)])
        for n, part in enumerate(cut(table, 600))
    ]
    folder = write_folder(tmp_path / "t", parts)
    with pytest.raises(TableError, match="more than 1,000 different values"):
        encoding_on(Serial(), scanned(folder), np.arange(200))


@settings(max_examples=20, deadline=None)
@given(st.sets(st.integers(0, 23), min_size=1))
def test_groups_that_are_brought_here(tmp_path_factory, numbers):
    folder = folder_of(tmp_path_factory.mktemp("groups") / "t")
    found = scanned(folder)
    encoding = encoding_on(Serial(), found, np.arange(24))
    table = as_table(folder)
    home = Groups(table, survey(table, found.columns), encoding)
    wanted = np.array(sorted(numbers))
    there = list(FolderGroups(found, encoding, Pickling()).only(wanted))
    here = list(home.only(wanted))
    assert [group.number for group in there] == sorted(numbers)
    for one, other in zip(there, here, strict=True):
        assert one.name == other.name
        assert one.rows.tolist() == other.rows.tolist()
        assert (one.quality == other.quality).all()
        assert (one.embeddings() == other.embeddings()).all()
        assert one.wanted().tolist() == other.wanted().tolist()


def test_cells_that_are_brought_here(tmp_path):
    folder = folder_of(tmp_path / "t")
    found = scanned(folder)
    groups = FolderGroups(
        found, encoding_on(Serial(), found, np.arange(24)), Pickling()
    )
    table = some_table()
    rows = np.array([0, 29, 30, 140])
    assert groups.texts(rows, ["item", "query"]) == {
        row: (table["item"][row].as_py(), table["query"][row].as_py())
        for row in rows.tolist()
    }
