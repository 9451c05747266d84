r"""The large-margin loss of a batch of kernels and its gradient, in closed form.

The loss is that of :mod:`variegate.learning.objective`, with ``X``, ``r``, ``c`` and
``M`` of :mod:`variegate.torch.resolvent`:

.. math::

    \partial f / \partial X = R M^{-1} R - \langle X_y^{-1} \rangle
        + \tfrac{\lambda}{m} R M^{-1} C W C M^{-1} R .

Of the wanted items only their own ``k x k`` matrix is factored.  Beside ``X`` there are
three ``N x N`` buffers, the gradient included, and nothing waits for a GPU but
:attr:`Targets.members` of boolean targets.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from variegate.torch import fused
from variegate.torch.resolvent import (
    Resolvent,
    doubtful_pivot,
    factor,
    full_precision,
    invert,
    raise_diagonal,
)
from variegate.torch.targets import LossSettings, Targets

__all__ = [
    "NOT_DEFINITE",
    "WRONG_TARGET",
    "ZERO_PROBABILITY",
    "LossTerms",
    "Target",
    "expected_error",
    "failures",
    "inverse_of_present",
    "judged",
    "loss_terms",
    "plain_loss_terms",
    "smallest_error",
    "wanted_sum",
]

#: Reasons of a failure: the subset has probability zero, ``M`` has no Cholesky factor,
#: or the subset names an item twice or one that is not there.
ZERO_PROBABILITY, NOT_DEFINITE, WRONG_TARGET = 1, 2, 3


def smallest_error(dtype: torch.dtype) -> float:
    """Return the least expected error, whose logarithm is finite."""
    return 1e-280 if dtype == torch.float64 else 1e-36


class LossTerms(NamedTuple):
    """The losses of a batch and their derivatives.

    A set that failed has a loss of infinity (its subset has probability zero) or NaN
    (its kernel cannot be factored, its subset is not valid), and gradients of zero.
    """

    value: Tensor  # (B,)
    # (B, N, N): ``∂f/∂X``; None where it was not asked for
    similarity_gradient: Tensor | None
    # (B, N): ``∂f/∂u``; None where it was not asked for, or there is no ``u``
    quality_gradient: Tensor | None
    # uint8 (B,): 0, ``ZERO_PROBABILITY``, ``NOT_DEFINITE`` or ``WRONG_TARGET``
    failed: Tensor


def loss_terms(
    X: Tensor,
    log_quality: Tensor | None,
    targets: Targets,
    settings: LossSettings,
    *,
    gradient: bool,
) -> LossTerms:
    """Return the losses of a batch and their gradients.

    Parameters
    ----------
    X : (B, N, N)
        ``S`` if there is a log-quality, else ``L``; symmetric.
    log_quality : (B, N) or None
    targets : Targets
    settings : LossSettings
    gradient : bool
        Whether to compute gradients.
    """
    evaluate = fused.loss_terms if fused.is_for(X) else plain_loss_terms
    with full_precision(X):
        return evaluate(X, log_quality, targets, settings, gradient=gradient)


def plain_loss_terms(
    X: Tensor,
    log_quality: Tensor | None,
    targets: Targets,
    settings: LossSettings,
    *,
    gradient: bool,
) -> LossTerms:
    """Return the same as :func:`loss_terms`, by calls of PyTorch alone."""
    lam, hinge, jitter, tolerance = settings
    target = Target.of(X, targets, jitter, tolerance)
    resolvent = Resolvent.of(X, log_quality, targets.mask, jitter)
    failed = failures(targets, target.definite, resolvent.definite)
    value = resolvent.log_det - target.log_det
    if log_quality is not None:
        value = value - 2.0 * wanted_sum(log_quality, targets)
    if lam == 0.0 and not gradient:
        value, _, failed = judged(value, failed, hinge, X.dtype)
        return LossTerms(value, None, None, failed)
    included, excluded = resolvent.invert()
    error = expected_error(targets, included, excluded)
    value = value + lam * torch.log(error)
    value, active, failed = judged(value, failed, hinge, X.dtype)
    if not gradient:
        return LossTerms(value, None, None, failed)
    W = (lam / error)[:, None].to(X.dtype) * targets.signs if lam else None
    slope = None
    if log_quality is not None:
        slope = torch.where(targets.indicator, -excluded, included)
        if W is not None:
            slope = slope + resolvent.quality_gradient(W, included, excluded)
        slope = (2.0 * slope).masked_fill_(~active[:, None], 0.0)
    G = resolvent.gradient(W, of_log_det=True)
    target.subtract_inverse(G)
    raise_diagonal(G, jitter)
    G.masked_fill_(~active[:, None, None], 0.0)
    return LossTerms(value, G, slope, failed)


def failures(targets: Targets, target_definite: Tensor, definite: Tensor) -> Tensor:
    """Return the reason why each set fails, 0 if it does not."""
    failed = (~definite).to(torch.uint8) * NOT_DEFINITE
    failed.masked_fill_(~target_definite, ZERO_PROBABILITY)
    return failed.masked_fill_(targets.wrong, WRONG_TARGET)


def wanted_sum(log_quality: Tensor, targets: Targets) -> Tensor:
    """Return the sum of the log-qualities of the wanted items, in double precision."""
    wanted = log_quality.masked_fill(~targets.indicator, 0.0)
    return wanted.sum(dim=-1, dtype=torch.float64)


def expected_error(targets: Targets, included: Tensor, excluded: Tensor) -> Tensor:
    """Return ``m`` in double precision, large enough for a logarithm."""
    error = targets.error_cost * torch.where(targets.indicator, excluded, included)
    total = error.sum(dim=-1, dtype=torch.float64)
    return total.clamp(min=smallest_error(included.dtype))


def judged(
    value: Tensor, failed: Tensor, hinge: bool, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the losses, which sets have a gradient, and reasons of failures.

    A loss that is not finite for another reason, as log-qualities that are not, counts
    as failed.
    """
    failed = failed.masked_fill(torch.isposinf(value) & (failed == 0), ZERO_PROBABILITY)
    failed = failed.masked_fill_(~torch.isfinite(value) & (failed == 0), NOT_DEFINITE)
    active = failed == 0
    if hinge:
        active = active & (value > 0.0)
        value = value.clamp(min=0.0)
    value = value.masked_fill(failed == ZERO_PROBABILITY, torch.inf)
    value = value.masked_fill_(failed >= NOT_DEFINITE, torch.nan)
    return value.to(dtype), active, failed


