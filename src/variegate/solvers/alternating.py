"""The paper's solver: descend in one block of parameters at a time.

Two ideas.  The outer loop alternates between the quality parameters and the kernel's,
holding the other fixed, as the authors do ("usually converges in less than 10
alternations").  The inner loop is projected subgradient descent: a step against the
gradient, back to the domain, kept when it lowers the objective enough.  Step lengths
start from the spectral (Barzilai-Borwein) estimate, which a fixed schedule of steps
would need thousands of iterations to match.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate._typing import FloatArray
from variegate.solvers.result import Callback, Problem, SolverResult, Step

_SUFFICIENT = 1e-4
_SHORTEST = 1e-12
_LONGEST = 1e6


@dataclass(frozen=True)
class AlternatingSubgradient:
    """Alternating projected subgradient descent.

    Parameters
    ----------
    max_iter : int
        Largest number of descent steps in all.
    tol : float
        A block is done when a unit projected step moves no entry by more than
        ``tol``; the solver is done when that holds for every block.
    steps_per_block : int
        Largest number of descent steps in a block before the other one's turn.
    """

    max_iter: int = 2000
    tol: float = 1e-6
    steps_per_block: int = 50

    def solve(
        self, problem: Problem, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize the problem's objective from a feasible ``start``."""
        space = problem.space
        point = space.project(start)
        value, gradient = problem.value_and_gradient(point)
        n_evaluations = 1
        history: list[Step] = []

        def stationarity(part: slice = slice(None)) -> float:
            moved = space.project(point - gradient) - point
            return float(np.abs(moved[part]).max(initial=0.0))

        def record() -> bool:
            step = Step(len(history), value, stationarity())
            history.append(step)
            return callback is not None and bool(callback(step))

        def result(converged: bool, status: str) -> SolverResult:
            return SolverResult(
                point,
                value,
                converged,
                status,
                len(history) - 1,
                n_evaluations,
                history,
            )

        if record():
            return result(False, "stopped by the callback")
        groups = [group for group in _groups(problem) if group.stop > group.start]
        while True:
            moved_at_all = False
            for group in groups:
                step_length = 1.0
                for _ in range(self.steps_per_block):
                    if stationarity(group) <= self.tol:
                        break
                    if len(history) > self.max_iter:
                        return result(
                            False,
                            f"stopped at max_iter={self.max_iter} steps with a "
                            f"projected gradient of {history[-1].gradient_norm:.2g}",
                        )
                    masked = np.zeros_like(gradient)
                    masked[group] = gradient[group]
                    while step_length >= _SHORTEST:
                        trial = space.project(point - step_length * masked)
                        move = trial - point
                        trial_value, trial_gradient = problem.value_and_gradient(trial)
                        n_evaluations += 1
                        if trial_value <= value + _SUFFICIENT * (masked @ move):
                            break
                        step_length /= 4.0
                    else:
                        break  # no descent in this block: a kink, or rounding
                    change = (trial_gradient - gradient)[group] @ move[group]
                    point, value, gradient = trial, trial_value, trial_gradient
                    moved_at_all = True
                    if record():
                        return result(False, "stopped by the callback")
                    curvature = float(change) / max(float(move @ move), 1e-300)
                    step_length = float(
                        np.clip(1.0 / curvature, _SHORTEST, _LONGEST)
                        if curvature > 0
                        else min(4.0 * step_length, _LONGEST)
                    )
            if stationarity() <= self.tol:
                return result(True, "converged: the projected gradient is within tol")
            if not moved_at_all:
                return result(
                    True, "converged: no block can be improved along its subgradient"
                )


def _groups(problem: Problem) -> list[slice]:
    """Return the slices to alternate between: quality parameters, then kernel."""
    slices = problem.space.slices
    kernel = slices.get("kernel", slice(problem.space.size, problem.space.size))
    return [slice(0, kernel.start), kernel]
