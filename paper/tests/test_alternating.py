"""The paper's solver, compared with L-BFGS and on problems of known answers."""

from itertools import pairwise

import numpy as np
import pytest

import variegate as vg
from paper.alternating import AlternatingSubgradient
from test_scale_of_features import rescaled
from test_solvers import Kink, Quadratic, synthetic_problem
from variegate.learning.parameters import InfeasibleError
from variegate.solvers import LBFGS, Stop

pytestmark = pytest.mark.paper

SOLVER = AlternatingSubgradient(max_iter=2000, tol=1e-7)


def test_finds_the_nearest_point_of_the_domain():
    problem = Quadratic()
    result = SOLVER.solve(problem, problem.space.center())
    assert result.converged
    # The nearest point of the simplex to (0.9, 0.4, -0.5) is (0.75, 0.25, 0).
    np.testing.assert_allclose(
        result.parameters, [3.0, -1.0, 0.75, 0.25, 0.0], atol=1e-4
    )


def test_agrees_with_lbfgs_on_the_convex_case():
    problem = synthetic_problem(vg.Linear())
    start = problem.space.center()
    one, other = (s.solve(problem, start) for s in (SOLVER, LBFGS(tol=1e-7)))
    assert one.converged
    np.testing.assert_allclose(one.parameters, other.parameters, atol=1e-5)
    assert one.objective == pytest.approx(other.objective, abs=1e-10)


@pytest.mark.parametrize("lam", [0.0, 4.0])
def test_descends_as_far_as_lbfgs_on_the_papers_model(lam):
    # Without an intercept the multiple-kernel problem has one minimum that matters.
    data = vg.datasets.make_synthetic(n_sets=100, random_state=1)
    ends = [
        vg.LargeMarginDPP(
            lam=lam,
            kernel=vg.MultipleKernel([1.25, 2.5, 5.0, 10.0], linear=False),
            fit_intercept=False,
            solver=solver,
        )
        .fit(data.ground_sets, data.subsets)
        .solver_result_.objective
        for solver in (LBFGS(), AlternatingSubgradient(max_iter=2000))
    ]
    assert ends[0] == pytest.approx(ends[1], rel=2e-3)


def test_history_starts_at_the_start_and_descends_to_the_end():
    problem = synthetic_problem(vg.Linear(), lam=2.0, n_sets=20)
    start = problem.space.center()
    result = SOLVER.solve(problem, start)
    assert result.history[0].objective == problem.value_and_gradient(start)[0]
    assert result.history[-1].objective == pytest.approx(result.objective)
    objectives = [step.objective for step in result.history]
    assert all(b <= a + 1e-12 for a, b in pairwise(objectives))
    assert result.n_iterations == len(result.history) - 1
    assert result.n_evaluations >= result.n_iterations


@pytest.mark.parametrize("after", [0, 2])
def test_callback_stops_the_solver(after):
    problem = synthetic_problem(vg.Linear(), n_sets=20)
    result = SOLVER.solve(
        problem, problem.space.center(), lambda step: step.iteration == after
    )
    assert result.stop is Stop.CALLBACK
    assert result.n_iterations == after


def test_running_out_of_iterations_is_said():
    problem = synthetic_problem(vg.MultipleKernel(), lam=4.0, n_sets=20)
    solver = AlternatingSubgradient(max_iter=2, tol=1e-9)
    result = solver.solve(problem, problem.space.center())
    assert result.stop is Stop.MAX_ITER
    assert "Raise max_iter (now 2)" in result.remedy


def test_a_kink_is_not_called_convergence():
    result = SOLVER.solve(Kink(), np.array([1.0]))
    assert result.stop is Stop.KINK
    assert abs(result.parameters[0]) < 1e-3
    assert "kink of the hinge" in result.status
    assert 'Try solver="lbfgs"' in result.remedy


class Walled(Quadratic):
    """Infinite where the first weight of the simplex is zero."""

    def value_and_gradient(self, flat):
        if flat[2] <= 0.0:
            raise InfeasibleError(0, "zero weight")
        return super().value_and_gradient(flat)


def test_a_step_into_the_infinite_is_taken_back():
    problem = Walled()
    problem.target = np.array([3.0, -1.0, -50.0, 0.4, 0.5])
    result = SOLVER.solve(problem, problem.space.center())
    assert result.objective < problem.value_and_gradient(problem.space.center())[0]
    assert 0 < result.parameters[2] < 1 / 3


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20, 2.0**-400])
def test_takes_the_same_steps_in_any_unit(scale):
    data = vg.datasets.make_synthetic(n_sets=40, random_state=0)

    def fit(ground_sets):
        model = vg.LargeMarginDPP(
            kernel=vg.Linear(), solver=AlternatingSubgradient(), decoder="greedy"
        )
        return model.fit(ground_sets, data.subsets)

    one, other = fit(data.ground_sets), fit(rescaled(data.ground_sets, scale))
    np.testing.assert_allclose(other.theta_ * scale, one.theta_, rtol=1e-9)
    assert other.solver_result_.n_iterations == one.solver_result_.n_iterations


def test_steps_of_a_turn_are_checked():
    problem = Quadratic()
    solver = AlternatingSubgradient(steps_per_turn=0)
    with pytest.raises(ValueError, match="steps_per_turn must be a whole"):
        solver.solve(problem, problem.space.center())
