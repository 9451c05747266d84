import datetime
import decimal
import json
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variegate.tables import Columns, TableError, TableFile
from variegate.tables.categories import MAX_LEVELS
from variegate.tables.cells import Cells
from variegate.tables.groups import Groups
from variegate.tables.survey import learn_encoding, survey_table
from variegate.tables.table import MemoryTable

NAN = float("nan")


def cut(table, cuts=()):
    """Return the table in pieces; where two cuts are equal, a piece is empty."""
    bounds = [0, *sorted(min(c, len(table)) for c in cuts), len(table)]
    pieces = [
        table.slice(first, end - first).combine_chunks().to_batches()
        or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        for first, end in pairwise(bounds)
    ]
    return pa.Table.from_batches([b for piece in pieces for b in piece], table.schema)


def learned(table, **columns):
    """Return an encoding and the records of the table that it is learned from."""
    table = table if isinstance(table, TableFile) else MemoryTable(table)
    resolved = Columns.of(**columns).resolve(table.schema)
    found = survey_table(table, resolved)
    encoding = learn_encoding(found)
    (group,) = Groups(found, encoding)
    return encoding, group


def encoded(table, encoding, **columns):
    """Return another table, encoded by what was learned before."""
    table = MemoryTable(table)
    resolved = Columns.of(**columns).resolve(table.schema)
    (group,) = Groups(survey_table(table, resolved), encoding)
    return group, group.unknown


def csv(path, rows, header="x"):
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return TableFile(path)


# Numbers --------------------------------------------------------------------------


@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=30),
    st.lists(st.integers(0, 30), max_size=6),
    st.sampled_from([1.0, 0.1, 1e-30, 1e200, 1e-300, 1e305]),
    st.sampled_from([0.0, 3.0, 1e6]),
)
def test_numbers_are_standardized_however_the_table_is_cut(values, cuts, unit, offset):
    plain = np.array(values, dtype=np.float64) + offset
    spread = plain.std()
    expected = (plain - plain.mean()) / (spread if spread > 0.0 else 1.0)
    numbers = plain * unit if offset == 0.0 else plain
    table = cut(pa.table({"x": numbers}), cuts)
    _, group = learned(table, quality="x")
    if spread == 0.0:
        # Nothing is left of a constant, up to how its mean was rounded.
        expected = np.zeros_like(plain)
        tolerance = 1e-12 * max(1.0, np.abs(numbers).max())
        np.testing.assert_allclose(group.quality[:, 0], expected, atol=tolerance)
    else:
        np.testing.assert_allclose(group.quality[:, 0], expected, atol=1e-9)


def test_a_million_far_from_zero_keep_their_digits():
    values = 1e9 + np.arange(50.0) % 7
    _, group = learned(cut(pa.table({"x": values}), [1, 10, 11]), quality="x")
    expected = (values - values.mean()) / values.std()
    np.testing.assert_allclose(group.quality[:, 0], expected, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.0, 1e200, 1e-300])
