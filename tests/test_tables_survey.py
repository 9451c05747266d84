"""The survey of a table: its groups are counted, cut into partitions, or refused."""

from dataclasses import replace
from itertools import pairwise

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
from variegate.partitions import PartitionError, Serial
from variegate.tables import (
    Columns,
    FolderTable,
    TableError,
    TableFileError,
    partitioning,
)
from variegate.tables.counts import Counts, hash_of, scan_groups
from variegate.tables.encoding_file import encode_encoding
from variegate.tables.groups import Groups
from variegate.tables.partitioning import partition_bounds
from variegate.tables.survey import learn_encoding, survey_table
from variegate.tables.table import as_table, rows_of


def scanned(path, engine=None, skip_unreadable=False, **changed):
    """Survey a folder as workers do, which hold nothing of it."""
    folder = FolderTable(path, skip_unreadable=skip_unreadable)
    columns = Columns.of(**COLUMNS | changed).resolve(folder.schema)
    engine = Pickling() if engine is None else engine
    return survey_table(folder, columns, engine=engine, skip_unreadable=skip_unreadable)


def names_of(found):
    return [found.name(number) for number in range(len(found))]


# Counting --------------------------------------------------------------------------


def test_groups_are_those_of_the_one_table(tmp_path):
    table = some_table()
    parts = [table[:0], *cut(table, 30, 36), table[:0]]
    folder = write_folder(tmp_path / "t", parts)
    found = scanned(folder)
    home = survey_table(as_table(folder), found.columns)
    assert found.n_rows == home.n_rows == 144
    assert found.sizes.tolist() == home.sizes.tolist()
    assert found.n_chosen.tolist() == home.n_chosen.tolist()
    assert names_of(found) == names_of(home) == [f"q{n:04d}" for n in range(1, 25)]


def test_counts_can_be_written_down(tmp_path):
    folder = FolderTable(folder_of(tmp_path / "t"))
    reader = scanned(folder.path).reader
    rows = rows_of(folder)
    counts = Counts.of([scan_groups(one, reader) for one in rows], rows)
    again = Counts.from_bytes(counts.to_bytes())
    for name in ("readable", "n_rows", "hashes", "sizes", "n_chosen"):
        assert getattr(again, name).tolist() == getattr(counts, name).tolist()
    assert scanned(folder.path, label=None).n_chosen is None
    unlabelled = Counts.from_bytes(replace(counts, file_chosen=None).to_bytes())
    assert unlabelled.n_chosen is None


# Partitions ------------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=60),
    st.integers(1, 40),
    st.sampled_from([1, 7, 10**6]),
)
def test_partitions_hold_all_groups_once_and_no_more_than_fit(sizes, width, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioning, "_ROWS", 60)
        patch.setattr(partitioning, "_PAIRS", 900)
        patch.setattr(partitioning, "_NUMBERS", 400)
        patch.setattr(partitioning, "_PARTITIONS", most)
        bounds = partition_bounds(np.array(sizes), width)
    assert bounds[0] == 0
    assert bounds[-1] == len(sizes)
    assert (np.diff(bounds) > 0).all()
    if most == 10**6:
        for first, end in pairwise(bounds.tolist()):
            part = np.array(sizes[first:end])
            fits = part.sum() <= min(60, max(400 // width, 1))
            assert len(part) == 1 or (fits and (part**2).sum() <= 900)


@given(st.sets(st.integers(0, 23), min_size=1), st.integers(6, 100))
@settings(max_examples=20, deadline=None)
def test_some_groups_by_partition(tmp_path_factory, numbers, rows):
    folder = folder_of(tmp_path_factory.mktemp("split") / "t")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioning, "_ROWS", rows)
        found = scanned(folder)
    parts = list(found.restricted_partitions(np.array(sorted(numbers))))
    wanted = [one.first_group + k for one in parts for k in np.flatnonzero(one.flags())]
    assert wanted == sorted(numbers)
    assert [one.first_example for one in parts] == [
        sum(number < one.first_group for number in numbers) for one in parts
    ]


def test_the_rows_of_a_partition_are_ranges_of_files(tmp_path, monkeypatch):
    monkeypatch.setattr(partitioning, "_ROWS", 40)
    folder = write_folder(tmp_path / "t", cut(some_table(), 7, 60))
    found = scanned(folder)
    assert found.shuffled is None
    assert [(p.first_group, p.first_row, p.n_rows) for p in found.partitions] == [
        (0, 0, 36), (6, 36, 36), (12, 72, 36), (18, 108, 36),
    ]  # fmt: skip
    ranges = [[(r.first, r.end) for r in p.rows] for p in found.partitions]
    assert ranges == [[(0, 7), (0, 29)], [(29, 53), (0, 12)], [(12, 48)], [(48, 84)]]


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.date32(), pa.binary()])
@pytest.mark.parametrize("rows", [36, 40])
def test_groups_of_any_type(tmp_path, kind, rows):
    table = some_table()
    numbers = pa.array([int(name[1:]) for name in table["query"].to_pylist()])
    if kind == pa.binary():
        names = table["query"].cast(kind)
    elif kind == pa.date32():
        names = numbers.cast(pa.int32()).cast(kind)
    else:
        names = numbers.cast(kind)
    table = with_column(table, "query", names.to_pylist(), kind)
    folder = write_folder(tmp_path / "t", cut(table, rows))
    assert scanned(folder, quality=["score"]).sizes.tolist() == [6] * 24


