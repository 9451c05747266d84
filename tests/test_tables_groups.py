import datetime
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variegate.application.table_defaults import MEMORY
from variegate.partitions import PartitionChangedError
from variegate.tables import Columns, TableError, counts, partitioning, write_table
from variegate.tables.groups import Groups, reword_for_rows
from variegate.tables.selecting import untrained_groups
from variegate.tables.survey import (
    hold_out_groups,
    learn_encoding,
    survey_table,
    usable_groups,
)
from variegate.tables.table import MemoryTable, as_table


def grouped(table, labels=None, memory=MEMORY, path=None, **columns):
    """Return the groups of a table, in memory or in a file that is not held."""
    source = MemoryTable(table)
    if path is not None:
        write_table(table, path)
        source, memory = as_table(path), 1
    resolved = Columns.of(**columns).resolve(table.schema)
    found = survey_table(source, resolved, labels, memory=memory)
    return Groups(found, learn_encoding(found), labels, memory=memory)


def in_pieces(table, size):
    return pa.Table.from_batches(table.to_batches(max_chunksize=size), table.schema)


def same(first, second):
    assert (first.name, first.number) == (second.name, second.number)
    for field in ("rows", "quality", "chosen", "costs", "relevance"):
        np.testing.assert_array_equal(getattr(first, field), getattr(second, field))
    assert list(first.blocks) == list(second.blocks)
    for block in first.blocks:
        np.testing.assert_array_equal(first.blocks[block], second.blocks[block])


@pytest.fixture(params=["held", "parts", "file", "file-parts"])
def packing(request, monkeypatch, tmp_path):
    """Return arguments of ``grouped``: a table in memory or a file, cut or whole."""
    if "parts" in request.param:
        monkeypatch.setattr(partitioning, "_ROWS", 3)
    return {"path": tmp_path / "table.arrow"} if "file" in request.param else {}


# Bringing rows together -----------------------------------------------------------


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=40),
    st.integers(1, 12),
    st.sampled_from([1, 3, 7, 10**6]),
    st.sampled_from([None, ".parquet", ".arrow"]),
)
def test_scattered_rows_come_together_as_in_a_dict_of_lists(keys, size, rows, suffix):
    rng = np.random.default_rng(len(keys))
    table = pa.table(
        {
            "g": [f"q{key}" for key in keys],
            "x": rng.standard_normal(len(keys)),
            "y": rng.random(len(keys)) < 0.5,
            "c": rng.random(len(keys)) + 0.1,
            "v": rng.standard_normal((len(keys), 2)).astype(np.float32).tolist(),
        }
    )
    twin = defaultdict(list)
    for row, key in enumerate(keys):
        twin[f"q{key}"].append(row)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(partitioning, "_ROWS", rows)
        groups = grouped(
            in_pieces(table, size),
            path=None if suffix is None else Path(folder, f"table{suffix}"),
            group="g",
            label="y",
            cost="c",
            relevance="x",
            quality="x",
            similarity="v",
        )
        found = list(groups)
    is_scattered = [f"q{key}" for key in keys] != [k for k in twin for _ in twin[k]]
    assert (groups.survey.shuffled is not None) is (is_scattered and suffix is not None)
    assert [group.name for group in found] == list(twin)
    assert [group.number for group in found] == list(range(len(twin)))
    assert groups.survey.sizes.tolist() == [len(rows) for rows in twin.values()]
    x = table["x"].to_numpy()
    scaled = (x - x.mean()) / x.std() if x.std() > 0.0 else np.zeros(len(x))
    v = np.array(table["v"].to_pylist())
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    for group, rows in zip(found, twin.values(), strict=True):
        assert group.rows.tolist() == rows
        np.testing.assert_allclose(group.quality[:, 0], scaled[rows], atol=1e-9)
        np.testing.assert_array_equal(group.chosen, table["y"].to_numpy()[rows])
        np.testing.assert_array_equal(group.costs, table["c"].to_numpy()[rows])
        np.testing.assert_array_equal(group.relevance, x[rows])
        np.testing.assert_allclose(group.blocks["v"], v[rows], atol=1e-6)


def test_groups_can_be_read_again_and_in_between(packing):
    table = pa.table({"g": list("abcabcabcd"), "x": np.arange(10.0)})
    groups = grouped(table, **packing, group="g", quality="x")
    whole = list(groups)
    assert len(groups) == len(whole) == 4
    for first, second in zip(groups, groups, strict=True):
        same(first, second)
    for inner, (group, other) in enumerate(zip(groups, whole, strict=True)):
        same(group, other)
        same(list(groups)[inner], other)
    numbers = np.array([3, 1])
    assert [group.name for group in groups.only(numbers)] == ["b", "d"]