@pytest.mark.parametrize("cuts", [[], [1, 2], [0, 0, 5]])
def test_a_constant_says_nothing(value, cuts):
    table = cut(pa.table({"x": np.full(10, value)}), cuts)
    encoding, group = learned(table, quality="x")
    assert encoding.quality[0].scale == 1.0
    np.testing.assert_allclose(group.quality / max(1.0, abs(value)), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    "array",
    [
        pa.array([3, 1, 2], pa.int8()),
        pa.array([3, 1, 2], pa.uint64()),
        pa.array([3.0, 1.0, 2.0]).cast(pa.float16()),
        pa.array([3, 1, 2], pa.float32()),
        pa.array([decimal.Decimal(v) for v in ("3.0", "1.0", "2.0")]),
        pa.array([3, 1, 2], pa.int64()).dictionary_encode(),
        pa.array([3.0, 1.0, 2.0]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type)[:20],
)
def test_numbers_of_every_type(array):
    _, group = learned(pa.table({"x": array}), quality="x")
    np.testing.assert_allclose(group.quality[:, 0], np.array([1, -1, 0]) * 1.5**0.5)


def test_true_and_false_are_one_and_zero():
    encoding, group = learned(pa.table({"x": [True, False, False, True]}), quality="x")
    assert encoding.quality[0].mean == 0.5
    np.testing.assert_allclose(group.quality[:, 0], [1, -1, -1, 1])


def test_larger_numbers_than_those_learned_from():
    columns = {"quality": "q", "similarity": "x"}
    table = pa.table({"q": [1.0, 2.0], "x": pa.array([1.0, 2.0], pa.float32())})
    encoding, _ = learned(table, **columns)
    new = pa.table({"q": [1.0, 2.0], "x": [1e300, 1.5]})
    group, _ = encoded(new, encoding, **columns)
    np.testing.assert_allclose(group.blocks["columns"][:, 0], [2e300, 0.0])


def test_other_rows_are_encoded_as_the_training_rows():
    table = pa.table({"x": [1.0, 3.0]})
    encoding, _ = learned(table, quality="x")
    group, _ = encoded(pa.table({"x": [5.0, 2.0]}), encoding, quality="x")
    np.testing.assert_allclose(group.quality[:, 0], [3.0, 0.0])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            pa.array(["a", "b", "c"]),
            r"column 'x' holds 'a' in row 1, which is not a number: .* names of kinds",
        ),
        (pa.array(["a", "b", "c"]).dictionary_encode(), "'a' in row 1, which is not a"),
        (pa.array(["a", "b", "c"], pa.large_string()), "'a' in row 1, which is not a"),
        (pa.array(["a", "b", "c"], pa.string_view()), "'a' in row 1, which is not a"),
        (
            pa.array([datetime.datetime(2020, 1, day) for day in (1, 2, 3)]),
            r"column 'x' holds times \(timestamp\[us\]\), not numbers: age: before its",
        ),
        (pa.array([datetime.date(2020, 1, 1)] * 3), r"holds times \(date32"),
        (
            pa.array([datetime.timedelta(1)] * 3),
            r"holds times \(duration\[us\]\), not numbers: make a number of it first",
        ),
        (pa.array([{"a": 1}] * 3), "column 'x' holds struct<a: int64> values, not"),
        (
            pa.array([1.0, np.inf, 2.0]),
            "'x' holds inf in row 2: numbers must be finite",
        ),
        (pa.array([1.0, 2.0, -np.inf]), "'x' holds -inf in row 3"),
    ],
)
@pytest.mark.parametrize("part", ["quality", "similarity"])
def test_what_is_no_number(array, message, part):
    table = cut(pa.table({"x": array, "other": [1.0, 2.0, 3.0]}), [1])
    columns = {"quality": "other"} | {part: "x"}
    with pytest.raises(TableError, match=message):
        learned(table, **columns)


def test_numbers_in_text(tmp_path):
    rows = ['"1"', '" 2 "', '"-3e0"', '"+.5"']
    _, group = learned(csv(tmp_path / "a.csv", rows), quality="x")
    values = np.array([1, 2, -3, 0.5])
    expected = (values - values.mean()) / values.std()
    np.testing.assert_allclose(group.quality[:, 0], expected)


@pytest.mark.parametrize("cell", ["abc", "1_000", '"1,5"', "0x10", "NA", "1 2"])
def test_text_that_is_no_number(tmp_path, cell):
    table = csv(tmp_path / "a.csv", ["1", "2", cell])
    message = (
        f"column 'x' holds '{cell.strip(chr(34))}' in row 3, which is not a number"
    )
    with pytest.raises(TableError, match=message):
        learned(table, quality="x")


def test_a_number_too_large_in_text(tmp_path):
    table = csv(tmp_path / "a.csv", ["1", "1e999"])
    with pytest.raises(TableError, match="'x' holds inf in row 2"):
        learned(table, quality="x")


def test_long_text_that_is_no_number_is_abbreviated():
    with pytest.raises(TableError, match=r"'x' holds 'aaa+\.\.\.' in row 1, which"):
        Cells(pa.array(["a" * 500]), "x").numbers()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_is_read_as_numbers_where_other_columns_have_types(kind):
    numbers = Cells(pa.array(["1", " -2.5 ", "", None], kind), "x").numbers()
    np.testing.assert_array_equal(numbers, [1.0, -2.5, NAN, NAN])


