"""Vectors of several columns, ages of dates, and many columns shown as one."""

import json
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table_instances import caller, fails, succeeds, with_column
from variegate.files.models import ModelFileError
from variegate.report.wording import abbreviate_runs, find_numbered_runs
from variegate.tables import (
    Columns,
    TableError,
    TableFile,
    TableSelector,
    make_table,
    select_untrained,
    write_table,
)
from variegate.tables.derived import days_from_iso, iso_from_days

SIZE = 12
BASE = {"group": "query", "label": "chosen", "omega": 1.0, "kernel": "linear"}
QUICK = BASE | {"quality": ["score", "freshness"]}


@pytest.fixture(scope="module")
def table():
    """A table with its vectors twice: as a column, and as columns x1 to x12."""
    table = make_table(n_groups=12, n_items=7, n_dimensions=SIZE, random_state=1)
    vectors = np.array(table["embedding"].to_pylist())
    for k in range(SIZE):
        table = table.append_column(f"x{k + 1}", pa.array(vectors[:, k]))
    return table


@pytest.fixture(scope="module")
def dated(table):
    """A table with dates of every kind, all of the same days."""
    rng = np.random.default_rng(0)
    day = date(2026, 1, 31)
    dates = [day - timedelta(days=int(d)) for d in rng.integers(0, 400, len(table))]
    dates[5] = day
    noon = [datetime(d.year, d.month, d.day, 12, tzinfo=UTC) for d in dates]
    zone = timezone(timedelta(hours=5, minutes=30))
    columns = {
        "day": pa.array(dates),
        "naive": pa.array([t.replace(tzinfo=None) for t in noon], pa.timestamp("ms")),
        "zoned": pa.array(noon, pa.timestamp("ns", "Asia/Kolkata")),
        "iso": [d.isoformat() for d in dates],
        "iso_zoned": [t.astimezone(zone).isoformat() for t in noon],
        "age": [(day - d).days for d in dates],
    }
    for name, values in columns.items():
        table = with_column(table, name, values)
    return table


