"""The objective of examples that are all in memory, by NumPy or on a device."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from variegate._typing import FloatArray
from variegate.kernels import Kernel
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.parameters import ParameterSpace
from variegate.learning.problem import TrainingProblem
from variegate.streaming import Example

__all__ = ["Problem", "problem_of"]

#: The module of ``DeviceProblem``.  It stands on this room, so that it is looked up by
#: name, and imported only where a device is named.
DEVICE_PROBLEM = "variegate.torch.problem"


class Problem(Protocol):
    """The objective of learning as one function of one vector, for solvers."""

    kernel: Kernel
    space: ParameterSpace
    center: FloatArray
    scale: FloatArray
    n_sets: int
    is_smooth: bool

    def value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient at a point of ``space``."""

    def expected_f(self, flat: FloatArray) -> float:
        """Return the mean of the expected F-scores."""


def problem_of(
    examples: Sequence[Example],
    kernel: Kernel,
    loss: LargeMarginLoss,
    *,
    device: str | None = None,
    n_jobs: int = 1,
    compiled: bool | None = None,
    **options: Any,
) -> Problem:
    """Return the objective, computed by PyTorch if a device is named.

    See :class:`~variegate.learning.problem.TrainingProblem` for the options.
    """
    if device is None:
        on_cpu = {"n_jobs": n_jobs, "compiled": compiled}
        return TrainingProblem.of(examples, kernel, loss, **on_cpu, **options)
    make: type[Problem] = import_module(DEVICE_PROBLEM).DeviceProblem
    return make(examples, kernel, loss, device=device, **options)  # type: ignore[call-arg]
