import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import variegate as vg
from instances import KERNELS, random_ground_set
from variegate.decoding import MBR
from variegate.sampling import elementary, spectral
from variegate.solvers import LBFGS


@pytest.fixture(scope="module")
def data():
    return vg.datasets.make_synthetic(n_sets=60, random_state=0)


def ragged(seed=0, n_sets=12):
    """Ground sets of different sizes, with subsets in both notations."""
    rng = np.random.default_rng(seed)
    ground_sets = [
        vg.GroundSet(rng.standard_normal((n, 3))) for n in rng.integers(3, 8, n_sets)
    ]
    subsets = [np.flatnonzero(gs.quality[:, 0] > 0) for gs in ground_sets]
    subsets[1] = ground_sets[1].quality[:, 0] > 0
    return ground_sets, subsets


@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_fits_and_predicts_with_every_kernel(case):
    rng = np.random.default_rng(0)
    ground_sets = [random_ground_set(case, rng, n) for n in (6, 7, 6, 5)]
    if case.name == "user":
        ground_sets = [gs for gs in ground_sets if gs.features().shape[1] == 8]
    subsets = [[0, 1], [2], [], [4]][: len(ground_sets)]
    model = vg.LargeMarginDPP(kernel=case.kernel, decoder="greedy", l2=0.1)
    model.fit(ground_sets, subsets)
    assert np.isfinite(model.theta_).all()
    for chosen, ground_set in zip(model.predict(ground_sets), ground_sets, strict=True):
        assert chosen.tolist() == sorted(set(chosen.tolist()))
        assert all(0 <= item < len(ground_set) for item in chosen)


@pytest.mark.parametrize("k", [None, 2])
def test_what_is_chosen_does_not_depend_on_the_other_ground_sets(data, k, monkeypatch):
    model = vg.LargeMarginDPP(lam=0.0, kernel=vg.Linear(), random_state=0, l2=0.1)
    model.fit(data.ground_sets, data.subsets)
    one_by_one = [model.predict([one], k)[0] for one in data.ground_sets[:20]]
    # So few samples are drawn by compiled loops only for all ground sets together.
    monkeypatch.setattr(spectral, "COMPILED_SAMPLES_TOGETHER", 1)
    monkeypatch.setattr(elementary, "sample_elementary", None)
    for found, expected in zip(
        model.predict(data.ground_sets[:20], k), one_by_one, strict=True
    ):
        assert found.tolist() == expected.tolist()


def test_recovers_the_direction_of_theta_from_clean_data():
    data = vg.datasets.make_synthetic(n_sets=200, noise=0.0, random_state=3)
    model = vg.LargeMarginDPP(lam=0.0, kernel=vg.Linear(), decoder="exact")
    model.fit(data.ground_sets, data.subsets)
    cosine = model.theta_ @ data.theta
    cosine /= np.linalg.norm(model.theta_) * np.linalg.norm(data.theta)
    assert cosine > 0.98
    assert model.score(data.ground_sets, data.subsets) > 0.88


def test_lam_zero_maximizes_the_likelihood(data):
    model = vg.LargeMarginDPP(lam=0.0, kernel=vg.Linear()).fit(
        data.ground_sets, data.subsets
    )

    def likelihood(theta, intercept):
        total = 0.0
        for gs, y in zip(data.ground_sets, data.subsets, strict=True):
            q = np.exp(gs.quality @ theta + intercept)
            S = gs.quality @ gs.quality.T
            S[np.diag_indices(10)] *= 1 + 1e-6
            L = q[:, None] * S * q
            log_det = np.linalg.slogdet(L[np.ix_(y, y)])[1]
            total += log_det - np.linalg.slogdet(L + np.eye(10))[1]
        return total

    best = likelihood(model.theta_, model.intercept_)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = likelihood(
            model.theta_ + 0.05 * rng.standard_normal(5),
            model.intercept_ + 0.05 * rng.standard_normal(),
        )
        assert other < best


