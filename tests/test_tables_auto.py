"""A selector that chooses its kernel by evidence, and says what it compared."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from variegate.baselines.learned import Ordering
from variegate.estimator import AllAlikeWarning
from variegate.files.models import ModelFileError
from variegate.tables import TableSelector
from variegate.tables.limits import Limit
from variegate.tables.table import as_table

COLUMNS = {"group": "group", "label": "chosen", "quality": "q*", "similarity": "vector"}


def as_arrow(groups):
    sizes = [len(quality) for quality, *_ in groups]
    quality = np.concatenate([quality for quality, *_ in groups])
    chosen = [np.isin(np.arange(len(q)), wanted) for q, _, wanted in groups]
    columns = {
        "group": np.repeat(np.arange(len(groups)), sizes),
        "chosen": np.concatenate(chosen).astype(np.int8),
        "vector": list(np.concatenate([vectors for _, vectors, _ in groups])),
    }
    return pa.table(columns | {f"q{i}": q for i, q in enumerate(quality.T)})


def editor(n_groups, seed=0, kinds=range(4)):
    """Return a table from which the best of each kind was chosen."""
    centres = 2.0 * np.random.default_rng(1).standard_normal((8, 8))
    rng = np.random.default_rng(seed)
    groups = []
    for _ in range(n_groups):
        kind = rng.choice(list(kinds), 12)
        quality = rng.standard_normal((12, 1))
        vectors = centres[kind] + 0.7 * rng.standard_normal((12, 8))
        of = [np.flatnonzero(kind == one) for one in np.unique(kind)]
        groups.append((quality, vectors, [i[np.argmax(quality[i, 0])] for i in of]))
    return as_arrow(groups)


def two_stage(n_groups, seed=0):
    """Return a table from which MMR chose five rows of each group."""
    rng = np.random.default_rng(seed)
    groups = []
    for _ in range(n_groups):
        quality, vectors = rng.standard_normal((14, 3)), rng.standard_normal((14, 6))
        wanted = vg.select(vectors, quality @ [2.0, -1.0, 0.5], 5, "mmr")
        groups.append((quality, vectors, wanted))
    return as_arrow(groups)


@pytest.fixture(scope="module")
def kinds():
    return TableSelector(**COLUMNS, validation_fraction=0.2).fit(editor(60))


@pytest.fixture(scope="module")
def regression():
    return TableSelector(**COLUMNS).fit(two_stage(50))


def selector_warned_of(names, monkeypatch):
    """Return a fitted selector and its warnings, all kernels of ``names`` all alike."""
    from variegate.estimator import large_margin

    def warn(kernel, parameters, examples):
        if type(kernel).__name__ in names:
            warnings.warn("all alike", AllAlikeWarning, stacklevel=2)

    monkeypatch.setattr(large_margin, "warn_if_all_alike", warn)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        selector = TableSelector(**COLUMNS).fit(editor(60))
    alike = [str(w.message) for w in caught if w.category is AllAlikeWarning]
    return selector, alike


def test_only_the_model_that_is_kept_is_warned_of(monkeypatch):
    others = ["MultipleKernel", "Linear", "Mixture"]
    selector, alike = selector_warned_of(others, monkeypatch)
    assert isinstance(selector.model_.kernel_, vg.Kinds)
    assert selector.policy_.fallback is not None
    assert alike == []
    _, alike = selector_warned_of(["Kinds"], monkeypatch)
    assert alike == ["all alike"]


def test_kinds_are_taken_where_they_are_the_truth(kinds):
    assert isinstance(kinds.model_.kernel_, vg.Kinds)
    assert kinds.policy_.fallback is not None
    compared = kinds.training_["compared"]["kernels"]
    names = [entry["name"] for entry in compared]
    assert names[0].endswith(" kinds")
    assert sorted(names) == sorted(
        [
            "Gaussians",
            "linear",
            "8 kinds",
            "16 kinds",
            "32 kinds",
            "logistic regression",
        ]
    )
    assert compared[0]["behind"] == 0.0
    assert kinds.training_["n_compared"] == 48
    told = str(kinds.describe())
    assert "compared models" in told
    assert "above a logistic regression followed by" in " ".join(told.split())
    # On the data it beats the regression that it was compared with.
    rival = TableSelector(**COLUMNS, kernel="linear").fit(editor(60))
    new = editor(60, seed=3)
    assert kinds.score(new) > rival.score(new) + 0.05


def test_new_kinds_go_to_the_second_model(kinds):
    other = editor(20, seed=4, kinds=range(4, 8))
    groups = list(kinds._read_groups(as_table(other), kinds._required_columns(True)))
    way = kinds.policy_.fallback.chooser(seed=kinds.seed_)
    chooser = kinds._make_chooser()
    for group in groups:
        assert not kinds.policy_.is_familiar(group.ground_set)
        np.testing.assert_array_equal(chooser(group).order, way(group).order)
    columns = kinds._required_columns(False)
    known = next(iter(kinds._read_groups(as_table(editor(2, seed=5)), columns)))
    usual = replace(kinds.policy_, fallback=None).chooser(seed=kinds.seed_)
    np.testing.assert_array_equal(chooser(known).order, usual(known).order)
    # What is asked for holds there too.
    assert len(kinds._make_chooser(None, Limit(3))(groups[0]).order) == 3
    kinds._make_chooser(omega=16.0)(groups[0])


def test_a_regression_is_taken_where_it_is_the_truth(regression):
    assert regression.policy_.ordering == Ordering("mmr", 0.5)
    assert regression.k_ == 5
    assert regression.policy_.fallback is None
    new = two_stage(30, seed=9)
    # The relevance is learned, so that few choices differ from those of the truth.
    assert regression.score(new) > 0.9
    told = " ".join(str(regression.describe()).split())
    assert "Learning a similarity did not pay here" in told
    assert "5 rows of each group, by mmr (diversity 0.5) on learned relevance" in told
    choices = regression.choose(new)
    assert len(choices.endings) == 30
    assert (
        choices.endings[0]["stop_reason"] == "rows of learned relevance, chosen by mmr"
    )
    assert ((choices.probability > 0.0) & (choices.probability < 1.0)).all()


def test_another_omega_moves_a_fixed_number_of_rows(regression):
    new = two_stage(20, seed=9)
    sizes = {
        omega: int(regression.choose(new, omega=omega).selected.sum())
        for omega in (1 / 16, 1.0, 16.0)
    }
    assert sizes[1 / 16] < sizes[1.0] == 100 < sizes[16.0]
    assert regression.choose(new, k=3).selected.sum() == 60
    assert regression.choose(new).selected.sum() == 100


@pytest.mark.parametrize("name", ["kinds", "regression"])
def test_a_file_keeps_how_rows_are_chosen(name, request, tmp_path):
    selector = request.getfixturevalue(name)
    path = tmp_path / "model.json"
    selector.save(path)
    loaded = vg.load(path)
    assert str(loaded.policy_) == str(selector.policy_)
    both = editor(10, seed=4, kinds=range(8)) if name == "kinds" else two_stage(10, 4)
    np.testing.assert_array_equal(loaded.choose(both).rank, selector.choose(both).rank)
    assert str(loaded.describe()) == str(selector.describe())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, '"policy.k" is 0, not a whole number of at least 1'),
        (
            {"ordering": {"method": "best", "diversity": 0.5}},
            "ordering.method\" is 'best', not one of",
        ),
        (
            {"ordering": {"method": "mmr", "diversity": "much"}},
            "ordering.diversity\" is 'much', not a number",
        ),
    ],
)
def test_damaged_rules_are_refused(regression, tmp_path, change, message):
    path = tmp_path / "model.json"
    regression.save(path)
    document = json.loads(path.read_text())
    document["policy"] |= change
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=message):
        vg.load(path)


def test_what_is_given_is_not_decided():
    table = two_stage(24)
    given = TableSelector(**COLUMNS, decoder="greedy", lam=2.0, omega=1.0).fit(table)
    assert (given.k_, given.policy_.ordering) == (None, None)
    assert given.lam_ == 2.0
    assert given.model_.decoder == "greedy"
    names = [entry["name"] for entry in given.training_["compared"]["kernels"]]
    assert "logistic regression" not in names
    tried = {entry["name"] for entry in given.training_["compared"]["settings"]}
    assert not {"lam = 1", "lam = 16", "omega = 4"} & tried
    named = TableSelector(**COLUMNS, kernel="multiple", omega=1.0).fit(table)
    assert named.training_["compared"] == {}
    aimed = TableSelector(**COLUMNS, target_recall=0.8).fit(table)
    assert (aimed.k_, aimed.policy_.ordering) == (None, None)


def test_too_few_groups_to_compare_on_take_gaussians():
    selector = TableSelector(**COLUMNS, omega=1.0).fit(two_stage(3))
    assert isinstance(selector.model_.kernel_, vg.MultipleKernel)
    assert selector.training_["compared"] == {}


def test_several_blocks_are_compared_as_mixtures():
    table = editor(24)
    colour = np.resize(["red", "blue", "green"], len(table))
    table = table.append_column("colour", pa.array(colour))
    selector = TableSelector(
        **COLUMNS | {"similarity": ["vector", "colour"], "categorical": "colour"}
    ).fit(table)
    assert selector.training_["compared"]["kernels"]
    assert len(selector.predict(table)) == len(table)


def test_held_out_groups_have_no_part_in_the_choice():
    table = editor(40)
    split = {"validation_fraction": 0.25, "omega": 1.0}
    selector = TableSelector(**COLUMNS, **split).fit(table)
    usable = np.arange(40)
    held_out = np.random.default_rng(selector.seed_).permutation(usable)[:10]
    group = np.asarray(table["group"])
    chosen = np.asarray(table["chosen"]).copy()
    flipped = np.isin(group, held_out)
    chosen[flipped] = 1 - chosen[flipped]
    other = table.set_column(
        table.column_names.index("chosen"), "chosen", pa.array(chosen)
    )
    again = TableSelector(**COLUMNS, **split).fit(other)
    assert again.training_["compared"] == selector.training_["compared"]
    np.testing.assert_array_equal(again.model_.theta_, selector.model_.theta_)
    assert again.training_["validation"] != selector.training_["validation"]