# Categories -----------------------------------------------------------------------


def one_hot(values, levels):
    return np.array([[float(value == level) for level in levels] for value in values])


@given(
    st.lists(st.sampled_from("zebra"), min_size=1, max_size=20),
    st.lists(st.integers(0, 20), max_size=4),
    st.sampled_from(["string", "large_string", "string_view", "dictionary"]),
)
def test_categories_are_indicators_of_sorted_levels(values, cuts, kind):
    array = pa.array(values)
    array = (
        array.dictionary_encode()
        if kind == "dictionary"
        else array.cast(getattr(pa, kind)())
    )
    table = cut(pa.table({"x": array}), cuts)
    encoding, group = learned(table, categorical="x")
    levels = sorted(set(values))
    assert encoding.quality[0].levels == tuple(levels)
    assert encoding.names == [f"x = {level}" for level in levels]
    np.testing.assert_array_equal(group.quality, one_hot(values, levels))


@pytest.mark.parametrize(
    ("array", "levels"),
    [
        (pa.array([2, 10, 2]), ("10", "2")),
        (pa.array([True, False, True]), ("false", "true")),
        (pa.array([2.0, 10.0, 2.0]), ("10", "2")),
        (pa.array([datetime.date(2020, 1, 2)] * 3), ("2020-01-02",)),
        (pa.array([b"a", b"b", b"a"]), ("a", "b")),
    ],
)
def test_categories_of_every_type(array, levels):
    encoding, _ = learned(pa.table({"x": array}), categorical="x")
    assert encoding.quality[0].levels == levels


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (pa.array([[1.0], [2.0]]), "'x' holds list<.*> values, which are not names"),
        (pa.array([{"a": 1}] * 2), "'x' holds struct<a: int64> values, which are no"),
        (pa.array([b"a", b"\xff"]), "column 'x' holds binary values"),
    ],
)
def test_what_is_no_category(array, message):
    with pytest.raises(TableError, match=message):
        learned(pa.table({"x": array}), categorical="x")


def test_too_many_levels():
    values = [str(k) for k in range(MAX_LEVELS + 1)]
    with pytest.raises(TableError, match="'x' has more than 1,000 different values"):
        learned(cut(pa.table({"x": values}), [500]), categorical="x")
    table = pa.table({"x": values[1:], "q": np.arange(1000.0)})
    encoding, _ = learned(table, quality="q", similarity="x", categorical="x")
    assert encoding.blocks["columns"][0].size == MAX_LEVELS


LISTS = [["a", "b"], ["b"], [], ["c", "a", "a"]]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(LISTS),
        pa.array([*LISTS[:2], None, LISTS[3]], pa.large_list(pa.large_string())),
        pa.array([["x"], *LISTS, ["y"]]).slice(1, 4),
        pa.array(["a|b", "b", "", "c| a |a|"]),
        pa.array(["a|b", "b", None, "c|a"]).dictionary_encode(),
        pa.array(['["a", "b"]', "b", "[]", '["c", "a"]']),
    ],
    ids=["list", "large", "slice", "bars", "dictionary", "json"],
)
@pytest.mark.parametrize("cuts", [[], [1, 3]])
def test_cells_of_several_categories(array, cuts):
    columns = {"categorical": "x", "missing": "indicator"}
    table = cut(pa.table({"x": array}), cuts)
    encoding, group = learned(table, **columns)
    assert encoding.names == ["x = a", "x = b", "x = c", "x is missing"]
    assert encoding.quality[0].counts == (2, 2, 1)
    expected = [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 1, 0]]
    np.testing.assert_array_equal(group.quality, expected)
    with pytest.raises(TableError, match="column 'x' has no value in row 3"):
        learned(table, categorical="x")
    group, unknown = encoded(pa.table({"x": ["a|new", "new"]}), encoding, **columns)
    np.testing.assert_array_equal(group.quality, [[1, 0, 0, 0], [0, 0, 0, 0]])
    assert unknown == {"x": 2}


