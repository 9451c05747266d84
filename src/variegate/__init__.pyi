from . import datasets, decoding, metrics, sampling, solvers
from ._version import __version__
from .baselines import select
from .ensemble import LEnsemble
from .estimator import LargeMarginDPP, SequentialDPP
from .files.models import load
from .ground_set import GroundSet
from .kernels import (
    FixedKernel,
    Gaussian,
    Kernel,
    Kinds,
    Linear,
    Metric,
    Mixture,
    MultipleKernel,
    Precomputed,
    domains,
)
from .kernels.checking import check_kernel
from .learning.objective import large_margin_loss
from .linalg.psd import SimilarityRepairWarning, nearest_psd
from .selection import Selection
from .tuning import LargeMarginDPPCV

__all__ = [
    "FixedKernel",
    "Gaussian",
    "GroundSet",
    "Kernel",
    "Kinds",
    "LEnsemble",
    "LargeMarginDPP",
    "LargeMarginDPPCV",
    "Linear",
    "Metric",
    "Mixture",
    "MultipleKernel",
    "Precomputed",
    "Selection",
    "SequentialDPP",
    "SimilarityRepairWarning",
    "__version__",
    "check_kernel",
    "datasets",
    "decoding",
    "domains",
    "large_margin_loss",
    "load",
    "metrics",
    "nearest_psd",
    "sampling",
    "select",
    "solvers",
]
