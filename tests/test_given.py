"""Items that are given: probabilities, losses and choices beside them."""

import copy
import itertools

import numpy as np
import pytest

import reference
import variegate as vg
from variegate.decoding.registry import DECODERS
from variegate.ground_set import GroundSetError
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss, Targets
from variegate.learning.parameters import InfeasibleError
from variegate.learning.problem import TrainingProblem
from variegate.linalg.determinants import with_jitter
from variegate.linalg.limits import MATRIX_ITEMS
from variegate.partitions import Threads

N_CASES = 500


def log_det(M):
    """Return ``log det M`` in extended precision, by elimination without pivoting."""
    M = np.array(M, dtype=np.longdouble)
    total = np.longdouble(0.0)
    for k in range(len(M)):
        total += np.log(M[k, k])
        M[k + 1 :, k + 1 :] -= np.outer(M[k + 1 :, k], M[k, k + 1 :]) / M[k, k]
    return total


class Case:
    """A random ground set with given items, and the law of the candidates' subsets."""

    def __init__(self, seed):
        rng = np.random.default_rng([seed, 32])
        n = int(rng.integers(1, 9))
        self.X = rng.standard_normal((n, 3))
        self.features = rng.standard_normal((n, int(rng.integers(1, n + 2))))
        self.given = rng.permutation(n)[: rng.integers(0, n)]
        if len(self.given) > 1 and seed % 3 == 0:  # near copies, and copies
            one, other = self.given[:2]
            distance = rng.choice([0.0, 1e-6, 1e-3])
            self.features[one] = self.features[other] + distance
        self.theta = rng.standard_normal(3) * rng.choice([1.0, 1.0, 10.0, 100.0])
        self.intercept = rng.standard_normal()
        self.jitter = float(rng.choice([1e-3, 1e-6]))
        rest = self.rest = np.setdiff1d(np.arange(n), self.given)
        self.subset = rest[rng.random(len(rest)) < 0.5]
        self.lam = float(rng.choice([0.0, 1.0, 4.0]))
        self.omega = float(rng.choice([0.25, 1.0, 4.0]))
        self.u = self.X @ self.theta + self.intercept
        self.S = with_jitter(self.features @ self.features.T, self.jitter)

    @property
    def ground_set(self):
        return vg.GroundSet(self.X, self.features, given=self.given)

    def log_probabilities(self):
        """Return the log-probability of every subset of the candidates."""
        found = {}
        for size in range(len(self.rest) + 1):
            for y in itertools.combinations(self.rest.tolist(), size):
                both = np.sort(np.append(self.given, y).astype(int))
                value = log_det(self.S[np.ix_(both, both)])
                found[y] = value + 2 * np.longdouble(self.u[list(y)]).sum()
        values = np.array(list(found.values()))
        top = values.max()
        total = top + np.log(np.exp(values - top).sum())
        return {y: value - total for y, value in found.items()}

    def loss(self):
        law = self.log_probabilities()
        value = -law[tuple(self.subset.tolist())]
        if self.lam == 0.0:
            return value, np.inf
        n = len(self.X)
        costs = np.ones(n), np.full(n, self.omega)
        error = sum(
            np.exp(p) * reference.hamming(self.subset.tolist(), y, *costs)
            for y, p in law.items()
        )
        return value + self.lam * np.log(error), error

    def model(self):
        model = vg.LargeMarginDPP(kernel=vg.Linear(), jitter=self.jitter)
        kernel = vg.Linear().fit([self.ground_set])
        parts = {
            "theta": self.theta,
            "intercept": np.array([self.intercept]),
            "kernel": np.zeros(0),
        }
        result = type("Result", (), {"history": []})()
        return model._set_fitted(kernel, parts, result)

    def problem(self, compiled):
        examples = check_examples([self.ground_set], [self.subset], self.omega)
        loss = LargeMarginLoss(self.lam, hinge=False)
        kernel = vg.Linear().fit([self.ground_set])
        return TrainingProblem(
            examples, kernel, loss, jitter=self.jitter, compiled=compiled
        )

    def flat(self, problem):
        shift = problem.coordinates.center @ self.theta
        parts = {
            "theta": self.theta,
            "intercept": np.array([self.intercept + shift]),
            "kernel": np.zeros(0),
        }
        return problem.space.pack(parts)


def differences(problem, flat):
    """Return central differences of a problem's objective."""
    return reference.central_differences(
        lambda at: problem.value_and_gradient(at)[0], flat, 1e-4
    )


