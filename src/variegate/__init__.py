"""Learn, from examples of good selections, to pick relevant and diverse subsets."""

from variegate import datasets, decoding, metrics, sampling, solvers
from variegate._version import __version__
from variegate.baselines import select
from variegate.ensemble import LEnsemble
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import (
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
from variegate.learning.objective import large_margin_loss
from variegate.linalg.psd import SimilarityRepairWarning, nearest_psd
from variegate.persistence import load
from variegate.selection import Selection
from variegate.tuning import LargeMarginDPPCV

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
    "SimilarityRepairWarning",
    "__version__",
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
