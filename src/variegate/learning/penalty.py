"""From the sum of the losses to the objective: a mean, and what penalties add."""

from __future__ import annotations

from typing import Protocol

from variegate._typing import FloatArray
from variegate.kernels import Kernel
from variegate.learning.parameters import ParameterSpace

__all__ = ["penalized"]


class _Problem(Protocol):
    space: ParameterSpace
    kernel: Kernel
    l2: float
    n_sets: int


def penalized(
    problem: _Problem, parts: dict[str, FloatArray], value: float, gradient: FloatArray
) -> tuple[float, FloatArray]:
    """Return objective and gradient at ``parts`` from sums over ground sets.

    The gradient is changed in place.
    """
    gradient /= problem.n_sets
    theta, slopes = parts["theta"], problem.space.unpack(gradient)
    penalty, slope = problem.kernel.penalty_and_gradient(parts["kernel"])
    slopes["theta"][:] += problem.l2 * theta
    slopes["kernel"][:] += slope
    penalty += 0.5 * problem.l2 * float(theta @ theta)
    return value / problem.n_sets + penalty, gradient
