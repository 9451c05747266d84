"""Selectors whose quality has the log-odds of boosted trees."""

import json

import numpy as np
import pyarrow as pa
import pytest

import variegate as vg
from variegate.baselines.learned import learned_rivals
from variegate.estimator import BoostedQuality
from variegate.files.models import ModelFileError
from variegate.kernels import Linear
from variegate.tables import TableSelector
from variegate.tables.boosting import boosted_groups
from variegate.tables.comparison import learn_rivals
from variegate.tables.encoding import BOOSTED_SCORE
from variegate.tables.errors import TableError
from variegate.tables.table import as_table
from variegate.tuning.held_out import SCORES, paired_difference

COLUMNS = {
    "group": "group", "label": "chosen", "quality": "q*", "empty_groups": "keep",
}  # fmt: skip
BOOSTED = COLUMNS | {"quality_model": "boosting"}
QUICK = {"kernel": Linear(), "decoder": "expected-f"}


def table_of(n_groups, wanted_of, seed=0, n_rows=12):
    """Return groups of three numbers and a vector; ``wanted_of`` labels the rows."""
    rng = np.random.default_rng(seed)
    quality = rng.standard_normal((n_groups * n_rows, 3))
    columns = {f"q{i}": numbers for i, numbers in enumerate(quality.T)}
    columns["vector"] = list(rng.standard_normal((len(quality), 4)))
    columns["group"] = np.repeat(np.arange(n_groups), n_rows)
    columns["chosen"] = wanted_of(quality, rng).astype(np.int8)
    return pa.table(columns)


def xor(quality, rng):
    return quality[:, 0] * quality[:, 1] + 0.2 * rng.standard_normal(len(quality)) > 0.4


def straight(quality, rng):
    return quality[:, 0] + 0.3 * rng.standard_normal(len(quality)) > 0.5


def chance(quality, rng):
    return rng.random(len(quality)) < 0.3


@pytest.fixture(scope="module")
def train():
    return table_of(90, xor)


@pytest.fixture(scope="module")
def boosted(train):
    return TableSelector(**BOOSTED, **QUICK, similarity="vector").fit(train)


def f_of(selector, table):
    return selector.evaluate(table, name="m").scores["m"][:, SCORES.index("f")]


def test_an_interaction_is_learned(train, boosted):
    linear = TableSelector(**COLUMNS, **QUICK, similarity="vector").fit(train)
    test = table_of(60, xor, seed=1)
    gain, error = paired_difference(f_of(boosted, test), f_of(linear, test))
    assert gain > 10 * error
    assert boosted.feature_names_ == ["q0", "q1", "q2", BOOSTED_SCORE]
    assert boosted.weights_[BOOSTED_SCORE] > 0.5
    assert linear.encoding_.boosting is None


def test_descriptions_name_the_score(boosted):
    text = str(boosted.describe())
    assert "boosted score" in text
    assert "log-odds by 120 trees of the other quality features" in text
    numbers = boosted.describe().numbers
    assert numbers["columns"]["encoded"]["has_boosted_score"] is True
    assert numbers["weights"][BOOSTED_SCORE] == boosted.weights_[BOOSTED_SCORE]


def labelled_groups(selector, table):
    return selector._read_groups(as_table(table), selector._required_columns(True))


def test_learned_groups_are_scored_by_trees_of_other_folds(train, boosted):
    linear = TableSelector(**COLUMNS, **QUICK).fit(train)
    plain = labelled_groups(linear, train)
    learned = np.arange(0, 90, 2)
    groups = boosted_groups(plain, learned, seed=0)
    trees = groups.reader.out_of_fold
    assert sorted(np.bincount(trees.fold[learned])) == [9] * 5
    assert (trees.fold[1::2] == -1).all()
    for group, before in zip(groups, plain, strict=True):
        fold = int(trees.fold[group.number])
        model = groups.encoding.boosting if fold < 0 else trees.models[fold]
        expected = model.scores(before.quality)
        np.testing.assert_array_equal(group.quality[:, -1], expected)
        np.testing.assert_array_equal(group.quality[:, :-1], before.quality)
        # Without columns for it, the similarity is that of the columns of the quality.
        np.testing.assert_array_equal(group.embeddings(), before.quality)
        np.testing.assert_array_equal(group.ground_set.features(), before.quality)
    # Labels of a fold do not reach its own scores.
    numbers = learned[trees.fold[learned] == 3]
    flags = np.asarray(train["chosen"]).copy()
    flags[np.isin(np.asarray(train["group"]), numbers)] ^= 1
    place = train.schema.get_field_index("chosen")
    turned = train.set_column(place, "chosen", pa.array(flags))
    again = boosted_groups(labelled_groups(linear, turned), learned, seed=0)
    for one, other in zip(groups.only(numbers), again.only(numbers), strict=True):
        np.testing.assert_array_equal(one.quality, other.quality)


@pytest.fixture(scope="module")
def random_labels():
    """A table of random labels, and the F-score of choosing all of its rows.

    No rule has a better one, except by chance; trees that have seen the labels of the
    rows that they score do.
    """
    table = table_of(80, chance)
    n_wanted = np.asarray(table["chosen"]).reshape(80, 12).sum(axis=1)
    return table, float(np.mean(2 * n_wanted / (12 + n_wanted)))


def test_random_labels_are_not_learned_from_themselves(random_labels):
    table, best = random_labels
    selector = TableSelector(
        **BOOSTED, **QUICK, tune=True, lams=[0.0], similarity="vector",
        validation_fraction=0.25,
    ).fit(table)  # fmt: skip
    # Three standard errors of the mean of 60 groups, or 20, are 0.07 or 0.12.
    assert selector.training_["tuned"]["f"] < best + 0.07
    assert selector.training_["validation"]["f"][0] < best + 0.12
    assert abs(selector.weights_[BOOSTED_SCORE]) < 0.3
    # The final trees tell their own rows apart, which shows why.
    own = labelled_groups(selector, table)
    scores = np.concatenate([group.quality[:, -1] for group in own])
    wanted = np.asarray(table["chosen"], dtype=bool)
    assert scores[wanted].mean() - scores[~wanted].mean() > 0.25