def test_rare_categories_of_the_quality_share_a_feature():
    # Of 600 rows, fewer than five are rare; of 200, fewer than two.
    values = ["a"] * 588 + ["b"] * 5 + ["c"] * 4 + ["d"] * 3
    columns = {"quality": "x", "similarity": "x", "categorical": "x"}
    table = cut(pa.table({"x": values}), [590, 598])
    encoding, group = learned(table, **columns)
    assert encoding.names == ["x = a", "x = b", "x = one of 2 rare values"]
    assert encoding.quality[0].rare == ("c", "d")
    assert encoding.quality[0].counts == (588, 5, 7)
    np.testing.assert_array_equal(group.quality[[592, 594, 599]], np.eye(3)[[1, 2, 2]])
    # Rows of different rare values are not alike.
    assert encoding.blocks["columns"][0].levels == ("a", "b", "c", "d")
    new, unknown = encoded(pa.table({"x": ["d", "e"]}), encoding, **columns)
    np.testing.assert_array_equal(new.quality, [[0, 0, 1], [0, 0, 0]])
    assert unknown == {"x": 1}
    encoding, _ = learned(pa.table({"x": values[400:]}), categorical="x")
    assert encoding.names == ["x = a", "x = b", "x = c", "x = d"]


def test_a_single_rare_category_has_a_feature_of_its_own():
    encoding, _ = learned(pa.table({"x": ["a"] * 600 + ["b"]}), categorical="x")
    assert encoding.names == ["x = a", "x = b"]
    assert encoding.quality[0].counts == (600, 1)


def test_a_level_never_seen_is_all_zeros_and_counted():
    columns = {"categorical": ["x", "z"], "missing": "mean"}
    table = pa.table({"x": ["a", "b"], "z": ["k", "k"]})
    encoding, _ = learned(table, **columns)
    new = pa.table({"x": ["c", "a", None, "c", "b"], "z": ["k"] * 5})
    group, unknown = encoded(cut(new, [1, 3]), encoding, **columns)
    np.testing.assert_array_equal(
        group.quality,
        [[0, 0, 1], [1, 0, 1], [0, 0, 1], [0, 0, 1], [0, 1, 1]],
    )
    assert unknown == {"x": 2}


def test_an_unknown_level_counts_once_in_a_row():
    columns = {"quality": "x", "similarity": "x", "categorical": "x"}
    encoding, _ = learned(pa.table({"x": ["a", "b"]}), **columns)
    _, unknown = encoded(pa.table({"x": ["c", "a"]}), encoding, **columns)
    assert unknown == {"x": 1}


def test_whole_numbers_are_the_same_categories_as_floats():
    # pandas makes floats of whole numbers where one is missing.
    columns = {"categorical": "x", "missing": "mean"}
    encoding, _ = learned(pa.table({"x": [1, 2]}), **columns)
    group, unknown = encoded(pa.table({"x": [2.0, None]}), encoding, **columns)
    np.testing.assert_array_equal(group.quality, [[0, 1], [0, 0]])
    assert unknown == {}


# Empty cells ----------------------------------------------------------------------

EMPTY = [
    pytest.param([1.0, None, 3.0, 5.0], "quality", id="number-null"),
    pytest.param([1.0, NAN, 3.0, 5.0], "quality", id="number-nan"),
    pytest.param([1, None, 3, 5], "quality", id="integer-null"),
    pytest.param([True, None, True, False], "quality", id="boolean-null"),
    pytest.param(["a", None, "b", "a"], "categorical", id="category-null"),
    pytest.param(["a", "", "b", "a"], "categorical", id="category-empty"),
    pytest.param([1.0, None, 2.0, 1.0], "categorical", id="float-category-null"),
    pytest.param([1.0, NAN, 2.0, 1.0], "categorical", id="float-category-nan"),
]


