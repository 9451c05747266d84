import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import variegate as vg
from variegate.files.models import ModelFileError
from variegate.tables import (
    Columns,
    TableError,
    TableFile,
    TableSelector,
    make_table,
    select_untrained,
)
from variegate.tables.fitting import split_groups
from variegate.tables.survey import survey_table
from variegate.tables.table import MemoryTable
from variegate.tables.training import TUNING_OMEGAS

COLUMNS = {
    "group": "query",
    "label": "chosen",
    "quality": ["score", "freshness"],
    "similarity": "embedding",
}
#: One fit, fast to choose from.
QUICK = COLUMNS | {"omega": 1.0, "decoder": "greedy", "kernel": "linear"}

ADDED = ["selection_rank", "inclusion_probability"]


@pytest.fixture(scope="module")
def table():
    return make_table(n_groups=12, n_items=7, n_dimensions=4, random_state=1)


@pytest.fixture(scope="module")
def selector(table):
    return TableSelector(**QUICK).fit(table)


def replaced(table, name, values):
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def flags_of(table):
    return table["chosen"].to_numpy(zero_copy_only=False)


def same_choices(first, second, tolerance=0.0):
    np.testing.assert_array_equal(first.selected, second.selected)
    np.testing.assert_array_equal(first.rank, second.rank)
    np.testing.assert_allclose(
        first.probability, second.probability, rtol=0.0, atol=tolerance
    )


# The contract of scikit-learn -----------------------------------------------------


def test_parameters_are_kept_as_they_are_given(selector):
    anything = object()
    names = TableSelector().get_params()
    odd = TableSelector(**dict.fromkeys(names, anything))
    assert all(value is anything for value in odd.get_params().values())
    assert not [name for name in vars(odd) if name.endswith("_")]
    copy = clone(selector)
    assert copy.get_params() == selector.get_params()
    assert not hasattr(copy, "models_")
    assert copy.set_params(lam=3.0).lam == 3.0
    assert "omega=1.0" in repr(selector)


def test_fit_changes_no_parameter_and_returns_itself(table):
    selector = TableSelector(**QUICK)
    before = selector.get_params()
    assert selector.fit(table) is selector
    assert selector.get_params() == before


@pytest.mark.parametrize(
    "call",
    [
        lambda s, t: s.predict(t),
        lambda s, t: s.choose(t),
        lambda s, t: s.select(t),
        lambda s, t: s.score(t),
        lambda s, t: s.evaluate(t),
        lambda s, t: s.report(t),
        lambda s, t: s.describe(),
        lambda s, t: s.with_columns(group="q"),
        lambda s, t: s.inclusion_probability(t),
        lambda s, t: s.save("nowhere.json"),
        lambda s, t: s.model_,
        lambda s, t: s.weights_,
    ],
)
def test_nothing_without_fit(table, call):
    with pytest.raises(NotFittedError):
        call(TableSelector(**QUICK), table)


def test_attributes(selector, table):
    assert selector.feature_names_in_.tolist() == table.column_names
    assert selector.n_features_in_ == table.num_columns
    assert selector.columns_.quality == ("score", "freshness")
    assert list(selector.weights_) == ["score", "freshness"]
    assert selector.omega_ == 1.0
    assert selector.lam_ == 4.0
    assert selector.path_ is None
    json.dumps(selector.training_, allow_nan=False)
    assert selector.training_["n_rows"] == 84
    assert selector.training_["n_groups"] == 12
    assert selector.training_["n_learned_from"] == 12
    assert selector.training_["group_sizes"] == {
        "mean": 7.0,
        "smallest": 7,
        "largest": 7,
    }


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_cross_validation_over_groups(table, kind):
    frame = table.to_pandas() if kind == "pandas" else pl.from_arrow(table)
    y, groups = frame["chosen"], frame["query"]
    features = (
        frame.drop(columns="chosen") if kind == "pandas" else frame.drop("chosen")
    )
    selector = TableSelector(**QUICK | {"label": None})
    scores = cross_val_score(
        selector, features, y, groups=groups, cv=GroupKFold(3), error_score="raise"
    )
    assert scores.shape == (3,)
    folds = GroupKFold(3).split(features, y, groups)
    for score, (train, test) in zip(scores, folds, strict=True):
        fitted = clone(selector).fit(table.take(train), flags_of(table)[train])
        assert score == fitted.score(table.take(test), flags_of(table)[test])