def test_omega_moves_precision_and_recall(data):
    scores = []
    for omega in (1 / 64, 1.0, 64.0):
        model = vg.LargeMarginDPP(
            lam=4.0, omega=omega, kernel=vg.Linear(), decoder="exact"
        ).fit(data.ground_sets, data.subsets)
        scores.append(
            vg.metrics.mean_scores(model.predict(data.ground_sets), data.subsets)
        )
    assert scores[0]["recall"] < scores[1]["recall"] < scores[2]["recall"]
    assert scores[0]["precision"] > scores[2]["precision"]


def test_per_item_costs_replace_omega(data):
    sets, subsets = data.ground_sets[:20], data.subsets[:20]
    by_omega = vg.LargeMarginDPP(omega=5.0, kernel=vg.Linear()).fit(sets, subsets)
    costs = [np.full(10, 5.0)] * 20
    by_costs = vg.LargeMarginDPP(kernel=vg.Linear()).fit(
        sets, subsets, false_negative=costs
    )
    np.testing.assert_array_equal(by_omega.theta_, by_costs.theta_)
    # An item that must not be chosen at any price gets a lower marginal.
    strict = [np.ones(10) for _ in range(20)]
    for cost, y in zip(strict, subsets, strict=True):
        cost[np.setdiff1d(np.arange(10), y)[0]] = 50.0
    careful = vg.LargeMarginDPP(kernel=vg.Linear()).fit(
        sets, subsets, false_positive=strict
    )
    forbidden = [np.setdiff1d(np.arange(10), y)[0] for y in subsets]

    def mean_marginal(model):
        return np.mean(
            [
                model.ensemble(gs).marginals()[item]
                for gs, item in zip(sets, forbidden, strict=True)
            ]
        )

    assert mean_marginal(careful) < mean_marginal(by_omega)


def test_ensemble_is_quality_times_similarity(data):
    gs = data.ground_sets[0]
    model = vg.LargeMarginDPP(kernel=vg.Linear(), jitter=0.01).fit(
        data.ground_sets, data.subsets
    )
    q = np.exp(gs.quality @ model.theta_ + model.intercept_)
    S = gs.quality @ gs.quality.T
    S[np.diag_indices(10)] *= 1.01
    np.testing.assert_allclose(model.ensemble(gs).L, q[:, None] * S * q, rtol=1e-12)


def test_weights_of_a_multiple_kernel_sum_to_one(data):
    model = vg.LargeMarginDPP(
        kernel=vg.MultipleKernel([1.0, 5.0, 20.0]), random_state=0
    ).fit(data.ground_sets, data.subsets)
    assert model.alpha_.shape == (3,)
    assert model.alpha_.min() >= 0
    assert model.alpha_.sum() + model.beta_ == pytest.approx(1.0)


def test_no_alpha_without_a_multiple_kernel(data):
    model = vg.LargeMarginDPP(kernel=vg.Linear())
    assert not hasattr(model, "alpha_")
    model.fit(data.ground_sets, data.subsets)
    with pytest.raises(AttributeError, match="Linear has no alpha and beta"):
        _ = model.beta_


def test_more_starts_never_end_higher(data):
    options = {"kernel": vg.MultipleKernel([0.6, 5.0, 40.0]), "lam": 4.0}
    sets, subsets = data.ground_sets[:30], data.subsets[:30]
    one = vg.LargeMarginDPP(**options).fit(sets, subsets)
    four = vg.LargeMarginDPP(n_starts=4, random_state=0, **options).fit(sets, subsets)
    assert four.solver_result_.objective <= one.solver_result_.objective


@pytest.mark.filterwarnings("ignore::variegate.estimator.AllAlikeWarning")
def test_more_starts_find_a_lower_minimum():
    data = vg.datasets.make_synthetic(n_sets=60, random_state=5)
    options = {
        "kernel": vg.MultipleKernel([0.6, 2.5, 10.0, 40.0], linear=False),
        "lam": 4.0,
    }
    one, many = (
        vg.LargeMarginDPP(n_starts=n, random_state=0, **options)
        .fit(data.ground_sets, data.subsets)
        .solver_result_.objective
        for n in (1, 8)
    )
    assert many < one - 1e-4


def test_the_hinge_is_used():
    # Subsets that are nearly certain have losses far below zero without the hinge.
    easy = [vg.GroundSet(np.array([[50.0], [-50.0]])) for _ in range(4)]
    model = vg.LargeMarginDPP(kernel=vg.Gaussian(1.0), fit_intercept=False, lam=2.0)
    model.fit(easy, [[0]] * 4)
    assert model.solver_result_.objective == 0.0


