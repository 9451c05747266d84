"""The loss of small sets on a GPU: a set in one program of a kernel in Triton."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from variegate.linalg.limits import FUSED_ITEMS
from variegate.torch.resolvent import doubtful_pivot, raise_diagonal

if TYPE_CHECKING:
    from variegate.torch.dense import LossTerms
    from variegate.torch.targets import LossSettings, Targets

__all__ = ["is_for", "loss_terms"]

#: Most registers of a thread, by the rows of a program: with fewer, more programs work
#: at a time.
_REGISTERS = {16: 80}

#: There is a kernel for each number of items, compiled in seconds when it is first met.
#: Sets of different sizes are padded to multiples of this, so that few are met.
_STEP = 8


def is_for(X: Tensor) -> bool:
    """Return whether these sets are small, and on a device with Triton."""
    return 0 < X.shape[-1] <= FUSED_ITEMS and is_possible(X)


def is_possible(X: Tensor) -> bool:
    """Return whether there are sets, on a device that kernels are compiled for."""
    return X.device.type == "cuda" and len(X) > 0 and _has_triton()


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def loss_terms(
    X: Tensor,
    log_quality: Tensor | None,
    targets: Targets,
    settings: LossSettings,
    *,
    gradient: bool,
) -> LossTerms:
    """Return losses and gradients as :func:`variegate.torch.dense.loss_terms` does."""
    n_items = X.shape[1]
    if targets.mask is not None and n_items % _STEP:
        X, log_quality, targets = _widened(X, log_quality, targets, targets.mask)
    found = _evaluate(X.contiguous(), log_quality, targets, settings, gradient)
    G, slope = found.similarity_gradient, found.quality_gradient
    return found._replace(
        similarity_gradient=None if G is None else G[:, :n_items, :n_items],
        quality_gradient=None if slope is None else slope[:, :n_items],
    )


def _widened(
    X: Tensor, log_quality: Tensor | None, targets: Targets, mask: Tensor
) -> tuple[Tensor, Tensor | None, Targets]:
    """Add padding up to the next step."""
    n_more = -X.shape[1] % _STEP
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
    return pad(X, (0, n_more, 0, n_more)), padded(log_quality), wider


def _evaluate(
    X: Tensor,
    log_quality: Tensor | None,
    targets: Targets,
    settings: LossSettings,
    gradient: bool,
) -> LossTerms:
    from variegate.torch.dense import LossTerms, smallest_error
    from variegate.torch.fused_kernel import evaluate_sets

    lam, hinge, jitter, tolerance = settings
    doubtful = doubtful_pivot(X.dtype)
    n_sets, n_items = X.shape[:2]
    width = max(16, 1 << (n_items - 1).bit_length())  # rows that a program holds
    has_product = gradient and lam > 0.0
    value, failed = X.new_empty(n_sets), X.new_empty(n_sets, dtype=torch.uint8)
    G = torch.empty_like(X) if gradient else None
    left, right = (torch.empty_like(X) if has_product else X for _ in "LR")
    slope = None if log_quality is None else torch.empty_like(X[:, 0])
    positive, negative = targets.false_positive, targets.false_negative
    with torch.cuda.device_of(X):
        evaluate_sets[(n_sets,)](
            X,
            X if log_quality is None else log_quality.contiguous(),
            _as_bytes(targets.subsets),
            _costs(positive, X),
            _costs(negative, X),
            X if targets.mask is None else _as_bytes(targets.mask),
            _on_device(lam, jitter, _number(positive), _number(negative), X.device),
            value,
            failed,
            X if slope is None else slope,
            X if G is None else G,
            left,
            right,
            targets.subsets.shape[1],
            N=n_items,
            HAS_QUALITY=log_quality is not None,
            BY_NUMBER=targets.subsets.dtype != torch.bool,
            HAS_POSITIVE=isinstance(positive, Tensor),
            HAS_NEGATIVE=isinstance(negative, Tensor),
            HAS_MASK=targets.mask is not None,
            HINGE=hinge,
            MARGIN=lam > 0.0,
            GRADIENT=gradient,
            TOLERANCE=doubtful,
            TARGET_TOLERANCE=doubtful if tolerance is None else tolerance,
            SMALLEST_ERROR=smallest_error(X.dtype),
            SIZE=width,
            num_warps=max(width // 32, 1),  # a thread a column
            maxnreg=_REGISTERS.get(width),
        )
    if G is None:
        return LossTerms(value, None, None, failed)
    if has_product:
        G.baddbmm_(left, right)
        raise_diagonal(G, jitter)
    return LossTerms(value, G, slope, failed)


def _as_bytes(given: Tensor) -> Tensor:
    """Return booleans as bytes, and numbers as they are."""
    given = given.contiguous()
    return given.view(torch.uint8) if given.dtype == torch.bool else given


def _costs(given: Tensor | float, X: Tensor) -> Tensor:
    """Return costs (B, N), or any tensor where they are in the settings."""
    if not isinstance(given, Tensor):
        return X
    return given.to(X.dtype).expand(X.shape[:2]).contiguous()


def _number(given: Tensor | float) -> float:
    return 0.0 if isinstance(given, Tensor) else float(given)


@lru_cache(maxsize=256)
def _on_device(
    lam: float, jitter: float, positive: float, negative: float, device: torch.device
) -> Tensor:
    """Return numbers on the device, in all their digits: Triton would cut them."""
    given = torch.empty(4, dtype=torch.float64, device=device)
    for place, number in enumerate((lam, 1.0 + jitter, positive, negative)):
        given[place].fill_(number)  # unlike a copy, this is not waited for
    return given
