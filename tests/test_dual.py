"""The loss by way of factors against its dense twin, and Gaussians of low rank."""

import json
import resource
from fractions import Fraction
from operator import mul
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import reference
import variegate as vg
from variegate.files.models import ModelFileError
from variegate.kernels.domains import Free
from variegate.learning.examples import Example, check_examples
from variegate.learning.factors import (
    Factors,
    _ensemble_of_factor,
    low_rank_factors,
    prepare_low_rank_embedding,
)
from variegate.learning.objective import LargeMarginLoss, Targets, ZeroProbabilityError
from variegate.learning.parameters import InfeasibleError
from variegate.learning.problem import TrainingProblem
from variegate.learning.stacks import DualStack, EmbeddedStack
from variegate.linalg.determinants import NotPositiveDefiniteError, with_jitter
from variegate.linalg.representations import Dense, Factored
from variegate.linalg.representations.graded import Graded

N = 40
RANKS = {"one": [3], "three": [2, 1, 4], "wide": [30, 25]}
QUALITIES = {
    "usual": lambda rng: rng.standard_normal(N),
    "low": lambda rng: np.full(N, -300.0),
    "high": lambda rng: np.full(N, 300.0),
    "mixed": lambda rng: rng.choice([-300.0, 0.0, 300.0], size=N),
    "spread": lambda rng: rng.uniform(-300, 300, N),
    "wide-apart": lambda rng: rng.choice([-3000.0, 3000.0], size=N),
}


def instance(ranks, seed):
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((N, rank)) for rank in ranks]
    weights = rng.dirichlet(np.ones(len(ranks)))
    subset = np.sort(rng.permutation(N)[:5])
    costs = rng.exponential(size=(2, N)) + 0.1
    return parts, weights, Targets.from_subsets([subset], N, *costs[:, None]), rng


def dense_terms(loss, parts, weights, u, targets, jitter):
    """The same by the matrix: value, gradient in weights, gradient in ``u``."""
    S = sum(w * F @ F.T for w, F in zip(weights, parts, strict=True))
    terms = loss.value_and_gradient(with_jitter(S, jitter)[None], u[None], targets)
    G = with_jitter(terms.similarity_gradient, jitter)[0]
    by_weight = np.array([np.sum(F * (G @ F)) for F in parts])
    return terms.value[0], by_weight, terms.quality_gradient[0]


def dual_terms(loss, parts, weights, u, targets, jitter):
    """The same by the factors."""
    kernel = SimpleNamespace(domain=Free(len(parts)))
    position = np.zeros(1, dtype=int)
    stack = DualStack(
        position, None, Factors.concatenate(parts), targets, kernel, jitter
    )
    value, by_quality, by_weight = stack.evaluate(loss, weights, u)
    return value, by_weight, by_quality


def assert_close(actual, expected, tolerance):
    scale = max(np.abs(expected).max(), 1e-3)
    assert np.abs(actual - expected).max() / scale < tolerance


@pytest.mark.parametrize("ranks", RANKS.values(), ids=RANKS)
@pytest.mark.parametrize("lam", [0.0, 1.0, 8.0])
@pytest.mark.parametrize("hinge", [True, False])
@pytest.mark.parametrize("quality", QUALITIES.values(), ids=QUALITIES)
@pytest.mark.parametrize("jitter", [1e-6, 1e-2])
def test_dual_equals_dense(ranks, lam, hinge, quality, jitter):
    loss = LargeMarginLoss(lam, hinge)
    for seed in range(3):
        parts, weights, targets, rng = instance(ranks, seed)
        u = quality(rng)
        expected = dense_terms(loss, parts, weights, u, targets, jitter)
        actual = dual_terms(loss, parts, weights, u, targets, jitter)
        assert actual[0] == pytest.approx(expected[0], rel=1e-8, abs=1e-8)
        assert_close(actual[1], expected[1], 1e-8)
        assert_close(actual[2], expected[2], 1e-8)


