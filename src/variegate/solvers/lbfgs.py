"""L-BFGS over all parameters at once, in free coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from variegate._typing import FloatArray
from variegate.solvers.result import Callback, Problem, SolverResult, Step


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
    tol: float = 1e-6

    def solve(
        self, problem: Problem, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize the problem's objective from a feasible ``start``."""
        space = problem.space
        history: list[Step] = []
        n_evaluations = 0
        stopped = False
        last: tuple[FloatArray, float, FloatArray] | None = None

        def evaluate(free: FloatArray) -> tuple[float, FloatArray]:
            nonlocal n_evaluations, last
            n_evaluations += 1
            value, gradient = problem.value_and_gradient(space.from_free(free))
            pulled = space.pull_back(free, gradient)
            last = (free.copy(), value, pulled)
            return value, pulled

        def record(free: FloatArray) -> None:
            nonlocal stopped
            assert last is not None
            # SciPy reports the point it has just evaluated, so nothing is computed
            # twice; after a failed line search it may go back to an older one.
            at, value, gradient = last
            if not np.array_equal(at, free):
                value, gradient = evaluate(free)
            step = Step(len(history), value, float(np.abs(gradient).max(initial=0.0)))
            history.append(step)
            if callback is not None and callback(step):
                stopped = True
                raise StopIteration

        free = space.to_free(start)
        evaluate(free)
        try:
            record(free)
        except StopIteration:
            value = history[-1].objective
            return SolverResult(
                start, value, False, _STOPPED, 0, n_evaluations, history
            )
        outcome = minimize(
            evaluate,
            free,
            jac=True,
            method="L-BFGS-B",
            callback=record,
            options={
                "maxiter": self.max_iter,
                "maxfun": 20 * self.max_iter,
                "gtol": self.tol,
                # Near a minimum the objective is flat to second order.
                "ftol": self.tol**2,
                "maxcor": 20,
            },
        )
        converged, status = self._verdict(outcome, stopped, history)
        return SolverResult(
            parameters=space.from_free(outcome.x),
            objective=float(outcome.fun),
            converged=converged,
            status=status,
            n_iterations=int(outcome.nit),
            n_evaluations=n_evaluations,
            history=history,
        )

    def _verdict(
        self, outcome: object, stopped: bool, history: list[Step]
    ) -> tuple[bool, str]:
        code = int(outcome.status)  # type: ignore[attr-defined]
        if stopped:
            return False, _STOPPED
        if code == 0:
            return True, "converged: the gradient or the last decrease is within tol"
        if code == 1:
            return False, (
                f"stopped at max_iter={self.max_iter} iterations with a gradient of "
                f"{history[-1].gradient_norm:.2g}"
            )
        # The line search found no descent: a kink of the hinge, or the objective is
        # flat to rounding.
        return True, "converged: no descent is possible along the search direction"


_STOPPED = "stopped by the callback"
