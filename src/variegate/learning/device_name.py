"""Names of the devices that a model can learn on."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import Any

from variegate._install import explain_missing


def explain_missing_pytorch() -> AbstractContextManager[None]:
    """Return :func:`~variegate._install.explain_missing` for PyTorch."""
    return explain_missing("this needs PyTorch", "torch")


def resolve_device(device: Any) -> str | None:
    """Return PyTorch's name of a ``device`` parameter; None means NumPy on the CPU.

    "auto" becomes "cuda" if PyTorch can use a GPU, otherwise None.

    Raises
    ------
    ValueError
        If the machine does not have this device.
    ImportError
        If PyTorch is not installed.
    """
    if device is None:
        return None
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise ValueError(
            "device must be None, 'auto', 'cpu', 'cuda', or a GPU by its number such "
            f"as 'cuda:1', got {device!r}"
        )
    if device == "auto":
        return "cuda" if _count_gpus(needed=False) else None
    n_gpus = _count_gpus()
    if device == "cpu":
        return device
    if not n_gpus:
        raise ValueError(
            f"device={device!r}, but PyTorch finds no GPU on this machine that it can "
            "use: leave device out, or say device='auto', which takes one where there "
            "is one"
        )
    if int(device.partition(":")[2] or 0) >= n_gpus:
        last = "cuda:0" if n_gpus == 1 else f"cuda:0 to cuda:{n_gpus - 1}"
        raise ValueError(f"device={device!r}, but this machine has {last}")
    return device


def _count_gpus(needed: bool = True) -> int:
    """Return how many GPUs PyTorch can use; ImportError if it is needed and missing."""
    try:
        with explain_missing_pytorch():
            import torch
    except ImportError:
        if needed:
            raise
        return 0
    return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0