@pytest.mark.parametrize("lam", [0.0, 1.0, 8.0])
@pytest.mark.parametrize("jitter", [1e-6, 1e-2])
def test_weights_of_zero_have_a_gradient(lam, jitter):
    parts, _, targets, rng = instance([4, 3, 5], 0)
    weights, u = np.array([0.6, 0.0, 0.4]), rng.standard_normal(N)
    loss = LargeMarginLoss(lam, hinge=False)
    expected = dense_terms(loss, parts, weights, u, targets, jitter)
    actual = dual_terms(loss, parts, weights, u, targets, jitter)
    assert actual[0] == pytest.approx(expected[0], rel=1e-10)
    assert_close(actual[1], expected[1], 1e-8)
    assert_close(actual[2], expected[2], 1e-8)


@pytest.mark.parametrize("size", [0, 1, N])
def test_subsets_of_any_size(size):
    parts, weights, _, rng = instance([4, 3], 1)
    targets = Targets.from_subsets([np.arange(size)], N, 1.0, 4.0)
    u = rng.standard_normal(N)
    loss = LargeMarginLoss(2.0, hinge=False)
    expected = dense_terms(loss, parts, weights, u, targets, 1e-2)
    actual = dual_terms(loss, parts, weights, u, targets, 1e-2)
    assert actual[0] == pytest.approx(expected[0], rel=1e-10)
    assert_close(actual[1], expected[1], 1e-8)
    assert_close(actual[2], expected[2], 1e-8)


def test_a_met_margin_has_no_loss_and_no_gradient():
    parts, weights, _, _ = instance([3, 2], 0)
    targets = Targets.from_subsets([np.array([4])], N)
    u = np.where(np.arange(N) == 4, 20.0, -20.0)
    free = dual_terms(
        LargeMarginLoss(1.0, hinge=False), parts, weights, u, targets, 1e-6
    )
    cut = dual_terms(LargeMarginLoss(1.0), parts, weights, u, targets, 1e-6)
    assert free[0] < 0 == cut[0]
    assert not cut[1].any()
    assert not cut[2].any()


def test_without_a_ridge_what_cannot_be_is_said():
    parts, weights, _, _ = instance([2], 0)
    targets = Targets.from_subsets([np.array([0, 1, 2])], N)
    with pytest.raises(ZeroProbabilityError):
        dual_terms(LargeMarginLoss(), parts, weights, np.zeros(N), targets, 0)
    one = Targets.from_subsets([np.array([0])], N)
    for u in (16.0, 1e3):
        with pytest.raises(NotPositiveDefiniteError):
            dual_terms(LargeMarginLoss(), parts, weights, np.full(N, u), one, 0.0)
    # Qualities that are merely large need none.
    terms = dual_terms(LargeMarginLoss(), parts, weights, np.full(N, 9.0), one, 0.0)
    assert np.isfinite(terms[0])


