"""What the functions of this room are given, checked and brought into one form."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Batch", "as_batch", "check_subsets"]


class Batch(NamedTuple):
    """Kernels of a batch of ground sets.

    Attributes
    ----------
    matrix : (B, N, N)
        Similarities if there are log-qualities, else ``L``.
    log_quality : (B, N) or None
    mask : boolean (B, N) or None
    is_single : bool
        Whether one set was given, without a batch axis.
    """

    matrix: Tensor
    log_quality: Tensor | None
    mask: Tensor | None
    is_single: bool

    @property
    def n_sets(self) -> int:
        """``B``."""
        return int(self.matrix.shape[0])

    @property
    def n_items(self) -> int:
        """``N``."""
        return int(self.matrix.shape[-1])


def as_batch(
    kernel: Tensor,
    log_quality: Tensor | None,
    mask: Tensor | None,
    others: tuple[Tensor | None, ...] = (),
) -> Batch:
    """Return kernels as a batch in single or double precision.

    ``others`` have a batch axis if they have two axes.  What has none is shared by all
    sets.
    """
    _check_kernel(kernel)
    n_items = kernel.shape[-1]
    _check_items("log_quality", log_quality, n_items)
    _check_items("mask", mask, n_items)
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(
            f"mask must be boolean, True where there is an item; got {mask.dtype}"
        )
    sizes = [len(kernel)] if kernel.ndim == 3 else []
    per_item = (log_quality, mask, *others)
    sizes += [len(given) for given in per_item if given is not None and given.ndim == 2]
    if len(set(sizes)) > 1:
        raise ValueError(
            "kernel, targets and what goes with them differ in the number of sets: "
            f"{', '.join(map(str, sorted(set(sizes))))}"
        )
    n_sets = sizes[0] if sizes else 1
    dtype = _precision(kernel, log_quality)
    if log_quality is not None:
        log_quality = log_quality.to(dtype).expand(n_sets, n_items)
    if mask is not None:
        mask = mask.expand(n_sets, n_items)
    matrix = kernel.to(dtype).expand(n_sets, n_items, n_items)
    return Batch(matrix, log_quality, mask, is_single=not sizes)


def _check_kernel(kernel: Tensor) -> None:
    if not isinstance(kernel, Tensor) or not kernel.is_floating_point():
        found = getattr(kernel, "dtype", type(kernel).__name__)
        raise ValueError(f"kernel must be a tensor of real numbers, got {found}")
    if kernel.ndim not in (2, 3) or kernel.shape[-1] != kernel.shape[-2]:
        raise ValueError(
            f"kernel has shape {tuple(kernel.shape)}, expected (N, N) or (B, N, N)"
        )


def _check_items(name: str, given: Tensor | None, n_items: int) -> None:
    if given is None:
        return
    if not isinstance(given, Tensor):
        raise ValueError(f"{name} must be a tensor, got {type(given).__name__}")
    if given.ndim not in (1, 2) or given.shape[-1] != n_items:
        raise ValueError(
            f"{name} has shape {tuple(given.shape)}, expected ({n_items},) or "
            f"(B, {n_items}), one number for each item of the kernel"
        )


def _precision(kernel: Tensor, log_quality: Tensor | None) -> torch.dtype:
    """Return what to compute in: never half precision."""
    dtype = kernel.dtype
    if log_quality is not None:
        dtype = torch.promote_types(dtype, log_quality.dtype)
    return torch.float64 if dtype == torch.float64 else torch.float32


def check_subsets(name: str, subsets: Tensor, n_items: int) -> None:
    """Refuse what is neither boolean nor item numbers."""
    if not isinstance(subsets, Tensor):
        raise ValueError(f"{name} must be a tensor, got {type(subsets).__name__}")
    if subsets.is_floating_point() or subsets.is_complex():
        raise ValueError(
            f"{name} must be boolean, or item numbers padded with -1; got "
            f"{subsets.dtype}"
        )
    if subsets.ndim not in (1, 2):
        raise ValueError(
            f"{name} has shape {tuple(subsets.shape)}, expected one row of items a set"
        )
    if subsets.dtype == torch.bool:
        _check_items(name, subsets, n_items)
