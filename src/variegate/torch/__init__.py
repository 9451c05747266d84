"""Determinantal point processes for PyTorch."""

from variegate.learning.device_name import explain_missing_pytorch

with explain_missing_pytorch():
    import torch as _  # noqa: F401

from variegate.torch.batch_sampler import DPPBatchSampler
from variegate.torch.choosing import Subsets
from variegate.torch.ensembles import LEnsembles
from variegate.torch.inputs import LowRank
from variegate.torch.loss import LargeMarginLoss
from variegate.torch.neural import Epoch, NeuralDPP
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
    "LEnsembles",
    "LargeMarginLoss",
    "LinearSimilarity",
    "LowRank",
    "MetricSimilarity",
    "NeuralDPP",
    "Subsets",
]