def test_many_chunks_equal_one(monkeypatch):
    parts, weights, targets, rng = instance([4, 3], 2)
    u = rng.standard_normal(N)
    loss = LargeMarginLoss(2.0, hinge=False)
    whole = dual_terms(loss, parts, weights, u, targets, 1e-6)
    monkeypatch.setattr("variegate.learning.factors._ROWS", 7)
    chunked = dual_terms(loss, parts, weights, u, targets, 1e-6)
    for one, other in zip(whole, chunked, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


# In a training problem ---------------------------------------------------------------

LOW_RANK = {
    "linear": vg.Linear(),
    "cosine": vg.Linear(normalize=True),
    "gaussian-nystroem": vg.Gaussian(2.0, approximation="nystroem", rank=8),
    "gaussian-fourier": vg.Gaussian(2.0, approximation="fourier", rank=8),
    "multiple-nystroem": vg.MultipleKernel(approximation="nystroem", rank=3),
    "multiple-fourier": vg.MultipleKernel(
        [1.0, 2.0, 4.0], linear=False, approximation="fourier", rank=8
    ),
    "multiple-anchored": vg.MultipleKernel(
        [2.0, 4.0], approximation="fourier", rank=8, anchored=True
    ),
    "mixture": vg.Mixture(
        [
            vg.Gaussian(2.0, approximation="nystroem", rank=8, anchored=True),
            vg.Linear(),
        ]
    ),
}


def ground_sets_of(kind, n_sets=2, n_items=160):
    rng = np.random.default_rng(5)
    sets = []
    for _ in range(n_sets):
        features = rng.standard_normal((n_items, 4))
        sets.append(
            vg.GroundSet(
                0.3 * rng.standard_normal((n_items, 3)),
                sparse.csr_array(features) if kind == "sparse" else features,
            )
        )
    return sets, [np.sort(rng.permutation(n_items)[:3]) for _ in sets]


def build_problem(kernel, sets, subsets, lam, monkeypatch=None):
    if monkeypatch is not None:
        monkeypatch.setattr(
            "variegate.learning.problem.low_rank_factors", lambda *_: None
        )
    return TrainingProblem(
        check_examples(sets, subsets, 2.0),
        kernel,
        LargeMarginLoss(lam, hinge=False),
    )


def some_point(problem):
    point = problem.space.center()
    point[problem.space.slices["theta"]] = [0.4, -0.2, 0.1]
    point[problem.space.slices["intercept"]] = -0.7
    rng = np.random.default_rng(0)
    kernel = problem.space.slices["kernel"]
    point[kernel] = problem.kernel.domain.random(rng)
    return point


@pytest.mark.parametrize("kernel", LOW_RANK.values(), ids=LOW_RANK)
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("lam", [0.0, 4.0])
def test_problem_by_factors_equals_that_by_matrices(kernel, kind, lam, monkeypatch):
    sets, subsets = ground_sets_of(kind)
    kernel = kernel.fit(sets)
    dual = build_problem(kernel, sets, subsets, lam)
    assert all(isinstance(stack, DualStack) for stack in dual._stacks)
    dense = build_problem(kernel, sets, subsets, lam, monkeypatch)
    assert not any(isinstance(stack, DualStack) for stack in dense._stacks)
    point = some_point(dual)
    value, gradient = dual.value_and_gradient(point)
    expected_value, expected_gradient = dense.value_and_gradient(point)
    assert value == pytest.approx(expected_value, rel=1e-8)
    assert_close(gradient, expected_gradient, 1e-8)


@pytest.mark.parametrize("kernel", LOW_RANK.values(), ids=LOW_RANK)
@pytest.mark.parametrize("lam", [0.0, 1.0, 8.0])
def test_gradient_equals_central_differences(kernel, lam):
    sets, subsets = ground_sets_of("dense")
    problem = build_problem(kernel.fit(sets), sets, subsets, lam)
    point = some_point(problem)
    _, gradient = problem.value_and_gradient(point)
    expected = reference.central_differences(
        lambda p: problem.value_and_gradient(p)[0], point
    )
    assert_close(gradient, expected, 1e-6)


EMBEDDED = {
    "kinds": vg.Kinds(8),
    "mixture": vg.Mixture([vg.Linear(), vg.Kinds(8), vg.Kinds(3, epsilon=0.2)]),
}


@pytest.mark.parametrize("hinge", [True, False])
@pytest.mark.parametrize("jitter", [0.0, 1e-6, 1e-2])
@pytest.mark.parametrize("lam", [0.0, 1.0, 8.0])
@pytest.mark.parametrize("log_quality", [0.5, 20.0])
@pytest.mark.parametrize("kernel", EMBEDDED.values(), ids=EMBEDDED)
def test_learned_features_equal_matrices(
    kernel, hinge, jitter, lam, log_quality, monkeypatch
):
    rng = np.random.default_rng(3)
    sets = [
        vg.GroundSet(rng.standard_normal((n, 3)), rng.standard_normal((n, 6)))
        for n in (150, 210)
    ]
    subsets = [np.sort(rng.permutation(150)[:m]) for m in (5, 12)]
    kernel = clone(kernel).fit(sets)

    def problem():
        return TrainingProblem(
            list(map(Example, range(2), sets, subsets, [1.0, 2.0], [2.0, 0.5])),
            kernel,
            LargeMarginLoss(lam, hinge),
            jitter=jitter,
        )

    dual = problem()
    assert all(isinstance(stack, EmbeddedStack) for stack in dual._stacks)
    monkeypatch.setattr(
        "variegate.learning.problem.prepare_low_rank_embedding", lambda *_: None
    )
    dense = problem()
    assert not any(isinstance(stack, EmbeddedStack) for stack in dense._stacks)
    point = dual.space.project(0.3 * rng.standard_normal(dual.space.size))
    point[dual.space.slices["theta"]] *= log_quality
    value, gradient = dual.value_and_gradient(point)
    expected_value, expected_gradient = dense.value_and_gradient(point)
    assert value == pytest.approx(expected_value, rel=1e-8)
    assert_close(gradient, expected_gradient, 1e-8)
    assert dual.expected_f(point) == pytest.approx(dense.expected_f(point), abs=1e-10)


def test_kinds_of_a_large_set_are_chosen_from_by_a_factor():
    rng = np.random.default_rng(0)
    small = vg.GroundSet(rng.standard_normal((40, 2)), rng.standard_normal((40, 4)))
    model = vg.LargeMarginDPP(kernel=vg.Kinds(5), max_iter=5, tol=10.0)
    model.fit([small], [[1, 2, 3]])
    large = vg.GroundSet(rng.standard_normal((2500, 2)), rng.standard_normal((2500, 4)))
    ensemble = model.ensemble(large)
    assert isinstance(ensemble.representation, Factored)
    p = model.kernel_.kinds(large, model.kernel_parameters_)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    share = model.kernel_.learned_epsilon(model.kernel_parameters_)
    u = large.quality @ model.theta_ + model.intercept_
    B = np.sqrt((1.0 - share) * p) * np.exp(u)[:, None]
    K = B @ np.linalg.solve(np.eye(5) + B.T @ B, B.T)
    np.testing.assert_allclose(ensemble.marginals(), np.diag(K), atol=1e-10)


def test_a_mixture_with_kinds_on_a_large_set_is_a_factor():
    rng = np.random.default_rng(0)
    small, large = (
        vg.GroundSet(rng.standard_normal((n, 2)), rng.standard_normal((n, 4)))
        for n in (40, 2500)
    )
    kernel = vg.Mixture([vg.Kinds(5), vg.Linear()])
    model = vg.LargeMarginDPP(kernel=kernel, max_iter=5, tol=10.0)
    model.fit([small], [[1, 2, 3]])
    ensemble = model.ensemble(large)
    assert isinstance(ensemble.representation, Factored)
    (weight, other), (own,) = model.kernel_.split(model.kernel_parameters_)
    kinds = model.kernel_.kernels_[0]
    scale = weight * (1.0 - kinds.learned_epsilon(own))
    roots = np.sqrt(scale * kinds.kinds(large, own))
    u = large.quality @ model.theta_ + model.intercept_
    B = np.hstack([roots, np.sqrt(other) * large.features()]) * np.exp(u)[:, None]
    K = B @ np.linalg.solve(np.eye(9) + B.T @ B, B.T)
    np.testing.assert_allclose(ensemble.marginals(), np.diag(K), atol=1e-10)


@pytest.mark.parametrize(
    "kernel",
    [
        vg.Metric(2),
        vg.Mixture([vg.Kinds(3), vg.Metric(2)]),
        vg.Mixture([vg.Kinds(3), vg.Gaussian(1.0)]),
        vg.Mixture([vg.Kinds(60), vg.Kinds(60)]),
    ],
)
def test_kernels_without_a_small_embedding(kernel):
    rng = np.random.default_rng(0)
    items = vg.GroundSet(np.ones((300, 1)), rng.standard_normal((300, 4)))
    assert prepare_low_rank_embedding(kernel.fit([items]), items) is None


def test_factors_are_for_large_sets_with_few_columns():
    wide = vg.GroundSet(np.ones((300, 1)), np.ones((300, 100)))
    assert low_rank_factors(vg.Linear(), wide) is None
    narrow = vg.GroundSet(np.ones((300, 1)), np.ones((300, 98)))
    assert low_rank_factors(vg.Linear(), narrow) is not None
    assert low_rank_factors(vg.Gaussian(1.0), narrow) is None
    assert low_rank_factors(vg.MultipleKernel([1.0]), narrow) is None
    assert low_rank_factors(vg.Mixture([vg.Linear(), vg.Gaussian(1.0)]), narrow) is None
    kernel = vg.MultipleKernel([1.0], approximation="fourier", rank=2).fit([narrow])
    assert low_rank_factors(kernel, narrow) is None
    very_wide = vg.GroundSet(np.ones((300, 1)), sparse.csr_array((300, 10**8)))
    assert low_rank_factors(vg.Linear(), very_wide) is None
    small = vg.GroundSet(np.ones((149, 1)), np.ones((149, 2)))
    problem = build_problem(vg.Linear(), [small], [np.array([1])], 1.0)
    assert not isinstance(problem._stacks[0], DualStack)


class ShiftedLinear(vg.Linear):
    """A subclass that means another matrix."""

    def matrix(self, ground_set):
        return super().matrix(ground_set) + 1.0


class DenseLinear(vg.Linear):
    """The same matrix, by the dense road."""

    def matrix(self, ground_set):
        return super().matrix(ground_set)


def test_a_subclass_of_linear_keeps_its_matrix():
    sets, _ = ground_sets_of("dense")
    assert vg.Linear().factors(sets[0]) is not None
    assert ShiftedLinear().factors(sets[0]) is None


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_fit_by_factors_equals_the_dense_fit(lam):
    sets, subsets = ground_sets_of("dense", n_sets=6)
    dual, dense = (
        vg.LargeMarginDPP(
            lam=lam, kernel=kernel, decoder="greedy", jitter=1e-2, tol=1e-8, l2=0.01
        ).fit(sets, subsets)
        for kernel in (vg.Linear(), DenseLinear())
    )
    assert dual.solver_result_.objective == pytest.approx(
        dense.solver_result_.objective, rel=1e-9
    )
    np.testing.assert_allclose(dual.theta_, dense.theta_, atol=1e-4)
    for one, other in zip(dual.predict(sets), dense.predict(sets), strict=True):
        assert one.tolist() == other.tolist()


def test_impossible_items_are_named():
    sets, _ = ground_sets_of("dense", n_sets=1)
    features = sets[0].features().copy()
    features[7] = 0.0
    ground_set = vg.GroundSet(sets[0].quality, features)
    with pytest.raises(ValueError, match="ground set 0: item 7 is in the subset, but"):
        build_problem(vg.Linear(), [ground_set], [np.array([3, 7])], 1.0)
    model = vg.LargeMarginDPP(kernel=vg.Linear(), jitter=0.0)
    with pytest.raises(InfeasibleError, match="ground set 0: its subset has probabil"):
        model.fit(sets, [np.arange(10)])


# Gaussians of low rank ---------------------------------------------------------------


def exact_and_features(approximation, rank, n_items=60, bandwidth=2.0, seed=0):
    X = np.random.default_rng(1).standard_normal((n_items, 3))
    ground_set = vg.GroundSet(np.ones((n_items, 1)), X)
    exact = vg.Gaussian(bandwidth).matrix(ground_set)
    kernel = vg.Gaussian(
        bandwidth, approximation=approximation, rank=rank, random_state=seed
    )
    return exact, kernel.fit([ground_set]).factors(ground_set)[0]


def test_anchored_nystroem_with_all_items_for_landmarks_is_exact():
    ground_set = vg.GroundSet(np.random.default_rng(0).standard_normal((30, 3)))
    exact = vg.Gaussian(2.0, anchored=True).matrix(ground_set)
    options = {"approximation": "nystroem", "anchored": True}
    all_items = vg.Gaussian(2.0, rank=31, **options).fit([ground_set])
    np.testing.assert_allclose(all_items.matrix(ground_set), exact, atol=1e-6)
    # The origin takes one of the places.
    np.testing.assert_array_equal(all_items.features_.numbers[0], np.zeros(3))
    only_origin = vg.Gaussian(2.0, rank=1, **options).fit([ground_set])
    assert only_origin.factors(ground_set)[0].shape == (30, 1)


def test_anchored_fourier_features_tend_to_the_truth():
    ground_set = vg.GroundSet(np.random.default_rng(0).standard_normal((30, 3)))
    exact = vg.Gaussian(3.0, anchored=True).matrix(ground_set)
    options = {"approximation": "fourier", "anchored": True, "rank": 200_000}
    close = vg.Gaussian(3.0, **options).fit([ground_set]).matrix(ground_set)
    # 100,000 frequencies, so a standard error of 0.3% of about twice an entry.
    np.testing.assert_allclose(close, exact, atol=0.03 * exact.max())


@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 4.0])
def test_nystroem_with_all_items_for_landmarks_is_exact(bandwidth):
    exact, F = exact_and_features("nystroem", 60, bandwidth=bandwidth)
    np.testing.assert_allclose(F @ F.T, exact, atol=1e-9)