def test_unstandardized_features_reach_the_same_optimum(data):
    shifted = [vg.GroundSet(gs.quality + 1e4, gs.quality) for gs in data.ground_sets]
    options = {"lam": 0.0, "kernel": vg.Linear()}
    plain = vg.LargeMarginDPP(**options).fit(data.ground_sets, data.subsets)
    moved = vg.LargeMarginDPP(**options).fit(shifted, data.subsets)
    np.testing.assert_allclose(moved.theta_, plain.theta_, rtol=1e-4)
    np.testing.assert_allclose(
        moved.ensemble(shifted[0]).marginals(),
        plain.ensemble(data.ground_sets[0]).marginals(),
        rtol=1e-4,
    )


def test_warm_start_of_a_learned_kernel(data):
    sets = [vg.GroundSet(gs.quality + 3.0, gs.quality) for gs in data.ground_sets]
    model = vg.LargeMarginDPP(kernel=vg.MultipleKernel([1.0, 5.0]), warm_start=True)
    model.fit(sets, data.subsets)
    end = model.solver_result_.objective
    model.fit(sets, data.subsets)
    assert model.history_[0].objective == pytest.approx(end, abs=1e-4)


def test_a_callback_stops_all_starts(data):
    steps = []

    def stop(step):
        steps.append(step.iteration)
        return step.iteration == 1

    vg.LargeMarginDPP(n_starts=3, random_state=0, callback=stop).fit(
        data.ground_sets[:5], data.subsets[:5]
    )
    assert steps == [0, 1]


def test_warm_start_takes_up_where_it_ended(data):
    model = vg.LargeMarginDPP(kernel=vg.Linear(), lam=1.0, warm_start=True)
    model.fit(data.ground_sets, data.subsets)
    first = model.solver_result_.n_iterations
    model.fit(data.ground_sets, data.subsets)
    assert model.solver_result_.n_iterations < first


def test_l2_shrinks_theta(data):
    norms = [
        np.linalg.norm(
            vg.LargeMarginDPP(kernel=vg.Linear(), l2=l2)
            .fit(data.ground_sets, data.subsets)
            .theta_
        )
        for l2 in (0.0, 1.0, 10.0)
    ]
    assert norms[0] > norms[1] > norms[2]


def test_budget_and_k_in_predict(data):
    model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy").fit(
        data.ground_sets, data.subsets
    )
    assert all(len(chosen) == 2 for chosen in model.predict(data.ground_sets, k=2))
    priced = [
        vg.GroundSet(gs.quality, costs=np.arange(1.0, 11.0))
        for gs in data.ground_sets[:5]
    ]
    for chosen in model.predict(priced, budget=8.0):
        assert (chosen + 1).sum() <= 8.0


def test_callback_sees_every_iteration(data):
    steps = []
    model = vg.LargeMarginDPP(kernel=vg.Linear(), callback=lambda s: steps.append(s))
    model.fit(data.ground_sets, data.subsets)
    assert steps == model.history_
    assert steps[0].objective > steps[-1].objective


def test_stopping_by_callback_does_not_warn(data):
    model = vg.LargeMarginDPP(callback=lambda step: step.iteration == 1)
    model.fit(data.ground_sets[:5], data.subsets[:5])
    assert model.solver_result_.status == "stopped by the callback"


def test_predictions_by_importance(data):
    model = vg.LargeMarginDPP(random_state=0).fit(data.ground_sets, data.subsets)
    by_number = model.predict(data.ground_sets, k=3)
    by_importance = model.predict(data.ground_sets, k=3, order="importance")
    for ground_set, members, ranked in zip(
        data.ground_sets, by_number, by_importance, strict=True
    ):
        assert sorted(ranked) == members.tolist()
        ensemble = model.ensemble(ground_set)
        assert ranked[0] == max(members, key=lambda i: ensemble.log_prob([i]))
        assert ranked[1] == max(
            ranked[1:], key=lambda i: ensemble.log_prob([ranked[0], i])
        )
    with pytest.raises(ValueError, match="order must be 'number' or 'importance'"):
        model.predict(data.ground_sets, order="rank")