def test_shuffled_features_are_those_in_memory(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "g": rng.integers(5, size=40),
            "x": rng.standard_normal(40),
            "kind": rng.choice(list("abc"), 40),
            "v": rng.standard_normal((40, 3)).tolist(),
            "w": rng.standard_normal((40, 2)).astype(np.float32).tolist(),
        }
    )
    columns = {"group": "g", "quality": ["x", "kind"], "similarity": ["v", "w", "x"]}
    held = grouped(table, **columns, categorical="kind")
    path = tmp_path / "table.parquet"
    shuffled = grouped(table, path=path, **columns, categorical="kind")
    for first, second in zip(held, shuffled, strict=True):
        same(first, second)


def test_temporary_files_go_with_the_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    table = pa.table({"g": list("abab"), "x": np.arange(4.0)})
    groups = grouped(table, path=tmp_path / "t.parquet", group="g", quality="x")
    assert [group.rows.tolist() for group in groups] == [[0, 2], [1, 3]]
    (rows,) = groups.survey.partitions[0].rows
    path = Path(rows.pieces[0].path)
    assert path.exists()
    del groups, rows
    assert not path.exists()
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 3, -1],
        ["b", "a", "b", "ä"],
        [2.5, 0.5, 2.5, -0.5],
        [True, False, True, False],
        [datetime.date(2020, 1, day) for day in (2, 1, 2, 3)],
        [datetime.datetime(2020, 1, day) for day in (2, 1, 2, 3)],
        [b"b", b"a", b"b", b"c"],
    ],
    ids=lambda values: type(values[0]).__name__,
)
@pytest.mark.parametrize("coded", [False, True])
def test_groups_of_every_type(values, coded, packing):
    column = pa.array(values)
    column = column.dictionary_encode() if coded else column
    table = in_pieces(pa.table({"g": column, "x": np.arange(4.0)}), 1)
    groups = list(grouped(table, **packing, group="g", quality="x"))
    assert [group.name for group in groups] == list(dict.fromkeys(values))
    assert groups[0].rows.tolist() == [0, 2]


def test_groups_named_in_string_views():
    column = pa.array(["b", "a", "b"], pa.string_view())
    table = pa.table({"g": column, "x": np.arange(3.0)})
    groups = grouped(table, group="g", quality="x")
    assert [group.name for group in groups] == ["b", "a"]


def test_without_a_group_column_all_rows_are_one_group(packing):
    table = in_pieces(pa.table({"x": np.arange(5.0)}), 2)
    (group,) = grouped(table, **packing, quality="x")
    assert group.rows.tolist() == [0, 1, 2, 3, 4]
    assert group.chosen is group.costs is group.relevance is None


def test_a_group_must_have_a_name():
    table = in_pieces(pa.table({"g": ["a", "b", None], "x": [1.0, 2.0, 3.0]}), 2)
    with pytest.raises(TableError, match="column 'g' is empty in row 3: every row"):
        grouped(table, group="g", quality="x")


# Items ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "rows"),
    [
        (["a", "b", "a", "b", "c", "b"], "rows 2 and 4 of group 'q'"),
        ([1, 2, 1, 3, 4, 3], "rows 4 and 6 of group 'q'"),
        ([1.5, 2.0, 1.5, 3.0, 4.0, 3.0], "rows 4 and 6 of group 'q'"),
    ],
)
def test_the_same_item_twice_in_a_group(items, rows, packing):
    table = pa.table({"g": list("pqrqqq"), "id": items, "x": np.arange(6.0)})
    with pytest.raises(
        TableError, match=f"{rows} have the same 'id': items of a group"
    ):
        list(grouped(table, **packing, group="g", item="id", quality="x"))


@pytest.mark.parametrize(
    "items",
    [
        [-1, -2],
        [0, 2**61 - 1],
        [-1.0, -2.0],
        ["-1", "-2"],
        [0.0, float(2**61 - 1)],
        [datetime.timedelta(0), datetime.timedelta(1)],
    ],
)
def test_different_items_differ(items):
    """Python's hashes of some numbers are equal: those of -1 and -2."""
    table = pa.table({"id": items, "x": [1.0, 2.0]})
    (group,) = grouped(table, item="id", quality="x")
    assert len(group) == 2


def test_an_item_must_have_a_name():
    table = pa.table({"id": ["a", ""], "x": [1.0, 2.0]})
    with pytest.raises(TableError, match="column 'id' is empty in row 2"):
        list(grouped(table, item="id", quality="x"))