def test_nystroem_errors_shrink_and_never_exceed_the_truth():
    errors = []
    for rank in (5, 15, 40):
        exact, F = exact_and_features("nystroem", rank)
        assert F.shape == (60, rank)
        rest = exact - F @ F.T
        # A Schur complement: positive semidefinite, so the diagonal is at most one.
        assert np.linalg.eigvalsh(rest).min() > -1e-10
        errors.append(np.abs(rest).max())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_fourier_errors_shrink_like_the_root_of_the_rank():
    def error(rank):
        found = []
        for seed in range(5):
            exact, F = exact_and_features("fourier", rank, seed=seed)
            assert F.shape == (60, rank)
            np.testing.assert_allclose(np.sum(F**2, axis=1), 1.0, rtol=1e-12)
            found.append(np.sqrt(np.mean((F @ F.T - exact) ** 2)))
        return np.mean(found)

    # Sixteen times the rank is a quarter of the error; seeds vary by a few per cent.
    assert error(64) / error(1024) == pytest.approx(4.0, rel=0.25)


def test_fourier_features_are_unbiased():
    total = 0.0
    for seed in range(400):
        exact, F = exact_and_features("fourier", 16, n_items=10, seed=seed)
        total = total + F @ F.T
    # An entry has a deviation below 1/√8 for eight frequencies: five of them, for 400.
    assert np.abs(total / 400 - exact).max() < 5 / np.sqrt(8 * 400)


