import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import variegate as vg
from instances import KERNELS, random_ground_set, random_kernel_matrix
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss, Targets
from variegate.learning.problem import TrainingProblem
from variegate.linalg.determinants import (
    NotPositiveDefiniteError,
    Resolvent,
    with_jitter,
)

N = 6
SUBSETS = {
    "empty": [],
    "one": [2],
    "several": [0, 3, 4],
    "full": list(range(N)),
    "beyond-the-rank": [0, 1, 2, 3, 5],
}
LAMBDAS = [0.0, 1.0, 16.0]
OMEGAS = [1 / 64, 1.0, 64.0]


def build_problem(
    case, subset, lam, omega, *, hinge, l2=0.0, twins=False, compiled=None
):
    rng = np.random.default_rng(0)
    ground_sets = [random_ground_set(case, rng, N, twins=twins) for _ in range(3)]
    kernel = case.kernel.fit(ground_sets)
    problem = TrainingProblem(
        check_examples(ground_sets, [subset] * 3, omega),
        kernel,
        LargeMarginLoss(lam, hinge),
        l2=l2,
        jitter=1e-6,
        compiled=compiled,
    )
    point = problem.space.center()
    point[problem.space.slices["theta"]] = [0.3, -0.2, 0.1]
    point[problem.space.slices["intercept"]] = 0.2
    point[problem.space.slices["kernel"]] = kernel.domain.random(rng)
    return problem, point


def relative_error(actual, expected):
    return np.abs(actual - expected).max() / max(np.abs(expected).max(), 1e-3)


@pytest.mark.parametrize("case", KERNELS, ids=str)
@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("omega", OMEGAS)
def test_gradient_equals_central_differences(case, lam, omega):
    for subset in SUBSETS.values():
        problem, point = build_problem(case, subset, lam, omega, hinge=False, l2=0.1)
        _, gradient = problem.value_and_gradient(point)

        def objective(parameters, problem=problem):
            return problem.value_and_gradient(parameters)[0]

        expected = reference.central_differences(objective, point)
        assert relative_error(gradient, expected) < 1e-6, subset


@pytest.mark.parametrize("case", KERNELS, ids=str)
@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("omega", OMEGAS)
def test_compiled_loops_equal_numpy(case, lam, omega):
    options = [(y, hinge) for y in SUBSETS.values() for hinge in (False, True)]
    for subset, hinge in options:
        found = []
        for compiled in (False, True):
            problem, point = build_problem(
                case, subset, lam, omega, hinge=hinge, l2=0.1, compiled=compiled
            )
            found.append(problem.value_and_gradient(point))
        (value, gradient), (expected, expected_gradient) = found
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9), subset
        assert relative_error(gradient, expected_gradient) < 1e-8, subset


@pytest.mark.parametrize("case", KERNELS, ids=str)
@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("omega", OMEGAS)
def test_gradient_with_an_item_twice_in_the_subset(case, lam, omega):
    # Twins make any similarity singular; only the jitter of 1e-6 keeps them possible.
    # Differences lose digits to the large inverse, hence the longer step.
    problem, point = build_problem(case, [0, 1, 4], lam, omega, hinge=False, twins=True)
    _, gradient = problem.value_and_gradient(point)
    expected = reference.central_differences(
        lambda p: problem.value_and_gradient(p)[0], point, step=2e-4
    )
    assert relative_error(gradient, expected) < 1e-6


@pytest.mark.parametrize("case", KERNELS, ids=str)
@pytest.mark.parametrize("lam", LAMBDAS)
def test_gradient_in_free_coordinates(case, lam):
    problem, point = build_problem(case, [1, 4], lam, 1.0, hinge=False)
    space = problem.space

    def objective(free):
        return problem.value_and_gradient(space.from_free(free))[0]

    free = space.to_free(point)
    _, gradient = problem.value_and_gradient(space.from_free(free))
    expected = reference.central_differences(objective, free)
    assert relative_error(space.pull_back(free, gradient), expected) < 1e-6


@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("omega", OMEGAS)
@pytest.mark.parametrize("subset", SUBSETS.values(), ids=SUBSETS)
def test_equals_the_papers_appendix(lam, omega, subset):
    L = random_kernel_matrix(np.random.default_rng(3), N)
    value, gradient = vg.large_margin_loss(L, subset, lam, omega, hinge=False)
    expected_value, expected_gradient = reference.appendix_loss(L, subset, lam, omega)
    assert value == pytest.approx(expected_value, rel=1e-10)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-8, atol=1e-8)


