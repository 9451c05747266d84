import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import variegate as vg
from variegate.learning import compiled_loss, objective
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.parameters import InfeasibleError
from variegate.learning.problem import TrainingProblem
from variegate.linalg import limits
from variegate.linalg.limits import COMPILED_ENTRIES

#: The ways to evaluate losses: by NumPy, and by compiled loops.
LOSSES = [(objective, "stacked_loss"), (compiled_loss, "small_set_losses")]

KERNELS = [vg.Gaussian(2.0), vg.MultipleKernel(bandwidths=[1.0, 2.0, 4.0], linear=True)]


def problem(kernel, n_jobs, sizes, jitter=1e-6, compiled=None):
    rng = np.random.default_rng(0)
    ground_sets = [
        vg.GroundSet(rng.standard_normal((n, 3)), rng.standard_normal((n, 4)))
        for n in sizes
    ]
    subsets = [np.sort(rng.permutation(n)[: max(1, n // 4)]) for n in sizes]
    return TrainingProblem(
        check_examples(ground_sets, subsets, 1.0),
        kernel,
        LargeMarginLoss(2.0),
        l2=0.1,
        jitter=jitter,
        n_jobs=n_jobs,
        compiled=compiled,
    )


def random_point(problem):
    """Return a point with positive weights, if the kernel has any."""
    rng = np.random.default_rng(1)
    point = 0.3 * rng.standard_normal(problem.space.size)
    if problem.kernel.domain.size:
        point[-4:] = [0.1, 0.2, 0.3, 0.4]
    return point


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS, ids=["fixed", "learned"])
def test_compiled_loops_equal_numpy_at_all_sizes(kernel, n_jobs):
    # One by one, in stacks, and beyond the size of those.
    sizes = [1, 5, 9, 5, 60, 9, 64, 64, 70, 5, 100]
    by_numpy, compiled = (
        problem(kernel, n_jobs, sizes, 1e-6, c) for c in (False, True)
    )
    point = random_point(compiled)
    value, gradient = by_numpy.value_and_gradient(point)
    expected, expected_gradient = compiled.value_and_gradient(point)
    assert value == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS, ids=["fixed", "learned"])
@pytest.mark.parametrize("is_above", [False, True])
def test_entries_of_all_ground_sets_decide(kernel, is_above, monkeypatch):
    sizes = [10] * (COMPILED_ENTRIES // 100 - 5) + [20]  # one hundred too few
    used = []
    for module, name in LOSSES:
        evaluate = getattr(module, name)

        def recorded(*arguments, name=name, evaluate=evaluate):
            used.append(name)
            return evaluate(*arguments)

        monkeypatch.setattr(module, name, recorded)
    found = problem(kernel, 1, [*sizes, 10] if is_above else sizes)
    found.value_and_gradient(random_point(found))
    assert set(used) == {"small_set_losses" if is_above else "stacked_loss"}


@pytest.mark.filterwarnings("ignore:stopped at max_iter=20")
@pytest.mark.parametrize("lam", [0.0, 1.0])
@pytest.mark.parametrize(
    "kernel",
    [vg.MultipleKernel(), vg.Linear(), vg.Gaussian(1.0), vg.Kinds(3), vg.Metric(2)],
    ids=str,
)
def test_the_same_weights_at_both_sides_of_the_limit(kernel, lam, monkeypatch):
    data = vg.datasets.make_synthetic(30, random_state=0)
    models = []
    for limit in (np.inf, 0):
        monkeypatch.setattr(limits, "COMPILED_ENTRIES", limit)
        model = vg.LargeMarginDPP(lam, kernel=kernel, l2=0.1, max_iter=20)
        models.append(model.fit(data.ground_sets, data.subsets))
    one, other = models
    np.testing.assert_allclose(one.theta_, other.theta_, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(
        one.kernel_parameters_, other.kernel_parameters_, rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=["fixed", "learned"])
@settings(max_examples=10)
@given(sizes=st.lists(st.sampled_from([3, 5, 9, 60, 70, 200]), min_size=1, max_size=9))
def test_the_number_of_threads_changes_no_bit(kernel, sizes):
    one = problem(kernel, 1, sizes)
    point = random_point(one)
    value, gradient = one.value_and_gradient(point)
    for n_jobs in (2, 3):
        other, slope = problem(kernel, n_jobs, sizes).value_and_gradient(point)
        assert other == value
        assert slope.tobytes() == gradient.tobytes()


def test_what_is_learned_has_the_same_bits_at_any_n_jobs():
    data = vg.datasets.make_synthetic(n_sets=400, random_state=0)
    learned = []
    for n_jobs in (1, 2, 3):
        model = vg.LargeMarginDPP(n_jobs=n_jobs, max_iter=10, l2=0.1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(data.ground_sets, data.subsets)
        parts = [model.theta_, [model.intercept_], model.kernel_parameters_]
        learned.append(np.concatenate(parts).tobytes())
    assert len(set(learned)) == 1


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_fails_in_a_thread_is_said(n_jobs):
    twice = np.ones((4, 2))
    ground_sets = [vg.GroundSet(np.eye(4)), vg.GroundSet(np.eye(4), twice)] * 2
    found = TrainingProblem(
        check_examples(ground_sets, [[0, 1]] * 4, 1.0),
        vg.MultipleKernel(bandwidths=[1.0], linear=False),
        LargeMarginLoss(),
        jitter=0.0,
        n_jobs=n_jobs,
    )
    point = np.append(np.zeros(found.space.size - 1), 1.0)
    with pytest.raises(InfeasibleError, match="ground set 1: its subset has"):
        found.value_and_gradient(point)