def test_landmarks_are_distinct_training_items():
    sets, _ = ground_sets_of("dense", n_sets=3)
    kernel = vg.MultipleKernel([1.0], approximation="nystroem", rank=12).fit(sets)
    landmarks = kernel.features_[None].numbers
    items = np.concatenate([ground_set.features() for ground_set in sets])
    assert landmarks.shape == (12, 4)
    assert len(np.unique(landmarks, axis=0)) == 12
    assert all((items == landmark).all(axis=1).any() for landmark in landmarks)


def test_items_that_are_the_same_make_fewer_columns():
    ground_set = vg.GroundSet(np.ones((50, 1)), np.repeat(np.eye(5), 10, axis=0))
    for rank in (20, 100):
        kernel = vg.Gaussian(1.0, approximation="nystroem", rank=rank)
        F = kernel.fit([ground_set]).factors(ground_set)[0]
        assert F.shape == (50, 5)
        np.testing.assert_allclose(F @ F.T, vg.Gaussian(1.0).matrix(ground_set))


def test_landmarks_are_looked_for_in_a_pool(monkeypatch):
    monkeypatch.setattr("variegate.kernels.features.POOLED_ITEMS", 30)
    monkeypatch.setattr("variegate.kernels.multiple.MEDIAN_ITEMS", 50)
    sets, _ = ground_sets_of("sparse", n_sets=2)
    kernel = vg.MultipleKernel(approximation="nystroem", rank=40).fit(sets)
    assert kernel.features_[None].numbers.shape == (30, 4)
    median = kernel.bandwidths_[None][3]
    exact = vg.MultipleKernel().fit(sets).bandwidths_[None][3]
    assert median == pytest.approx(exact, rel=0.1)
    assert median != exact