def kernel_matrix(case, seed=0):
    """The matrix L of a ground set under a kernel, at random parameters."""
    rng = np.random.default_rng(seed)
    ground_set = random_ground_set(case, rng, N)
    kernel = case.kernel.fit([ground_set])
    S = kernel.value(kernel.prepare(ground_set), kernel.domain.random(rng))
    q = np.exp(ground_set.quality @ rng.standard_normal(3))
    return q[:, None] * with_jitter(S, 1e-6) * q


@pytest.mark.parametrize("case", KERNELS, ids=str)
@pytest.mark.parametrize("omega", OMEGAS)
@pytest.mark.parametrize("subset", SUBSETS.values(), ids=SUBSETS)
def test_margin_of_every_kernel_is_the_expected_error(case, omega, subset):
    L = kernel_matrix(case)
    with_margin, _ = vg.large_margin_loss(L, subset, 1.0, omega, hinge=False)
    likelihood, _ = vg.large_margin_loss(L, subset, 0.0, omega, hinge=False)
    expected = reference.expected_error(L, subset, np.ones(N), np.full(N, omega))
    assert np.exp(with_margin - likelihood) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("case", KERNELS, ids=str)
def test_probabilities_of_every_kernel_sum_to_one(case):
    L = kernel_matrix(case)
    total = sum(
        np.exp(-vg.large_margin_loss(L, y, lam=0.0)[0])
        for y in reference.all_subsets(N)
    )
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("L", "message"),
    [
        ([[1.0, 0.5], [0.2, 1.0]], "L is not symmetric"),
        ([[-0.5, 0.0], [0.0, 1.0]], "L is not positive semidefinite"),
        ([[1.0, 1.5], [1.5, 1.0]], "smallest eigenvalue is -0.5"),
        ([1.0, 2.0], "L must be a square matrix"),
        ([[np.inf, 0.0], [0.0, 1.0]], "L holds NaN or infinite values"),
    ],
)
def test_bad_kernels(L, message):
    with pytest.raises(ValueError, match=message):
        vg.large_margin_loss(np.array(L), [0])