@pytest.fixture
def variegate(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return caller(monkeypatch, capsys)


# Vectors of several columns -------------------------------------------------------


@pytest.mark.parametrize(
    "similarity",
    [
        "vector=x*",
        {"vector": "x*"},
        {"vector": ["x1*", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9"]},
    ],
)
def test_several_columns_are_one_vector(table, tmp_path, similarity):
    without = table.drop(["embedding"])
    plain = TableSelector(**QUICK, similarity="embedding").fit(table)
    made = TableSelector(**QUICK, similarity=similarity).fit(without)
    assert set(made.encoding_.blocks) == {"vector"}
    assert made.weights_ == pytest.approx(plain.weights_, abs=1e-6)
    assert (made.predict(without) == plain.predict(table)).all()
    made.save(tmp_path / "model.json")
    loaded = TableSelector.load(tmp_path / "model.json")
    assert set(loaded.columns_.vectors["vector"]) == {f"x{k + 1}" for k in range(SIZE)}
    # By their names, wherever they are.
    turned = without.select(without.column_names[::-1])
    assert (loaded.predict(turned) == made.predict(without)).all()
    assert loaded.score(turned) == made.score(without)
    again = TableSelector(**loaded.get_params(deep=False)).fit(without)
    assert again.weights_ == pytest.approx(made.weights_)


def test_the_columns_of_a_vector_are_no_quality_by_default(table):
    numbers = ["score", "freshness", "popularity", "tokens"]
    named = ["item", "query", "chosen", *numbers, *[f"x{k + 1}" for k in range(SIZE)]]
    made = TableSelector(**BASE, item="item", similarity="v=x*").fit(
        table.select(named)
    )
    assert set(made.columns_.quality) == set(numbers)


def test_a_vector_for_the_quality(table):
    made = TableSelector(**BASE, quality=["score", "v=x*"], similarity="v").fit(table)
    assert made.feature_names_ == ["score", *[f"v[{k}]" for k in range(SIZE)]]
    assert set(made.encoding_.blocks) == {"v"}


@pytest.mark.parametrize(
    ("similarity", "message"),
    [
        ("v=z*", r"no column matches 'z\*'; the table has query, .*x1 … x12"),
        ("v=x1", "vector 'v' would have a single number, of column 'x1'"),
        ("v=", "'v=' is not a vector: write embedding=e*"),
        ("=x*", "'=x.' is not a vector"),
        ("score=x*", "vector 'score' has the name of a column: give it another one"),
        ({"v": 3}, "similarity must be names of columns"),
        ({"v": ["x1", 3]}, "similarity must be names of columns"),
        (["v=x1", "v=kind"], r"column 'kind' holds '\w+' in row 1, which is not"),
    ],
)
def test_bad_vectors(table, similarity, message):
    with pytest.raises(TableError, match=message):
        TableSelector(**QUICK, similarity=similarity).fit(table)


def test_a_table_without_a_column_of_a_vector(table):
    selector = TableSelector(**QUICK, similarity="v=x*").fit(table)
    message = r"the table does not fit the model: there is no column 'x7'; the table"
    with pytest.raises(TableError, match=message):
        selector.predict(table.drop(["x7"]))


def test_an_empty_cell_in_a_vector(table):
    values = table["x3"].to_pylist()
    values[4] = None
    bad = with_column(table, "x3", values)
    with pytest.raises(TableError, match=r"'v' holds NaN.*in the vector of row 5"):
        TableSelector(**QUICK, similarity="v=x*").fit(bad)


@pytest.mark.parametrize(
    ("section", "value", "message"),
    [
        ("vectors", {"v": ["x1"]}, "a vector must be of several columns"),
        ("vectors", {"v": "x1"}, "a vector must be of several columns"),
        ("vectors", {"v": ["x1", "x2"]}, "the columns of vector 'v' do not fit"),
        ("vectors", ["v"], "vectors must be a dictionary"),
        ("ages", {"day": "soon"}, "ages are counted up to a date, got 'soon'"),
        ("ages", {"day": 3}, "ages are counted up to a date, got 3"),
    ],
)
def test_bad_files(table, tmp_path, section, value, message):
    path = tmp_path / "model.json"
    TableSelector(**QUICK, similarity="v=x*").fit(table).save(path)
    document = json.loads(path.read_text())
    document["columns"][section] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=message):
        TableSelector.load(path)


def test_vectors_of_untrained_methods(table):
    choose = {"method": "mmr", "k": 3}
    one = Columns(group="query", relevance="score", similarity=("embedding",))
    made = Columns(group="query", relevance="score", similarity=("v=x*",))
    expected = select_untrained(table, one, **choose)
    assert select_untrained(table, made, **choose).equals(expected)


# Ages -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["day", "naive", "zoned", "iso", "iso_zoned"])
def test_ages_are_days_before_the_newest_date(dated, tmp_path, name):
    given = BASE | {"similarity": "embedding"}
    plain = TableSelector(**given, quality=["score", "age"]).fit(dated)
    aged = TableSelector(**given, quality=["score", f"age:{name}"]).fit(dated)
    means = [s.encoding_.quality[1].mean[0] for s in (plain, aged)]
    assert means[0] == pytest.approx(means[1], abs=1e-9)
    expected = dict(plain.weights_)
    expected[f"age:{name}"] = expected.pop("age")
    assert aged.weights_ == pytest.approx(expected, abs=1e-9)
    aged.save(tmp_path / "model.json")
    loaded = TableSelector.load(tmp_path / "model.json")
    # Of other rows, too, the age is up to the newest date of training.
    some = dated.slice(7, 35)
    assert (loaded.predict(some) == plain.predict(some)).all()
    hour = "00" if name in ("day", "iso") else "12"
    assert loaded.columns_.ages == {name: f"2026-01-31T{hour}:00:00+00:00"}
    assert loaded.default_relevance() == "score"


def test_ages_in_csv_and_what_is_said_of_them(dated, variegate, tmp_path):
    write_table(dated.drop(["embedding"]), "train.csv")
    fit = [
        "fit", "train.csv", "--group", "query", "--label", "chosen", "--omega", "1",
        "--quality", "score,age:iso_zoned", "--similarity", "embedding=x*",
        "--kernel", "linear", "-o", "model.json",
    ]  # fmt: skip
    told = succeeds(variegate(*fit))
    assert "days before 2026-01-31T12:00:00+00:00, a number, standardised" in told
    assert "vector of 12 numbers, scaled to unit length: x1 … x12" in told
    select = ["select", "train.csv", "--model", "model.json", "-o", "out.csv"]
    succeeds(variegate(*select, "--drop", "x*,iso*"))
    kept = TableFile("out.csv").schema.names
    assert "x1" not in kept
    assert not any(name.startswith("iso") for name in kept)
    assert "selection_rank" in kept
    assert fails(
        variegate(*select, "--force", "--drop", "zz*"), "no column matches 'zz*'"
    )
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["columns"]["vectors"]["embedding"] == [
        f"x{k + 1}" for k in range(SIZE)
    ]
    succeeds(variegate("evaluate", "train.csv", "--model", "model.json"))


def test_an_empty_date_is_an_empty_cell(dated):
    values = dated["iso"].to_pylist()
    values[2] = ""
    bad = with_column(dated, "iso", values)
    quality = ["score", "age:iso"]
    with pytest.raises(TableError, match="'age:iso' has no value in row 3"):
        TableSelector(**BASE, quality=quality).fit(bad)
    TableSelector(**BASE, quality=quality, missing="mean").fit(bad)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["yesterday"] * 84,
            "'when' holds 'yesterday' in row 1, which is not a date: ",
        ),
        ([3.0] * 84, "column 'when' holds double values, no dates"),
        ([None] * 84, "column 'when' holds no dates"),
        (pa.array([2**30] * 84, pa.date32()), "out of range|after the year 9999"),
    ],
)
def test_bad_dates(table, values, message):
    bad = with_column(table, "when", values)
    with pytest.raises(TableError, match=message):
        TableSelector(**BASE, quality=["score", "age:when"]).fit(bad)