def test_the_approximation_is_the_same_for_all_ground_sets():
    sets, _ = ground_sets_of("dense", n_sets=2)
    both = vg.GroundSet(
        np.concatenate([gs.quality for gs in sets]),
        np.concatenate([gs.features() for gs in sets]),
    )
    for name in ("nystroem", "fourier"):
        kernel = vg.Gaussian(2.0, approximation=name, rank=8).fit(sets)
        apart = np.concatenate([kernel.factors(gs)[0] for gs in sets])
        np.testing.assert_allclose(kernel.factors(both)[0], apart, atol=1e-14)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"approximation": "nystrom", "rank": 4}, "unknown approximation 'nystrom'"),
        ({"approximation": "nystroem"}, "needs a rank, .* give, for example, rank=64"),
        ({"approximation": "nystroem", "rank": 0}, "rank must be a whole number of at"),
        ({"approximation": "fourier", "rank": 2.5}, "rank must be a whole number of"),
        ({"approximation": "fourier", "rank": 7}, "rank must be even, because"),
        ({"rank": 7}, "rank=7 needs an approximation"),
        (
            {"approximation": "fourier", "rank": 2, "random_state": None},
            "random_state of a kernel must be a whole number",
        ),
    ],
)
def test_bad_approximations(parameters, message):
    sets, subsets = ground_sets_of("dense")
    for kernel in (vg.MultipleKernel(**parameters), vg.Gaussian(1.0, **parameters)):
        with pytest.raises(ValueError, match=message):
            vg.LargeMarginDPP(kernel=kernel).fit(sets, subsets)