def test_in_a_pipeline(table):
    frame = table.to_pandas()
    transformer = ColumnTransformer(
        [("scale", StandardScaler(), ["score", "freshness"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    selector = TableSelector(**QUICK)
    pipeline = Pipeline(
        [("prepare", transformer.set_output(transform="pandas")), ("select", selector)]
    )
    pipeline.fit(frame)
    plain = TableSelector(**QUICK).fit(frame)
    np.testing.assert_array_equal(pipeline.predict(frame), plain.predict(frame))
    assert pipeline.score(frame) == plain.score(frame)
    pipeline.set_params(select__lam=0.5).fit(frame)
    assert pipeline[-1].lam_ == 0.5


def test_columns_are_found_by_name():
    selector = TableSelector(quality=["a"], label="y")
    message = (
        r"got a ndarray of shape \(4, 2\)\. Columns are found by their names; a step "
        r"before in a Pipeline keeps them after \.set_output\(transform='pandas'\)"
    )
    with pytest.raises(TableError, match=message):
        selector.fit(np.zeros((4, 2)))
    with pytest.raises(TableError, match=r"expected a data frame .* got a list"):
        selector.fit([1, 2])
    with pytest.raises(TableError, match="got a LazyFrame"):
        selector.fit(pl.LazyFrame({"a": [1]}))


# The estimator inside ---------------------------------------------------------------


def test_without_an_estimator_the_documented_defaults_count(table):
    settings = COLUMNS | {"omega": 1.0, "kernel": "multiple"}
    plain = TableSelector(**settings).fit(table)
    spelt = vg.LargeMarginDPP(
        lam=4.0, l2=1e-4, decoder="greedy", max_iter=1000, tol=1e-2
    )
    given = TableSelector(**settings, estimator=spelt).fit(table)
    model = plain.model_
    assert (model.lam, model.l2, model.decoder) == (4.0, 1e-4, "greedy")
    assert (model.max_iter, model.tol) == (1000, 1e-2)
    np.testing.assert_array_equal(model.theta_, given.model_.theta_)
    same_choices(plain.choose(table), given.choose(table))


def test_what_is_given_beside_an_estimator_counts_in_place_of_its_own(table):
    estimator = vg.LargeMarginDPP(
        lam=2.0, l2=0.5, kernel=vg.Linear(), decoder="local", fit_intercept=False
    )
    selector = TableSelector(**COLUMNS, omega=0.5, estimator=estimator)
    model = selector.fit(table).model_
    assert (selector.lam_, model.l2, model.decoder) == (2.0, 0.5, "local")
    assert type(model.kernel_) is vg.Linear
    assert model.intercept_ == 0.0
    # Neither is the estimator fitted, nor does its omega matter.
    assert not hasattr(estimator, "theta_")
    assert selector.omega_ == 0.5
    other = clone(selector).set_params(lam=1.0, decoder="greedy", kernel="multiple")
    model = other.fit(table).model_
    assert (other.lam_, model.l2, model.decoder) == (1.0, 0.5, "greedy")
    assert type(model.kernel_) is vg.MultipleKernel
    inner = clone(selector).set_params(estimator__l2=0.25).fit(table)
    assert inner.model_.l2 == 0.25
    assert estimator.l2 == 0.5


def test_the_settings_of_an_estimator_are_in_the_file(table, tmp_path):
    estimator = vg.LargeMarginDPP(l2=0.5, fit_intercept=False, kernel=vg.Linear())
    selector = TableSelector(**COLUMNS, omega=1.0, estimator=estimator).fit(table)
    selector.save(tmp_path / "model.json")
    loaded = vg.load(tmp_path / "model.json")
    again = clone(loaded).fit(table)
    np.testing.assert_array_equal(again.model_.theta_, selector.model_.theta_)
    assert again.model_.intercept_ == 0.0


def test_an_estimator_of_mini_batches(table):
    solver = vg.solvers.MiniBatch(batch_size=4, n_epochs=2)
    estimator = vg.LargeMarginDPP(lam=4.0, solver=solver, kernel=vg.Linear())
    selector = TableSelector(**COLUMNS, omega=1.0, estimator=estimator)
    selector.fit(table)
    assert selector.training_["history"]["n_seen"][-1] == 24
    assert selector.model_.solver == solver


def test_the_steps_of_an_estimator_are_told_to_its_callback(table):
    steps = []
    estimator = vg.LargeMarginDPP(
        kernel=vg.Linear(), callback=lambda step: steps.append(step.iteration)
    )
    TableSelector(**COLUMNS, omega=1.0, estimator=estimator, tol=1e-3).fit(table)
    assert steps == list(range(len(steps)))
    assert len(steps) > 2


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (vg.LargeMarginDPPCV(), "estimator must be a LargeMarginDPP, got LargeMargin"),
        (vg.LargeMarginDPP(jitter=-1.0), "jitter must be a finite number"),
    ],
)
def test_a_bad_estimator_is_refused(table, estimator, message):
    with pytest.raises(ValueError, match=message):
        TableSelector(**COLUMNS, estimator=estimator).fit(table)


# Parameters -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"empty_groups": "skip"},
            "unknown empty_groups 'skip'; there are error, keep",
        ),
        (
            {"kernel": "cubic"},
            "unknown kernel 'cubic'; there are auto, multiple, kinds, metric, linear",
        ),
        ({"missing": "zero"}, "unknown treatment of missing values 'zero'"),
        ({"tune": 1}, "tune must be True or False, got 1"),
        ({"lam": -1.0}, "lam must be a finite number >= 0, got -1.0"),
        ({"l2": "a"}, "l2 must be a finite number >= 0, got 'a'"),
        (
            {"validation_fraction": 1.0},
            r"validation_fraction must be below 1, got 1\.0",
        ),
        ({"validation_fraction": -0.1}, "validation_fraction must be a finite number"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1, got 0"),
        ({"memory": 0.5}, "memory must be a whole number of at least 1"),
        ({"first_passes": -1}, "first_passes must be a whole number of at least 1"),
        ({"omega": 0.0}, "omega must be a finite number > 0, got 0.0"),
        ({"omega": [1.0, 4.0]}, r"omega must be a finite number > 0, got \[1.0, 4.0\]"),
        ({"decoder": "best"}, "best"),
        ({"group": 3}, "group must be the name of a column, got 3"),
        ({"quality": [3]}, "quality must be names of columns"),
        ({"target_recall": 1.5}, "target_recall must be"),
        ({"target_recall": 0.8, "target_precision": 0.8}, "target_precision"),
        ({"tune": True, "lams": ()}, "lams"),
        ({"group": "querry"}, r"no column 'querry' \(did you mean 'query'\?\)"),
        (
            {"label": None},
            "which rows were chosen. Name the label column with label, or",
        ),
    ],
)
def test_bad_parameters_are_refused_by_fit(table, parameters, message):
    selector = TableSelector(**QUICK | parameters)
    with pytest.raises(ValueError, match=message):
        selector.fit(table)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"k": 1.5}, "k must be a whole number of at least 1"),
        ({"budget": 0.0}, "budget must be a finite number > 0"),
        ({"omega": "two"}, "omega must be a finite number > 0, got 'two'"),
        ({"budget": 3.0}, "a budget needs a column of costs: name it with cost"),
        (
            {"omega": 2.0, "k": 3},
            "k fixes the number of rows, which omega",
        ),
        ({"at_most": 2}, "1 number in at_most and 0 columns in per: give a number for"),
        ({"per": "kind"}, "0 numbers in at_most and 1 column in per"),
        ({"at_most": (1, 2), "per": "kind"}, "2 numbers in at_most and 1 column in"),
        ({"at_most": 0, "per": "kind"}, "at_most must be a whole number of at least 1"),
        ({"at_most": 2, "per": "knd"}, r"no column 'knd' \(did you mean 'kind'\?\)"),
        ({"at_most": 2, "per": "embedding"}, "'embedding' holds list<.*> values, no"),
    ],
)
def test_bad_wishes_are_refused(selector, table, arguments, message):
    with pytest.raises(ValueError, match=message):
        selector.choose(table, **arguments)


# Labels ---------------------------------------------------------------------------


