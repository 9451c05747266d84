"""What a solver needs of a problem, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from variegate._typing import FloatArray
from variegate.parameters import ParameterSpace


class Problem(Protocol):
    """An objective over a parameter space."""

    space: ParameterSpace

    def value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient."""
        ...


class Step(NamedTuple):
    """One iteration, as kept in the history and as passed to the callback.

    Attributes
    ----------
    iteration : int
        From 0, the starting point.
    objective : float
    gradient_norm : float
        Largest absolute entry of the gradient in the solver's own coordinates.
    """

    iteration: int
    objective: float
    gradient_norm: float


#: Called after every iteration; a true return value stops the solver.
Callback = Callable[[Step], object]


@dataclass
class SolverResult:
    """Where a solver ended, and how.

    Attributes
    ----------
    parameters : the flat parameters
    objective : float
    converged : bool
    status : str
        A sentence.
    n_iterations, n_evaluations : int
    history : list of Step
    """

    parameters: FloatArray
    objective: float
    converged: bool
    status: str
    n_iterations: int
    n_evaluations: int
    history: list[Step] = field(default_factory=list)