def test_approximations_need_fitting_and_the_same_features():
    sets, _ = ground_sets_of("dense")
    other = vg.GroundSet(np.ones((5, 3)))
    for kernel in (
        vg.Gaussian(1.0, approximation="fourier", rank=4),
        vg.MultipleKernel([1.0], linear=False, approximation="nystroem", rank=4),
    ):
        with pytest.raises(ValueError, match="not settled yet: call fit first"):
            kernel.prepare(sets[0])
        with pytest.raises(ValueError, match="3 similarity features, but the kernel"):
            kernel.fit(sets).prepare(other)


def test_approximations_need_as_many_features_everywhere():
    sets = [vg.GroundSet(np.ones((5, 2)), np.ones((5, p))) for p in (3, 4)]
    for name in ("nystroem", "fourier"):
        kernel = vg.Gaussian(1.0, approximation=name, rank=4)
        with pytest.raises(ValueError, match="ground set 1: it has 4 similarity feat"):
            kernel.fit(sets)


# Choosing, and keeping ---------------------------------------------------------------


@pytest.mark.parametrize("kernel", LOW_RANK.values(), ids=LOW_RANK)
def test_loaded_model_predicts_what_the_saved_one_did(kernel, tmp_path):
    sets, subsets = ground_sets_of("dense")
    model = vg.LargeMarginDPP(kernel=kernel, decoder="greedy", l2=0.1)
    model.fit(sets, subsets).save(tmp_path / "model.json")
    loaded = vg.load(tmp_path / "model.json")
    for one, other in zip(loaded.predict(sets), model.predict(sets), strict=True):
        assert one.tolist() == other.tolist()
    np.testing.assert_array_equal(loaded.ensemble(sets[0]).L, model.ensemble(sets[0]).L)
    loaded.save(tmp_path / "again.json")
    again = (tmp_path / "again.json").read_text()
    assert json.loads(again) == json.loads((tmp_path / "model.json").read_text())


def test_files_with_a_damaged_approximation(tmp_path):
    sets, subsets = ground_sets_of("dense")
    path = tmp_path / "model.json"
    kernel = vg.Gaussian(2.0, approximation="nystroem", rank=4)
    model = vg.LargeMarginDPP(kernel=kernel, decoder="greedy", l2=0.1)
    model.fit(sets, subsets).save(path)
    document = json.loads(path.read_text())
    document["kernel"]["state"]["features"] = [1.0, 2.0]
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="not a matrix of numbers"):
        vg.load(path)


@pytest.mark.parametrize("kernel", LOW_RANK.values(), ids=LOW_RANK)
def test_ensemble_of_a_large_set_is_held_as_a_factor(kernel):
    sets, subsets = ground_sets_of("dense", n_sets=1, n_items=2100)
    model = vg.LargeMarginDPP(
        kernel=kernel, decoder="greedy", max_iter=3, l2=0.1, jitter=1e-9
    )
    with pytest.warns(ConvergenceWarning):
        model.fit(sets, subsets)
    ensemble = model.ensemble(sets[0])
    assert isinstance(ensemble.representation, Factored)
    kernel_, parameters = model.kernel_, model.kernel_parameters_
    S = kernel_.value(kernel_.prepare(sets[0]), parameters)
    u = sets[0].quality @ model.theta_ + model.intercept_
    dense = vg.LEnsemble._from_representation(Dense(S, u))
    np.testing.assert_allclose(ensemble.marginals(), dense.marginals(), atol=1e-9)
    assert ensemble.log_prob(subsets[0]) == pytest.approx(
        dense.log_prob(subsets[0]), rel=1e-8
    )


