import numpy as np
import pytest

import variegate as vg
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.parameters import InfeasibleError
from variegate.learning.problem import TrainingProblem

KERNELS = [vg.Gaussian(2.0), vg.MultipleKernel(bandwidths=[1.0, 2.0, 4.0], linear=True)]


def problem(kernel, n_jobs, sizes, jitter=1e-6):
    rng = np.random.default_rng(0)
    ground_sets = [
        vg.GroundSet(rng.standard_normal((n, 3)), rng.standard_normal((n, 4)))
        for n in sizes
    ]
    subsets = [np.sort(rng.permutation(n)[: max(1, n // 4)]) for n in sizes]
    costs = [1.0] * len(sizes)
    return TrainingProblem(
        ground_sets,
        subsets,
        kernel,
        LargeMarginLoss(2.0),
        false_positive=costs,
        false_negative=costs,
        l2=0.1,
        jitter=jitter,
        n_jobs=n_jobs,
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=["fixed", "learned"])
def test_the_number_of_threads_changes_nothing(kernel):
    sizes = [5, 9, 5, 60, 9, 70, 5, 100]
    rng = np.random.default_rng(1)
    one = problem(kernel, 1, sizes)
    point = 0.3 * rng.standard_normal(one.space.size)
    if kernel.domain.size:
        point[-4:] = [0.1, 0.2, 0.3, 0.4]
    value, gradient = one.value_and_gradient(point)
    for n_jobs in (2, 3, 50):
        again = problem(kernel, n_jobs, sizes)
        other, other_gradient = again.value_and_gradient(point)
        # Up to the order in which BLAS adds, with one thread or several.
        assert other == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(other_gradient, gradient, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_fails_in_a_thread_is_said(n_jobs):
    twice = np.ones((4, 2))
    ground_sets = [vg.GroundSet(np.eye(4)), vg.GroundSet(np.eye(4), twice)] * 2
    found = TrainingProblem(
        ground_sets,
        [np.array([0, 1])] * 4,
        vg.MultipleKernel(bandwidths=[1.0], linear=False),
        LargeMarginLoss(),
        false_positive=[1.0] * 4,
        false_negative=[1.0] * 4,
        jitter=0.0,
        n_jobs=n_jobs,
    )
    point = np.append(np.zeros(found.space.size - 1), 1.0)
    with pytest.raises(InfeasibleError, match="ground set 1: its subset has"):
        found.value_and_gradient(point)
