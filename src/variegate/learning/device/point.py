"""A point of a parameter space, on a device."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from variegate._typing import FloatArray
from variegate.learning.device.batch import Batch
from variegate.learning.parameters import ParameterSpace

__all__ = ["Point"]


class Point(NamedTuple):
    """Parameters on a device.

    Attributes
    ----------
    theta, intercept, kernel : tensors
    kernel_here : array
        The kernel's parameters, for what is known without the device.
    """

    theta: Tensor
    intercept: Tensor
    kernel: Tensor
    kernel_here: FloatArray

    @classmethod
    def of(cls, flat: FloatArray, space: ParameterSpace, device: str) -> Point:
        """Bring a point of a space to a device, in one piece."""
        sent = torch.from_numpy(np.array(flat)).to(device)
        parts = {name: sent[part] for name, part in space.slices.items()}
        return cls(**parts, kernel_here=space.unpack(flat)["kernel"])

    def log_quality(self, batch: Batch) -> Tensor:
        """Return ``u`` (B, N) of a batch."""
        u = batch.quality.combined(self.theta) + self.intercept.sum()
        return u.view(batch.shape)
