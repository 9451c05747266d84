"""The problem that a solver takes, and the result that it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol

from variegate._typing import FloatArray
from variegate.learning.parameters import ParameterSpace


class Problem(Protocol):
    """An objective of flat parameters, a vector (n,) whose domain is ``space``."""

    space: ParameterSpace

    @property
    def is_smooth(self) -> bool:
        """Whether the objective has a gradient everywhere."""
        ...

    def value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient (n,) at flat parameters (n,).

        Raises InfeasibleError where the objective is not defined.
        """
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
    n_seen : int or None
        For a solver that learns in batches, the number of pairs learned from so far.
    expected_f : float or None
        The expected F-score on held-out data, where a solver is given such.
    """

    iteration: int
    objective: float
    gradient_norm: float
    n_seen: int | None = None
    expected_f: float | None = None


#: Called after every iteration; a true return value stops the solver.
Callback = Callable[[Step], object]


class Stop(Enum):
    """Why a solver ended."""

    CONVERGED = "converged"
    KINK = "kink"
    STALLED = "stalled"
    MAX_ITER = "max_iter"
    CALLBACK = "callback"
    DATA_USED = "data_used"
    EARLY = "early"


@dataclass(eq=False)
class SolverResult:
    """The parameters at which a solver ended, and why it ended.

    Attributes
    ----------
    parameters : the flat parameters
    objective : float
    stop : Stop
        Why the solver ended.
    status : str
        Why, in a sentence.
    remedy : str
        A change of settings to try, in sentences; empty where nothing is wrong.
    n_iterations, n_evaluations : int
    history : list of Step
    """

    parameters: FloatArray
    objective: float
    stop: Stop
    status: str
    remedy: str
    n_iterations: int
    n_evaluations: int
    history: list[Step] = field(default_factory=list)

    @property
    def converged(self) -> bool:
        """Whether the gradient is within the tolerance, or nearly and no step helps."""
        return self.stop is Stop.CONVERGED


#: Where no step lowers the objective, a gradient within this times ``tol`` is enough.
_NEAR = 10.0


class Verdict(NamedTuple):
    """Why a solver ended: ``stop``, ``status`` and ``remedy`` of the result."""

    stop: Stop
    status: str
    remedy: str


CONVERGED = Verdict(Stop.CONVERGED, "converged: the gradient is within tol", "")
STOPPED = Verdict(Stop.CALLBACK, "stopped by the callback", "")


def max_iter_verdict(max_iter: int, gradient_norm: float) -> Verdict:
    """Return the verdict that the largest number of iterations was reached."""
    return Verdict(
        Stop.MAX_ITER,
        f"stopped at max_iter={max_iter} iterations with a gradient of "
        f"{gradient_norm:.2g}",
        f"Raise max_iter (now {max_iter}), add a little l2, or standardize the quality "
        "features if they are not",
    )


def no_descent_verdict(gradient_norm: float, tol: float, is_smooth: bool) -> Verdict:
    """Return the verdict on an end where no step lowers the objective.

    CONVERGED if the gradient is within 10 ``tol``, else STALLED on a smooth objective,
    by rounding, and KINK on another: most likely a minimum at a kink of the hinge,
    where the gradient does not vanish.
    """
    if gradient_norm <= _NEAR * tol:
        return Verdict(
            Stop.CONVERGED,
            f"converged: no step lowers the objective, gradient {gradient_norm:.2g}",
            "",
        )
    if is_smooth:
        return Verdict(
            Stop.STALLED,
            f"stopped by rounding with a gradient of {gradient_norm:.2g}",
            "Standardize the quality features, or add a little l2",
        )
    return Verdict(
        Stop.KINK,
        "ended where no step lowers the objective, most likely at a kink of the hinge, "
        f"with a gradient of {gradient_norm:.2g} on this side of it",
        "",
    )


def infeasible_verdict(gradient_norm: float) -> Verdict:
    """Return the verdict that further steps lead to singular matrices."""
    return Verdict(
        Stop.STALLED,
        "stopped where further steps make L + I or a wanted subset singular, with a "
        f"gradient of {gradient_norm:.2g}",
        "Raise jitter, or add a little l2",
    )


def wants_to_stop(callback: Callable[[Any], object] | None, step: Any) -> bool:
    """Call the callback with a step, if there is one; return whether it asks to stop.

    It does by returning a true value, or by raising StopIteration.
    """
    if callback is None:
        return False
    try:
        return bool(callback(step))
    except StopIteration:
        return True