def test_labels_beside_the_table_or_in_it(selector, table):
    flags = flags_of(table)
    without = table.drop_columns("chosen")
    for y in (flags, flags.astype(int), flags.tolist(), pd.Series(flags),
              pl.Series(flags), pa.array(flags), flags.astype(float)):  # fmt: skip
        beside = TableSelector(**QUICK | {"label": None}).fit(without, y)
        same_choices(beside.choose(without), selector.choose(table))
        assert beside.score(without, y) == selector.score(table)
    both = TableSelector(**QUICK).fit(table, flags)
    same_choices(both.choose(table), selector.choose(table))
    assert both.score(table, flags) == selector.score(table)


def test_y_stands_in_for_a_label_column_that_is_not_there(selector, table):
    without = table.drop_columns("chosen")
    beside = TableSelector(**QUICK).fit(without, flags_of(table))
    same_choices(beside.choose(without), selector.choose(table))


def test_y_comes_before_the_label_column(selector, table):
    wrong = replaced(table, "chosen", ~flags_of(table))
    fitted = TableSelector(**QUICK).fit(wrong, flags_of(table))
    same_choices(fitted.choose(table), selector.choose(table))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(84, 2), "column 'y' holds 2 in row 1: labels must be 1"),
        (np.full(84, np.nan), "column 'y' holds (nothing|nan) in row 1"),
        (["yes"] * 84, "column 'y' holds 'yes' in row 1"),
        (np.zeros((84, 2)), r"y must have one label a row, got shape \(84, 2\)"),
        (np.ones(83), "83 labels for a table of"),
        (np.ones(85), "85 labels for a table of"),
        ([], "0 labels for a table of"),
        (pd.Series([1] * 83 + ["a"], dtype=object), "y must be 1 or 0 for every row: "),
        (
            pd.Series([1] * 83 + [None], dtype="Int64"),
            "'y' holds (nothing|nan) in row 84",
        ),
    ],
)
def test_bad_labels_beside_the_table(table, y, message):
    selector = TableSelector(**QUICK)
    with pytest.raises(TableError, match=message):
        selector.fit(table, y)


def test_a_score_needs_labels(table):
    flags = flags_of(table)
    selector = TableSelector(**QUICK | {"label": None}).fit(table, flags)
    with pytest.raises(TableError, match="which rows were chosen"):
        selector.score(table)


def test_the_score_is_the_mean_f_score_over_groups(selector, table):
    selected = selector.predict(table)
    wanted = flags_of(table)
    scores = []
    for first in range(0, 84, 7):
        a, b = selected[first : first + 7], wanted[first : first + 7]
        scores.append(2 * (a & b).sum() / (a.sum() + b.sum()))
    assert selector.score(table) == pytest.approx(np.mean(scores))


def test_empty_groups(table):
    flags = flags_of(table).copy()
    flags[7:21] = False
    changed = replaced(table, "chosen", flags)
    with pytest.raises(
        TableError, match="2 of 12 groups have no chosen row, the first"
    ):
        TableSelector(**QUICK).fit(changed)
    kept = TableSelector(**QUICK, empty_groups="keep").fit(changed)
    dropped = TableSelector(**QUICK, empty_groups="drop").fit(changed)
    assert kept.training_["n_learned_from"] == 12
    assert dropped.training_["n_learned_from"] == 10
    assert dropped.training_["n_left_out"] == 2
    assert kept.predict(table).sum() < dropped.predict(table).sum()
    with pytest.raises(TableError, match="no row is labelled 1 in column 'chosen'"):
        TableSelector(**QUICK).fit(replaced(table, "chosen", np.zeros(84, bool)))


# Kinds of tables ------------------------------------------------------------------


def frames(table):
    odd = table.to_pandas()
    odd.index = pd.Index(["same"] * len(odd), name="score")
    numbered = table.to_pandas()
    numbered.index = pd.Index(np.arange(len(odd))[::-1] * 2, name="id")
    chunked = pa.concat_tables([table.slice(0, 0), table.slice(0, 5), table.slice(5)])
    return {
        "arrow": table,
        "chunked": chunked,
        "pandas": table.to_pandas(),
        "pandas-odd": odd,
        "pandas-numbered": numbered,
        "pandas-arrow": table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.from_arrow(table),
    }