@pytest.mark.parametrize("quality_model", ["boosting", "auto"])
def test_random_labels_gain_nothing_in_a_comparison(random_labels, quality_model):
    table, best = random_labels
    settings = COLUMNS | {"quality_model": quality_model, "max_iter": 5}
    selector = TableSelector(**settings, similarity="vector").fit(table)
    compared = selector.training_["compared"]
    for entry in compared["kernels"] + compared["settings"]:
        assert entry["f"] < best + 0.07
    assert (selector.encoding_.boosting is None) == (quality_model == "auto")


@pytest.mark.parametrize("is_linear", [False, True])
def test_auto_takes_trees_where_they_gain_and_says_so(is_linear):
    table = table_of(50, straight if is_linear else xor)
    settings = COLUMNS | {"similarity": "vector", "lam": 0.0, "l2": 1e-4}
    found = TableSelector(**settings).fit(table)
    names = [entry["name"] for entry in found.training_["compared"]["kernels"]]
    assert names[0].endswith(", boosted") != is_linear
    assert (found.encoding_.boosting is None) == is_linear
    says = "A boosted score was tried too, without a clear gain."
    if not is_linear:
        says = "The quality has a boosted score, the log-odds of boosted trees."
    assert says in " ".join(found.describe().section("compared models").words)


def test_rivals_do_not_see_the_score(train, boosted):
    groups = labelled_groups(boosted, train)
    rivals = learn_rivals(groups, np.arange(60), memory=2**20)
    plain = learned_rivals(*groups.without_boosting().examples(np.arange(60)))
    group = next(iter(groups))
    for name, rival in rivals.items():
        expected = plain[name].relevance(group.quality[:, :-1])
        np.testing.assert_array_equal(rival.relevance(group.quality), expected)
        assert rival.k == plain[name].k
    # So a report, and an evaluation against the training table, can be made.
    found = boosted.evaluate(table_of(20, xor, seed=4), train=train)
    assert len(found.scores) == 7


# Files ----------------------------------------------------------------------------


@pytest.mark.parametrize("similarity", ["vector", None])
def test_files_choose_the_same(train, boosted, tmp_path, similarity):
    if similarity is None:
        boosted = TableSelector(**BOOSTED, **QUICK).fit(train)
    path, test = tmp_path / "model.json", table_of(20, xor, seed=2)
    boosted.save(path)
    loaded = vg.load(path)
    assert loaded.quality_model == "boosting"
    assert loaded.select(test).equals(boosted.select(test))
    np.testing.assert_array_equal(
        loaded.inclusion_probability(test), boosted.inclusion_probability(test)
    )


def change_features(trees):
    trees["n_features"] = 2
    for tree in trees["trees"]:
        tree["feature"] = [0] * len(tree["feature"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_features, "is for 2 features, but the quality columns have 3"),
        (lambda trees: trees.pop("prior"), '"encoding.boosting.prior" is missing'),
        (
            lambda trees: trees["trees"][4]["left"].__setitem__(0, 0),
            r'"encoding.boosting.trees\[4\]": a tree.s splits and leaves must each be',
        ),
        (lambda trees: trees["trees"].append(7), r"trees\[120\]\" is 7, not a section"),
    ],
)
def test_damaged_trees_are_refused(boosted, tmp_path, change, message):
    path = tmp_path / "model.json"
    boosted.save(path)
    document = json.loads(path.read_text())
    change(document["encoding"]["boosting"])
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=message):
        vg.load(path)


# Refusals -------------------------------------------------------------------------


def test_an_unknown_quality_model(train):
    with pytest.raises(
        ValueError, match="unknown quality_model 'trees'; there are auto"
    ):
        TableSelector(**COLUMNS | {"quality_model": "trees"}).fit(train)


def test_one_group_is_not_enough():
    table = table_of(1, xor)
    with pytest.raises(TableError, match="there is one group: give more groups, or"):
        TableSelector(**BOOSTED, **QUICK).fit(table)


def test_labels_of_one_class():
    table = table_of(5, lambda X, rng: X[:, 0] < np.inf)
    with pytest.raises(TableError, match=r"'boosting': .* all of the rows are wanted"):
        TableSelector(**BOOSTED, **QUICK).fit(table)


@pytest.mark.filterwarnings("ignore:overflow")
def test_features_that_overflow_are_named(train):
    boosted = TableSelector(**BOOSTED, **QUICK).fit(train)
    table = table_of(2, xor)
    numbers = np.asarray(table["q0"]).copy()
    numbers[15] = 1e300
    boosted.encoding_.quality[0].scale[:] = 1e-300
    table = table.set_column(0, "q0", pa.array(numbers))
    with pytest.raises(TableError, match="row 16 has a quality feature that is not"):
        boosted.predict(table)


def test_many_values_are_sampled(train, monkeypatch):
    sizes = []
    fit = BoostedQuality._fit.__func__

    def recorded(cls, X, wanted, seed):
        sizes.append(len(X))
        return fit(cls, X, wanted, seed)

    monkeypatch.setattr(BoostedQuality, "_fit", classmethod(recorded))
    monkeypatch.setattr("variegate.tables.boosting._MAX_VALUES", 3 * 250)
    TableSelector(**BOOSTED, **QUICK).fit(train)
    assert sizes[-1] == 240  # 20 groups of 12 rows
