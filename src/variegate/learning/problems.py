"""The objective of examples that are all there, on the device that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from variegate.kernels import Kernel
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import TrainingProblem
from variegate.streaming import Example

if TYPE_CHECKING:
    from variegate.learning.device.problem import DeviceProblem

__all__ = ["problem_of"]


def problem_of(
    examples: Sequence[Example],
    kernel: Kernel,
    loss: LargeMarginLoss,
    *,
    device: str | None = None,
    n_jobs: int = 1,
    compiled: bool | None = None,
    **options: Any,
) -> TrainingProblem | DeviceProblem:
    """Return the objective, computed by PyTorch if a device is named.

    See :class:`~variegate.learning.problem.TrainingProblem` for the options.
    """
    if device is None:
        on_cpu = {"n_jobs": n_jobs, "compiled": compiled}
        return TrainingProblem.of(examples, kernel, loss, **on_cpu, **options)
    from variegate.learning.device.problem import DeviceProblem

    return DeviceProblem(examples, kernel, loss, device=device, **options)