KINDS = [
    "arrow",
    "chunked",
    "pandas",
    "pandas-odd",
    "pandas-numbered",
    "pandas-arrow",
    "polars",
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same(selector, table, kind):
    frame = frames(table)[kind]
    fitted = TableSelector(**QUICK).fit(frame)
    # Means of pieces are rounded otherwise than those of the whole.
    same_choices(fitted.choose(frame), selector.choose(table), tolerance=1e-9)
    assert fitted.feature_names_in_.tolist() == table.column_names
    assert fitted.score(frame) == selector.score(table)


@pytest.mark.parametrize("kind", KINDS)
def test_row_labels_of_pandas_are_no_quality(table, kind):
    frame = frames(table)[kind]
    fitted = TableSelector(**QUICK | {"quality": None}).fit(frame)
    wanted = ("score", "freshness", "popularity", "tokens")
    assert fitted.columns_.quality == wanted


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_file_is_a_table(selector, table, tmp_path, suffix):
    path = tmp_path / f"table.{suffix}"
    if suffix == "parquet":
        parquet.write_table(table, path, row_group_size=10)
    else:
        frame = table.to_pandas()
        frame["embedding"] = [json.dumps(v.tolist()) for v in frame["embedding"]]
        frame.to_csv(path, index=False)
    fitted = TableSelector(**QUICK).fit(path)
    np.testing.assert_array_equal(fitted.predict(str(path)), selector.predict(table))
    for given in (path, str(path), TableFile(path)):
        chosen = fitted.select(given)
        assert isinstance(chosen, pa.Table)
        assert chosen["item"].to_pylist() == selector.select(table)["item"].to_pylist()


def test_a_table_of_its_own_kind(selector, table):
    chosen = selector.select(MemoryTable(table))
    assert chosen.equals(selector.select(table))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep_all", [False, True])
def test_selected_rows_are_of_the_kind_that_was_given(selector, table, kind, keep_all):
    frame = frames(table)[kind]
    choices = selector.choose(table, k=2)
    found = selector.select(frame, k=2, keep_all=keep_all)
    assert type(found) is type(frame)
    added = ["selected", *ADDED] if keep_all else ADDED
    rows = np.arange(84) if keep_all else np.flatnonzero(choices.selected)
    ranks = [int(rank) for rank in found["selection_rank"].to_numpy()]
    assert ranks == choices.rank[rows].tolist()
    np.testing.assert_array_equal(
        found["inclusion_probability"].to_numpy(), choices.probability[rows]
    )
    if keep_all:
        flags = np.asarray(found["selected"].to_numpy(), dtype=bool)
        np.testing.assert_array_equal(flags, choices.selected)
    if kind.startswith("pandas"):
        original = found.drop(columns=added)
        pd.testing.assert_frame_equal(original, frame.iloc[rows])
        assert "selection_rank" not in frame.columns
    elif kind == "polars":
        assert found.drop(added).equals(frame[rows])
        assert found.drop(added).schema == frame.schema
    else:
        assert found.drop_columns(added).equals(table.take(rows))


def test_types_of_the_added_columns(selector, table):
    found = selector.select(table, keep_all=True)
    types = [str(found.schema.field(name).type) for name in ("selected", *ADDED)]
    assert types == ["bool", "int32", "double"]
    frame = selector.select(table.to_pandas(), keep_all=True)
    assert [str(frame[n].dtype) for n in ("selected", *ADDED)] == [
        "bool",
        "int32",
        "float64",
    ]


@pytest.mark.parametrize("kind", ["arrow", "pandas-odd", "polars"])
def test_nothing_is_selected(table, kind):
    costly = table.append_column("cost", pa.array(np.full(84, 5.0)))
    selector = TableSelector(**QUICK, cost="cost").fit(costly)
    found = selector.select(frames(costly)[kind], budget=1.0)
    assert len(found) == 0
    names = found.column_names if kind == "arrow" else list(found.columns)
    assert names == [*costly.column_names, *ADDED]


@pytest.mark.parametrize(
    "name", ["selection_rank", "inclusion_probability", "selected"]
)
def test_a_name_that_a_selection_adds(selector, table, name):
    taken = table.append_column(name, pa.array(np.zeros(84)))
    message = f"the table already has a column '{name}', which a selection adds"
    with pytest.raises(TableError, match=message):
        selector.select(taken, keep_all=True)
    if name == "selected":
        assert selector.select(taken).num_rows == selector.predict(table).sum()


def test_frames_that_cannot_be_read(table):
    frame = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    with pytest.raises(TableError, match="'a'"):
        TableSelector(quality="a", label="y").fit(frame)
    frame = pd.DataFrame({"a": [1, "x"], "y": [1, 0]})
    with pytest.raises(TableError, match="a column of the table cannot be read: "):
        TableSelector(quality="a", label="y").fit(frame)


# Tables that do not fit -----------------------------------------------------------


@pytest.mark.parametrize("name", ["score", "embedding", "query"])
def test_a_table_without_a_column_that_is_needed(selector, table, name):
    message = f"the table does not fit the model: there is no column '{name}'"
    with pytest.raises(TableError, match=message):
        selector.choose(table.drop_columns(name))


def test_columns_that_are_not_needed(selector, table):
    few = table.select(["embedding", "freshness", "query", "score"])
    same_choices(selector.choose(few), selector.choose(table))
    with pytest.raises(TableError, match=r"does not fit the model: .*'chosen'"):
        selector.score(few)


def test_vectors_of_another_length(selector, table):
    longer = replaced(table, "embedding", [[1.0] * 5] * 84)
    with pytest.raises(
        TableError, match="'embedding' holds vectors of 5 numbers, where 4 are expected"
    ):
        selector.choose(longer)


def test_a_column_that_holds_text_now(selector, table):
    with pytest.raises(TableError, match="column 'score' holds 'a' in row 1, which is"):
        selector.choose(replaced(table, "score", ["a"] * 84))


def test_other_names_for_columns_that_are_no_features(table):
    selector = TableSelector(**QUICK).fit(table)
    expected = selector.choose(table)
    names = {"query": "q", "chosen": "y"}
    other = table.rename_columns([names.get(n, n) for n in table.column_names])
    other = other.append_column("price", pa.array(np.full(84, 2.0)))
    selector = selector.with_columns(group="q", label="y", cost="price")
    same_choices(selector.choose(other), expected)
    assert 0.0 < selector.score(other) <= 1.0
    assert selector.choose(other, budget=2.5).selected.sum() <= 12


# Choosing -------------------------------------------------------------------------


def test_choices_are_those_of_the_model(selector, table):
    """Features, groups and decoding, put together by hand."""
    choices = selector.choose(table)
    X = np.column_stack([table["score"], table["freshness"]])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    V = np.array(table["embedding"].to_pylist())
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    for first in range(0, 84, 7):
        rows = slice(first, first + 7)
        ensemble = selector.model_.ensemble(vg.GroundSet(X[rows], V[rows]))
        wanted = np.zeros(7, dtype=bool)
        wanted[ensemble.decode("greedy").indices] = True
        np.testing.assert_array_equal(choices.selected[rows], wanted)
        np.testing.assert_allclose(
            choices.probability[rows], ensemble.marginals(), atol=1e-5
        )
    np.testing.assert_array_equal(
        selector.inclusion_probability(table), choices.probability
    )


def test_scattered_rows_are_chosen_as_together(selector, table):
    shuffled = np.random.default_rng(0).permutation(84)
    # The order within a group stays, so that ties and rounding do.
    groups = np.repeat(np.arange(12), 7)[shuffled]
    order = np.empty(84, dtype=int)
    for group in range(12):
        order[groups == group] = np.arange(7 * group, 7 * group + 7)
    scattered = selector.choose(table.take(order))
    together = selector.choose(table)
    np.testing.assert_array_equal(scattered.rank, together.rank[order])


def test_a_budget(table):
    costs = np.random.default_rng(0).random(84) + 0.1
    costly = table.append_column("cost", pa.array(costs))
    for decoder in ("greedy", "mbr"):
        selector = TableSelector(**QUICK | {"decoder": decoder}, cost="cost").fit(
            costly
        )
        for k in (None, 2, 7):
            chosen = selector.choose(costly, k=k, budget=0.8)
            spent = (costs * chosen.selected).reshape(12, 7).sum(axis=1)
            assert (spent <= 0.8 + 1e-12).all()
            assert chosen.selected.any()
            if k is not None:
                assert chosen.selected.reshape(12, 7).sum(axis=1).max() <= k


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_threads_change_nothing(table, n_jobs):
    parameters = QUICK | {"decoder": vg.decoding.MBR(n_samples=20)}
    one = TableSelector(**parameters).fit(table)
    many = TableSelector(**parameters, n_jobs=n_jobs).fit(table)
    same_choices(one.choose(table), many.choose(table))


def test_the_same_seed_the_same_choice(table):
    decoder = vg.decoding.MBR(n_samples=10)
    parameters = QUICK | {"decoder": decoder, "validation_fraction": 0.3}
    first = TableSelector(**parameters, random_state=3).fit(table)
    again = TableSelector(**parameters, random_state=3).fit(table)
    same_choices(first.choose(table), again.choose(table))
    same_choices(first.choose(table), first.choose(table))
    np.testing.assert_array_equal(first.model_.theta_, again.model_.theta_)
    other = TableSelector(**parameters, random_state=4).fit(table)
    assert not np.array_equal(first.model_.theta_, other.model_.theta_)


# Learning -------------------------------------------------------------------------


def test_tuning(table):
    parameters = QUICK | {"omega": None, "tune": True, "lams": (0.0, 1.0)}
    selector = TableSelector(**parameters).fit(table)
    assert selector.lam_ in (0.0, 1.0)
    assert selector.omega_ in TUNING_OMEGAS
    assert selector.path_ is None
    assert set(selector.training_["tuned"]) == {"precision", "recall", "f", "size"}
    assert selector.training_["n_tuned"] == 12
    fixed = TableSelector(**parameters | {"omega": 3.0}).fit(table)
    assert fixed.omega_ == 3.0
    assert selector.predict(table).any()


def test_a_target(table):
    parameters = QUICK | {"omega": None, "lams": (4.0,)}
    selector = TableSelector(**parameters, target_recall=0.5).fit(table)
    assert selector.training_["tuned"]["recall"] == pytest.approx(0.5, abs=0.1)
    judged = clone(selector).set_params(validation_fraction=0.25).fit(table)
    assert judged.path_.target == ("recall", 0.5)
    assert judged.path_.chosen == judged.omega_
    higher = TableSelector(**parameters, target_recall=0.6).fit(table)
    assert higher.omega_ > selector.omega_


def test_held_out_groups_are_not_learned_from(table):
    parameters = QUICK | {"omega": 0.5}
    selector = TableSelector(**parameters, validation_fraction=0.25).fit(table)
    record = selector.training_
    assert (record["n_learned_from"], record["n_held_out"]) == (9, 3)
    assert set(record["validation"]) == {"precision", "recall", "f", "size"}
    # Whichever three groups were held out: what they hold makes no difference.
    flags = flags_of(table).reshape(12, 7)
    same = []
    for group in range(12):
        changed = flags.copy()
        changed[group] = ~changed[group]
        changed[group, 0] = True
        other = TableSelector(**parameters, validation_fraction=0.25).fit(
            replaced(table, "chosen", changed.ravel())
        )
        same.append(np.array_equal(other.model_.theta_, selector.model_.theta_))
    assert sum(same) == 3


def test_two_groups_of_which_one_is_held_out(table):
    two = table.slice(0, 14)
    selector = TableSelector(**QUICK, validation_fraction=0.5).fit(two)
    assert selector.training_["n_held_out"] == 1
    json.dumps(selector.training_, allow_nan=False)
    assert len(str(selector.path_).splitlines()) == 7
    low_to_high = selector.training_["validation"]["f"]
    assert low_to_high[0] == low_to_high[1] == low_to_high[2]


@pytest.mark.parametrize("fraction", [0.01, 0.99])
def test_a_split_that_leaves_nothing(table, fraction):
    message = f"12 groups cannot be split into a share of {fraction:g} to hold out"
    with pytest.raises(TableError, match=message):
        TableSelector(**QUICK, validation_fraction=fraction).fit(table)


@pytest.mark.parametrize(
    "parameters",
    [
        {"validation_fraction": 0.25},
        {"omega": None},
        {"omega": None, "tune": True, "lams": (0.0, 1.0)},
    ],
)
def test_what_is_learned_does_not_depend_on_memory(table, parameters):
    held = TableSelector(**QUICK | parameters).fit(table)
    small = TableSelector(**QUICK | parameters, memory=1).fit(table)
    assert small.omega_ == held.omega_
    assert small.model_.theta_.tobytes() == held.model_.theta_.tobytes()
    assert small.model_.intercept_ == held.model_.intercept_
    assert small.training_ == held.training_


def test_first_passes_are_a_start_of_the_solver(table):
    plain = TableSelector(**QUICK | {"tol": 1e-6}).fit(table)
    started = TableSelector(**QUICK | {"tol": 1e-6}, first_passes=2).fit(table)
    np.testing.assert_allclose(
        started.model_.theta_, plain.model_.theta_, rtol=1e-3, atol=1e-3
    )


def test_progress(table):
    stages = []
    selector = TableSelector(**QUICK, validation_fraction=0.25)
    selector.fit(table, progress=lambda stage, done, total: stages.append(stage))
    assert list(dict.fromkeys(stages)) == [
        "reading",
        "looking at columns",
        "learning",
        "judging",
    ]
    stages.clear()
    selector.choose(table, progress=lambda stage, done, total: stages.append(stage))
    assert list(dict.fromkeys(stages)) == ["reading", "choosing"]


# Small tables ---------------------------------------------------------------------


def test_one_group(table):
    selector = TableSelector(**QUICK).fit(table.slice(0, 7))
    assert selector.predict(table.slice(0, 7)).any()
    with pytest.raises(TableError, match="one group is not enough to choose lambda"):
        TableSelector(**QUICK, tune=True).fit(table.slice(0, 7))
    with pytest.raises(TableError, match=r"1 groups? cannot be split"):
        TableSelector(**QUICK, validation_fraction=0.5).fit(table.slice(0, 7))


def test_without_a_group_column(table):
    parameters = QUICK | {"group": None}
    selector = TableSelector(**parameters).fit(table.slice(0, 20))
    choices = selector.choose(table.slice(3, 11), k=4)
    assert sorted(choices.rank.tolist()) == [0] * 7 + [1, 2, 3, 4]


def test_groups_of_one_row():
    x = np.array([1.0, -1.0, 2.0, -2.0, 1.5, -0.5])
    y = np.array([1, 0, 1, 0, 0, 1])
    table = pa.table({"g": list("abcdef"), "x": x, "v": [[1.0, 0.0]] * 6, "y": y})
    parameters = {
        "group": "g",
        "label": "y",
        "quality": "x",
        "similarity": "v",
        "omega": 1.0,
        "empty_groups": "keep",
        "lam": 0.0,
        "l2": 0.0,
        "tol": 1e-6,
    }
    selector = TableSelector(**parameters, kernel="linear").fit(table)
    # A row alone is there with probability q² / (1 + q²): a logistic regression.
    logistic = LogisticRegression(C=np.inf, tol=1e-8).fit(x[:, None], y)
    expected = logistic.predict_proba(x[:, None])[:, 1]
    np.testing.assert_allclose(
        selector.inclusion_probability(table), expected, atol=1e-3
    )
    with pytest.raises(ValueError, match="no two items of any ground set differ"):
        TableSelector(**parameters).fit(table)


def test_all_rows_are_chosen(table):
    everything = replaced(table, "chosen", np.ones(84, dtype=bool))
    selector = TableSelector(**QUICK).fit(everything)
    assert selector.predict(table).mean() > 0.5


def test_quality_that_is_all_the_same(table):
    constant = replaced(table, "score", np.full(84, 3.0))
    selector = TableSelector(**QUICK | {"quality": "score"}).fit(constant)
    assert np.isfinite(selector.model_.theta_).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector.predict(constant)


def test_numbers_at_the_ends_of_what_there_is(table):
    huge = replaced(table, "score", table["score"].to_numpy() * 1e200)
    tiny = replaced(table, "score", table["score"].to_numpy() * 1e-300)
    expected = TableSelector(**QUICK).fit(table).inclusion_probability(table)
    for other in (huge, tiny):
        found = TableSelector(**QUICK).fit(other).inclusion_probability(other)
        np.testing.assert_allclose(found, expected, atol=1e-4)


def with_a_group_of_zeros(table, group):
    """Vectors of zeros, which are not even like themselves."""
    vectors = np.array(table["embedding"].to_pylist())
    vectors[[query == group for query in table["query"].to_pylist()]] = 0.0
    return replaced(table, "embedding", vectors.tolist())


@pytest.mark.parametrize("number", [2, 11])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"tune": True, "n_jobs": 1}, {"tune": True, "n_jobs": 2}, {"memory": 1}],
    ids=["memory", "tuning", "processes", "stream"],
)
def test_what_cannot_be_learned_is_said_with_the_name_of_the_group(
    table, parameters, number
):
    zeros = with_a_group_of_zeros(table, f"q{number:04d}")
    message = rf"^group 'q{number:04d}': its row .* similarity to itself"
    with pytest.raises(TableError, match=message):
        TableSelector(**QUICK | parameters).fit(zeros)