class Target(NamedTuple):
    """``log det X_y`` and ``X_y⁻¹`` of the wanted items."""

    log_det: Tensor  # double (B,)
    inverse: Tensor  # (B, k, k): zero at padding
    members: Tensor  # (B, k)
    definite: Tensor  # boolean (B,)

    @classmethod
    def of(
        cls, X: Tensor, targets: Targets, jitter: float, tolerance: float | None
    ) -> Target:
        """Factor and invert the matrices of the wanted items."""
        members = targets.members
        sets = torch.arange(len(X), device=X.device)[:, None, None]
        X_y = X[sets, members[:, :, None], members[:, None, :]]
        raise_diagonal(X_y, jitter)
        return cls(*inverse_of_present(X_y, targets, tolerance))

    def subtract_inverse(self, G: Tensor) -> None:
        """Subtract ``⟨X_y⁻¹⟩`` in place from a contiguous ``G`` (B, N, N)."""
        n_sets, n_items = G.shape[:2]
        row = self.members[:, :, None] * n_items
        start = torch.arange(n_sets, device=G.device)[:, None, None] * n_items**2
        place = start + row + self.members[:, None, :]
        G.view(-1).scatter_add_(0, place.view(-1), -self.inverse.reshape(-1))


def inverse_of_present(
    X_y: Tensor, targets: Targets, tolerance: float | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the fields of :class:`Target`, for matrices of ``targets.members``."""
    present = targets.present
    both = present[:, :, None] & present[:, None, :]
    # Padding becomes an identity block, which changes no determinant.
    eye = torch.eye(present.shape[1], dtype=X_y.dtype, device=X_y.device)
    X_y = torch.where(both, X_y, eye)
    if tolerance is None:
        tolerance = doubtful_pivot(X_y.dtype)
    log_det, definite = factor(X_y, tolerance)
    invert(X_y, torch.empty_like(X_y))
    return log_det, X_y.masked_fill_(~both, 0.0), targets.members, definite