def test_bad_subsets_and_parameters():
    with pytest.raises(ValueError, match="item 5 is out of range"):
        vg.large_margin_loss(np.eye(2), [5])
    with pytest.raises(ValueError, match="lam must be a finite number"):
        vg.large_margin_loss(np.eye(2), [0], lam=-1.0)
    with pytest.raises(ValueError, match="the subset has probability zero"):
        vg.large_margin_loss(np.ones((2, 2)), [0, 1])
    with pytest.raises(ValueError, match="singular to rounding"):
        vg.large_margin_loss(np.ones((2, 2)) * 1e40, [0])


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("omega", OMEGAS)
def test_margin_is_the_expected_error_over_all_subsets(n, omega):
    rng = np.random.default_rng(n)
    L = random_kernel_matrix(rng, n)
    for size in {0, 1, n // 2, n}:
        subset = rng.permutation(n)[:size]
        with_margin, _ = vg.large_margin_loss(L, subset, 1.0, omega, hinge=False)
        likelihood, _ = vg.large_margin_loss(L, subset, 0.0, omega, hinge=False)
        expected = reference.expected_error(L, subset, np.ones(n), np.full(n, omega))
        assert np.exp(with_margin - likelihood) == pytest.approx(expected, rel=1e-10)


def test_margin_takes_costs_for_each_item():
    rng = np.random.default_rng(5)
    n = 7
    L = random_kernel_matrix(rng, n)
    subset = [1, 2, 6]
    false_positive, false_negative = rng.exponential(size=(2, n))
    costs = {"false_positive": false_positive, "false_negative": false_negative}
    with_margin, gradient = vg.large_margin_loss(L, subset, 2.0, hinge=False, **costs)
    likelihood, _ = vg.large_margin_loss(L, subset, 0.0, hinge=False)
    expected = reference.expected_error(L, subset, false_positive, false_negative)
    assert np.exp((with_margin - likelihood) / 2) == pytest.approx(expected, rel=1e-10)

    direction = random_kernel_matrix(rng, n)
    slope = reference.central_differences(
        lambda t: vg.large_margin_loss(
            L + t[0] * direction, subset, 2.0, hinge=False, **costs
        )[0],
        np.zeros(1),
    )[0]
    assert np.sum(gradient * direction) == pytest.approx(slope, rel=1e-7)


def test_omega_is_the_simple_case_of_costs():
    L = random_kernel_matrix(np.random.default_rng(0), 5)
    simple = vg.large_margin_loss(L, [0, 2], 3.0, omega=7.0)
    general = vg.large_margin_loss(
        L, [0, 2], 3.0, false_positive=np.ones(5), false_negative=np.full(5, 7.0)
    )
    assert simple[0] == general[0]
    np.testing.assert_array_equal(simple[1], general[1])


def test_hinge_cuts_below_zero_and_leaves_the_rest_alone():
    # Item 0 is nearly certain and the rest nearly impossible: P(y) is close to one and
    # the expected error tiny, so the margin is met and the loss is zero.
    sure = np.diag([1e8, 1e-8, 1e-8])
    value, gradient = vg.large_margin_loss(sure, [0], lam=1.0)
    assert value == 0.0
    assert not gradient.any()
    assert vg.large_margin_loss(sure, [0], lam=1.0, hinge=False)[0] < 0

    wrong, wrong_gradient = vg.large_margin_loss(sure, [1], lam=1.0)
    free, free_gradient = vg.large_margin_loss(sure, [1], lam=1.0, hinge=False)
    assert wrong == free > 0
    np.testing.assert_array_equal(wrong_gradient, free_gradient)


@pytest.mark.parametrize("log_quality", [-3000.0, -300.0, 300.0, 3000.0])
@pytest.mark.parametrize("lam", LAMBDAS)
@pytest.mark.parametrize("subset", SUBSETS.values(), ids=SUBSETS)
def test_extreme_qualities_stay_finite(log_quality, lam, subset):
    rng = np.random.default_rng(1)
    S = with_jitter(random_kernel_matrix(rng, N, rank=3), 1e-6)
    for u in (
        np.full(N, log_quality),
        np.where(rng.random(N) < 0.5, log_quality, 0.0),
        np.where(rng.random(N) < 0.5, log_quality, -log_quality),
    ):
        targets = Targets.from_subsets([np.array(subset, dtype=int)], N)
        terms = LargeMarginLoss(lam, hinge=False).value_and_gradient(
            S[None], u[None], targets
        )
        assert np.isfinite(terms.value).all()
        assert np.isfinite(terms.quality_gradient).all()
        assert np.isfinite(terms.similarity_gradient).all()


@pytest.mark.parametrize("u", [-300.0, -40.0, 40.0, 300.0])
def test_extreme_qualities_are_exact_where_the_answer_is_known(u):
    # One item with L = exp(2u): everything has a closed form.
    K = 1 / (1 + np.exp(-2 * u)) if u > 0 else np.exp(2 * u) / (1 + np.exp(2 * u))
    not_K = np.exp(-2 * u) / (1 + np.exp(-2 * u)) if u > 0 else 1 / (1 + np.exp(2 * u))
    for subset, error, slope in (([], K, 2 * not_K), ([0], not_K, -2 * K)):
        terms = LargeMarginLoss(1.0, hinge=False).value_and_gradient(
            np.ones((1, 1, 1)),
            np.array([[u]]),
            Targets.from_subsets([np.array(subset, dtype=int)], 1),
        )
        log_prob = np.logaddexp(0, 2 * u) - 2 * u * len(subset)
        assert terms.value[0] == pytest.approx(log_prob + np.log(error), rel=1e-12)
        expected = 2 * (K if not subset else -not_K) + slope
        assert terms.quality_gradient[0, 0] == pytest.approx(expected, rel=1e-12)


def test_gradient_at_extreme_qualities_equals_differences_of_the_value():
    rng = np.random.default_rng(2)
    S = with_jitter(random_kernel_matrix(rng, N), 1e-6)
    u = np.array([-300.0, 300.0, -30.0, 30.0, 0.0, 1.0])
    targets = Targets.from_subsets([np.array([1, 4])], N, 1.0, 2.0)
    loss = LargeMarginLoss(4.0, hinge=False)
    gradient = loss.value_and_gradient(S[None], u[None], targets).quality_gradient[0]
    expected = reference.central_differences(
        lambda v: loss.value_and_gradient(S[None], v[None], targets).value[0],
        u,
        step=1e-4,
    )
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)