def test_a_copy_of_a_row_is_rarely_chosen_with_it(table):
    selector = TableSelector(**QUICK | {"kernel": "multiple"}).fit(table)
    twice = pa.concat_tables([table.slice(0, 7), table.slice(0, 7)])
    choices = selector.choose(twice)
    assert not (choices.selected[:7] & choices.selected[7:]).any()


# Keeping --------------------------------------------------------------------------


def with_holes(table):
    score = table["score"].to_pylist()
    kinds = table["kind"].to_pylist()
    score[3] = kinds[5] = None
    return replaced(replaced(table, "score", score), "kind", kinds)


SAVED = {
    "plain": {},
    "multiple": {"kernel": "multiple"},
    "another omega": {"omega": 2.0},
    "tuned": {"tune": True, "omega": None, "lams": (0.0, 1.0)},
    "target": {"target_recall": 0.5, "omega": None, "lams": (4.0,)},
    "held out": {"validation_fraction": 0.25},
    "held out one": {"validation_fraction": 0.08},
    "holes": {"missing": "indicator", "categorical": "kind"},
    "mean": {"missing": "mean", "categorical": ["kind"]},
    "blocks": {"similarity": ["embedding", "tokens"], "kernel": "multiple"},
    "linear blocks": {"similarity": ["embedding", "tokens"], "kernel": "linear"},
    "no similarity": {"similarity": None},
    "vectors as quality": {"quality": ["score", "embedding"], "similarity": None},
    "greedy object": {"decoder": vg.decoding.Greedy()},
    "mbr object": {"decoder": vg.decoding.MBR(n_samples=50)},
    "mbr": {"decoder": "mbr"},
    "kernel object": {"kernel": vg.Gaussian(bandwidth=1.0)},
    "numpy settings": {"omega": np.float32(0.5), "lam": np.float64(2.0)},
    "generator": {"random_state": np.random.default_rng(0)},
    "first passes": {"first_passes": 1},
    "all numbers": {"quality": None},
    "stars": {"quality": ["s*", "fresh*"], "item": "item"},
}