def test_probabilities_are_those_of_all_subsets_with_the_given_items():
    for seed in range(N_CASES):
        case = Case(seed)
        law = case.log_probabilities()
        ensemble = case.model().ensemble(case.ground_set)
        np.testing.assert_array_equal(ensemble.items, case.rest)
        for y, expected in itertools.islice(law.items(), 12):
            if expected > -700:
                found = ensemble.log_prob(np.searchsorted(case.rest, y))
                assert found == pytest.approx(float(expected), abs=1e-9, rel=1e-10)
        marginals = np.zeros(len(case.X))
        for y, p in law.items():
            marginals[list(y)] += float(np.exp(p))
        np.testing.assert_allclose(
            ensemble.marginals(), marginals[case.rest], atol=1e-9
        )


@pytest.mark.parametrize("compiled", [False, True])
def test_losses_are_those_of_all_subsets_and_slopes_their_differences(compiled):
    for seed in range(N_CASES):
        case = Case(seed)
        expected, error = case.loss()
        problem = case.problem(compiled)
        flat = case.flat(problem)
        value, gradient = problem.value_and_gradient(flat)
        if error > 1e-250:
            # A ridge of 1e-6 under copies of items leaves ten digits of 1e-16.
            accuracy = max(1e-10, 1e-15 / case.jitter)
            assert value == pytest.approx(float(expected), abs=accuracy, rel=1e-10)
        if seed % 5 == 0 and error > 1e-12:
            slopes = differences(problem, flat)
            # Near copies and a ridge of 1e-6 leave ten digits of the value.
            scale = max(1.0, np.abs(gradient).max())
            np.testing.assert_allclose(gradient, slopes, atol=1e-5 * scale)


def learned_case(n, n_given, seed=0):
    """Return a ground set with given items, large enough for factors, and a subset."""
    rng = np.random.default_rng([seed, n])
    X, features = rng.standard_normal((n, 2)), rng.standard_normal((n, 4))
    given = np.sort(rng.permutation(n)[:n_given])
    rest = np.setdiff1d(np.arange(n), given)
    ground_set = vg.GroundSet(X, features, given=given)
    return ground_set, rest[:3], rng


