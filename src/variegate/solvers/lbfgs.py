"""L-BFGS over all parameters at once, in free coordinates.

Free coordinates are a vector without constraints to which the problem's ``space`` maps
the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from variegate._typing import FloatArray
from variegate._validation import check_count, check_number
from variegate.learning.parameters import InfeasibleError
from variegate.solvers.result import (
    CONVERGED,
    STOPPED,
    Callback,
    Problem,
    SolverResult,
    Step,
    Verdict,
    infeasible_verdict,
    max_iter_verdict,
    no_descent_verdict,
    wants_to_stop,
)

#: A run that stopped at a kink is started again while that lowers the objective by
#: more than this share of ``tol``, relative to the objective.
_WORTH_A_RESTART = 0.1


@dataclass(frozen=True)
class LBFGS:
    """SciPy's L-BFGS-B without bounds: constraints are left to free coordinates.

    Where the objective cannot be computed, the line search tries a shorter step.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when no entry of the gradient in free coordinates, where the unit of a
        feature does not matter, exceeds ``tol`` in absolute value.
    """

    max_iter: int = 500
    tol: float = 1e-5

    def solve(
        self, problem: Problem, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize the problem's objective from a feasible ``start``, flat parameters.

        ``callback`` is called with a :class:`Step` for the start and every iteration.
        """
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol)
        run = _Run(problem, callback)
        free = problem.space.to_free(start)
        run.evaluate(free)
        run.record_step(free)
        while not (run.stopped or self._is_done(run)):
            before = run.history[-1].objective
            run.met_infeasible = False
            free = self._minimize_once(run, free)
            gained = before - run.history[-1].objective
            if gained <= _WORTH_A_RESTART * self.tol * abs(before):
                break
        return SolverResult(
            problem.space.from_free(free),
            run.history[-1].objective,
            *self._make_verdict(run),
            n_iterations=len(run.history) - 1,
            n_evaluations=run.n_evaluations,
            history=run.history,
        )

    def _minimize_once(self, run: _Run, free: FloatArray) -> FloatArray:
        """Run SciPy's L-BFGS once from ``free``; return the coordinates at its end.

        Adds the iterations to ``run``; ends early if the callback stops.  After a stop
        at a kink, another call may find a new direction.
        """
        left = self.max_iter - (len(run.history) - 1)

        def record_step(point: FloatArray) -> None:
            """Record an iteration; end SciPy's run if the callback asks for it."""
            run.record_step(point)
            if run.stopped:
                raise StopIteration

        outcome = minimize(
            run.evaluate,
            free,
            jac=True,
            method="L-BFGS-B",
            callback=record_step,
            options={
                "maxiter": left,
                "maxfun": 20 * left,
                "gtol": self.tol,
                # Near a minimum the objective is flat to second order.
                "ftol": 1e-3 * self.tol**2,
                "maxcor": 20,
            },
        )
        return np.asarray(outcome.x)

    def _is_done(self, run: _Run) -> bool:
        """Return whether the run has converged or used up its iterations."""
        return (
            run.history[-1].gradient_norm <= self.tol
            or len(run.history) > self.max_iter
        )

    def _make_verdict(self, run: _Run) -> Verdict:
        """Return why a finished run ended; the first reason that applies counts."""
        gradient_norm = run.history[-1].gradient_norm
        if run.stopped:
            return STOPPED
        if gradient_norm <= self.tol:
            return CONVERGED
        if len(run.history) > self.max_iter:
            return max_iter_verdict(self.max_iter, gradient_norm)
        if run.met_infeasible:
            return infeasible_verdict(gradient_norm)
        return no_descent_verdict(gradient_norm, self.tol, run.problem.is_smooth)


class _Run:
    """The problem in free coordinates, and the record of one call of ``solve``.

    ``stopped`` says whether the callback asked to stop, ``met_infeasible`` whether
    SciPy's last run tried a point where the objective cannot be computed.
    """

    def __init__(self, problem: Problem, callback: Callback | None) -> None:
        self.problem = problem
        self.callback = callback
        self.history: list[Step] = []
        self.n_evaluations = 0
        self.stopped = False
        self.met_infeasible = False

    def evaluate(self, free: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient at free coordinates.

        Where the objective is not defined, raise InfeasibleError at the start, and
        later return the values of ``_evaluate_barrier``.
        """
        space = self.problem.space
        self.n_evaluations += 1
        try:
            value, gradient = self.problem.value_and_gradient(space.from_free(free))
        except InfeasibleError:
            if not self.history:
                raise
            return self._evaluate_barrier(free)
        self._last = (free.copy(), value, space.pull_back(free, gradient))
        return value, self._last[2]

    def _evaluate_barrier(self, free: FloatArray) -> tuple[float, FloatArray]:
        """Return a value and gradient for a point where the objective is infinite.

        Sets ``met_infeasible``.  The value is above that of the last iterate, and the
        gradient points away from it.  Finite, because the line search interpolates; it
        takes no step to a higher value than that of the last iterate.
        """
        self.met_infeasible = True
        back = free - self._iterate
        height = 1.0 + abs(self.history[-1].objective)
        slope = 2.0 * height * back / max(float(back @ back), 1e-300)
        return self.history[-1].objective + height, slope

    def record_step(self, free: FloatArray) -> None:
        """Add an iterate to the history, call the callback, and set ``stopped``."""
        # SciPy reports the point it has just evaluated, so nothing is computed twice;
        # after a failed line search it may go back to an older one.
        at, value, gradient = self._last
        if not np.array_equal(at, free):
            value, gradient = self.evaluate(free)
        step = Step(len(self.history), value, float(np.abs(gradient).max(initial=0.0)))
        self.history.append(step)
        self._iterate = free.copy()
        self.stopped = wants_to_stop(self.callback, step)