# What commands do -------------------------------------------------------------------


def test_rows_in_a_file_are_those_that_are_returned(selector, table, tmp_path):
    path = tmp_path / "chosen.parquet"
    stages = set()
    for keep_all in (False, True):
        rows = selector.select(table, k=2, keep_all=keep_all, drop=["embedding"])
        assert "embedding" not in rows.column_names
        choices = selector.select(
            table,
            k=2,
            keep_all=keep_all,
            drop=["embedding"],
            out=path,
            progress=lambda stage, done, total: stages.add(stage),
        )
        same_choices(choices, selector.choose(table, k=2))
        assert parquet.read_table(path).equals(rows)
    assert stages == {"reading", "choosing", "writing"}


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_columns_are_dropped_from_every_kind_of_frame(selector, table, kind):
    frame = frames(table)[kind]
    chosen = selector.select(frame, drop=["embedding", "item"])
    assert type(chosen) is type(frame)
    kept = [n for n in table.column_names if n not in ("embedding", "item")]
    names = chosen.column_names if kind == "arrow" else list(chosen.columns)
    assert names == [*kept, *ADDED]


def test_what_could_not_be_given_is_refused_before_the_work(selector, table, tmp_path):
    with pytest.raises(TableError, match=r"no column 'scores' \(did you mean 'score'"):
        selector.select(table, drop=["scores"])
    taken = table.rename_columns([*table.column_names[:-1], "selection_rank"])
    with pytest.raises(TableError, match="already has a column 'selection_rank'"):
        selector.select(taken)
    with pytest.raises(ValueError, match="cannot hold 'embedding'"):
        selector.select(table, out=tmp_path / "chosen.csv")
    assert list(tmp_path.iterdir()) == []


