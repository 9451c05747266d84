"""Small sets on a GPU: everything about a set in one kernel."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from variegate.linalg.limits import FUSED_ITEMS, WHOLE_ITEMS
from variegate.tensors.factorisation import doubtful_pivot
from variegate.tensors.resolvent import raise_diagonal

if TYPE_CHECKING:
    from variegate.tensors.dense import LossTerms
    from variegate.tensors.targets import Targets

__all__ = ["is_for", "loss_terms"]

#: There is a kernel for each number of items, compiled in seconds when it is first met.
#: Sets of different sizes are padded to multiples of this, so that few are met.
_RAGGED_STEP = 8


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
    from variegate.tensors.dense import LossTerms, smallest_error
    from variegate.tensors.fused_kernel import evaluate_sets

    n_sets, n_items = X.shape[:2]
    if mask is not None and n_items % _RAGGED_STEP:
        X, log_quality, targets, mask = _widened(X, log_quality, targets, mask)
        wide = loss_terms(
            X,
            log_quality,
            targets,
            mask,
            lam,
            hinge,
            gradient=gradient,
            jitter=jitter,
            tolerance=tolerance,
        )
        G, slope = wide.similarity_gradient, wide.quality_gradient
        return wide._replace(
            similarity_gradient=None if G is None else G[:, :n_items, :n_items],
            quality_gradient=None if slope is None else slope[:, :n_items],
        )
    X = X.contiguous()
    by_number = targets.subsets.dtype != torch.bool
    size = _size(n_items)
    doubtful = doubtful_pivot(X.dtype)
    whole = n_items <= WHOLE_ITEMS or lam == 0.0  # without a margin, no product
    value, failed = X.new_empty(n_sets), X.new_empty(n_sets, dtype=torch.uint8)
    G = torch.empty_like(X) if gradient else None
    has_product = gradient and lam > 0.0
    left, right = (torch.empty_like(X) if has_product else X for _ in "LR")
    slope = None if log_quality is None else torch.empty_like(X[:, 0])
    positive, negative = targets.false_positive, targets.false_negative
    with torch.cuda.device_of(X):
        evaluate_sets[(n_sets,)](
            X,
            X if log_quality is None else log_quality.contiguous(),
            _bytes(targets.subsets),
            _costs(positive, X),
            _costs(negative, X),
            X if mask is None else _bytes(mask),
            _settings(lam, jitter, _number(positive), _number(negative), X.device),
            value,
            failed,
            X if slope is None else slope,
            X if G is None else G,
            left,
            right,
            targets.subsets.shape[1],
            N=n_items,
            HAS_QUALITY=log_quality is not None,
            BY_NUMBER=by_number,
            HAS_POSITIVE=isinstance(positive, Tensor),
            HAS_NEGATIVE=isinstance(negative, Tensor),
            HAS_MASK=mask is not None,
            HINGE=hinge,
            MARGIN=lam > 0.0,
            GRADIENT=gradient,
            WHOLE=whole,
            TOLERANCE=doubtful,
            TARGET_TOLERANCE=doubtful if tolerance is None else tolerance,
            SMALLEST_ERROR=smallest_error(X.dtype),
            SIZE=size,
            num_warps=max(size // 32, 1),  # a thread a column
        )
    if G is None:
        return LossTerms(value, None, None, failed)
    if not whole:
        G.baddbmm_(left, right)
        raise_diagonal(G, jitter)
    return LossTerms(value, G, slope, failed)


def _widened(
    X: Tensor, log_quality: Tensor | None, targets: Targets, mask: Tensor
) -> tuple[Tensor, Tensor | None, Targets, Tensor]:
    """Add padding up to the next step."""
    n_more = -X.shape[1] % _RAGGED_STEP
    subsets = targets.subsets

    def padded(given: Any) -> Any:
        is_wide = isinstance(given, Tensor) and given.shape[-1:] == mask.shape[1:]
        return pad(given, (0, n_more)) if is_wide else given

    wider = replace(
        targets,
        subsets=padded(subsets) if subsets.dtype == torch.bool else subsets,
        n_items=targets.n_items + n_more,
        false_positive=padded(targets.false_positive),
        false_negative=padded(targets.false_negative),
        mask=padded(mask),
    )
    X = pad(X, (0, n_more, 0, n_more))
    return X, padded(log_quality), wider, padded(mask)


def _size(n_items: int) -> int:
    """Return the number of rows that a program holds: a power of two."""
    return max(16, 1 << (n_items - 1).bit_length())


def _bytes(given: Tensor) -> Tensor:
    """Return booleans as bytes, and numbers as they are."""
    given = given.contiguous()
    return given.view(torch.uint8) if given.dtype == torch.bool else given


def _costs(given: Tensor | float, X: Tensor) -> Tensor:
    """Return costs (B, N), or anything where they are in the settings."""
    if not isinstance(given, Tensor):
        return X
    return given.to(X.dtype).expand(X.shape[:2]).contiguous()


def _number(given: Tensor | float) -> float:
    return 0.0 if isinstance(given, Tensor) else float(given)


@lru_cache(maxsize=256)
def _settings(
    lam: float, jitter: float, positive: float, negative: float, device: torch.device
) -> Tensor:
    """Return numbers on the device, in all their digits: Triton would cut them."""
    settings = torch.empty(4, dtype=torch.float64, device=device)
    for place, number in enumerate((lam, 1.0 + jitter, positive, negative)):
        settings[place].fill_(number)  # unlike a copy, this is not waited for
    return settings