@pytest.mark.parametrize(("values", "part"), EMPTY)
@pytest.mark.parametrize("cuts", [[], [1], [0, 2]])
def test_empty_cells(values, part, cuts):
    table = cut(pa.table({"x": pa.array(values)}), cuts)
    there = [values[0], values[2], values[3]]
    _, without = learned(pa.table({"x": pa.array(there)}), **{part: "x"})
    with pytest.raises(
        TableError,
        match=r"column 'x' has no value in row 2 \(1 of 4 cells is empty\): correct",
    ):
        learned(table, **{part: "x"})

    encoding, group = learned(table, **{part: "x"}, missing="mean")
    np.testing.assert_allclose(group.quality[[0, 2, 3]], without.quality, atol=1e-12)
    np.testing.assert_array_equal(group.quality[1], 0.0)

    encoding, group = learned(table, **{part: "x"}, missing="indicator")
    width = without.quality.shape[1]
    assert encoding.names[width:] == ["x is missing"]
    np.testing.assert_allclose(group.quality[[0, 2, 3], :width], without.quality)
    np.testing.assert_array_equal(group.quality[1, :width], 0.0)
    np.testing.assert_array_equal(group.quality[:, width], [0, 1, 0, 0])


def test_a_not_a_number_is_no_level():
    encoding, _ = learned(
        pa.table({"x": [1.0, NAN]}), categorical="x", missing="indicator"
    )
    assert encoding.quality[0].levels == ("1",)


def test_nothing_missing_no_indicator():
    table = pa.table({"x": [1.0, 2.0], "z": ["a", "b"]})
    columns = {"quality": "x", "categorical": "z", "missing": "indicator"}
    encoding, _ = learned(table, **columns)
    assert encoding.names == ["x", "z = a", "z = b"]
    new = pa.table({"x": [None, 2.0], "z": ["a", None]})
    group, _ = encoded(new, encoding, **columns)
    np.testing.assert_allclose(group.quality, [[0, 1, 0], [1, 0, 0]])


def test_the_row_of_an_empty_cell_in_a_later_batch():
    values = [1.0] * 7 + [None] + [2.0]
    with pytest.raises(TableError, match="column 'x' has no value in row 8"):
        learned(cut(pa.table({"x": values}), [2, 5]), quality="x")


@pytest.mark.parametrize("cuts", [[], [400], [100, 700]])
def test_empty_cells_are_counted(cuts):
    values = [None if i % 70 == 10 else float(i) for i in range(1200)]
    n_empty = sum(value is None for value in values)
    assert n_empty == 17
    message = rf"no value in row 11 \({n_empty} of 1,200 cells are empty\): correct it"
    with pytest.raises(TableError, match=message):
        learned(cut(pa.table({"x": values}), cuts), quality="x")


def test_empty_cells_in_text(tmp_path):
    rows = ["1,a", " ,b", "3,", "nan,b"]
    table = csv(tmp_path / "a.csv", rows, "x,z")
    columns = {"quality": "x", "categorical": "z"}
    with pytest.raises(TableError, match="column 'x' has no value in row 2"):
        learned(table, **columns)
    encoding, group = learned(table, **columns, missing="indicator")
    assert encoding.names == ["x", "x is missing", "z = a", "z = b", "z is missing"]
    np.testing.assert_allclose(
        group.quality,
        [[-1, 0, 1, 0, 0], [0, 1, 0, 1, 0], [1, 0, 0, 0, 1], [0, 1, 0, 1, 0]],
    )


@pytest.mark.parametrize("kind", [pa.float64(), pa.null()], ids=str)
@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_a_column_of_nothing(missing, kind):
    nothing = pa.array([None, None], kind)
    table = pa.table({"x": nothing, "other": [1.0, 2.0]})
    _, group = learned(table, quality=["x", "other"], missing=missing)
    np.testing.assert_array_equal(group.quality[:, 0], 0.0)
    np.testing.assert_allclose(group.quality[:, -1], [-1.0, 1.0])


# Labels ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        [True, False],
        [1, 0],
        [1.0, 0.0],
        [decimal.Decimal("1.0"), decimal.Decimal("0.0")],
        pa.array([1, 0], pa.uint8()).dictionary_encode(),
    ],
)
def test_labels(values):
    assert Cells(pa.array(values), "y").flags().tolist() == [True, False]


