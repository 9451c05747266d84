"""L-BFGS over all parameters at once, in free coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from variegate._typing import FloatArray
from variegate.solvers.result import (
    Callback,
    Problem,
    SolverResult,
    Step,
    Verdict,
    converged,
    no_descent,
    out_of_iterations,
    stopped_by_callback,
)


@dataclass(frozen=True)
class LBFGS:
    """SciPy's L-BFGS-B without bounds: constraints are left to free coordinates.

    Parameters
    ----------
    max_iter : int
        Largest number of iterations.
    tol : float
        Stop when no entry of the gradient exceeds ``tol`` in absolute value.
    """

    max_iter: int = 500
    tol: float = 1e-5

    def solve(
        self, problem: Problem, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize the problem's objective from a feasible ``start``."""
        space = problem.space
        run = _Run(problem, callback)
        free = space.to_free(start)
        run.evaluate(free)
        try:
            run.record(free)
            outcome = minimize(
                run.evaluate,
                free,
                jac=True,
                method="L-BFGS-B",
                callback=run.record,
                options={
                    "maxiter": self.max_iter,
                    "maxfun": 20 * self.max_iter,
                    "gtol": self.tol,
                    # Near a minimum the objective is flat to second order.
                    "ftol": self.tol**2,
                    "maxcor": 20,
                },
            )
        except StopIteration:  # before the first iteration
            last, code = free, -1
        else:
            last, code = outcome.x, int(outcome.status)
        verdict = self._verdict(run, code)
        return SolverResult(
            space.from_free(last),
            run.history[-1].objective,
            *verdict,
            n_iterations=len(run.history) - 1,
            n_evaluations=run.n_evaluations,
            history=run.history,
        )

    def _verdict(self, run: _Run, code: int) -> Verdict:
        gradient_norm = run.history[-1].gradient_norm
        if run.stopped:
            return stopped_by_callback()
        if gradient_norm <= self.tol:
            return converged()
        if code == 1:
            return out_of_iterations(self.max_iter, gradient_norm)
        # Quasi-Newton steps follow kinks of the hinge to their end: on synthetic data
        # a simplex search from there gains less than 1e-5 of the objective.
        return no_descent(gradient_norm, self.tol)


class _Run:
    """The problem in free coordinates, and the record of one run."""

    def __init__(self, problem: Problem, callback: Callback | None) -> None:
        self.problem = problem
        self.callback = callback
        self.history: list[Step] = []
        self.n_evaluations = 0
        self.stopped = False

    def evaluate(self, free: FloatArray) -> tuple[float, FloatArray]:
        space = self.problem.space
        self.n_evaluations += 1
        value, gradient = self.problem.value_and_gradient(space.from_free(free))
        self._last = (free.copy(), value, space.pull_back(free, gradient))
        return value, self._last[2]

    def record(self, free: FloatArray) -> None:
        # SciPy reports the point it has just evaluated, so nothing is computed twice;
        # after a failed line search it may go back to an older one.
        at, value, gradient = self._last
        if not np.array_equal(at, free):
            value, gradient = self.evaluate(free)
        step = Step(len(self.history), value, float(np.abs(gradient).max(initial=0.0)))
        self.history.append(step)
        if self.callback is not None and self.callback(step):
            self.stopped = True
            raise StopIteration