def test_scattered_groups_are_shuffled_beside_the_folder(tmp_path):
    table = some_table().take(np.random.default_rng(0).permutation(144))
    folder = write_folder(tmp_path / "t", cut(table, 30, 70))
    found = scanned(folder)
    assert found.shuffled is not None
    home = survey_table(as_table(table), found.columns)
    assert found.sizes.tolist() == home.sizes.tolist()
    assert names_of(found) == names_of(home)
    (there,) = [path for path in tmp_path.iterdir() if path != folder]
    assert there.name.startswith(".t.shuffled-")
    del found
    assert list(tmp_path.iterdir()) == [folder]


def test_zeros_of_two_signs_are_one_group():
    assert hash_of(0.0) == hash_of(-0.0)
    assert hash_of("0.0") != hash_of(0.0)


def test_without_a_group_column_all_files_are_one_group(tmp_path):
    found = scanned(folder_of(tmp_path / "t"), group=None)
    assert found.sizes.tolist() == [144]
    assert found.name(0) == "all rows"


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
    columns = Columns.of(**COLUMNS).resolve(listed.schema)
    with pytest.raises(
        TableFileError,
        match=r"part-000.parquet is not a Parquet file, or is damaged "
        r".*; 1 other file cannot be read either: .*part-002.parquet. With skip_unread",
    ):
        survey_table(listed, columns, engine=Pickling())


def test_files_that_cannot_be_read_are_left_out_if_asked(tmp_path):
    found = scanned(damaged(tmp_path), Pickling(), skip_unreadable=True)
    assert [path[-16:] for path in found.unreadable] == [
        "part-000.parquet",
        "part-002.parquet",
    ]
    assert names_of(found) == ["q0006", *(f"q{n:04d}" for n in range(18, 25))]


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
    columns = Columns.of(**COLUMNS).resolve(listed.schema)
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(TableFileError, match=r"part-000.parquet cannot be"):
        survey_table(listed, columns, engine=Serial(), skip_unreadable=True)


def test_files_that_do_not_fit_are_never_left_out(tmp_path):
    table = some_table()
    folder = write_folder(tmp_path / "t", [table, table.drop_columns("kind")])
    with pytest.raises(TableError, match=r"part-001.parquet has no column 'kind'"):
        scanned(folder, skip_unreadable=True)


def test_a_file_that_has_changed(tmp_path):
    folder = folder_of(tmp_path / "t")
    listed = FolderTable(folder)
    columns = Columns.of(**COLUMNS).resolve(listed.schema)
    folder_of(folder, random_state=1)
    with pytest.raises(PartitionError, match=r"part-000.parquet has changed since"):
        survey_table(listed, columns)


def test_what_is_wrong_in_a_file_names_it(tmp_path):
    first, second = cut(some_table(), 60)
    second = with_column(second, "chosen", [2] * second.num_rows)
    first = with_column(first, "chosen", [1] * first.num_rows)
    folder = write_folder(tmp_path / "t", [first, second])
    with pytest.raises(
        TableError, match=r"'chosen' holds 2 in row 1 of .*part-001.parquet: labels"
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
    home = learn_encoding(survey_table(as_table(folder), found.columns), numbers)
    there = learn_encoding(found, numbers, engine or Pickling())
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
    with pytest.raises(TableError, match=r"5 numbers in row 1 of .*part-001"):
        learn_encoding(scanned(folder))


def test_too_many_levels_in_all(tmp_path):
    table = some_table(200)
    parts = [
        with_column(part, "kind", [f"{n}-{k}" for k in range(part.num_rows)])
        for n, part in enumerate(cut(table, 600))
    ]
    folder = write_folder(tmp_path / "t", parts)
    with pytest.raises(TableError, match="more than 1,000 different values"):
        learn_encoding(scanned(folder))


@settings(max_examples=20, deadline=None)
@given(st.sets(st.integers(0, 23), min_size=1))
def test_groups_that_are_brought_here(tmp_path_factory, numbers):
    folder = folder_of(tmp_path_factory.mktemp("groups") / "t")
    found = scanned(folder)
    encoding = learn_encoding(found)
    home = Groups(survey_table(as_table(folder), found.columns), encoding)
    wanted = np.array(sorted(numbers))
    there = list(Groups(found, encoding, engine=Pickling()).only(wanted))
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
    groups = Groups(found, learn_encoding(found), engine=Pickling())
    table = some_table()
    rows = np.array([0, 29, 30, 140])
    assert groups.read_texts(rows, ["item", "query"]) == {
        row: (table["item"][row].as_py(), table["query"][row].as_py())
        for row in rows.tolist()
    }