@pytest.mark.parametrize("cell", ["1", "true", "True", "TRUE", " 1.0 "])
def test_labels_in_text(cell):
    column = pa.array([cell, "0", "False", "0.0"])
    flags = Cells(column, "y").flags()
    assert flags.tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    ("value", "found"),
    [(2, "2"), (-1, "-1"), (0.5, "0.5"), (NAN, "nan"), (None, "nothing"),
     ("yes", "'yes'"), ("2", "'2'"), ([1], r"\[1\]")],
)  # fmt: skip
def test_what_is_no_label(value, found):
    first = {str: "0", list: [0]}.get(type(value), 0)
    column = pa.array([first, first, value]).slice(2)
    with pytest.raises(
        TableError, match=f"'y' holds {found} in row 13: labels must be"
    ):
        Cells(column, "y", row_name=lambda place: f"{place + 13}").flags()


@pytest.mark.parametrize(("cell", "found"), [("yes", "'yes'"), ("", "nothing")])
def test_what_is_no_label_in_text(cell, found):
    with pytest.raises(TableError, match=f"'y' holds {found} in row 2: labels must be"):
        Cells(pa.array(["0", cell]), "y").flags()


def test_booleans_with_nothing_among_them_are_no_labels():
    with pytest.raises(TableError, match="'y' holds nothing in row 2"):
        Cells(pa.array([True, None]), "y").flags()


# Keys -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None]),
        pa.array(["a", ""]),
        pa.array(["a", ""], pa.string_view()),
        pa.array(["a", None]).dictionary_encode(),
        pa.array([1.0, NAN]),
        pa.array([1, None]),
        pa.array([datetime.date(2020, 1, 1), None]),
    ],
    ids=lambda column: str(column.type)[:20],
)
def test_a_key_must_not_be_empty(column):
    with pytest.raises(
        TableError, match="column 'g' is empty in row 5: every row needs"
    ):
        Cells(column, "g", row_name=lambda place: f"{place + 4}").keys()


def test_what_is_no_key():
    with pytest.raises(TableError, match="'g' holds struct<a: int64> values, no names"):
        Cells(pa.array([{"a": 1}]), "g").keys()


# Vectors --------------------------------------------------------------------------

VECTORS = np.array([[3.0, 4.0], [0.0, 0.0], [1e200, 1e200], [-1e-300, 0.0]])
UNIT = np.array([[0.6, 0.8], [0.0, 0.0], [0.5**0.5, 0.5**0.5], [-1.0, 0.0]])
KINDS = [
    pa.list_(pa.float64()),
    pa.large_list(pa.float64()),
    pa.list_(pa.float64(), 2),
]


