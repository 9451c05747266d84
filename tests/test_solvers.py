from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

import variegate as vg
from variegate.kernels.domains import Free, Simplex
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.parameters import InfeasibleError, ParameterSpace
from variegate.learning.problem import TrainingProblem
from variegate.solvers import LBFGS, Stop, as_solver

SOLVER = LBFGS(tol=1e-7)


def synthetic_problem(kernel, lam=0.0, n_sets=60):
    data = vg.datasets.make_synthetic(n_sets=n_sets, random_state=0)
    return TrainingProblem(
        check_examples(data.ground_sets, data.subsets, 1.0),
        kernel.fit(data.ground_sets),
        LargeMarginLoss(lam),
    )


class Quadratic:
    """Distance to a point outside the simplex, with a known projection."""

    def __init__(self):
        self.is_smooth = True
        self.space = ParameterSpace({"theta": Free(2), "kernel": Simplex(3)})
        self.target = np.array([3.0, -1.0, 0.9, 0.4, -0.5])

    def value_and_gradient(self, flat):
        gap = flat - self.target
        return 0.5 * float(gap @ gap), gap


def test_finds_the_nearest_point_of_the_domain():
    problem = Quadratic()
    result = SOLVER.solve(problem, problem.space.center())
    assert result.converged
    # The nearest point of the simplex to (0.9, 0.4, -0.5) is (0.75, 0.25, 0).
    np.testing.assert_allclose(
        result.parameters, [3.0, -1.0, 0.75, 0.25, 0.0], atol=1e-4
    )


def test_the_gradient_vanishes_at_the_minimum_of_the_convex_case():
    problem = synthetic_problem(vg.Linear())
    result = SOLVER.solve(problem, problem.space.center())
    assert result.converged
    _, gradient = problem.value_and_gradient(result.parameters)
    assert np.abs(gradient).max() < 1e-6


def test_history_starts_at_the_start_and_ends_at_the_end():
    problem = synthetic_problem(vg.Linear(), lam=2.0, n_sets=20)
    start = problem.space.center()
    result = SOLVER.solve(problem, start)
    assert result.history[0].iteration == 0
    assert result.history[0].objective == problem.value_and_gradient(start)[0]
    assert result.history[-1].objective == pytest.approx(result.objective)
    objectives = [step.objective for step in result.history]
    assert all(b <= a + 1e-12 for a, b in pairwise(objectives))
    assert result.n_iterations == len(result.history) - 1
    assert result.n_evaluations >= result.n_iterations


@pytest.mark.parametrize("after", [0, 2])
def test_callback_stops_the_solver(after):
    problem = synthetic_problem(vg.Linear(), n_sets=20)
    seen = []

    def stop(step):
        seen.append(step)
        return step.iteration == after

    result = SOLVER.solve(problem, problem.space.center(), stop)
    assert not result.converged
    assert result.status == "stopped by the callback"
    assert [step.iteration for step in seen] == list(range(after + 1))


def test_running_out_of_iterations_is_said():
    problem = synthetic_problem(vg.MultipleKernel(), lam=4.0, n_sets=20)
    result = LBFGS(max_iter=2, tol=1e-9).solve(problem, problem.space.center())
    assert not result.converged
    assert result.stop is Stop.MAX_ITER
    assert "max_iter=2" in result.status
    assert "Raise max_iter (now 2)" in result.remedy


class Kink:
    """|x| from the right, with a slope of one at the minimum."""

    def __init__(self):
        self.is_smooth = False
        self.space = ParameterSpace({"theta": Free(1)})

    def value_and_gradient(self, flat):
        return float(np.abs(flat).sum()), np.where(flat >= 0, 1.0, -1.0)


def test_a_kink_is_not_called_convergence():
    result = SOLVER.solve(Kink(), np.array([1.0]))
    assert result.stop is Stop.KINK
    assert not result.converged
    assert abs(result.parameters[0]) < 1e-3
    assert "kink of the hinge" in result.status
    assert result.remedy == ""


@pytest.mark.parametrize("lam", [1.0, 16.0, 64.0])
def test_lbfgs_ends_at_the_bottom_of_a_kink(lam):
    problem = synthetic_problem(vg.Linear(), lam=lam)
    result = LBFGS().solve(problem, problem.space.center())
    searched = minimize(
        lambda point: problem.value_and_gradient(point)[0],
        result.parameters,
        method="Nelder-Mead",
        options={"maxiter": 1000},
    )
    assert result.objective <= searched.fun * (1 + 1e-4)


@pytest.mark.parametrize("lam", [16.0, 64.0])
def test_starting_lbfgs_again_gains_nothing(lam):
    kernel = vg.MultipleKernel([0.6, 1.25, 2.5, 5.0, 10.0], linear=False)
    problem = synthetic_problem(kernel, lam=lam, n_sets=40)
    first = LBFGS().solve(problem, problem.space.center())
    again = LBFGS().solve(problem, first.parameters)
    assert again.objective == pytest.approx(first.objective, rel=1e-4)


