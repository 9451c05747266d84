"""Determinantal point processes for PyTorch."""

import variegate.tensors  # noqa: F401  (says in words where PyTorch is missing)
from variegate.torch.loss import large_margin_loss

__all__ = ["large_margin_loss"]