def test_a_prediction_does_not_depend_on_its_company(data):
    model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder=MBR(50), random_state=0)
    model.fit(data.ground_sets, data.subsets)
    together = model.predict(data.ground_sets[:4])
    for ground_set, chosen in zip(data.ground_sets, together, strict=False):
        assert model.predict([ground_set])[0].tolist() == chosen.tolist()


def test_a_generator_as_random_state_is_advanced(data):
    model = vg.LargeMarginDPP(
        kernel=vg.Linear(), decoder=MBR(3), random_state=np.random.default_rng(0)
    ).fit(data.ground_sets, data.subsets)
    first, second = (model.predict(data.ground_sets) for _ in range(2))
    assert [a.tolist() for a in first] != [a.tolist() for a in second]


def test_features_far_from_the_training_data(data):
    model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy").fit(
        data.ground_sets, data.subsets
    )
    far = np.vstack([np.eye(5), 1e3 * np.sign(model.theta_)])
    assert 5 in model.predict([far])[0]


def test_stopping_early_warns_with_the_remedy(data):
    model = vg.LargeMarginDPP(max_iter=1)
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter=1 .*Raise max_iter \(now 1\)"
    ):
        model.fit(data.ground_sets[:5], data.subsets[:5])


# The scikit-learn contract ---------------------------------------------------------


def test_constructor_only_stores():
    kernel = vg.MultipleKernel([-1.0])  # nonsense, but not yet used
    model = vg.LargeMarginDPP(lam=-3, kernel=kernel, solver="none")
    assert model.get_params(deep=False)["lam"] == -3
    assert model.kernel is kernel


def test_clone_and_parameters():
    model = vg.LargeMarginDPP(lam=2.0, kernel=vg.Gaussian(3.0), decoder=MBR(10))
    copy = clone(model)
    assert copy is not model
    assert copy.kernel is not model.kernel
    assert copy.get_params()["kernel__bandwidth"] == 3.0
    copy.set_params(omega=4.0, kernel__bandwidth=1.0)
    assert (copy.omega, copy.kernel.bandwidth, model.kernel.bandwidth) == (
        4.0,
        1.0,
        3.0,
    )
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(nonsense=1)


def test_fit_returns_self_and_leaves_parameters_alone(data):
    kernel = vg.MultipleKernel()
    model = vg.LargeMarginDPP(kernel=kernel, decoder="greedy")
    before = model.get_params()
    assert model.fit(data.ground_sets[:10], data.subsets[:10]) is model
    assert model.get_params() == before
    assert not hasattr(kernel, "bandwidths_")
    assert model.n_features_in_ == 5


def test_fit_does_not_touch_its_inputs():
    ground_sets, subsets = ragged()
    copies = [gs.quality.copy() for gs in ground_sets], [s.copy() for s in subsets]
    vg.LargeMarginDPP(decoder="greedy").fit(ground_sets, subsets)
    for gs, copy in zip(ground_sets, copies[0], strict=True):
        np.testing.assert_array_equal(gs.quality, copy)
    for s, copy in zip(subsets, copies[1], strict=True):
        np.testing.assert_array_equal(s, copy)


def test_refitting_forgets(data):
    ground_sets, subsets = ragged()
    fresh = vg.LargeMarginDPP(decoder="greedy").fit(ground_sets, subsets)
    again = vg.LargeMarginDPP(decoder="greedy")
    again.fit(data.ground_sets[:10], data.subsets[:10]).fit(ground_sets, subsets)
    np.testing.assert_array_equal(fresh.theta_, again.theta_)


def test_same_seed_same_predictions(data):
    model = vg.LargeMarginDPP(kernel=vg.Linear(), random_state=0)
    model.fit(data.ground_sets, data.subsets)
    first, second = (model.predict(data.ground_sets[:10]) for _ in range(2))
    assert [a.tolist() for a in first] == [a.tolist() for a in second]


