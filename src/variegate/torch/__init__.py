"""Determinantal point processes for PyTorch."""

import variegate.tensors  # noqa: F401  (says in words where PyTorch is missing)
from variegate.tensors.low_rank import LowRank
from variegate.torch.batch_sampler import DPPBatchSampler
from variegate.torch.choosing import Subsets, greedy, sample
from variegate.torch.loss import large_margin_loss
from variegate.torch.module import LargeMarginLoss
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
