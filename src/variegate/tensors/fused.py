"""Small sets on a GPU: everything about a set in one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from variegate.linalg.limits import FUSED_ITEMS, WHOLE_ITEMS
from variegate.tensors.factorisation import doubtful_pivot
from variegate.tensors.kernel_inputs import (
    as_bytes,
    in_steps,
    is_possible,
    settings,
    size,
)
from variegate.tensors.resolvent import raise_diagonal

if TYPE_CHECKING:
    from variegate.tensors.dense import LossTerms
    from variegate.tensors.targets import Targets

__all__ = ["is_for", "loss_terms"]

#: Most registers of a thread, by the rows of a program: with fewer, more programs work
#: at a time.  Of 100,000 sets of 10, with 143 as the compiler would have it: 0.74 ms,
#: with 80: 0.59, with 64: 0.63, with 48: 0.87.
_REGISTERS = {16: 80}


def is_for(X: Tensor) -> bool:
    """Whether these sets are for :func:`loss_terms`."""
    return 0 < X.shape[-1] <= FUSED_ITEMS and is_possible(X)


@in_steps
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
    X = X.contiguous()
    by_number = targets.subsets.dtype != torch.bool
    width = size(n_items)
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
            as_bytes(targets.subsets),
            _costs(positive, X),
            _costs(negative, X),
            X if mask is None else as_bytes(mask),
            settings(lam, jitter, _number(positive), _number(negative), X.device),
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
            SIZE=width,
            num_warps=max(width // 32, 1),  # a thread a column
            maxnreg=_REGISTERS.get(width),
        )
    if G is None:
        return LossTerms(value, None, None, failed)
    if not whole:
        G.baddbmm_(left, right)
        raise_diagonal(G, jitter)
    return LossTerms(value, G, slope, failed)


def _costs(given: Tensor | float, X: Tensor) -> Tensor:
    """Return costs (B, N), or anything where they are in the settings."""
    if not isinstance(given, Tensor):
        return X
    return given.to(X.dtype).expand(X.shape[:2]).contiguous()


def _number(given: Tensor | float) -> float:
    return 0.0 if isinstance(given, Tensor) else float(given)