def test_grid_search_over_ragged_lists():
    ground_sets, subsets = ragged(n_sets=15)
    search = GridSearchCV(
        vg.LargeMarginDPP(kernel=vg.Gaussian(1.0), decoder="greedy", l2=0.01),
        {"lam": [0.0, 1.0], "omega": [0.5, 2.0], "kernel__bandwidth": [0.5, 2.0]},
        cv=3,
    )
    search.fit(ground_sets, subsets)
    assert set(search.best_params_) == {"lam", "omega", "kernel__bandwidth"}
    assert 0.5 < search.best_score_ <= 1.0
    assert len(search.predict(ground_sets)) == 15
    assert search.score(ground_sets, subsets) > 0.5


def test_cross_validation_splits_per_item_costs_too():
    ground_sets, subsets = ragged(n_sets=9)
    costs = [np.ones(len(gs)) for gs in ground_sets]
    scores = cross_val_score(
        vg.LargeMarginDPP(kernel=vg.Gaussian(1.0), decoder="greedy", l2=0.01),
        ground_sets,
        subsets,
        cv=3,
        params={"false_positive": costs},
    )
    assert len(scores) == 3


def test_bare_arrays_stand_for_ground_sets(data):
    arrays = [gs.quality for gs in data.ground_sets]
    by_array = vg.LargeMarginDPP(kernel=vg.Linear()).fit(arrays, data.subsets)
    by_set = vg.LargeMarginDPP(kernel=vg.Linear()).fit(data.ground_sets, data.subsets)
    np.testing.assert_array_equal(by_array.theta_, by_set.theta_)


# Bad input -------------------------------------------------------------------------

X = np.random.default_rng(0).standard_normal((4, 2))


class NotSemidefinite(vg.FixedKernel):
    def matrix(self, ground_set):
        return 1.5 - np.eye(len(ground_set)) / 2


TWO = [vg.GroundSet(X), vg.GroundSet(X)]


