"""Small sets on a GPU: everything about a set in one kernel."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from variegate.linalg.limits import FUSED_ITEMS, WHOLE_ITEMS
from variegate.tensors.factorisation import doubtful_pivot

if TYPE_CHECKING:
    from variegate.tensors.dense import LossTerms
    from variegate.tensors.targets import Targets

__all__ = ["is_for", "loss_terms"]


def is_for(X: Tensor) -> bool:
    """Whether these sets are for :func:`loss_terms`."""
    return (
        X.device.type == "cuda"
        and 0 < X.shape[-1] <= FUSED_ITEMS
        and len(X) > 0
        and _has_triton()
    )


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def loss_terms(
    X: Tensor,
    log_quality: Tensor | None,
    targets: Targets,
    mask: Tensor | None,
    lam: float,
    hinge: bool,
    *,
    gradient: bool,
    jitter: float = 0.0,
    tolerance: float | None = None,
) -> LossTerms:
    """Do what :func:`variegate.tensors.dense.loss_terms` does."""
    import triton

    from variegate.tensors.dense import LossTerms, smallest_error
    from variegate.tensors.fused_kernel import evaluate_sets

    n_sets, n_items = X.shape[:2]
    X = X.contiguous()
    whole = n_items <= WHOLE_ITEMS
    members, n_wanted = _members(targets)
    n_members = members.shape[1]
    size = max(triton.next_power_of_2(n_items), 16)
    settings = X.new_empty(2, dtype=torch.float64)
    settings[0], settings[1] = lam, 1.0 + jitter
    value, failed = X.new_empty(n_sets), X.new_empty(n_sets, dtype=torch.uint8)
    nothing = X.new_empty(0)
    left = torch.empty_like(X) if gradient else nothing
    right = torch.empty_like(X) if gradient and not whole else nothing
    of_target = right.new_empty(n_sets, n_members, n_members) if len(right) else nothing
    slope = X.new_empty(n_sets, n_items) if log_quality is not None else nothing
    # The kernel is started on the current device.
    with torch.cuda.device_of(X):
        evaluate_sets[(n_sets,)](
            X,
            nothing if log_quality is None else log_quality.contiguous(),
            members,
            n_wanted,
            targets.indicator.contiguous().view(torch.uint8),
            targets.error_cost.contiguous(),
            nothing if mask is None else mask.contiguous().view(torch.uint8),
            settings,
            value,
            failed,
            slope,
            of_target,
            left,
            right,
            n_items,
            n_members,
            HAS_QUALITY=log_quality is not None,
            HAS_MASK=mask is not None,
            HINGE=hinge,
            MARGIN=lam > 0.0,
            GRADIENT=gradient,
            WHOLE=whole,
            TOLERANCE=doubtful_pivot(X.dtype),
            TARGET_TOLERANCE=doubtful_pivot(X.dtype)
            if tolerance is None
            else tolerance,
            SMALLEST_ERROR=smallest_error(X.dtype),
            SIZE=size,
            TARGET_SIZE=max(triton.next_power_of_2(n_members), 2),
            num_warps=_warps(size),
        )
    if not gradient:
        return LossTerms(value, None, None, failed)
    if not whole:
        left = torch.bmm(left, right)
        _subtract(left, of_target, members)
        if jitter:
            left.diagonal(dim1=-2, dim2=-1).mul_(1.0 + jitter)
    return LossTerms(value, left, slope if log_quality is not None else None, failed)


def _warps(size: int) -> int:
    """Return how many threads, by 32, hold a matrix; measured on an H200."""
    return 1 if size <= 32 else 2 if size <= 64 else 8


def _members(targets: Targets) -> tuple[Tensor, Tensor]:
    """Return the wanted items (B, k), -1 for padding, and how many places to look at.

    Without waiting for the largest subset: of boolean targets there may be as many as
    items.
    """
    if targets.numbers is not None:
        numbers = targets.numbers.contiguous()
        if numbers.shape[1] == 0:
            numbers = numbers.new_full((len(numbers), 1), -1)
        n_places = numbers.new_full((len(numbers),), numbers.shape[1])
        return numbers, n_places
    n_sets, n_items = targets.indicator.shape
    counts = targets.indicator.cumsum(dim=1)
    # What is not wanted goes to a column of its own, which is cut off.
    place = (counts - 1).masked_fill(~targets.indicator, n_items)
    items = torch.arange(n_items, device=place.device).expand(n_sets, n_items)
    members = items.new_full((n_sets, n_items + 1), -1).scatter_(1, place, items)
    return members[:, :n_items].contiguous(), counts[:, -1].contiguous()


def _subtract(G: Tensor, of_target: Tensor, members: Tensor) -> None:
    """Subtract what belongs to the wanted items, in its places."""
    n_sets, n_items = G.shape[:2]
    start = torch.arange(n_sets, device=G.device)[:, None, None] * n_items**2
    kept = members.clamp(min=0)  # of padding, zeros are subtracted somewhere
    place = start + kept[:, :, None] * n_items + kept[:, None, :]
    G.view(-1).scatter_add_(0, place.view(-1), -of_target.view(-1))
