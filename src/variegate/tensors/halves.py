"""Sets of middling size on a GPU: matrices inverted by halves, all else in kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from variegate.linalg.limits import FUSED_ITEMS, HALVED_ITEMS
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

#: Rows of a matrix that a program works on at a time.
_ROWS = 16


def is_for(X: Tensor) -> bool:
    """Whether these sets are for :func:`loss_terms`."""
    return FUSED_ITEMS < X.shape[-1] <= HALVED_ITEMS and is_possible(X)


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
    from variegate.tensors.dense import LossTerms, Target, failures, smallest_error
    from variegate.tensors.halves_kernel import finish_sets

    X = X.contiguous()
    target = Target.of(X, targets, jitter, tolerance)
    failed = failures(targets, target.definite, torch.ones_like(target.definite))
    u = X if log_quality is None else log_quality.contiguous()
    present = X if mask is None else as_bytes(mask)
    numbers = settings(lam, jitter, 0.0, 0.0, X.device)
    known = {
        "N": X.shape[1],
        "SIZE": size(X.shape[1]),
        "ROWS": _ROWS,
        "HAS_QUALITY": log_quality is not None,
        "HAS_MASK": mask is not None,
    }
    value = X.new_empty(len(X))
    slope = torch.empty_like(X[:, 0])
    with torch.cuda.device_of(X):
        inverse, pivots, spare = _inverse(X, u, present, numbers, known)
        left, right = (spare, torch.empty_like(X)) if gradient else (X, X)
        finish_sets[(len(X),)](
            X,
            u,
            as_bytes(targets.indicator),
            targets.error_cost.expand(X.shape[:2]).contiguous(),
            present,
            numbers,
            inverse,
            pivots,
            target.log_det,
            failed,
            value,
            failed,
            slope,
            left,
            right,
            HALF=FUSED_ITEMS,
            HINGE=hinge,
            MARGIN=lam > 0.0,
            GRADIENT=gradient,
            TOLERANCE=doubtful_pivot(X.dtype),
            SMALLEST_ERROR=smallest_error(X.dtype),
            **known,
        )
    if not gradient:
        return LossTerms(value, None, None, failed)
    G = torch.bmm(left, right, out=inverse)
    active = (failed == 0) & (value > 0.0) if hinge else failed == 0
    target.inverse.masked_fill_(~active[:, None, None], 0.0)
    target.subtract_inverse(G)
    raise_diagonal(G, jitter)
    return LossTerms(value, G, None if log_quality is None else slope, failed)


def _inverse(
    X: Tensor,
    log_quality: Tensor,
    mask: Tensor,
    numbers: Tensor,
    known: dict[str, int | bool],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the inverse of ``M``, its squared pivots, and a matrix to be written on.

    ``M`` is scaled to a unit diagonal.  Its first items are inverted, then what they
    leave of the others (Schur's complement); the upper block beside the diagonal is not
    filled in.
    """
    from variegate.tensors.halves_kernel import invert_blocks, prepare_sets

    n_sets, n_items = X.shape[:2]
    M, V, pivots = torch.empty_like(X), torch.empty_like(X), torch.empty_like(X[:, 0])
    prepare_sets[(n_sets, -(-n_items // _ROWS))](
        X, log_quality, mask, numbers, M, **known
    )

    def invert(start: int, end: int) -> None:
        width = size(end - start)
        invert_blocks[(n_sets,)](
            M,
            V,
            pivots,
            START=start,
            END=end,
            N=n_items,
            SIZE=width,
            num_warps=max(width // 32, 1),  # a thread a column
        )

    first, second = slice(None, FUSED_ITEMS), slice(FUSED_ITEMS, None)
    invert(0, FUSED_ITEMS)
    T = torch.bmm(M[:, second, first], V[:, first, first])
    M[:, second, second].baddbmm_(T, M[:, first, second], alpha=-1.0)
    invert(FUSED_ITEMS, n_items)
    below = V[:, second, first]
    below.baddbmm_(V[:, second, second], T, beta=0.0, alpha=-1.0)
    V[:, first, first].baddbmm_(T.mT, below, alpha=-1.0)
    return V, pivots, M
