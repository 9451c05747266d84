"""Boosted trees as a quality feature: scikit-learn's numbers, folds, and files."""

import copy
import json

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from variegate.estimator import BoostedQuality, boosted_quality
from variegate.files.model_format import ModelFileError
from variegate.files.schema import SchemaError


def xor_rows(n_rows=900, seed=0, n_features=3):
    """Return rows wanted where two features have one sign, in groups of nine."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_features))
    wanted = X[:, 0] * X[:, 1] + 0.2 * rng.standard_normal(n_rows) > 0.2
    return X, wanted, np.arange(n_rows) // 9


@pytest.fixture(scope="module")
def fitted():
    return BoostedQuality.fit_out_of_fold(*xor_rows())


@pytest.mark.parametrize("n_rows", [40, 900])
def test_scores_are_those_of_scikit_learn(monkeypatch, n_rows):
    made = []

    class Recorded(GradientBoostingClassifier):
        def fit(self, *args):
            made.append(super().fit(*args))
            return self

    monkeypatch.setattr("sklearn.ensemble.GradientBoostingClassifier", Recorded)
    model = BoostedQuality.fit_out_of_fold(*xor_rows(n_rows))[0]
    assert len(made) == 6  # five folds, then all rows
    classifier = made[-1]
    assert classifier.min_samples_leaf == {40: 1, 900: 18}[n_rows]

    X = xor_rows(700, seed=1)[0]
    # Numbers at the thresholds, and next to them in either precision.
    trees = [one.tree_ for one in classifier.estimators_[:, 0]]
    at = np.concatenate([one.threshold[one.feature >= 0] for one in trees])
    at = at[: len(X) * X.shape[1]]
    single = at.astype(np.float32)
    ties = [at, np.nextafter(at, 9), single, np.nextafter(single, np.float32(-9))]
    for numbers in ties:
        X.ravel()[: len(at)] = numbers
        expected = classifier.decision_function(X)
        np.testing.assert_allclose(model.scores(X), expected, rtol=0, atol=1e-12)
        single_expected = classifier.decision_function(X.astype(np.float32))
        found = model.scores(X.astype(np.float32))
        np.testing.assert_allclose(found, single_expected, rtol=0, atol=1e-12)


def test_scores_are_of_models_that_did_not_see_the_group(fitted):
    # The labels of a group do not reach its own scores, but those of other groups.
    X, wanted, groups = xor_rows()
    scores = fitted[1]
    changed = wanted.copy()
    changed[groups == 7] = ~wanted[groups == 7]
    others = BoostedQuality.fit_out_of_fold(X, changed, groups)[1]
    np.testing.assert_array_equal(others[groups == 7], scores[groups == 7])
    assert (others[groups != 7] != scores[groups != 7]).any()


def test_scores_of_random_labels_are_not_better_than_chance():
    X, _, groups = xor_rows(3000)
    wanted = np.random.default_rng(5).random(3000) < 0.3
    model, scores = BoostedQuality.fit_out_of_fold(X, wanted, groups)
    # Five standard deviations of the area for 900 wanted rows are 0.057.
    assert abs(roc_auc_score(wanted, scores) - 0.5) < 0.057
    assert roc_auc_score(wanted, model.scores(X)) > 0.65  # which shows why


def test_an_interaction_is_learned(fitted):
    model, scores = fitted
    X, wanted, _ = xor_rows(seed=2)
    assert roc_auc_score(wanted, model.scores(X)) > 0.9
    assert roc_auc_score(xor_rows()[1], scores) > 0.9


def test_the_seed_decides(fitted):
    model, scores = BoostedQuality.fit_out_of_fold(*xor_rows())
    assert model.encode() == fitted[0].encode()
    np.testing.assert_array_equal(scores, fitted[1])
    other = BoostedQuality.fit_out_of_fold(*xor_rows(), random_state=1)[1]
    assert (other != scores).any()


def test_many_rows_are_sampled_by_whole_groups(monkeypatch):
    sizes = []
    fit = BoostedQuality._fit.__func__

    def recorded(cls, X, wanted, seed):
        sizes.append(len(X))
        return fit(cls, X, wanted, seed)

    monkeypatch.setattr(BoostedQuality, "_fit", classmethod(recorded))
    scores = BoostedQuality.fit_out_of_fold(*xor_rows(), max_values=3 * 460)[1]
    assert sizes[-1] == 459  # 51 groups of 9 rows
    assert sum(sizes[:-1]) == 4 * 459
    assert np.isfinite(scores).all()
    monkeypatch.setattr(boosted_quality, "MAX_ROWS", 1)
    BoostedQuality.fit_out_of_fold(*xor_rows())
    assert sizes[-1] == 18  # two groups at least


def test_a_fold_may_leave_one_class():
    X, _, groups = xor_rows(90)
    wanted = groups == 3
    _, scores = BoostedQuality.fit_out_of_fold(X, wanted, groups)
    # Half a row of each class is added where there are none.
    assert np.log(0.5 / 72.5) in scores[wanted]


def test_huge_numbers_are_compared(fitted):
    big = [[1e300, -1e300, 0.0], [3e38, -3e38, 0.0]]
    first, second = fitted[0].scores(big)
    assert first == second


ROWS = np.zeros((4, 1))
HALF = np.array([True, True, False, False])
TWO = np.array([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ROWS, HALF, TWO * 0), "fewer than two groups: give more groups"),
        ((ROWS[:0], HALF[:0], TWO[:0]), "fewer than two groups: give more groups"),
        ((ROWS, HALF | True, TWO), "all of the rows are wanted: give groups with rows"),
        ((ROWS, HALF & False, TWO), "none of the rows are wanted: give groups"),
        ((ROWS, TWO, TWO), "wanted must be an array of bool, got int64"),
        ((ROWS, HALF[:3], TWO), "must have one entry for each of the 4 rows"),
        ((ROWS, HALF, TWO[:3]), "must have one entry for each of the 4 rows"),
        ((ROWS.ravel(), HALF, TWO), "X must be an array of real numbers"),
        ((ROWS[:, :0], HALF, TWO), "with at least one feature"),
        ((ROWS * 1j, HALF, TWO), "got shape .* of complex128"),
        ((ROWS * np.nan, HALF, TWO), "X holds NaN or infinity: replace them"),
        ((ROWS, HALF, TWO, 1), "n_folds must be a whole number of at least 2, got 1"),
        ((ROWS, HALF, TWO, 2, -1), "random_state must be None"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        BoostedQuality.fit_out_of_fold(*arguments)


def test_another_number_of_features(fitted):
    with pytest.raises(ValueError, match=r"X has 2 features, but .* fitted to 3"):
        fitted[0].scores(np.zeros((4, 2)))


def test_no_rows(fitted):
    assert fitted[0].scores(np.zeros((0, 3))).shape == (0,)


# Files ----------------------------------------------------------------------------


def test_files_give_the_same_scores(fitted):
    X = xor_rows(seed=3)[0]
    document = json.loads(json.dumps(fitted[0].encode()))
    loaded = BoostedQuality.decode(document)
    np.testing.assert_array_equal(loaded.scores(X), fitted[0].scores(X))
    assert loaded.encode() == document


def test_a_tree_by_hand():
    document = {
        "n_features": 2,
        "prior": 0.5,
        "trees": [
            {
                "feature": [0, 1],
                "threshold": [0.0, 1.0],
                "left": [-3, -1],
                "right": [1, -2],
                "value": [10.0, 20.0, 30.0],
            },
            {"feature": [], "threshold": [], "left": [], "right": [], "value": [7.0]},
        ],
    }
    model = BoostedQuality.decode(document)
    X = [[0, 5], [1, 1], [1, 2]]
    assert model.scores(X).tolist() == [37.5, 17.5, 27.5]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["n_features"], 0, '"q.n_features" is 0, not a whole number'),
        (["n_features"], 10**30, "not a whole number from 1 to 1e.06"),
        (["prior"], None, '"q.prior" is None, not a number'),
        (["prior"], float("nan"), '"q.prior" is nan, not a number'),
        (["trees"], [{}] * 1001, '"q.trees" is .* not a list'),
        (["trees", 0, "value"], [], 'the section "q.trees.0..value" is missing'),
        (["trees", 0, "value", 0], float("inf"), '"q.trees.0..value.0." is inf'),
        (["trees", 0, "feature", 0], -1, '"q.trees.0..feature.0." is -1'),
        (["trees", 0, "feature", 0], 3, 'q.trees.0.": a tree splits by feature 3 of 3'),
        (["trees", 0, "threshold", 0], 1e39, '"q.trees.0..threshold.0." is 1e.39, not'),
        (["trees", 0, "threshold"], [0.0], "lists do not have one entry for each"),
        (["trees", 0, "value"], [0.0], "lists do not have one entry for each split"),
        (["trees", 0, "left", 0], 0, "each be the child of one earlier split"),
        (["trees", 0, "left", 0], 7, "each be the child of one earlier split"),
        (["trees", 0, "left", 0], -8, "each be the child of one earlier split"),
        (["trees", 0, "left", 0], 1.5, '"q.trees.0..left.0." is 1.5, not a whole'),
        (["trees", 0, "left", 1], 1, "each be the child of one earlier split"),
        (["trees", 0, "left"], list(range(1, 9)), '"q.trees.0..left" is .* not a list'),
    ],
)
def test_damaged_files(fitted, path, value, message):
    document = copy.deepcopy(fitted[0].encode())
    place = document
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises((SchemaError, ModelFileError), match=message):
        BoostedQuality.decode(document, "q")


def test_splits_that_follow_themselves(fitted):
    document = fitted[0].encode()
    tree = document["trees"][0]
    # Two splits that are each other's children are nobody else's.
    tree |= {"feature": [0, 0, 0], "threshold": [0.0] * 3, "value": [0.0] * 4}
    tree |= {"left": [-1, 2, 1], "right": [-2, -3, -4]}
    with pytest.raises(ModelFileError, match="the child of one earlier split"):
        BoostedQuality.decode(document)