class Steep(Quadratic):
    """Smooth, but so far from where it is zero that rounding hides the descent."""

    def value_and_gradient(self, flat):
        value, gradient = super().value_and_gradient(flat)
        return value + 1e18, gradient


def test_rounding_is_not_taken_for_a_kink():
    problem = Steep()
    result = LBFGS().solve(problem, problem.space.center())
    assert result.stop is Stop.STALLED
    assert "rounding" in result.status
    assert "Standardize" in result.remedy


class Fenced(Quadratic):
    """Not defined where the first parameter exceeds a fence."""

    def __init__(self, fence):
        super().__init__()
        self.fence = fence
        self.n_refused = 0

    def value_and_gradient(self, flat):
        if flat[0] >= self.fence:
            self.n_refused += 1
            raise InfeasibleError(0, "beyond the fence")
        return super().value_and_gradient(flat)


class Barred(Fenced):
    """With a logarithm before the fence, and its minimum 0.2 from there."""

    def value_and_gradient(self, flat):
        value, gradient = super().value_and_gradient(flat)
        first, left = flat[0], self.fence - flat[0]
        value -= 0.5 * (first - self.target[0]) ** 2
        gradient = gradient.copy()
        gradient[0] = -5.0 + 1.0 / left
        return value - 5.0 * first - float(np.log(left)), gradient


@pytest.mark.parametrize("distance", [1.0, 5.0, 50.0, 1000.0])
def test_lbfgs_steps_back_from_where_nothing_is_defined(distance):
    problem = Barred(3.0)
    start = problem.space.center()
    start[0] = problem.fence - distance
    result = LBFGS(tol=1e-6).solve(problem, start)
    assert problem.n_refused or distance == 1.0
    assert result.converged
    np.testing.assert_allclose(
        result.parameters, [2.8, -1.0, 0.75, 0.25, 0.0], atol=2e-3
    )


def test_lbfgs_says_that_it_was_stopped_by_what_is_not_defined():
    problem = Fenced(2.0)  # the minimum lies beyond
    result = LBFGS().solve(problem, problem.space.center())
    assert result.stop is Stop.STALLED
    assert "singular" in result.status
    assert "jitter" in result.remedy
    start = problem.space.center()
    assert result.objective < problem.value_and_gradient(start)[0]
    assert result.parameters[0] <= 2.0


def test_lbfgs_refuses_a_start_where_nothing_is_defined():
    problem = Fenced(-1.0)
    with pytest.raises(InfeasibleError, match="beyond the fence"):
        LBFGS().solve(problem, problem.space.center())


def test_stop_iteration_is_a_stop():
    def callback(step):
        if step.iteration == 1:
            raise StopIteration

    problem = synthetic_problem(vg.Linear(), n_sets=20)
    result = SOLVER.solve(problem, problem.space.center(), callback)
    assert result.stop is Stop.CALLBACK
    assert result.n_iterations == 1


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (LBFGS(tol=-1), "tol must be a finite number >= 0, got -1"),
        (LBFGS(tol="a"), "tol must be a finite number >= 0, got 'a'"),
        (LBFGS(max_iter=0), "max_iter must be a whole number of at least 1"),
    ],
)
def test_bad_options(solver, message):
    problem = Quadratic()
    with pytest.raises(ValueError, match=message):
        solver.solve(problem, problem.space.center())


def test_names_and_objects():
    assert as_solver("lbfgs", 7, 1e-3) == LBFGS(7, 1e-3)
    own = LBFGS(3)
    assert as_solver(own, 7, 1e-3) is own
    for wrong in (LBFGS, 3, None):
        with pytest.raises(ValueError, match="a solver is a name or an object"):
            as_solver(wrong, 7, 1e-3)


def test_simplex_projection_is_the_nearest_point():
    rng = np.random.default_rng(0)
    simplex = Simplex(4)
    for _ in range(50):
        point = rng.standard_normal(4) * 2
        nearest = simplex.project(point)
        assert nearest.min() >= 0
        assert nearest.sum() == pytest.approx(1.0)
        distance = np.linalg.norm(nearest - point)
        others = rng.dirichlet(np.ones(4), size=200)
        assert distance <= np.linalg.norm(others - point, axis=1).min() + 1e-12


def test_simplex_coordinates_undo_themselves():
    simplex = Simplex(5)
    weights = simplex.random(np.random.default_rng(0))
    np.testing.assert_allclose(simplex.from_free(simplex.to_free(weights)), weights)
    vertex = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    near = simplex.from_free(simplex.to_free(vertex))
    np.testing.assert_allclose(near, vertex, atol=1e-5)


def test_free_domain_is_left_alone():
    domain = Free(3)
    point = domain.random(np.random.default_rng(0))
    for same in (domain.project, domain.to_free, domain.from_free):
        np.testing.assert_array_equal(same(point), point)
