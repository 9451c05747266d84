"""Similarity kernels, one a file; :mod:`variegate.kernels.base` is the protocol."""

from variegate.kernels.base import FixedKernel, Kernel
from variegate.kernels.gaussian import Gaussian
from variegate.kernels.linear import Linear
from variegate.kernels.mixture import Mixture
from variegate.kernels.multiple import MultipleKernel
from variegate.kernels.precomputed import Precomputed

__all__ = [
    "FixedKernel",
    "Gaussian",
    "Kernel",
    "Linear",
    "Mixture",
    "MultipleKernel",
    "Precomputed",
]