# Labels, costs, relevance ---------------------------------------------------------


def test_labels_beside_the_table_are_those_of_a_column(packing):
    flags = np.array([True, False, True, True])
    table = pa.table({"g": list("abab"), "x": np.arange(4.0), "y": flags})
    columns = {"group": "g", "quality": "x", **packing}
    with_column = grouped(in_pieces(table, 3), label="y", **columns)
    beside = grouped(in_pieces(table, 3), flags, **columns)
    for first, second in zip(with_column, beside, strict=True):
        same(first, second)
    assert beside.survey.n_chosen.tolist() == [2, 1]
    assert with_column.survey.n_chosen.tolist() == [2, 1]


@pytest.mark.parametrize("count", [0, 1, 3, 5, 9])
def test_as_many_labels_as_rows(count):
    table = in_pieces(pa.table({"x": np.arange(4.0)}), 2)
    with pytest.raises(TableError, match=f"{count} labels for a table of"):
        grouped(table, np.zeros(count, dtype=bool), quality="x")


def test_a_bad_label_in_a_later_batch():
    table = in_pieces(pa.table({"x": np.arange(4.0), "y": [0, 1, 0, 2]}), 2)
    with pytest.raises(TableError, match="'y' holds 2 in row 4: labels must be 1"):
        grouped(table, label="y", quality="x")


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([1.0, 2.0, 0.0], "'c', the cost, holds 0 in row 3: costs must be above zero"),
        ([1.0, 2.0, -1.5], "'c', the cost, holds -1.5 in row 3: costs must be above"),
        ([1.0, 2.0, None], "column 'c', the cost, has no value in row 3"),
        ([1.0, 2.0, np.inf], "column 'c' holds inf in row 3: numbers must be finite"),
        (["a", "b", "c"], "column 'c' holds 'a' in row 1, which is not a number"),
    ],
)
def test_bad_costs(costs, message):
    table = in_pieces(pa.table({"x": np.arange(3.0), "c": costs}), 2)
    with pytest.raises(TableError, match=message):
        list(grouped(table, cost="c", quality="x"))


def test_relevance_may_be_anything_finite():
    table = pa.table({"x": np.arange(3.0), "r": [-1.0, 0.0, 1e9]})
    (group,) = grouped(table, relevance="r", quality="x")
    assert group.relevance.tolist() == [-1.0, 0.0, 1e9]
    table = pa.table({"x": np.arange(3.0), "r": [-1.0, np.nan, 1e9]})
    with pytest.raises(TableError, match="'r', the relevance, has no value in row 2"):
        list(grouped(table, relevance="r", quality="x"))


def test_what_is_returned_can_be_written_to(packing):
    table = pa.table({"g": list("ab"), "x": [1.0, 2.0], "c": [1.0, 2.0]})
    groups = grouped(table, **packing, group="g", cost="c", quality="x")
    for group in groups:
        group.quality[:], group.costs[:], group.rows[:] = 9.0, 9.0, 9
    assert [group.rows[0] for group in groups] == [0, 1]
    assert [group.costs[0] for group in groups] == [1.0, 2.0]
    assert [group.quality[0, 0] for group in groups] == [-1.0, 1.0]


def test_a_table_that_changes_while_it_is_read(tmp_path):
    first = pa.table({"g": ["a", "b"], "x": [1.0, 2.0]})
    groups = grouped(first, path=tmp_path / "t.parquet", group="g", quality="x")
    write_table(pa.concat_tables([first, first]), tmp_path / "t.parquet")
    with pytest.raises(PartitionChangedError, match=r"t.parquet has changed since"):
        list(groups)


def test_two_groups_with_one_hash_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(counts, "hash_of", lambda name: 1)
    table = pa.table({"g": list("abab"), "x": np.arange(4.0)})
    with pytest.raises(TableError, match=r"two groups of .* names of the same hash"):
        list(grouped(table, path=tmp_path / "t.parquet", group="g", quality="x"))


# Which groups are learned from ----------------------------------------------------

LABELS = {"g": list("aabbccd"), "x": np.arange(7.0), "y": [1, 0, 0, 0, 1, 1, 0]}


def test_groups_without_a_chosen_row():
    found = grouped(pa.table(LABELS), group="g", label="y", quality="x").survey
    message = (
        r"2 of 4 groups have no chosen row, the first is 'b': leave such groups out "
        r"\(empty_groups='drop'\), or take it"
    )
    with pytest.raises(TableError, match=message):
        usable_groups(found, "error")
    assert usable_groups(found, "keep").tolist() == [0, 1, 2, 3]
    assert usable_groups(found, "drop").tolist() == [0, 2]