@pytest.mark.parametrize(
    ("options", "ground_sets", "subsets", "message"),
    [
        ({}, [], [], "the list of ground sets is empty"),
        ({}, TWO, [[0]], "1 subsets for 2 ground sets"),
        ({}, TWO, [[0], [9]], "ground set 1: item 9 is out of range"),
        ({}, TWO, [[0], [1, 1]], "ground set 1: item 1 is repeated"),
        ({}, TWO, [0, 1], "expected a list of subsets, .* a single one: wrap it"),
        ({}, [X, X[:, :1]], [[0], [0]], "ground set 1: it has 1 quality features"),
        ({}, [X, X * np.nan], [[0], [0]], "ground set 1: quality holds nan"),
        ({}, [X, X * np.inf], [[0], [0]], "ground set 1: quality holds -?inf"),
        ({}, [X, X[:0]], [[0], []], "ground set 1: a ground set needs at least one"),
        ({"lam": -1.0}, TWO, [[0], [0]], "lam must be a finite number >= 0, got -1.0"),
        (
            {"lam": "big"},
            TWO,
            [[0], [0]],
            "lam must be a finite number >= 0, got 'big'",
        ),
        ({"omega": -2}, TWO, [[0], [0]], "omega must be a finite number >= 0, got -2"),
        ({"omega": np.nan}, TWO, [[0], [0]], "omega must be a finite number"),
        ({"jitter": -1}, TWO, [[0], [0]], "jitter must be a finite number >= 0"),
        ({"l2": -1}, TWO, [[0], [0]], "l2 must be a finite number >= 0"),
        ({"max_iter": 0}, TWO, [[0], [0]], "max_iter must be a whole number of at lea"),
        ({"n_starts": 1.5}, TWO, [[0], [0]], "n_starts must be a whole number"),
        (
            {"solver": "adam"},
            TWO,
            [[0], [0]],
            "unknown solver 'adam'; there are lbfgs, minibatch",
        ),
        ({"solver": LBFGS}, TWO, [[0], [0]], "a solver is a name or an object like LB"),
        ({"fit_intercept": 3}, TWO, [[0], [0]], "fit_intercept must be True or False"),
        (
            {"random_state": "a"},
            TWO,
            [[0], [0]],
            "random_state must be None, a non-neg",
        ),
        ({"random_state": -1}, TWO, [[0], [0]], "random_state must be None, a non-neg"),
        (
            {},
            TWO,
            None,
            "pair 0 is a GroundSet, not a .ground set, subset. pair",
        ),
        (
            {"kernel": NotSemidefinite()},
            TWO,
            [[0], [0]],
            "ground set 0: the similarity is not positive semidefinite",
        ),
        (
            {"kernel": vg.Mixture([NotSemidefinite(), vg.Linear()])},
            TWO,
            [[0], [0]],
            "ground set 0: the similarity is not positive semidefinite",
        ),
        ({"callback": 3}, TWO, [[0], [0]], "callback must be callable, got 3"),
        (
            {"kernel": vg.MultipleKernel(2.0)},
            TWO,
            [[0], [0]],
            "bandwidths must be a list of numbers, got 2.0",
        ),
        (
            {"kernel": vg.MultipleKernel(blocks="colour")},
            TWO,
            [[0], [0]],
            "blocks must be a list of names, got 'colour'",
        ),
        (
            {"kernel": vg.MultipleKernel(blocks=["colour"])},
            TWO,
            [[0], [0]],
            "ground set 0: no block 'colour'",
        ),
        (
            {"kernel": vg.Mixture(vg.Linear())},
            TWO,
            [[0], [0]],
            "kernels must be a list of kernels",
        ),
        (
            {"kernel": vg.Linear(block=3)},
            TWO,
            [[0], [0]],
            "no block 3 of similarity features",
        ),
        (
            {"kernel": vg.Linear(), "jitter": 0.5},
            [vg.GroundSet(X, np.vstack([X[:3], 0 * X[:1]]))],
            [[0, 3]],
            "ground set 0: item 3 is in the subset, but its similarity to itself is ze",
        ),
        (
            {"kernel": vg.Linear()},
            [vg.GroundSet(X, X * 1e200)],
            [[0]],
            "ground set 0: the similarity holds NaN or infinite values",
        ),
        (
            {"kernel": vg.MultipleKernel([1.0])},
            [vg.GroundSet(X, X * 1e200)],
            [[0]],
            "ground set 0: the similarity holds NaN or infinite values",
        ),
        ({"decoder": "dice"}, TWO, [[0], [0]], "unknown decoding method 'dice'"),
        ({"kernel": "rbf"}, TWO, [[0], [0]], "kernel must be a Kernel such as Multi"),
        (
            {"kernel": vg.MultipleKernel([1.0, 0.0])},
            TWO,
            [[0], [0]],
            "a bandwidth must be a finite number > 0, got 0.0",
        ),
        (
            {"kernel": vg.Gaussian(-1.0)},
            TWO,
            [[0], [0]],
            "ground set 0: a bandwidth must be a finite number > 0, got -1.0",
        ),
        (
            {"kernel": vg.MultipleKernel([], linear=False)},
            TWO,
            [[0], [0]],
            "at least one bandwidth or linear=True",
        ),
        ({"kernel": vg.Mixture([])}, TWO, [[0], [0]], "at least one kernel"),
        (
            {"kernel": vg.Mixture(["linear"])},
            TWO,
            [[0], [0]],
            "a mixture combines kernels, got 'linear'",
        ),
        (
            {"kernel": vg.MultipleKernel({"a": [1.0]})},
            TWO,
            [[0], [0]],
            r"bandwidths are given for the blocks \['a'\]",
        ),
        (
            {"kernel": vg.Gaussian(1.0, block="shape")},
            TWO,
            [[0], [0]],
            "ground set 0: no block 'shape'",
        ),
        (
            {"kernel": vg.Precomputed()},
            TWO,
            [[0], [0]],
            r"ground set 0: the similarity must be a square matrix, got shape \(4, 2\)",
        ),
        (
            {"kernel": vg.Precomputed()},
            [vg.GroundSet(X, np.eye(4)), vg.GroundSet(X, np.eye(4) + np.eye(4, k=1))],
            [[0], [0]],
            "ground set 1: the similarity is not symmetric: it differs .* by 1",
        ),
        (
            {"kernel": vg.Precomputed()},
            [vg.GroundSet(X, np.eye(4)), vg.GroundSet(X, 1.5 - np.eye(4))],
            [[0], [0]],
            r"ground set 1: .*not positive semidefinite: with its diagonal scaled to "
            r"one, its smallest eigenvalue is -2; Precomputed\(repair=True\)",
        ),
        (
            {"kernel": vg.MultipleKernel()},
            [np.ones((3, 2))],
            [[0]],
            "no two items of any ground set differ",
        ),
        (
            {"kernel": vg.Linear(), "jitter": 0.0},
            TWO,
            [[0], [0, 1, 2]],
            r"ground set 1: its subset has probability zero.*Raise jitter \(now 0\)",
        ),
        (
            {"kernel": vg.Mixture([vg.Linear()]), "jitter": 0.0},
            TWO,
            [[0], [0, 1, 2]],
            "ground set 1: its subset has probability zero",
        ),
    ],
)
def test_bad_input_to_fit(options, ground_sets, subsets, message):
    with pytest.raises(ValueError, match=message):
        vg.LargeMarginDPP(**options).fit(ground_sets, subsets)


