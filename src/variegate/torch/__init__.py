"""Determinantal point processes for PyTorch."""

import variegate.tensors  # noqa: F401  (says in words where PyTorch is missing)

__all__: list[str] = []
