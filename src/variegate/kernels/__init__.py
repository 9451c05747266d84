"""Similarity kernels, one a file; :mod:`variegate.kernels.base` is the protocol."""

from variegate.kernels.base import FixedKernel, Kernel
from variegate.kernels.gaussian import Gaussian
from variegate.kernels.kinds import Kinds
from variegate.kernels.linear import Linear
from variegate.kernels.metric import Metric
from variegate.kernels.mixture import Mixture
from variegate.kernels.multiple import MultipleKernel
from variegate.kernels.precomputed import Precomputed

__all__ = [
    "FixedKernel",
    "Gaussian",
    "Kernel",
    "Kinds",
    "Linear",
    "Metric",
    "Mixture",
    "MultipleKernel",
    "Precomputed",
]