def vectors(values, kind):
    return pa.array([list(map(float, v)) for v in values], kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("cuts", [[], [1], [0, 0, 2, 3]])
def test_similarity_vectors_are_directions(kind, cuts):
    table = cut(pa.table({"v": vectors(VECTORS, kind), "x": np.arange(4.0)}), cuts)
    encoding, group = learned(table, quality="x", similarity="v")
    assert list(group.blocks) == ["v"]
    np.testing.assert_allclose(group.blocks["v"], UNIT, atol=1e-15)
    assert encoding.blocks["v"][0].kind == "direction"


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_slices_of_longer_arrays(kind):
    padded = vectors([[9, 9], [8, 8], *VECTORS.tolist(), [7, 7]], kind).slice(2, 4)
    table = pa.table({"v": padded, "x": np.arange(4.0)})
    _, group = learned(table, quality="x", similarity="v")
    np.testing.assert_allclose(group.blocks["v"], UNIT, atol=1e-15)
    table = pa.table({"v": vectors(VECTORS, kind), "x": np.arange(4.0)})
    whole = pa.concat_tables([table, table, table]).slice(3, 6)
    _, group = learned(whole, quality="x", similarity="v")
    np.testing.assert_allclose(group.blocks["v"], UNIT[[3, 0, 1, 2, 3, 0]], atol=1e-15)


@pytest.mark.parametrize(
    "value", [pa.float16(), pa.float32(), pa.int8(), pa.int64(), pa.decimal128(30, 2)]
)
def test_vectors_of_every_number(value):
    column = pa.array([[3, 4], [0, 5]], pa.list_(pa.int64())).cast(pa.list_(value))
    table = pa.table({"v": column, "x": [1.0, 2.0]})
    _, group = learned(table, quality="x", similarity="v")
    np.testing.assert_allclose(group.blocks["v"], [[0.6, 0.8], [0.0, 1.0]], atol=1e-7)


def test_vectors_as_tensors():
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(np.array([[3.0, 4.0]] * 2))
    table = pa.table({"v": tensors, "x": [1.0, 2.0]})
    _, group = learned(table, quality="x", similarity="v")
    np.testing.assert_allclose(group.blocks["v"], [[0.6, 0.8]] * 2)


def test_quality_vectors_are_so_many_numbers():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((9, 3))
    table = cut(pa.table({"v": vectors(values, KINDS[0])}), [2, 2, 5])
    encoding, group = learned(table, quality="v")
    expected = (values - values.mean(axis=0)) / values.std(axis=0)
    np.testing.assert_allclose(group.quality, expected, atol=1e-12)
    assert encoding.names == ["v[0]", "v[1]", "v[2]"]
    assert group.blocks == {}


def test_a_vector_for_both_is_scaled_for_each():
    table = pa.table({"v": vectors([[3, 4], [6, 8]], KINDS[0])})
    _, group = learned(table, quality="v", similarity="v")
    np.testing.assert_allclose(group.quality, [[-1, -1], [1, 1]])
    np.testing.assert_allclose(group.blocks["v"], [[0.6, 0.8]] * 2)


def test_every_vector_column_is_a_block_and_numbers_are_one():
    table = pa.table(
        {
            "title": vectors([[3, 4], [0, 1]], KINDS[0]),
            "image": vectors([[1, 0, 0], [0, 2, 0]], KINDS[0]),
            "x": [1.0, 3.0],
            "z": ["a", "b"],
            "q": [0.0, 1.0],
        }
    )
    similarity = ["x", "title", "z", "image"]
    encoding, group = learned(
        table, quality="q", similarity=similarity, categorical="z"
    )
    assert set(group.blocks) == {"title", "image", "columns"}
    np.testing.assert_allclose(group.blocks["columns"], [[-1, 1, 0], [1, 0, 1]])
    np.testing.assert_allclose(group.blocks["image"], [[1, 0, 0], [0, 1, 0]])
    assert encoding.names == ["q"]
    assert group.embeddings().shape == (2, 8)
    named = table.rename_columns(["columns", "image", "x", "z", "q"])
    _, group = learned(named, quality="q", similarity=["columns", "x"])
    assert set(group.blocks) == {"columns", "columns of numbers"}
    np.testing.assert_allclose(group.blocks["columns"], [[0.6, 0.8], [0, 1]])


BAD_VECTORS = [
    ([[1, 2], [1, 2], [1, 2, 3]], "'v' holds a vector of 3 numbers in row 3, but the"),
    ([[1, 2], [1, 2], []], "'v' holds a vector of 0 numbers in row 3, but the others"),
    ([[1, 2], [1, 2], None], "'v' has no vector in row 3: leave such rows out"),
    (
        [[1, 2], [1, 2], [1, None]],
        "NaN, infinity or an empty cell in the vector of row 3",
    ),
    (
        [[1, 2], [1, 2], [NAN, 1]],
        "NaN, infinity or an empty cell in the vector of row 3",
    ),
    ([[1, 2], [1, 2], [1, np.inf]], "NaN, infinity or an empty cell in the vector of"),
    ([[], [], []], "column 'v' holds empty vectors"),
]


@pytest.mark.parametrize(("values", "message"), BAD_VECTORS)
@pytest.mark.parametrize("cuts", [[], [1], [2], [1, 1, 2]])
@pytest.mark.parametrize("part", ["quality", "similarity"])
@pytest.mark.parametrize("missing", ["error", "mean"])
def test_bad_vectors(values, message, cuts, part, missing):
    column = pa.array(values, pa.list_(pa.float64()))
    table = cut(pa.table({"v": column, "x": np.arange(3.0)}), cuts)
    with pytest.raises(TableError, match=message):
        learned(table, **({"quality": "x"} | {part: "v"}), missing=missing)


def test_missing_vectors_of_fixed_size():
    column = pa.array([[1, 2], None, [1, 2]], pa.list_(pa.float64(), 2))
    table = pa.table({"v": column, "x": np.arange(3.0)})
    with pytest.raises(TableError, match="'v' has no vector in row 2"):
        learned(table, quality="x", similarity="v")


def test_vectors_of_another_length_than_in_training():
    columns = {"quality": "x", "similarity": "v"}
    table = pa.table({"v": [[1.0, 2.0]] * 2, "x": [1.0, 2.0]})
    encoding, _ = learned(table, **columns)
    new = pa.table({"v": [[1.0, 2.0, 3.0]] * 2, "x": [1.0, 2.0]})
    with pytest.raises(
        TableError, match="column 'v' holds vectors of 3 numbers, where 2 are expected"
    ):
        encoded(new, encoding, **columns)
    new = pa.table({"v": [1.0, 2.0], "x": [1.0, 2.0]})
    with pytest.raises(TableError, match="column 'v' holds double values, not vectors"):
        encoded(new, encoding, **columns)


def test_vectors_in_text(tmp_path):
    rows = [f'{k},"{json.dumps(v)}"' for k, v in enumerate([[3, 4], [0.0, -2e0]])]
    table = csv(tmp_path / "a.csv", rows, "x,v")
    _, group = learned(table, quality="x", similarity="v")
    np.testing.assert_allclose(group.blocks["v"], [[0.6, 0.8], [0, -1]])
    _, group = learned(table, quality="v")
    np.testing.assert_allclose(group.quality, [[1, 1], [-1, -1]])


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("[1, 2", r"'v' holds '\[1, 2' in row 2, which is not a vector: in text"),
        ("1 2", "'v' holds '1 2' in row 2, which is not a vector"),
        ("3", "'v' holds '3' in row 2, which is not a vector"),
        ("[1, null]", "in row 2, which is not a vector"),
        ("[[1], [2]]", "in row 2, which is not a vector"),
        ("[1, NaN]", "'v' holds NaN, infinity or an empty cell in the vector of row 2"),
        (
            "[1, 2, 3]",
            "'v' holds a vector of 3 numbers in row 2, but the others have 2",
        ),
        ("", "'v' has no vector in row 2"),
        ("12", "'v' holds '12' in row 2, which is not a vector"),
        ('""12""', "in row 2, which is not a vector"),
        ('{""1"": 2, ""3"": 4}', "in row 2, which is not a vector"),
        ("[1, 1" + "0" * 400 + "]", "in row 2"),
        ("[" * 20_000, "in row 2, which is not a vector"),
        ("[1, 2] " * 20, r"holds '.{37}\.\.\.' in row 2, which is not a vector"),
    ],
)
def test_bad_vectors_in_text(tmp_path, cell, message):
    table = csv(tmp_path / "a.csv", ['1,"[1, 2]"', f'2,"{cell}"'], "x,v")
    with pytest.raises(TableError, match=message):
        learned(table, quality="x", similarity="v")


def test_the_first_vector_in_text_is_missing(tmp_path):
    table = csv(tmp_path / "a.csv", ["1,", '2,"[1, 2]"'], "x,v")
    with pytest.raises(TableError, match="'v' has no vector in row 1"):
        learned(table, quality="x", similarity="v")


# The table ------------------------------------------------------------------------


def test_a_table_without_rows():
    with pytest.raises(TableError, match="the table has no rows"):
        learned(pa.table({"x": pa.array([], pa.float64())}), quality="x")


def test_a_name_that_is_there_twice():
    table = pa.table([[1.0], [2.0], [3.0]], names=["x", "y", "x"])
    with pytest.raises(TableError, match="the table has more than one column 'x'"):
        MemoryTable(table)