def test_bad_error_costs():
    model = vg.LargeMarginDPP(kernel=vg.Linear())
    with pytest.raises(ValueError, match="1 false_positive for 2 ground sets"):
        model.fit(TWO, [[0], [1]], false_positive=[np.ones(4)])
    with pytest.raises(ValueError, match=r"false_positive must be a list of arrays"):
        model.fit(TWO, [[0], [1]], false_positive=2.0)
    with pytest.raises(ValueError, match=r"ground set 1: false_negative has shape"):
        model.fit(TWO, [[0], [1]], false_negative=[np.ones(4), np.ones(3)])
    with pytest.raises(ValueError, match="ground set 0: false_positive must be finite"):
        model.fit(TWO, [[0], [1]], false_positive=[-np.ones(4), np.ones(4)])


def test_not_fitted():
    model = vg.LargeMarginDPP()
    for call in (
        lambda: model.predict(TWO),
        lambda: model.ensemble(TWO[0]),
        lambda: model.score(TWO, [[0], [0]]),
        lambda: model.save("model.json"),
    ):
        with pytest.raises(NotFittedError):
            call()


def test_bad_input_to_predict(data):
    model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy").fit(
        data.ground_sets, data.subsets
    )
    with pytest.raises(ValueError, match=r"ground set 0: 2 quality features.*with 5"):
        model.predict([X])
    with pytest.raises(ValueError, match="ground set 0: k must be between"):
        model.predict(data.ground_sets, k=11)


def test_more_items_than_the_rank_allows_are_warned_of():
    rng = np.random.default_rng(0)
    ground_set = vg.GroundSet(rng.standard_normal((6, 2)), rng.standard_normal((6, 3)))
    model = vg.LargeMarginDPP(kernel=vg.Linear(), jitter=0.0, decoder="greedy")
    model.fit([ground_set], [[0, 1]])
    with pytest.warns(UserWarning, match="ground set 0: after 3 of 5 items, the rank"):
        (chosen,) = model.predict([ground_set], k=5)
    assert len(chosen) == 3


def test_a_twin_of_a_training_item_needs_jitter():
    twins = vg.GroundSet(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    vg.LargeMarginDPP(kernel=vg.Linear(), l2=0.1).fit([twins], [[0, 1]])
    with pytest.raises(ValueError, match="an item twice"):
        vg.LargeMarginDPP(kernel=vg.Linear(), l2=0.1, jitter=0).fit([twins], [[0, 1]])


def test_verbose_says_how_far_it_is(data, capsys, monkeypatch):
    monkeypatch.setattr("variegate._progress._PAUSE", 0.0)
    seen = []
    model = vg.LargeMarginDPP(verbose=True, max_iter=3, callback=seen.append)
    with pytest.warns(ConvergenceWarning):
        model.fit(data.ground_sets, data.subsets)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(seen)
    assert re.fullmatch(r"LargeMarginDPP: step 0, objective [\d.]+ \(\d+ s\)", lines[0])
    search = vg.LargeMarginDPPCV(lams=[4.0], omegas=[1.0], cv=2, verbose=True)
    search.fit(data.ground_sets, data.subsets)
    assert "LargeMarginDPPCV: 2 of 2 folds" in capsys.readouterr().err
    vg.LargeMarginDPP(max_iter=100).fit(data.ground_sets, data.subsets)
    assert capsys.readouterr().err == ""