@settings(max_examples=50, deadline=None)
@given(
    n=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    lam=st.floats(0, 20),
    omega=st.floats(0.01, 100),
)
def test_stack_equals_its_members(n, seed, lam, omega):
    rng = np.random.default_rng(seed)
    S = np.stack([random_kernel_matrix(rng, n) + 0.1 * np.eye(n) for _ in range(3)])
    u = rng.standard_normal((3, n))
    subsets = [np.flatnonzero(rng.random(n) < 0.5) for _ in range(3)]
    loss = LargeMarginLoss(lam)
    stacked = loss.value_and_gradient(
        S, u, Targets.from_subsets(subsets, n, 1.0, omega)
    )
    for index, subset in enumerate(subsets):
        q = np.exp(u[index])
        L = q[:, None] * S[index] * q
        value, gradient = vg.large_margin_loss(L, subset, lam, omega)
        assert stacked.value[index] == pytest.approx(value, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(
            stacked.similarity_gradient[index],
            q[:, None] * gradient * q,
            rtol=1e-6,
            atol=1e-6,
        )


def test_known_target_determinant_skips_the_similarity_gradient():
    rng = np.random.default_rng(0)
    S = random_kernel_matrix(rng, N)[None]
    u = rng.standard_normal((1, N))
    targets = Targets.from_subsets([np.array([0, 2])], N)
    full = LargeMarginLoss().value_and_gradient(S, u, targets)
    log_det, _ = targets.log_det_and_inverse(S)
    short = LargeMarginLoss().value_and_gradient(
        S, u, targets, target_log_det=log_det, similarity_gradient=False
    )
    assert short.similarity_gradient is None
    np.testing.assert_array_equal(short.value, full.value)
    np.testing.assert_array_equal(short.quality_gradient, full.quality_gradient)


def test_resolvent_keeps_small_probabilities_exact():
    u = np.array([-150.0, 150.0])
    resolvent = Resolvent.of(np.eye(2), u)
    np.testing.assert_allclose(resolvent.included[0], np.exp(-300.0), rtol=1e-14)
    np.testing.assert_allclose(resolvent.excluded[1], np.exp(-300.0), rtol=1e-14)


# One ground set after the other by LAPACK, or many in one compiled loop ------------


@pytest.mark.parametrize("lam", [0.0, 1.0, 8.0])
@pytest.mark.parametrize("hinge", [False, True])
@pytest.mark.parametrize("scale", [0.3, 3.0, 100.0])
def test_large_and_small_sets_are_the_same_loss(monkeypatch, lam, hinge, scale):
    rng = np.random.default_rng(11)
    for n in (1, 2, 7, 30):
        S = np.stack([random_kernel_matrix(rng, n) + 0.1 * np.eye(n) for _ in range(3)])
        u = scale * rng.standard_normal((3, n))
        subsets = [np.flatnonzero(rng.random(n) < 0.4) for _ in range(3)]
        costs = rng.uniform(0.1, 3.0, size=(2, 3, n))
        targets = Targets.from_subsets(subsets, n, costs[0], costs[1])
        loss = LargeMarginLoss(lam, hinge)
        small = loss.value_and_gradient(S, u, targets)
        monkeypatch.setattr("variegate.learning.objective.STACK_LIMIT", 0)
        large = loss.value_and_gradient(S, u, targets)
        monkeypatch.undo()
        np.testing.assert_allclose(small.value, large.value, rtol=1e-10, atol=1e-10)
        for one, other in zip(small[1:], large[1:], strict=True):
            atol = 1e-9 * max(1.0, np.abs(other).max())
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=atol)


@pytest.mark.parametrize("lam", [0.0, 2.0])
def test_large_sets_against_the_appendix(lam):
    rng = np.random.default_rng(5)
    n = 80
    L = random_kernel_matrix(rng, n) + 0.2 * np.eye(n)
    subset = [3, 17, 40, 41, 79]
    value, gradient = vg.large_margin_loss(L, subset, lam, 1.7)
    expected, expected_gradient = reference.appendix_loss(L, subset, lam, 1.7)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("limit", [0, 48])
def test_failures_name_their_set(monkeypatch, limit):
    monkeypatch.setattr("variegate.learning.objective.STACK_LIMIT", limit)
    S = np.stack([np.eye(3), np.ones((3, 3)), np.eye(3)])
    targets = Targets.from_subsets([np.array([0, 1])] * 3, 3)
    with pytest.raises(NotPositiveDefiniteError) as caught:
        LargeMarginLoss().value_and_gradient(S, np.zeros((3, 3)), targets)
    assert caught.value.index == 1
    assert "ZeroProbability" in type(caught.value).__name__
    S[1] = -np.eye(3)
    empty = Targets.from_subsets([np.array([], dtype=int)] * 3, 3)
    with pytest.raises(NotPositiveDefiniteError) as caught:
        LargeMarginLoss().value_and_gradient(S, np.zeros((3, 3)), empty)
    assert caught.value.index == 1