def test_how_searches_ended(table):
    settings = QUICK | {"decoder": "exact"}
    choices = TableSelector(**settings).fit(table).choose(table)
    assert choices.groups == sorted(set(table["query"].to_pylist()))
    assert all(ending["is_optimal"] for ending in choices.endings)
    assert {ending["gap"] for ending in choices.endings} == {0.0}
    assert choices.endings[0]["stop_reason"] == "looked at every subset"
    greedy = TableSelector(**QUICK).fit(table).choose(table)
    assert len(greedy.endings) == 12
    assert {ending["gap"] for ending in greedy.endings} == {None}


def test_unknown_levels_are_counted(table):
    settings = QUICK | {"categorical": "kind"}
    selector = TableSelector(**settings).fit(table)
    assert selector.choose(table).unknown_levels == {}
    odd = replaced(table, "kind", ["novel"] * 3 + table["kind"].to_pylist()[3:])
    assert selector.choose(odd).unknown_levels == {"kind": 3}


def test_evaluation(selector, table):
    found = selector.evaluate(table)
    assert list(found.scores) == ["model"]
    f = found.scores["model"][:, 2].mean()
    assert f == pytest.approx(selector.score(table))
    short = found.endings["model"]._asdict()
    assert sum(short["stop_reasons"].values()) == 12
    assert (short["n_optimal"], short["largest_gap"]) == (0, None)
    # Labels beside the table, other selectors, methods of a number of rows.
    y = flags_of(table)
    other = TableSelector(**QUICK | {"decoder": "exact"}).fit(table)
    found = selector.evaluate(
        table.drop(["chosen"]), y, methods=["top"], k="wanted",
        others={"exact": other}, name="greedy",
    )  # fmt: skip
    assert list(found.scores) == [
        "greedy",
        "exact",
        "greedy (as many as wanted)",
        "exact (as many as wanted)",
        "top (as many as wanted)",
    ]
    assert found.endings["exact"].n_optimal == 12
    assert found.endings["exact"].largest_gap == 0.0
    assert found.scores["greedy"][:, 2].mean() == f
    k = round(selector.training_["chosen_sizes"]["mean"])
    assert f"mmr (k = {k})" in selector.evaluate(table, methods=["mmr"]).scores


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": ["best"]}, "unknown method 'best'; there are dpp"),
        ({"methods": ["top"], "k": 0}, "k must be a whole number of at least 1"),
        ({"omega": -2.0}, "omega must be a finite number > 0, got -2.0"),
        ({"relevance": "scores"}, "no column 'scores'"),
        ({"empty_groups": "skip"}, "unknown empty_groups 'skip'"),
        ({"k": "all"}, "k must be a whole number of at least 1, got 'all'"),
        ({"budget": -1.0}, "budget must be a finite number > 0, got -1.0"),
        ({"budget": 9.0}, "a budget needs a column of costs: name it with cost"),
    ],
)
def test_what_cannot_be_evaluated(selector, table, arguments, message):
    with pytest.raises(ValueError, match=message):
        selector.evaluate(table, **arguments)


def test_a_relevance_is_needed_by_what_goes_by_nothing_else(table):
    settings = QUICK | {"quality": "kind", "categorical": "kind"}
    selector = TableSelector(**settings).fit(table)
    assert selector.default_relevance() is None
    with pytest.raises(TableError, match="'top' needs a relevance: no quality is"):
        selector.evaluate(table, methods=["top"])
    assert len(selector.evaluate(table, methods=["dpp"]).scores) == 2


def test_report_and_description(selector, table):
    report = selector.report(table, relevance="score", show=["item"])
    assert report.selector is selector
    assert report.show == ("item",)
    assert report.examples
    described = selector.describe()
    assert "freshness" in str(described)
    assert described.numbers["weights"] == selector.weights_


def test_choosing_without_a_model(table, tmp_path):
    columns = Columns(group="query", similarity=("embedding",), relevance="score")
    chosen = select_untrained(table, columns, "top", k=2)
    assert chosen.column_names == [*table.column_names, "selection_rank"]
    # The rows of a query are listed by their scores.
    assert chosen["selection_rank"].to_pylist() == [1, 2] * 12
    path = tmp_path / "chosen.parquet"
    choices = select_untrained(table, columns, "top", k=2, out=path)
    assert parquet.read_table(path).equals(chosen)
    assert choices.probability is None
    assert choices.endings == []
    with pytest.raises(TableError, match="say how many rows to choose: k or budget"):
        select_untrained(table, columns)
    with pytest.raises(TableError, match="a budget needs cost, the column of costs"):
        select_untrained(table, columns, budget=3.0)


@pytest.mark.parametrize("name", SAVED)
def test_a_loaded_selector_chooses_the_same(table, tmp_path, name):
    training = with_holes(table) if name in ("holes", "mean") else table
    selector = TableSelector(**QUICK | SAVED[name]).fit(training)
    path = tmp_path / "selector.json"
    selector.save(path)
    loaded = vg.load(path)
    assert type(loaded) is TableSelector
    same_choices(loaded.choose(training, k=2), selector.choose(training, k=2))
    np.testing.assert_array_equal(
        loaded.inclusion_probability(training), selector.inclusion_probability(training)
    )
    if name != "generator":
        same_choices(loaded.choose(training), selector.choose(training))
        assert loaded.score(training) == selector.score(training)
    assert loaded.columns_ == selector.columns_
    assert (loaded.omega_, loaded.lam_) == (selector.omega_, selector.lam_)
    assert loaded.weights_ == selector.weights_
    assert loaded.feature_names_in_.tolist() == selector.feature_names_in_.tolist()
    assert str(loaded.path_) == str(selector.path_)
    assert json.dumps(loaded.training_) == json.dumps(selector.training_)
    again = tmp_path / "again.json"
    loaded.save(again)
    assert (
        json.loads(again.read_text())["models"]
        == json.loads(path.read_text())["models"]
    )
    clone(loaded).fit(training)


def test_another_omega_after_loading(selector, table, tmp_path):
    selector.save(tmp_path / "a.json")
    loaded = vg.load(tmp_path / "a.json")
    same_choices(loaded.choose(table, omega=2.5), selector.choose(table, omega=2.5))


