"""Determinantal point processes for PyTorch."""

import variegate.tensors  # noqa: F401  (says in words where PyTorch is missing)
from variegate.torch.loss import large_margin_loss
from variegate.torch.similarities import (
    GaussianSimilarity,
    KindsSimilarity,
    LinearSimilarity,
    MetricSimilarity,
)

__all__ = [
    "GaussianSimilarity",
    "KindsSimilarity",
    "LinearSimilarity",
    "MetricSimilarity",
    "large_margin_loss",
]