KERNELS = {
    "linear": lambda: vg.Linear(),
    "multiple": lambda: vg.MultipleKernel(bandwidths=[1.0, 2.0]),
    "low rank": lambda: vg.MultipleKernel(
        bandwidths=[2.0], approximation="nystroem", rank=8
    ),
    "kinds": lambda: vg.Kinds(4),
    "metric": lambda: vg.Metric(2),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("n", [12, 80, 200])
def test_every_way_to_evaluate_gives_the_same_loss_and_gradient(kernel, n, monkeypatch):
    ground_set, subset, rng = learned_case(n, n // 3)
    kernel = kernel().fit([ground_set])
    examples = check_examples([ground_set], [subset], 2.0)
    results = []
    for compiled, fewest in [(False, 10**9), (True, 10**9), (True, 1)]:
        for module in ("learning.factors", "linalg.limits"):
            monkeypatch.setattr(f"variegate.{module}.FEWEST_FACTORED", fewest)
        problem = TrainingProblem(
            examples, kernel, LargeMarginLoss(1.0), compiled=compiled
        )
        if not results:
            flat = problem.space.center()
            flat = flat + 0.1 * np.abs(rng.standard_normal(len(flat)))
        results.append(problem.value_and_gradient(flat))
    for value, gradient in results[1:]:
        assert value == pytest.approx(results[0][0], rel=1e-8)
        np.testing.assert_allclose(gradient, results[0][1], rtol=1e-5, atol=1e-6)
    slopes = differences(problem, flat)
    np.testing.assert_allclose(results[-1][1], slopes, rtol=1e-4, atol=1e-4)


def test_stacks_of_sets_with_and_without_given_items_add_up():
    cases = [learned_case(9, n_given, seed) for seed, n_given in enumerate([0, 3, 5])]
    ground_sets, subsets, _ = zip(*cases, strict=True)
    kernel = vg.Linear().fit(ground_sets)
    loss = LargeMarginLoss(1.0, hinge=False)
    together = TrainingProblem(check_examples(ground_sets, subsets, 1.0), kernel, loss)
    flat = together.space.center() + 0.2
    value, gradient = together.value_and_gradient(flat)
    alone = [
        TrainingProblem(
            check_examples([ground_set], [subset], 1.0),
            kernel,
            loss,
            coordinates=together.coordinates,
        ).value_and_gradient(flat)
        for ground_set, subset in zip(ground_sets, subsets, strict=True)
    ]
    assert value == pytest.approx(np.mean([one for one, _ in alone]), rel=1e-12)
    np.testing.assert_allclose(gradient, np.mean([g for _, g in alone], axis=0))


def test_the_quality_of_given_items_has_no_effect():
    ground_set, subset, _ = learned_case(20, 8)
    X = ground_set.quality.copy()
    X[ground_set.given] = 1e6
    other = vg.GroundSet(X, ground_set.similarity, given=ground_set.given)
    fits = [
        vg.LargeMarginDPP(kernel=vg.Linear(), max_iter=5, l2=0.1, tol=1e9).fit(
            [one], [subset]
        )
        for one in (ground_set, other)
    ]
    np.testing.assert_array_equal(fits[0].theta_, fits[1].theta_)
    np.testing.assert_array_equal(
        fits[0].ensemble(ground_set).marginals(), fits[1].ensemble(other).marginals()
    )


def conditional_data(n_sets, rng, theta=(1.5, -1.0)):
    """Return ground sets of a known model, given items, and subsets drawn beside them.

    The given items are good ones, and candidates near to them are good too, so that a
    reader who does not see them takes the absence of such candidates for low quality.
    """
    ground_sets, subsets = [], []
    for _ in range(n_sets):
        X = rng.standard_normal((12, 2))
        features = X + 0.3 * rng.standard_normal((12, 2))
        features = np.hstack([features, np.ones((12, 1))])
        given = np.argsort(-(X @ theta))[:3]
        ground_set = vg.GroundSet(X, features, given=given)
        S = with_jitter(features @ features.T, 1e-2)
        whole = vg.LEnsemble.from_quality(S, X @ theta - 0.5)
        conditional = whole.condition(include=given)
        drawn = conditional.sample(1, random_state=rng)[0]
        ground_sets.append(ground_set)
        subsets.append(conditional.items[drawn])
    return ground_sets, subsets


def test_parameters_come_back_only_if_given_items_are_known():
    truth = np.array([1.5, -1.0, -0.5])
    ground_sets, subsets = conditional_data(3000, np.random.default_rng(0))
    model = vg.LargeMarginDPP(lam=0.0, kernel=vg.Linear(), jitter=1e-2)

    def learned(ground_sets, subsets):
        model.fit(ground_sets, subsets)
        return np.append(model.theta_, model.intercept_)

    found = learned(ground_sets, subsets)
    halves = [learned(ground_sets[k::10], subsets[k::10]) for k in range(10)]
    error = np.std(halves, axis=0, ddof=1) / np.sqrt(10)
    # Four standard errors: less than one in 5,000 for three normal numbers.
    assert (np.abs(found - truth) < 4.0 * error).all()
    blind = [
        vg.GroundSet(one.quality[one.candidates], one.similarity[one.candidates])
        for one in ground_sets
    ]
    inside = [
        np.searchsorted(one.candidates, subset)
        for one, subset in zip(ground_sets, subsets, strict=True)
    ]
    assert (np.abs(learned(blind, inside) - truth) > 10.0 * error).any()


def test_no_given_items_leave_every_bit_as_it_is():
    data = vg.datasets.make_synthetic(n_sets=20, random_state=3)
    empty = [
        vg.GroundSet(one.quality, one.similarity, given=np.zeros(len(one), dtype=bool))
        for one in data.ground_sets
    ]
    fits = [
        vg.LargeMarginDPP(kernel=vg.Linear(), max_iter=20, random_state=0).fit(
            sets, data.subsets
        )
        for sets in (data.ground_sets, empty)
    ]
    np.testing.assert_array_equal(fits[0].theta_, fits[1].theta_)
    for one, other in zip(*(f.predict(data.ground_sets) for f in fits), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture(scope="module")
def fitted():
    cases = [learned_case(12, k % 5, seed=k) for k in range(40)]
    ground_sets, subsets, _ = map(list, zip(*cases, strict=True))
    model = vg.LargeMarginDPP(kernel=vg.Linear(), l2=1e-3).fit(ground_sets, subsets)
    return model, ground_sets, subsets


def test_partitions_give_what_lists_give(fitted):
    model, ground_sets, subsets = fitted
    from_pairs = vg.LargeMarginDPP(kernel=vg.Linear(), l2=1e-3).fit(
        zip(ground_sets, subsets, strict=True), engine=Threads(2)
    )
    np.testing.assert_allclose(from_pairs.theta_, model.theta_, rtol=1e-6)


@pytest.mark.parametrize("decoder", sorted(DECODERS))
def test_given_items_are_never_chosen_and_do_not_count(fitted, decoder):
    model, ground_sets, _ = fitted
    model = copy.copy(model).set_params(decoder=decoder)
    labels = [np.arange(12) % 3 for _ in ground_sets]
    for options in (
        {},
        {"k": 3},
        {"k": 3, "order": "importance"},
        {"at_most": 1, "per": labels},
        {"at_most": (2, 1), "per": [(one, one) for one in labels]},
    ):
        for ground_set, chosen in zip(
            ground_sets, model.predict(ground_sets, **options), strict=True
        ):
            assert not np.intersect1d(chosen, ground_set.given).size
            assert len(chosen) == options.get("k", len(chosen))
            if "per" in options:
                assert np.bincount(np.arange(12)[chosen] % 3).max(initial=0) <= 1


def test_budgets_are_for_new_items():
    ground_set, _, _ = learned_case(12, 4)
    costs = np.where(np.isin(np.arange(12), ground_set.given), 100.0, 1.0)
    priced = vg.GroundSet(
        ground_set.quality, ground_set.similarity, costs=costs, given=ground_set.given
    )
    model = Case(1).model()
    model.theta_, model.n_features_in_ = np.zeros(2), 2
    model.intercept_ = 5.0
    chosen = model.predict([priced], budget=2.0)[0]
    assert len(chosen) == 2


def test_near_copies_of_given_items_are_left_out():
    features = np.eye(6)[[0, 1, 2, 0, 1, 3]] + 1e-4
    model = Case(1).model()
    model.theta_, model.intercept_, model.n_features_in_ = np.zeros(1), 1.0, 1
    ground_set = vg.GroundSet(np.ones((6, 1)), features, given=[0, 1])
    assert model.predict([ground_set], k=2)[0].tolist() == [2, 5]


def test_held_as_a_factor_beside_more_given_items_than_columns():
    n = MATRIX_ITEMS + 500
    rng = np.random.default_rng(5)
    features = rng.standard_normal((n, 6))
    features[:1000, 3:] = 0.0  # the given items leave three directions open
    ground_set = vg.GroundSet(rng.standard_normal((n, 1)), features, given=range(1000))
    model = Case(1).model()
    model.theta_, model.intercept_, model.n_features_in_ = np.ones(1), 0.0, 1
    ensemble = model.ensemble(ground_set)
    assert len(ensemble) == n - 1000
    open_ones = vg.LEnsemble.from_factor(
        features[1000:, 3:] * np.exp(ground_set.quality[1000:])
    )
    np.testing.assert_allclose(
        ensemble.marginals(), open_ones.marginals(), rtol=1e-3, atol=1e-5
    )
    assert model.predict([ground_set])[0].min() >= 1000


def test_expected_f_counts_candidates_alone():
    case = next(c for c in map(Case, range(100)) if len(c.given) and len(c.subset))
    problem = case.problem(False)
    found = problem.expected_f(case.flat(problem))
    K = case.model().ensemble(case.ground_set).marginals()
    right = K[np.searchsorted(case.rest, case.subset)].sum()
    assert found == pytest.approx(2 * right / (K.sum() + len(case.subset)), rel=1e-6)


def test_cross_validation_and_scores_leave_given_items_out(fitted):
    _, ground_sets, subsets = fitted
    search = vg.LargeMarginDPPCV(
        vg.LargeMarginDPP(kernel=vg.Linear(), max_iter=30),
        lams=[0.0],
        omegas=[1.0],
        cv=2,
    ).fit(ground_sets, subsets)
    for ground_set, chosen in zip(
        ground_sets, search.predict(ground_sets), strict=True
    ):
        assert not np.intersect1d(chosen, ground_set.given).size
    assert 0.0 <= search.score(ground_sets, subsets) <= 1.0


def test_a_target_without_given_items_has_no_mask():
    assert Targets.from_subsets([np.array([0])], 3, given=[[]]).given is None


def test_errors_name_the_given_items():
    X = np.ones((4, 1))
    with pytest.raises(ValueError, match="given: item 7 is out of range"):
        vg.GroundSet(X, given=[7])
    with pytest.raises(ValueError, match="all 4 items are given: leave at least one"):
        vg.GroundSet(X, given=range(4))
    ground_set = vg.GroundSet(X, np.eye(4), given=[1])
    model = vg.LargeMarginDPP(kernel=vg.Linear())
    with pytest.raises(GroundSetError, match="ground set 0: item 1 is both given and"):
        model.fit([ground_set], [[0, 1]])
    twice = vg.GroundSet(X, np.eye(4)[[0, 1, 1, 2]], given=[1, 2])
    exact = vg.LargeMarginDPP(kernel=vg.Linear(), jitter=0.0)
    with pytest.raises(
        InfeasibleError, match="beside the given items 1 and 2, because"
    ):
        exact.fit([twice], [[0]])
    exact.fit([ground_set, vg.GroundSet(X, np.eye(4))], [[0], [1]])
    with pytest.raises(ValueError, match="similarity of item 2 depends on the others"):
        exact.ensemble(twice)
    nothing = vg.GroundSet(X, np.diag([1.0, 0.0, 1.0, 1.0]), given=[1])
    with pytest.raises(GroundSetError, match="item 1 is given, but its similarity to"):
        exact.fit([nothing], [[0]])


def test_shown_with_the_number_of_given_items():
    ground_set = vg.GroundSet(np.ones((3, 1)), given=[2])
    assert "3 items, 1 given" in repr(ground_set)
    assert "given" in ground_set._repr_html_()
    assert ground_set.candidates.tolist() == [0, 1]
