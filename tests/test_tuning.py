"""Choosing lambda and omega: by score, by target, and what is said on the way."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold

import variegate as vg
from variegate.decoding import MBR
from variegate.ground_set import GroundSetError
from variegate.metrics import mean_scores
from variegate.tuning import LargeMarginDPPCV, TargetNotReachedWarning, folds
from variegate.tuning import cross_validation as tuning
from variegate.tuning.choice import MAX_REFINEMENTS, refine_omega
from variegate.tuning.family import order_outwards
from variegate.tuning.folds import Trial
from variegate.tuning.path import OmegaPath, PathPoint

LINEAR = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="exact")
GRID = {"lams": (0.0, 4.0), "omegas": (1 / 16, 1 / 4, 1.0, 4.0), "cv": 3}


@pytest.fixture(scope="module")
def data():
    return vg.datasets.make_synthetic(n_sets=90, n_items=7, random_state=0)


@pytest.fixture(scope="module")
def best(data):
    model = LargeMarginDPPCV(LINEAR, **GRID, random_state=0)
    return model.fit(data.ground_sets, data.subsets)


@pytest.fixture(scope="module")
def aimed(data):
    model = LargeMarginDPPCV(LINEAR, **GRID, target_recall=0.75, random_state=0)
    return model.fit(data.ground_sets, data.subsets)


def point_at(path, omega):
    (point,) = (point for point in path if point.omega == omega)
    return point


def path_of(omegas, precision, recall):
    return OmegaPath(
        4.0,
        tuple(
            PathPoint(w, p, r, (p + r) / 2, 3.0, 0.01, 0.01, 0.01, 0.1)
            for w, p, r in zip(omegas, precision, recall, strict=True)
        ),
    )


# Without a target ---------------------------------------------------------------------


def test_the_pair_with_the_best_score_is_chosen(best):
    results = best.cv_results_
    is_best = results["mean_score"] == results["mean_score"].max()
    assert best.best_score_ == results["mean_score"].max()
    # With lambda 0 all omegas are equal; the one nearest to 1 stands for them.
    assert results["lam"][is_best].tolist() == [0.0] * 4
    assert (best.best_lam_, best.best_omega_) == (0.0, 1.0)
    assert len(results["lam"]) == 8
    assert results["mean_f"].tolist() == results["mean_score"].tolist()


def test_held_out_scores_are_those_of_fits_from_scratch(data):
    splits = list(KFold(3).split(np.arange(90)))
    model = LargeMarginDPPCV(LINEAR, **{**GRID, "cv": splits}, random_state=0)
    model.fit(data.ground_sets, data.subsets)
    chosen, wanted = [None] * 90, data.subsets
    for train, held_out in splits:
        plain = clone(LINEAR).set_params(lam=4.0, omega=0.25)
        plain.fit([data.ground_sets[i] for i in train], [wanted[i] for i in train])
        picks = plain.predict([data.ground_sets[i] for i in held_out])
        for i, pick in zip(held_out, picks, strict=True):
            chosen[i] = pick
    expected = mean_scores(chosen, wanted)
    point = point_at(model.paths_[4.0], 0.25)
    # The solver stops near the minimum, not at it, and one item may tip.
    for name in ("precision", "recall", "f"):
        assert getattr(point, name) == pytest.approx(expected[name], abs=0.01)
    assert point.size == pytest.approx(np.mean([len(c) for c in chosen]), abs=0.05)


def test_the_best_model_is_that_of_a_fit_on_all_data(aimed, data):
    plain = clone(LINEAR).set_params(lam=aimed.best_lam_, omega=aimed.best_omega_)
    plain.fit(data.ground_sets, data.subsets)
    assert aimed.best_model_.theta_ == pytest.approx(plain.theta_, abs=0.02)
    assert aimed.best_model_.get_params()["omega"] == aimed.best_omega_


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_in_a_fold_name_the_place_in_all_data(data, n_jobs):
    subsets = [subset[:2] for subset in data.subsets]
    subsets[60] = np.arange(7)  # more items than the similarity has rank
    model = LargeMarginDPPCV(LINEAR, **GRID, n_jobs=n_jobs, random_state=0)
    model.set_params(estimator=clone(LINEAR).set_params(jitter=0.0))
    with pytest.raises(GroundSetError, match="ground set 60: its subset has prob"):
        model.fit(data.ground_sets, subsets)


def test_a_score_of_ones_own(data):
    def few(chosen, wanted):
        return -float(len(chosen))

    model = LargeMarginDPPCV(LINEAR, **GRID, scoring=few, random_state=0)
    model.fit(data.ground_sets, data.subsets)
    assert model.best_lam_ == 4.0
    assert model.best_omega_ == 1 / 16
    assert model.best_score_ == -model.path_[0].size


def test_it_predicts_like_its_best_model(best, data):
    some, wanted = data.ground_sets[:5], data.subsets[:5]
    for ours, theirs in zip(
        best.predict(some), best.best_model_.predict(some), strict=True
    ):
        assert ours.tolist() == theirs.tolist()
    assert [len(s) for s in best.predict(some, k=2)] == [2] * 5
    assert best.score(some, wanted) == best.best_model_.score(some, wanted)
    expected = best.best_model_.ensemble(some[0]).marginals()
    assert best.ensemble(some[0]).marginals().tolist() == expected.tolist()


def test_the_best_model_is_plain_and_can_be_kept(best, data, tmp_path):
    assert type(best.best_model_) is vg.LargeMarginDPP
    assert best.best_model_.warm_start is False
    best.best_model_.save(tmp_path / "model.json")
    kept = vg.load(tmp_path / "model.json")
    some = data.ground_sets[:5]
    for ours, theirs in zip(best.predict(some), kept.predict(some), strict=True):
        assert ours.tolist() == theirs.tolist()


def test_seeds_make_it_repeatable(data):
    some, wanted = data.ground_sets[:30], data.subsets[:30]
    sampled = clone(LINEAR).set_params(decoder=MBR(n_samples=40))
    model = LargeMarginDPPCV(
        sampled, lams=(1.0,), omegas=(1.0, 4.0), cv=2, n_samples=20, random_state=3
    )
    first, second = (clone(model).fit(some, wanted) for _ in range(2))
    assert str(first.path_) == str(second.path_)
    assert first.score(some, wanted) == second.score(some, wanted)
    # In the end the decoder is the one that was asked for.
    assert first.best_model_.decoder == MBR(n_samples=40)
    assert sampled.random_state is None


@pytest.mark.slow
def test_folds_in_other_processes_give_the_same(data):
    paths = [
        str(
            LargeMarginDPPCV(LINEAR, **GRID, n_jobs=n_jobs, random_state=0)
            .fit(data.ground_sets, data.subsets)
            .path_
        )
        for n_jobs in (1, 2)
    ]
    assert paths[0] == paths[1]


# With a target ------------------------------------------------------------------------


def test_a_target_recall_is_met_on_held_out_data(aimed):
    point = point_at(aimed.path_, aimed.best_omega_)
    assert point.recall == pytest.approx(0.75, abs=0.005)
    assert aimed.best_omega_ not in GRID["omegas"]
    assert aimed.path_.target == ("recall", 0.75)
    assert aimed.path_.omega.tolist() == sorted(aimed.path_.omega)


def test_a_target_precision_is_met_on_held_out_data(data):
    model = LargeMarginDPPCV(LINEAR, **GRID, target_precision=0.88, random_state=0)
    model.fit(data.ground_sets, data.subsets)
    point = point_at(model.path_, model.best_omega_)
    # The path has steps of one item in 90 ground sets.
    assert point.precision == pytest.approx(0.88, abs=0.008)


def test_the_path_goes_from_precision_to_recall(aimed):
    assert_monotone(aimed.path_)
    assert aimed.path_.recall[-1] - aimed.path_.recall[0] > 0.1


def assert_monotone(path, n_errors=2.0):
    """Recall rises and precision falls with omega, within so many standard errors."""
    for name, sign in (("recall", 1.0), ("precision", -1.0)):
        values = sign * getattr(path, name)
        errors = np.array([getattr(point, f"{name}_error") for point in path])
        slack = n_errors * np.maximum(errors, np.roll(errors, 1))
        assert (np.diff(values) > -slack[1:]).all(), f"{name}\n{path}"


def test_the_grid_is_made_longer_for_a_target_beyond_it(data):
    model = LargeMarginDPPCV(
        *(LINEAR, (4.0,), (0.5, 1.0), 3), target_recall=0.7, random_state=0
    ).fit(data.ground_sets, data.subsets)
    assert model.best_omega_ < 0.5
    point = point_at(model.path_, model.best_omega_)
    assert point.recall == pytest.approx(0.7, abs=0.01)


def test_a_target_out_of_reach_is_said_with_the_range(data):
    model = LargeMarginDPPCV(
        *(LINEAR, (0.0, 0.01), (0.5, 1.0), 3), target_recall=0.3, random_state=0
    )
    message = r"went from 0\.\d+ to 0\.\d+ for lambda up to 0.01 and omega from"
    with pytest.warns(TargetNotReachedWarning, match=message):
        model.fit(data.ground_sets, data.subsets)
    nearest = int(np.argmin(np.abs(model.path_.recall - 0.3)))
    assert model.best_omega_ == model.path_.omega[nearest]


class Falling:
    """Trials whose precision falls on both sides, as where nothing is chosen."""

    omegas = (1 / 16, 1 / 4, 1.0, 4.0)

    def path(self, lam):
        return path_of(self.omegas, [0.8, 0.9, 0.8, 0.7], [0.1, 0.6, 0.8, 0.9])


def test_of_two_places_with_the_same_precision_the_one_with_recall_is_taken():
    assert refine_omega(Falling(), 16.0, "precision", 0.8) == 1.0


class Jumping:
    """Trials whose recall jumps over what is asked for."""

    def __init__(self):
        self.tried = [0.25, 4.0]

    def path(self, lam):
        recall = [0.6 if omega < 1.1 else 0.9 for omega in self.tried]
        return path_of(self.tried, [1.5 - r for r in recall], recall)

    def try_omega(self, lam, omega):
        self.tried = sorted([*self.tried, omega])


def test_a_path_that_jumps_gives_more_than_was_asked_for():
    trials = Jumping()
    omega = refine_omega(trials, 4.0, "recall", 0.8)
    assert omega >= 1.1
    assert len(trials.tried) == 2 + MAX_REFINEMENTS


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_recall_on_new_data_is_what_was_asked_for(seed):
    data = vg.datasets.make_synthetic(n_sets=800, random_state=seed)
    model = LargeMarginDPPCV(target_recall=0.85, n_jobs=-1, random_state=0)
    model.fit(data.ground_sets[:400], data.subsets[:400])
    new = mean_scores(model.predict(data.ground_sets[400:]), data.subsets[400:])
    # Both means have a standard error of about 0.009 each.
    assert new["recall"] == pytest.approx(0.85, abs=0.03)
    for lam in (1.0, 4.0):
        assert_monotone(model.paths_[lam])


# Paths --------------------------------------------------------------------------------


def test_crossings_are_interpolated_in_the_logarithm():
    path = path_of([0.25, 1.0, 4.0], [0.9, 0.8, 0.6], [0.5, 0.7, 0.9])
    (crossing,) = path.crossings("recall", 0.8, 0.005)
    assert crossing.omega == pytest.approx(2.0)
    assert crossing.other == pytest.approx(0.7)
    assert (crossing.low, crossing.high) == (1.0, 4.0)
    (crossing,) = path.crossings("precision", 0.85, 0.005)
    assert crossing.omega == pytest.approx(0.5)
    assert crossing.other == pytest.approx(0.6)


def test_a_point_that_is_near_enough_is_a_crossing():
    path = path_of([0.25, 1.0], [0.9, 0.8], [0.5, 0.702])
    (crossing,) = path.crossings("recall", 0.705, 0.005)
    assert crossing == (1.0, 1.0, 1.0, 0.8)
    assert path.crossings("recall", 0.71, 0.005) == []


def test_the_table_marks_what_was_chosen(aimed):
    lines = str(aimed.path_).splitlines()
    assert len(lines) == 2 + len(aimed.path_)
    assert lines[2].split()[0] == "1/16"
    (marked,) = (line for line in lines if line.endswith("<- chosen"))
    assert float(marked.split()[0]) == pytest.approx(aimed.best_omega_, rel=0.01)


def test_the_picture_shows_what_was_chosen(aimed, tmp_path):
    figure = aimed.path_.plot(aimed.paths_)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert any(text.startswith("chosen: ω = ") for text in texts)
    assert "λ = 0" in texts
    figure.savefig(tmp_path / "path.png")
    assert len(aimed.path_.plot().axes) == 2


# Folds --------------------------------------------------------------------------------


def test_standard_errors_count_units():
    rng = np.random.default_rng(0)
    table = rng.random((40, 5))
    trial = Trial([], [table[:15], table[15:]])
    expected = table.std(axis=0, ddof=1) / np.sqrt(40)
    assert trial.standard_errors(np.arange(40)) == pytest.approx(expected)
    # Saying everything twice adds nothing if both are known to be one.
    twice = Trial([], [table, table])
    assert twice.standard_errors(np.tile(np.arange(40), 2)) == pytest.approx(expected)
    assert np.isnan(trial.standard_errors(np.zeros(40))).all()


def test_walks_go_outwards_from_one():
    middle, sides = order_outwards([4.0, 0.25, 16.0, 0.8, 0.1])
    assert middle == 0.8
    assert sides == [[0.25, 0.1], [4.0, 16.0]]


@pytest.mark.parametrize("cv", [4, GroupKFold(4)])
def test_groups_stay_together(cv):
    labels = np.repeat(np.arange(10), 3)
    splits = tuning._make_splits(cv, labels, True, 0)
    assert len(splits) == 4
    for train, held_out in splits:
        assert not set(labels[train]) & set(labels[held_out])
    together = np.concatenate([held_out for _, held_out in splits])
    assert sorted(together) == list(range(30))


def test_fit_takes_groups(data):
    model = LargeMarginDPPCV(LINEAR, (1.0,), (1.0,), cv=3, random_state=0)
    model.fit(data.ground_sets, data.subsets, groups=[f"g{i // 9}" for i in range(90)])
    assert model.n_splits_ == 3
    assert np.isfinite(model.path_[0].recall_error)


# What is refused ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cv": 100}, "90 ground sets cannot be split into 100 folds"),
        ({"cv": 1}, "cv must be at least 2 folds, got 1"),
        ({"cv": "five"}, "cv must be a number of folds, a scikit-learn splitter or"),
        ({"cv": [([0, 1], [])]}, "needs ground sets on both sides"),
        ({"omegas": (1.0, 0.0)}, "each of omegas must be a finite number > 0, got 0"),
        ({"omegas": ()}, "omegas must be a list of numbers"),
        ({"lams": (1.0, -1.0)}, "each of lams must be a finite number >= 0, got -1"),
        ({"lams": 4.0}, "lams must be a list of numbers, got 4.0"),
        ({"scoring": "rouge"}, 'scoring must be "f" or a function'),
        ({"n_samples": 0}, "n_samples must be a whole number"),
        ({"random_state": "zero"}, "random_state must be None"),
        ({"estimator": vg.Linear()}, "estimator must be a LargeMarginDPP"),
        ({"target_recall": 0.0}, "target_recall must be a finite number > 0"),
        ({"target_recall": 1.0}, "target_recall must be between 0 and 1, got 1.0"),
        ({"target_precision": 85}, "target_precision must be between 0 and 1, got 85"),
        (
            {"target_precision": 0.8, "target_recall": 0.8},
            "target_precision or target_recall, not both",
        ),
        (
            {"target_recall": 0.8, "lams": (0.0,)},
            "no effect with lambda 0: add some lams above 0",
        ),
    ],
)
def test_bad_settings_are_refused_in_words(data, settings, message):
    model = LargeMarginDPPCV().set_params(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(data.ground_sets, data.subsets)


def test_groups_must_fit_the_data(data):
    model = LargeMarginDPPCV(cv=5)
    with pytest.raises(ValueError, match="3 groups for 90 ground sets"):
        model.fit(data.ground_sets, data.subsets, groups=[0, 1, 2])
    with pytest.raises(ValueError, match="2 groups cannot be split into 5 folds"):
        model.fit(data.ground_sets, data.subsets, groups=[0, 1] * 45)


def test_a_fit_that_did_not_finish_is_said_once(data):
    hasty = clone(LINEAR).set_params(max_iter=1)
    model = LargeMarginDPPCV(hasty, (0.0, 1.0), (1.0, 4.0), cv=2, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(data.ground_sets, data.subsets)
    assert ["max_iter=1" in str(warning.message) for warning in caught] == [True]
    assert model.cv_results_["n_unconverged"].max() == 2


def test_nothing_is_predicted_before_fit(data):
    with pytest.raises(Exception, match="not fitted yet"):
        LargeMarginDPPCV().predict(data.ground_sets)


def test_a_lambda_clearly_behind_on_the_first_fold_is_dropped(monkeypatch, data):
    judge = folds._score_fold

    def worse_at_16(model, fold, scoring):
        scores = judge(model, fold, scoring)
        scores[:, -1] -= 0.2 * (model.lam == 16.0)
        return scores

    monkeypatch.setattr(folds, "_score_fold", worse_at_16)
    settings = {"lams": (1.0, 16.0), "omegas": (0.5, 1.0, 2.0), "cv": 3}
    estimator = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy")
    done = []
    tuned = LargeMarginDPPCV(
        estimator,
        **settings,
        drop_lams=True,
        random_state=0,
        callback=lambda *counts: done.append(counts),
    ).fit(data.ground_sets, data.subsets)
    assert list(tuned.paths_) == [1.0]
    assert len(tuned.path_) == 3
    assert done == [(1, 3), (2, 3), (3, 3)]
    whole = LargeMarginDPPCV(estimator, **settings, random_state=0)
    whole.fit(data.ground_sets, data.subsets)
    assert (tuned.best_lam_, tuned.best_omega_) == (whole.best_lam_, whole.best_omega_)
    assert tuned.best_score_ == whole.best_score_


def test_defaults_in_the_docstring_are_those_of_the_code():
    import inspect
    import re

    documented = dict(
        re.findall(
            r"^(\w+) : .*default=(.+)$",
            inspect.getdoc(LargeMarginDPPCV),
            re.MULTILINE,
        )
    )
    names = {"lams", "cv", "scoring", "n_samples", "refit", "drop_lams", "verbose"}
    assert set(documented) == names
    for name, value in documented.items():
        default = inspect.signature(LargeMarginDPPCV.__init__).parameters[name].default
        assert eval(value) == default, name


def test_without_refit_there_is_a_choice_but_no_model():
    data = vg.datasets.make_synthetic(n_sets=20, random_state=0)
    seen = []
    search = LargeMarginDPPCV(
        vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy"),
        lams=(0.0, 1.0),
        omegas=(1.0, 4.0),
        cv=2,
        random_state=0,
        refit=False,
        callback=lambda done, total: seen.append((done, total)),
    ).fit(data.ground_sets, data.subsets)
    assert search.best_lam_ in (0.0, 1.0)
    assert not hasattr(search, "best_model_")
    assert seen == [(1, 2), (2, 2)]
    with pytest.raises(NotFittedError):
        search.predict(data.ground_sets)


@pytest.mark.parametrize(
    ("setting", "message"),
    [({"refit": 1}, "refit must be True or False"), ({"callback": 3}, "callback must")],
)
def test_refit_and_callback_are_checked(setting, message):
    data = vg.datasets.make_synthetic(n_sets=4, random_state=0)
    with pytest.raises(ValueError, match=message):
        LargeMarginDPPCV(**setting).fit(data.ground_sets, data.subsets)
