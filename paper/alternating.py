"""The paper's solver: descend in one group of parameters at a time.

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

from variegate._typing import FloatArray, IntArray
from variegate._validation import check_count, check_number
from variegate.learning.parameters import InfeasibleError, Scaled
from variegate.solvers.result import (
    CONVERGED,
    STOPPED,
    Callback,
    Problem,
    SolverResult,
    Step,
    Stop,
    Verdict,
    max_iter_verdict,
    no_descent_verdict,
    wants_to_stop,
)

_SUFFICIENT = 1e-4
_SHORTEST = 1e-12
_LONGEST = 1e6


@dataclass(frozen=True)
class AlternatingSubgradient:
    """Alternating projected subgradient descent.

    Each step lowers the objective, so where many losses are at the kink of the hinge
    (large ``lam``) it can end earlier, and higher, than L-BFGS does.

    Parameters
    ----------
    max_iter : int
        Largest number of descent steps in all.
    tol : float
        A group is done when a unit projected step moves no entry by more than
        ``tol``; the solver is done when that holds for every group.
    steps_per_turn : int
        Largest number of descent steps in a group before the next one's turn.
    """

    max_iter: int = 500
    tol: float = 1e-5
    steps_per_turn: int = 50

    def solve(
        self, problem: Problem, start: FloatArray, callback: Callback | None = None
    ) -> SolverResult:
        """Minimize the problem's objective from a feasible ``start``."""
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol)
        check_count("steps_per_turn", self.steps_per_turn)
        descent = _Descent(problem, start)
        verdict = self._descend(descent, callback)
        return SolverResult(
            descent.point / descent.units,
            descent.value,
            *verdict,
            n_iterations=len(descent.history) - 1,
            n_evaluations=descent.n_evaluations,
            history=descent.history,
        )

    def _descend(self, descent: _Descent, callback: Callback | None) -> Verdict:
        if wants_to_stop(callback, descent.history[-1]):
            return STOPPED
        groups = _groups(descent.problem)
        while descent.stationarity() > self.tol:
            moved = False
            for group in groups:
                length = 1.0
                for _ in range(self.steps_per_turn):
                    if descent.stationarity(group) <= self.tol:
                        break
                    if len(descent.history) > self.max_iter:
                        return max_iter_verdict(self.max_iter, descent.stationarity())
                    length = descent.step(group, length)
                    if not length:
                        break
                    moved = True
                    if wants_to_stop(callback, descent.history[-1]):
                        return STOPPED
            if not moved:
                return self._stalled_verdict(descent)
        return CONVERGED

    def _stalled_verdict(self, descent: _Descent) -> Verdict:
        """Return the verdict that no step helps; unlike L-BFGS, there is a remedy."""
        verdict = no_descent_verdict(
            descent.stationarity(), self.tol, descent.problem.is_smooth
        )
        if verdict.stop is not Stop.KINK:
            return verdict
        return verdict._replace(
            remedy='Try solver="lbfgs", which continues along a kink'
        )


def _groups(problem: Problem) -> list[IntArray]:
    """Return the places of the quality parameters, and of the kernel's if any."""
    places, of_kernel = (
        np.arange(problem.space.size),
        problem.space.slices.get("kernel"),
    )
    if of_kernel is None:
        return [places]
    groups = [np.delete(places, of_kernel), places[of_kernel]]
    return [group for group in groups if len(group)]


def _units(problem: Problem) -> FloatArray:
    """Return the scale of every parameter: ones but for scaled parts."""
    units = np.ones(problem.space.size)
    for part, domain in zip(
        problem.space.slices.values(), problem.space.parts, strict=True
    ):
        if isinstance(domain, Scaled):
            units[part] = domain.scale
    return units


class _Descent:
    """The current point of a descent, and how it got there.

    Point and gradient are in units of the space, as its parts may be scaled: steps and
    stopping do not depend on the units of the features.
    """

    def __init__(self, problem: Problem, start: FloatArray) -> None:
        self.problem = problem
        self.units = _units(problem)
        self.point = self._project(start * self.units)
        self.value, self.gradient = self._evaluate(self.point)
        self.n_evaluations = 1
        self.history = [Step(0, self.value, self.stationarity())]

    def _project(self, point: FloatArray) -> FloatArray:
        projected = self.problem.space.project(point / self.units)
        return np.asarray(projected * self.units)

    def _evaluate(self, point: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = self.problem.value_and_gradient(point / self.units)
        return value, gradient / self.units

    def stationarity(self, group: IntArray | None = None) -> float:
        """Return how far a unit projected step would move."""
        moved = self._project(self.point - self.gradient) - self.point
        return float(np.abs(moved if group is None else moved[group]).max(initial=0.0))

    def step(self, group: IntArray, length: float) -> float:
        """Take one step in a group; return the length to try next, 0 if none helps."""
        direction = np.zeros_like(self.gradient)
        direction[group] = self.gradient[group]
        while length >= _SHORTEST:
            trial = self._project(self.point - length * direction)
            move = trial - self.point
            self.n_evaluations += 1
            try:
                value, gradient = self._evaluate(trial)
            except InfeasibleError:
                length /= 4.0
                continue
            if value <= self.value + _SUFFICIENT * (direction @ move):
                break
            length /= 4.0
        else:
            return 0.0
        change = float((gradient - self.gradient)[group] @ move[group])
        squared = float(move @ move)
        self.point, self.value, self.gradient = trial, value, gradient
        self.history.append(Step(len(self.history), value, self.stationarity()))
        if change <= 0.0:
            return min(4.0 * length, _LONGEST)
        return float(np.clip(squared / change, _SHORTEST, _LONGEST))
