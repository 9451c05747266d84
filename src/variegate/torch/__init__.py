"""Determinantal point processes for PyTorch."""

from variegate.learning.device_name import NEEDS_PYTORCH

try:
    import torch as _  # noqa: F401
except ImportError as error:
    raise ImportError(NEEDS_PYTORCH) from error

from variegate.torch.batch_sampler import DPPBatchSampler
from variegate.torch.choosing import Subsets, greedy, sample
from variegate.torch.inputs import LowRank
from variegate.torch.loss import LargeMarginLoss, large_margin_loss
from variegate.torch.neural import Epoch, NeuralDPP
from variegate.torch.probabilities import (
    expected_size,
    log_normalizer,
    log_prob,
    marginals,
)
from variegate.torch.similarities import (
    GaussianSimilarity,
    KindsSimilarity,
    LinearSimilarity,
    MetricSimilarity,
)

__all__ = [
    "DPPBatchSampler",
    "Epoch",
    "GaussianSimilarity",
    "KindsSimilarity",
    "LargeMarginLoss",
    "LinearSimilarity",
    "LowRank",
    "MetricSimilarity",
    "NeuralDPP",
    "Subsets",
    "expected_size",
    "greedy",
    "large_margin_loss",
    "log_normalizer",
    "log_prob",
    "marginals",
    "sample",
]