DAMAGES = {
    "no encoding": lambda d: d.pop("encoding"),
    "no columns": lambda d: d.pop("columns"),
    "no table": lambda d: d.pop("table"),
    "no k": lambda d: d["policy"].pop("k"),
    "two models": lambda d: d["models"].append(d["models"][0] | {"omega": 2.0}),
    "no models": lambda d: d.pop("models"),
    "no settings": lambda d: d.pop("settings"),
    "a list of columns": lambda d: d.update(columns=["query"]),
    "unknown part": lambda d: d["columns"].update(colour="red"),
    "a number as group": lambda d: d["columns"].update(group=3),
    "unknown missing": lambda d: d["columns"].update(missing="zero"),
    "unknown setting": lambda d: d["settings"].update(colour="red"),
    "bad setting": lambda d: d["settings"].update(lam=-1.0),
    "omega outside": lambda d: d.update(omega=100.0),
    "omega of text": lambda d: d.update(omega="one"),
    "unknown kind": lambda d: d["encoding"]["quality"][0].update(kind="colour"),
    "no kind": lambda d: d["encoding"]["quality"][0].pop("kind"),
    "scale of zero": lambda d: d["encoding"]["quality"][0].update(scale=[0.0]),
    "scale too long": lambda d: d["encoding"]["quality"][0].update(scale=[1.0, 2.0]),
    "number of two means": lambda d: d["encoding"]["quality"][0].update(
        mean=[1.0, 2.0], scale=[1.0, 2.0]
    ),
    "one count too many": lambda d: d["encoding"]["quality"][0].update(
        kind="category", counts=[1]
    ),
    "huge mean": lambda d: d["encoding"]["quality"][0].update(mean=[10**400]),
    "infinite mean": lambda d: d["encoding"]["quality"][0].update(mean=["inf"]),
    "nested mean": lambda d: d["encoding"]["quality"][0].update(mean=[[0.0]]),
    "one column less": lambda d: d["encoding"]["quality"].pop(),
    "quality is no list": lambda d: d["encoding"].update(quality=3),
    "blocks are no dict": lambda d: d["encoding"].update(blocks=[]),
    "a column that is no part": lambda d: d["encoding"]["quality"][0].update(name="x"),
    "a block of another column": lambda d: d["encoding"]["blocks"]["embedding"][
        0
    ].update(name="x"),
    "no blocks": lambda d: d["encoding"].update(blocks={}),
    "models of text": lambda d: d.update(models="all"),
    "training of text": lambda d: d.update(training="long"),
    "path without points": lambda d: d["training"].update(path={"lam": 1.0}),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_files(selector, tmp_path, name):
    path = tmp_path / "a.json"
    selector.save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    DAMAGES[name](document)
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ModelFileError, match=r"a\.json"):
        vg.load(path)


# What is held out -----------------------------------------------------------------


@pytest.mark.parametrize("memory", [2**29, 2000])
def test_held_out_groups_have_no_part_in_learning(memory):
    table = make_table(40, 8, 4, random_state=2)
    parameters = QUICK | {"memory": memory, "validation_fraction": 0.25}
    parameters |= {"categorical": "kind"}
    first = TableSelector(**parameters).fit(table)
    found = survey_table(MemoryTable(table), first.columns_)
    _, held_out = split_groups(first, found)
    assert len(held_out) == 10
    names = {found.name(number) for number in held_out}
    is_held_out = np.array([name in names for name in table["query"].to_pylist()])
    # Other labels, other numbers and new kinds, in groups that are held out.
    flipped = np.where(is_held_out, ~np.array(table["chosen"]), table["chosen"])
    score = np.where(is_held_out, 100.0, 1.0) * np.array(table["score"])
    kind = np.where(is_held_out, "new", np.array(table["kind"]))
    other = table
    for name, values in {"chosen": flipped, "score": score, "kind": kind}.items():
        other = replaced(other, name, values)
    second = TableSelector(**parameters).fit(other)
    assert second.weights_ == first.weights_
    assert second.training_["validation"] != first.training_["validation"]


def test_a_column_of_labels_is_no_feature(table):
    frame = table.to_pandas()
    y = frame["chosen"]
    parameters = {"group": "query", "similarity": "embedding", "omega": 1.0}
    named = TableSelector(**parameters).fit(frame, y)
    assert "chosen" not in named.weights_
    with pytest.raises(TableError, match="column 'chosen' holds the labels: name it"):
        TableSelector(**parameters).fit(frame, y.to_numpy())


def test_the_groups_held_out_are_remembered(table, tmp_path):
    rng = np.random.default_rng(0)
    parameters = QUICK | {"random_state": rng, "validation_fraction": 0.25}
    selector = TableSelector(**parameters).fit(table)
    found = survey_table(MemoryTable(table), selector.columns_)
    first, second = (split_groups(selector, found) for _ in range(2))
    assert first[1].tolist() == second[1].tolist()
    selector.save(tmp_path / "model.json")
    again = split_groups(vg.load(tmp_path / "model.json"), found)
    assert first[1].tolist() == again[1].tolist()
    same_choices(vg.load(tmp_path / "model.json").choose(table), selector.choose(table))


def test_stopping_early_is_said(table):
    hasty = QUICK | {"max_iter": 1, "tol": 1e-9}
    with pytest.warns(ConvergenceWarning, match="^stopped at max_iter=1 iter"):
        TableSelector(**hasty).fit(table)


def test_the_score_leaves_out_what_learning_leaves_out(table):
    query = np.array(table["query"])
    label = np.array(table["chosen"]) & (query != query[0])
    empty = replaced(table, "chosen", label)
    selector = TableSelector(**QUICK | {"empty_groups": "drop"}).fit(empty)
    rest = empty.filter(pa.array(query != query[0]))
    assert selector.score(empty) == selector.score(rest)
    with pytest.raises(TableError, match="1 of 12 groups has no chosen row"):
        TableSelector(**QUICK).fit(table).score(empty)


def test_a_group_too_large_for_pairs(table, monkeypatch):
    monkeypatch.setattr("variegate.tables.training.MAX_ROWS", 6)
    with pytest.raises(TableError, match="has 7 rows, and learning compares all pairs"):
        TableSelector(**QUICK | {"kernel": "multiple"}).fit(table)
    TableSelector(**QUICK | {"kernel": "linear"}).fit(table)