def test_wide_qualities_of_a_large_set():
    # Rows of the factor differ in length by exp(40): fine where the longest is short.
    sets, _ = ground_sets_of("dense", n_sets=1, n_items=2100)
    u = np.linspace(-40.0, 0.0, 2100)
    ground_set = vg.GroundSet(u[:, None], sets[0].features())
    model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy", max_iter=1)
    with pytest.warns(ConvergenceWarning):
        model.fit([ground_set], [[2000]])
    model.theta_, model.intercept_ = np.ones(1), 0.0
    ensemble = model.ensemble(ground_set)
    assert isinstance(ensemble.representation, Factored)
    S = vg.Linear().matrix(ground_set)
    expected = vg.LEnsemble._from_representation(Dense(S, u)).marginals()
    np.testing.assert_allclose(ensemble.marginals(), expected, rtol=1e-6, atol=1e-12)
    # Where it is not, rows of unit length and the qualities keep the digits.
    model.intercept_ = 40.0
    steep = model.ensemble(ground_set)
    assert isinstance(steep.representation, Graded)
    assert steep.expected_size() == pytest.approx(sets[0].features().shape[1])


def exact_law(F, powers):
    """Return probabilities of all subsets for rows of F times powers of two."""
    rows = [
        [Fraction(float(x)) * Fraction(2) ** int(power) for x in row]
        for row, power in zip(F, powers, strict=True)
    ]

    def det(y):
        return reference.exact_determinant(
            [[sum(map(mul, rows[i], rows[j])) for j in y] for i in y]
        )

    weights = {y: det(y) for y in reference.all_subsets(len(F)) if len(y) <= len(F[0])}
    total = sum(weights.values())
    return {y: weight / total for y, weight in weights.items()}


@pytest.mark.parametrize("spread", [5, 30, 100, 400])
@pytest.mark.parametrize("seed", range(5))
def test_steep_qualities_against_exact_numbers(spread, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n_items, rank = 7, 3
    F = rng.standard_normal((n_items, rank))
    powers = rng.integers(-spread, spread, size=n_items)
    monkeypatch.setattr("variegate.learning.factors.TAME_TRACE", 0.0)
    ensemble = _ensemble_of_factor(
        Factors.concatenate([F]), np.ones(1), powers * np.log(2.0)
    )
    law = exact_law(F, powers)
    marginals = [
        float(sum(p for y, p in law.items() if i in y)) for i in range(n_items)
    ]
    np.testing.assert_allclose(ensemble.marginals(), marginals, atol=1e-9)
    for y, p in law.items():
        if float(p) > 1e-250:
            assert ensemble.log_prob(list(y)) == pytest.approx(
                float(np.log(float(p))), abs=1e-8 * max(spread, 10)
            )
    best = max(law, key=law.get)
    found = ensemble.decode("exact").indices
    assert law[tuple(found.tolist())] >= law[best] * Fraction(999_999, 1_000_000)


def test_steep_qualities_of_many_items_make_no_matrix():
    rng = np.random.default_rng(0)
    n_items = 20_001
    ground_set = vg.GroundSet(
        rng.standard_normal((n_items, 2)), rng.standard_normal((n_items, 5))
    )
    model = vg.LargeMarginDPP(kernel=vg.Linear(), decoder="greedy", max_iter=1)
    with pytest.warns(ConvergenceWarning):
        model.fit([ground_set], [[3, 7]])
    model.theta_ = np.array([9.0, -9.0])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (chosen,) = model.predict([ground_set])
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(chosen) == 5
    # The best item comes first: nothing is as good as it is.
    assert np.argmax(ground_set.quality @ model.theta_) in chosen
    assert (after - before) / 2**20 < 0.3  # a matrix would be 3.2


@pytest.mark.slow
def test_200_000_items_are_learned_from_sampled_and_decoded():
    rng = np.random.default_rng(0)
    n_items = 200_000
    ground_set = vg.GroundSet(
        rng.standard_normal((n_items, 4)), rng.standard_normal((n_items, 8))
    )
    subset = np.argsort(-ground_set.quality[:, 0])[:10]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = vg.LargeMarginDPP(
        kernel=vg.MultipleKernel([4.0, 8.0, 16.0], approximation="nystroem", rank=16),
        decoder="greedy",
        max_iter=5,
    )
    with pytest.warns(ConvergenceWarning):
        model.fit([ground_set], [subset])
    history = [step.objective for step in model.history_]
    assert history[-1] < history[0]
    ensemble = model.ensemble(ground_set)
    samples = ensemble.sample(3, random_state=0)
    assert samples.shape == (3, n_items)
    assert len(ensemble.decode("greedy", k=10)) == 10
    assert len(model.predict([ground_set], k=5)[0]) == 5
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # One N x N matrix would be 320 GB; the factor has 0.09.
    assert (after - before) / 2**20 < 2.0