@pytest.mark.parametrize("empty_groups", ["error", "keep", "drop"])
def test_nothing_was_chosen_at_all(empty_groups):
    table = pa.table(LABELS | {"y": [0] * 7})
    found = grouped(table, group="g", label="y", quality="x").survey
    with pytest.raises(TableError, match="no row is labelled 1 in column 'y': nothing"):
        usable_groups(found, empty_groups)


def test_one_group_has_no_chosen_row():
    table = pa.table(LABELS).slice(0, 6)
    found = grouped(table, group="g", label="y", quality="x").survey
    with pytest.raises(TableError, match="1 of 3 groups has no chosen row"):
        usable_groups(found, "error")


def test_without_labels_nothing_can_be_used():
    found = grouped(pa.table(LABELS), group="g", quality="x").survey
    with pytest.raises(TableError, match=r"which rows were chosen\? Name the label"):
        usable_groups(found, "keep")


@given(st.integers(2, 60), st.floats(0.01, 0.99), st.integers(0, 9))
def test_a_split_is_a_partition(count, fraction, seed):
    usable = np.arange(count) * 3
    wanted = round(fraction * count)
    if not 0 < wanted < count:
        with pytest.raises(TableError, match=f"{count} groups cannot be split into a"):
            hold_out_groups(usable, fraction, seed)
        return
    kept, held_out = hold_out_groups(usable, fraction, seed)
    assert len(held_out) == wanted
    assert sorted([*kept, *held_out]) == usable.tolist()
    again = hold_out_groups(usable, fraction, seed)
    np.testing.assert_array_equal(again[0], kept)


def test_no_split():
    kept, held_out = hold_out_groups(np.arange(3), 0.0, 0)
    assert kept.tolist() == [0, 1, 2]
    assert len(held_out) == 0


# Methods that learn nothing -------------------------------------------------------


def test_untrained_groups_have_no_more_than_they_need():
    table = pa.table(
        {
            "g": ["a", "a", "b"],
            "y": ["no", "label", "here"],
            "v": [[3.0, 4.0], [1.0, 0.0], [0.0, 1.0]],
            "r": [1.0, 2.0, 3.0],
        }
    )
    columns = Columns.of(group="g", label="y", similarity="v", relevance="r")
    first, second = untrained_groups(MemoryTable(table), columns, "dpp")
    np.testing.assert_allclose(first.embeddings(), [[0.6, 0.8], [1.0, 0.0]])
    assert second.relevance.tolist() == [3.0]
    assert first.chosen is None


def test_untrained_methods_say_what_they_need():
    table = MemoryTable(pa.table({"g": ["a", "b"], "x": [1.0, 2.0]}))
    with pytest.raises(TableError, match="method 'dpp' needs to know whether rows are"):
        untrained_groups(table, Columns(group="g"), "dpp")
    with pytest.raises(TableError, match="method 'top' needs a column that says how"):
        untrained_groups(table, Columns(group="g"), "top")


@pytest.mark.parametrize("group", [None, "g"])
def test_random_choice_needs_no_column_at_all(group):
    table = MemoryTable(pa.table({"g": ["a", "b"], "x": [1.0, 2.0]}))
    groups = list(untrained_groups(table, Columns(group=group), "random"))
    assert [len(g) for g in groups] == ([2] if group is None else [1, 1])


@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_a_relevance_is_filled_as_the_quality_that_it_is(missing):
    table = pa.table({"g": ["a"] * 4, "x": [1.0, None, 3.0, 5.0], "r": [1, 2, 3, None]})
    parts = {"group": "g", "quality": "x", "missing": missing}
    (group,) = grouped(table, **parts, relevance="x")
    assert group.relevance.tolist() == [1.0, 3.0, 3.0, 5.0]
    # What is no quality has no mean to take.
    with pytest.raises(TableError, match="column 'r', the relevance, has no value"):
        list(grouped(table, **parts, relevance="r"))
    with pytest.raises(TableError, match="'x' has no value in row 2"):
        list(grouped(table, **parts | {"missing": "error"}, relevance="x"))


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ("item 0 is in the subset, but", "its row 1 was chosen, but"),
        ("a ground set needs at least one item", "a group needs at least one row"),
        ("12 items of two ground sets", "12 rows of two groups"),
        ("its itemised bill", "its itemised bill"),
    ],
)
def test_ground_sets_are_called_groups(problem, words):
    assert reword_for_rows(problem) == words