def test_a_date_that_is_not_there(table):
    with pytest.raises(TableError, match=r"no column 'scores' \(did you mean 'score'"):
        TableSelector(**BASE, quality=["age:scores"]).fit(table)


def test_times_say_that_ages_can_be_asked_for(dated):
    with pytest.raises(TableError, match="age: before its name makes days of it"):
        TableSelector(**BASE, quality=["score", "day"]).fit(dated)


@given(st.datetimes(timezones=st.just(UTC)))
def test_days_and_dates_are_the_same(instant):
    # To a microsecond or two thousand years from now, where doubles end.
    there = datetime.fromisoformat(iso_from_days(days_from_iso(instant.isoformat())))
    assert abs((there - instant).total_seconds()) < 1e-3


# Many columns as one --------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "e1", "e2", "e3", "e4", "b"], ["a", "e1 … e4", "b"]),
        (["e1", "e2", "e3"], ["e1", "e2", "e3"]),
        (["e01", "e02", "e03", "e04"], ["e01 … e04"]),
        (["e1", "e2", "e4", "e5", "e6", "e7"], ["e1", "e2", "e4 … e7"]),
        (["e4", "e3", "e2", "e1"], ["e4", "e3", "e2", "e1"]),
        (["1", "2", "3", "4"], ["1", "2", "3", "4"]),
        ([], []),
        (["e9", "e10", "e11", "e12", "f13"], ["e9 … e12", "f13"]),
        (["e" + "9" * 5000] * 5, ["e" + "9" * 5000] * 5),
    ],
)
def test_numbered_names_are_gathered(names, expected):
    assert abbreviate_runs(names) == expected


@given(st.lists(st.text(alphabet="ab12", max_size=4), max_size=12))
def test_runs_have_every_name_once(names):
    places = [
        place for first, end in find_numbered_runs(names) for place in range(first, end)
    ]
    assert places == list(range(len(names)))


def test_a_description_shows_numbered_columns_as_one(table):
    both = TableSelector(**BASE, quality=["score", "x*"], similarity="x*").fit(table)
    told = str(both.describe())
    lines = told.splitlines()
    numbered = [line for line in lines if "x1 … x12" in line]
    assert len(numbered) == 3  # a weight, and each part of the columns
    assert not any(line.strip().startswith("x2 ") for line in lines)
    weights = [w for n, w in both.weights_.items() if n != "score"]
    shown = next(line for line in numbered if "length of 12" in line)
    assert f"{np.linalg.norm(weights):.2f}"[:4] in shown
    assert "12 numbers, each standardised" in told
    # Programs get every one of them.
    assert set(both.describe().numbers["weights"]) == set(both.feature_names_)


def test_scores_come_first_and_columns_last(table):
    several = BASE | {"quality": ["score"], "similarity": "embedding"}
    selector = TableSelector(**several, validation_fraction=0.4).fit(table)
    titles = [
        line for line in str(selector.describe()).splitlines() if line[:1].isalpha()
    ]
    assert titles[0].startswith("on 5 held-out groups")
    assert titles[-1] == "columns"
