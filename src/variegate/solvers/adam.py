"""Adam with a falling rate, and an average of its path that favours the end.

Two ideas.  Adam (Kingma and Ba, ICLR 2015) takes steps in free coordinates, each
coordinate with a length of its own, so that features of different scale need no
tuning.  What counts is not where the last step ended, which is noise, but the average
of the path, with weights that grow as ``t^8`` (polynomial-decay averaging; Shamir and
Zhang, ICML 2013): the beginning is forgotten without knowing when the end will be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from variegate._typing import FloatArray
from variegate.learning.parameters import InfeasibleError, ParameterSpace
from variegate.solvers.result import Problem, SolverResult, Step, Verdict

_FIRST_DECAY = 0.9
_SECOND_DECAY = 0.999
_SMALLEST = 1e-8
#: The power by which the weight of a step in the average grows with its number.
_AVERAGE_POWER = 8.0


@dataclass(eq=False)
class Adam:
    """The state of Adam: all that its next step depends on.

    ``free`` is the current point and ``previous`` the one before it, in the free
    coordinates of the problem's ``space``, which have no constraints; ``average`` is
    the weighted average of all points, as flat parameters.  ``first`` and ``second``
    are the moments of the gradient, and ``gradient_norm`` is the largest absolute entry
    of the last gradient, in free coordinates.
    """

    free: FloatArray
    previous: FloatArray
    average: FloatArray
    first: FloatArray
    second: FloatArray
    n_steps: int = 0
    gradient_norm: float = 0.0

    @classmethod
    def start_at(cls, space: ParameterSpace, start: FloatArray) -> Self:
        """Return the state before the first step, at feasible flat parameters."""
        free = space.without_roots().to_free(start).copy()
        zeros = np.zeros_like(free)
        return cls(free, free.copy(), start.copy(), zeros, zeros.copy())

    def step(self, problem: Problem, learning_rate: float, decay_steps: float) -> float:
        """Take one step on one batch; return the batch's objective before the step.

        ``problem`` is the objective of that batch.  Updates all of the state.  The
        ``t``-th step has the rate ``learning_rate / sqrt(1 + t / decay_steps)``.
        """
        space = problem.space.without_roots()
        value, gradient = self._evaluate(problem)
        self.gradient_norm = float(np.abs(gradient).max(initial=0.0))
        self.first = _FIRST_DECAY * self.first + (1.0 - _FIRST_DECAY) * gradient
        self.second = _SECOND_DECAY * self.second + (1.0 - _SECOND_DECAY) * gradient**2
        rate = learning_rate / np.sqrt(1.0 + self.n_steps / decay_steps)
        self.n_steps += 1
        first = self.first / (1.0 - _FIRST_DECAY**self.n_steps)
        second = self.second / (1.0 - _SECOND_DECAY**self.n_steps)
        self.previous = self.free
        self.free = self.free - rate * first / (np.sqrt(second) + _SMALLEST)
        share = (_AVERAGE_POWER + 1.0) / (self.n_steps + _AVERAGE_POWER)
        point = space.from_free(self.free)
        # Averages of flat parameters stay in a convex domain but for rounding.
        self.average = space.project(self.average + share * (point - self.average))
        return value

    def _evaluate(self, problem: Problem) -> tuple[float, FloatArray]:
        """Return the objective and its gradient, in free coordinates, at ``free``.

        Where the objective is not defined there, ``free`` is set back to ``previous``,
        the first moment to zero, and the results are those at ``previous``.
        """
        space = problem.space.without_roots()
        try:
            value, gradient = problem.value_and_gradient(space.from_free(self.free))
        except InfeasibleError:
            self.free = self.previous
            self.first = np.zeros_like(self.first)
            value, gradient = problem.value_and_gradient(space.from_free(self.free))
        return value, space.pull_back(self.free, gradient)

    def make_result(
        self,
        parameters: FloatArray,
        objective: float,
        verdict: Verdict,
        history: list[Step],
    ) -> SolverResult:
        """Return a result whose iterations and evaluations are the steps so far."""
        return SolverResult(
            parameters,
            objective,
            *verdict,
            n_iterations=self.n_steps,
            n_evaluations=self.n_steps,
            history=history,
        )
