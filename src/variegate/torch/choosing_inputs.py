"""Kernels to choose from, checked and brought into one form."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from variegate.tensors.low_rank import LowRank

__all__ = ["Kernels", "as_included", "as_kernels", "check_k"]


@dataclass(frozen=True)
class Kernels:
    """Kernels of a batch of sets.

    Attributes
    ----------
    numbers : tensor of shape (B, N, N), or (B, N, D) of features
        The first axis has length one where all sets share it.
    log_quality : tensor of shape (B, N) or None
    mask : boolean tensor of shape (B, N) or None
    is_factored : bool
        Whether the numbers are features.
    n_sets : int
    is_single : bool
        Whether one set was given, without a batch axis.
    """

    numbers: Tensor
    log_quality: Tensor | None
    mask: Tensor | None
    is_factored: bool
    n_sets: int
    is_single: bool

    @property
    def n_items(self) -> int:
        """``N``."""
        return int(self.numbers.shape[1])

    @property
    def largest_rank(self) -> int:
        """The most items that can have a positive probability together."""
        return int(min(self.numbers.shape[1:]))

    @property
    def device(self) -> torch.device:
        """Where the numbers are."""
        return self.numbers.device


def as_kernels(
    kernel: Tensor | LowRank,
    log_quality: Tensor | None,
    mask: Tensor | None,
    costs: Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> Kernels:
    """Check what was given and return it as a batch.

    What has no batch axis is shared by all sets.  Without ``dtype`` the precision is
    the kernel's, single at the least.
    """
    is_factored = isinstance(kernel, LowRank)
    numbers = kernel.features if isinstance(kernel, LowRank) else kernel
    _check_numbers(numbers, is_factored)
    n_items = numbers.shape[-2]
    per_item = {"log_quality": log_quality, "mask": mask, "costs": costs}
    for name, given in per_item.items():
        _check_per_item(name, given, numbers)
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError(
            f"mask must be boolean, True where there is an item; got {mask.dtype}"
        )
    sizes = {len(x) for x in per_item.values() if x is not None and x.ndim == 2}
    if numbers.ndim == 3:
        sizes.add(len(numbers))
    if len(sizes) > 1:
        raise ValueError(
            "kernel and what goes with it differ in the number of sets: "
            f"{', '.join(map(str, sorted(sizes)))}"
        )
    is_single, n_sets = not sizes, sizes.pop() if sizes else 1
    if dtype is None:
        dtype = torch.promote_types(numbers.dtype, torch.float32)
    if mask is None and not is_single:  # which says how many sets there are
        mask = torch.ones(n_items, dtype=torch.bool, device=numbers.device)
    return Kernels(
        numbers.to(dtype) if numbers.ndim == 3 else numbers.to(dtype)[None],
        None if log_quality is None else log_quality.to(dtype).expand(n_sets, n_items),
        None if mask is None else mask.expand(n_sets, n_items),
        is_factored,
        n_sets,
        is_single,
    )


def _check_numbers(numbers: Any, is_factored: bool) -> None:
    if not isinstance(numbers, Tensor) or not numbers.is_floating_point():
        found = getattr(numbers, "dtype", type(numbers).__name__)
        raise ValueError(
            f"kernel must be a tensor of real numbers, or LowRank; got {found}"
        )
    name = "the features of the kernel have" if is_factored else "kernel has"
    expected = "(N, D) or (B, N, D)" if is_factored else "(N, N) or (B, N, N)"
    square = is_factored or numbers.shape[-1:] == numbers.shape[-2:-1]
    if numbers.ndim not in (2, 3) or not square:
        raise ValueError(f"{name} shape {tuple(numbers.shape)}, expected {expected}")


def _check_per_item(name: str, given: Tensor | None, numbers: Tensor) -> None:
    if given is None:
        return
    if not isinstance(given, Tensor):
        raise ValueError(f"{name} must be a tensor, got {type(given).__name__}")
    if given.device != numbers.device:
        raise ValueError(
            f"{name} is on {given.device}, but the kernel on {numbers.device}"
        )
    n_items = numbers.shape[-2]
    if given.ndim not in (1, 2) or given.shape[-1] != n_items:
        raise ValueError(
            f"{name} has shape {tuple(given.shape)}, expected ({n_items},) or "
            f"(B, {n_items}), one number for each item of the kernel"
        )


def as_included(include: Tensor | None, kernels: Kernels) -> Tensor:
    """Return the numbers of included items as (B, m), after a check."""
    n_sets, n_items = kernels.n_sets, kernels.n_items
    if include is None:
        return torch.empty((n_sets, 0), dtype=torch.long, device=kernels.device)
    if not isinstance(include, Tensor) or include.dtype != torch.long:
        found = getattr(include, "dtype", type(include).__name__)
        raise ValueError(f"include must be a tensor of item numbers, got {found}")
    if include.ndim not in (1, 2) or (include.ndim == 2 and len(include) != n_sets):
        raise ValueError(
            f"include has shape {tuple(include.shape)}, expected one row of item "
            f"numbers for each of {n_sets} sets, or one for all"
        )
    if bool(((include < -1) | (include >= n_items)).any()):
        raise ValueError(
            f"include must name items from 0 to {n_items - 1}, padded with -1"
        )
    return include.to(kernels.device).expand(n_sets, -1)


def check_k(k: Any, n_items: int) -> None:
    """Refuse a number of items that no set has."""
    if k is None:
        return
    if isinstance(k, bool) or not isinstance(k, Integral):
        raise ValueError(f"k must be a whole number, got {k!r}")
    if not 0 <= int(k) <= n_items:
        raise ValueError(f"k must be between 0 and {n_items} items, got {k}")
