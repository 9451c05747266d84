r"""The large-margin loss of a batch of kernels and its gradient, in closed form.

The formulas are those of :mod:`variegate.learning.objective`, in one form for both
ways to give a kernel.  With ``X`` the matrix given and two positive numbers an item,

.. math:: L + I = C^{-1} M C^{-1}, \qquad M = R X R + C^2,

- ``X = S`` with log-quality ``u``: ``r = min(e^u, 1)``, ``c = min(e^{-u}, 1)``;
- ``X = L``: ``r = c = min(L_ii^{-1/2}, 1)``, and 1 where ``L_ii = 0``,

so that no entry of ``M`` is large.  Then

.. math::

    \log\det(L + I) &= \log\det M - 2 \sum_i \log c_i, \qquad
    1 - K_{ii} = c_i^2 [M^{-1}]_{ii}, \qquad
    K_{ii} = \sum_j [R X R]_{ij} [M^{-1}]_{ij}, \\
    \partial f / \partial X &= R M^{-1} R - \langle X_y^{-1} \rangle
        + \tfrac{\lambda}{m} R M^{-1} C W C M^{-1} R .

Padding has ``r = 0``, ``c = 1`` and no cost; what stands there, NaN included, is never
used.  Nothing waits for a GPU but :attr:`Targets.members` of boolean targets.

A ridge of ``jitter`` times its own diagonal may be added to ``X``.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from variegate.linalg.determinants import DOUBTFUL_PIVOT
from variegate.tensors.targets import Targets

__all__ = [
    "NOT_DEFINITE",
    "ZERO_PROBABILITY",
    "LossTerms",
    "doubtful_pivot",
    "loss_terms",
    "smallest_error",
]

#: What a set can fail by: its subset has probability zero, or ``M`` no Cholesky factor.
ZERO_PROBABILITY, NOT_DEFINITE = 1, 2


def doubtful_pivot(dtype: torch.dtype) -> float:
    """Return the share of its diagonal below which a squared pivot is in doubt.

    About the root of rounding.
    """
    return DOUBTFUL_PIVOT if dtype == torch.float64 else 2e-4


def smallest_error(dtype: torch.dtype) -> float:
    """Return what the expected error is held above, so that its logarithm is finite."""
    return 1e-280 if dtype == torch.float64 else 1e-36


class LossTerms(NamedTuple):
    """The losses of a batch and their derivatives.

    A set that failed has a loss of infinity (its subset has probability zero) or NaN
    (its kernel cannot be factored), and gradients of zero.

    Attributes
    ----------
    value : (B,)
    similarity_gradient : (B, N, N) or None
        ``∂f/∂X``; None where it was not asked for.
    quality_gradient : (B, N) or None
        ``∂f/∂u``; None where it was not asked for, or there is no ``u``.
    failed : uint8 (B,)
        0, ``ZERO_PROBABILITY`` or ``NOT_DEFINITE``.
    """

    value: Tensor
    similarity_gradient: Tensor | None
    quality_gradient: Tensor | None
    failed: Tensor


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
) -> LossTerms:
    """Return the losses of a batch and their gradients.

    Parameters
    ----------
    X : (B, N, N)
        ``S`` if there is a log-quality, else ``L``; symmetric.
    log_quality : (B, N) or None
    targets : Targets
    mask : boolean (B, N) or None
        True where there is an item.
    lam, hinge : as in :class:`variegate.learning.objective.LargeMarginLoss`
    gradient : bool
        Whether gradients are wanted.
    jitter : float
        Ridge on ``X``, relative to its diagonal.
    """
    # The place where a fused kernel for small sets takes over.
    target = _target(X, targets, jitter)
    scales = _Scales.of(X, log_quality, mask, jitter)
    M = _scaled(X, scales, mask)
    failed = (~scales.possible).to(torch.uint8) * NOT_DEFINITE
    log_det, failed = _factor(M, failed)
    failed = torch.where(target.failed, ZERO_PROBABILITY, failed).to(torch.uint8)
    value = log_det + 2.0 * (scales.above.sum(dim=-1)) - target.log_det
    if log_quality is not None:
        wanted = log_quality.masked_fill(~targets.indicator, 0.0)
        value = value - 2.0 * wanted.sum(dim=-1)
    if lam == 0.0 and not gradient:
        return LossTerms(_judged(value, failed, hinge)[0], None, None, failed)
    spare = torch.empty_like(M)
    _inverse(M, spare)
    inverse = M
    included, excluded = _marginals(X, inverse, scales, mask, spare)
    cost = targets.error_cost
    error = (cost * torch.where(targets.indicator, excluded, included)).sum(dim=-1)
    error = error.clamp(min=smallest_error(X.dtype))
    if lam > 0.0:
        value = value + lam * torch.log(error)
    value, active = _judged(value, failed, hinge)
    if not gradient:
        return LossTerms(value, None, None, failed)
    slope = None
    signs, factor = targets.signs, (lam / error)[:, None]
    if log_quality is not None:
        slope = torch.where(targets.indicator, -excluded, included)
        if lam > 0.0:
            others = scales.c**2 * _other_squares(inverse, scales.c**2 * signs, spare)
            slope = slope + factor * (signs * included * excluded - others)
        slope = (2.0 * slope).masked_fill_(~active[:, None], 0.0)
    weight = factor * scales.c**2 * signs if lam > 0.0 else None
    G = _gradient(inverse, scales.r, weight, spare)
    target.subtract_inverse(G)
    _raise_diagonal(G, jitter)
    G.masked_fill_(~active[:, None, None], 0.0)
    return LossTerms(value, G, slope, failed)


class _Scales(NamedTuple):
    """What is known of each item.

    Attributes
    ----------
    r, c, above : (B, N)
        ``above`` is ``-log c``.
    ridge : (B, N) or None
        ``jitter`` times the diagonal of ``X``.
    possible : boolean (B,)
        Whether the diagonal of ``X`` may be that of a kernel.
    """

    r: Tensor
    c: Tensor
    above: Tensor
    ridge: Tensor | None
    possible: Tensor

    @classmethod
    def of(
        cls, X: Tensor, log_quality: Tensor | None, mask: Tensor | None, jitter: float
    ) -> _Scales:
        diagonal = X.diagonal(dim1=-2, dim2=-1)
        if mask is not None:
            diagonal = diagonal.masked_fill(~mask, 0.0)
        if log_quality is None:
            above = 0.5 * torch.log(diagonal.clamp(min=1.0))
            c = torch.exp(-above)
            r = c
        else:
            if mask is not None:
                log_quality = log_quality.masked_fill(~mask, 0.0)
            above = log_quality.clamp(min=0.0)
            r, c = torch.exp(log_quality.clamp(max=0.0)), torch.exp(-above)
        if mask is not None:
            r = r.masked_fill(~mask, 0.0)
        ridge = jitter * diagonal if jitter else None
        return cls(r, c, above, ridge, (diagonal >= 0.0).all(dim=-1))


class _Target(NamedTuple):
    """``log det X_y`` and ``X_y⁻¹`` of the wanted items.

    Attributes
    ----------
    log_det : (B,)
    inverse : (B, k, k)
        Zero at padding.
    members : (B, k)
    failed : boolean (B,)
    """

    log_det: Tensor
    inverse: Tensor
    members: Tensor
    failed: Tensor

    def subtract_inverse(self, G: Tensor) -> None:
        """Subtract ``⟨X_y⁻¹⟩`` in place from a contiguous ``G`` (B, N, N)."""
        n_sets, n_items = G.shape[:2]
        row = self.members[:, :, None] * n_items
        start = torch.arange(n_sets, device=G.device)[:, None, None] * n_items**2
        place = start + row + self.members[:, None, :]
        G.view(-1).scatter_add_(0, place.view(-1), -self.inverse.reshape(-1))


def _target(X: Tensor, targets: Targets, jitter: float) -> _Target:
    members, present = targets.members, targets.present
    sets = torch.arange(len(X), device=X.device)[:, None, None]
    X_y = X[sets, members[:, :, None], members[:, None, :]]
    _raise_diagonal(X_y, jitter)
    both = present[:, :, None] & present[:, None, :]
    # Padding becomes an identity block, which changes no determinant.
    eye = torch.eye(members.shape[1], dtype=X.dtype, device=X.device)
    X_y = torch.where(both, X_y, eye)
    none = torch.zeros(len(X), dtype=torch.uint8, device=X.device)
    log_det, failed = _factor(X_y, none)
    _inverse(X_y, torch.empty_like(X_y))
    return _Target(log_det, X_y.masked_fill_(~both, 0.0), members, failed > 0)


def _raise_diagonal(X: Tensor, jitter: float) -> None:
    if jitter:
        X.diagonal(dim1=-2, dim2=-1).mul_(1.0 + jitter)


def _scaled(X: Tensor, scales: _Scales, mask: Tensor | None) -> Tensor:
    """Return ``M``, a new contiguous tensor."""
    M = torch.empty(X.shape, dtype=X.dtype, device=X.device)
    torch.mul(X, scales.r[:, :, None], out=M)
    M.mul_(scales.r[:, None, :])
    if mask is not None:
        M.masked_fill_(~mask[:, :, None], 0.0).masked_fill_(~mask[:, None, :], 0.0)
    diagonal = M.diagonal(dim1=-2, dim2=-1)
    diagonal += scales.c**2
    if scales.ridge is not None:
        diagonal += scales.r**2 * scales.ridge
    return M


def _factor(M: Tensor, failed: Tensor) -> tuple[Tensor, Tensor]:
    """Put the Cholesky factor into ``M``; return ``log det M`` and what failed.

    The transpose of ``M`` holds it, lower: so it lies in memory as LAPACK wants it.
    """
    smallest = doubtful_pivot(M.dtype) * M.diagonal(dim1=-2, dim2=-1)
    info = torch.empty(M.shape[:-2], dtype=torch.int32, device=M.device)
    torch.linalg.cholesky_ex(M.mT, out=(M.mT, info))
    pivots = M.diagonal(dim1=-2, dim2=-1)
    fine = (info == 0) & (pivots**2 > smallest).all(dim=-1)
    failed = torch.where(fine, failed, NOT_DEFINITE)
    # Of a matrix that failed something is inverted, and not used.
    pivots.masked_fill_(~(pivots > 0.0), 1.0)
    return 2.0 * torch.log(pivots).sum(dim=-1), failed


def _inverse(M: Tensor, spare: Tensor) -> None:
    """Turn what :func:`_factor` left into the inverse, in its place.

    On a GPU by a product of triangular inverses: ``cholesky_inverse`` would wait there
    to see whether it failed.
    """
    if M.numel() == 0:
        return
    if M.device.type == "cpu":
        torch.cholesky_inverse(M.mT, out=M.mT)
        return
    spare.zero_().diagonal(dim1=-2, dim2=-1).fill_(1.0)
    torch.linalg.solve_triangular(M.mT, spare.mT, upper=False, out=spare.mT)
    torch.bmm(spare, spare.mT, out=M)


def _judged(value: Tensor, failed: Tensor, hinge: bool) -> tuple[Tensor, Tensor]:
    """Return the losses, of failed sets too, and which have a gradient."""
    active = failed == 0
    if hinge:
        active = active & (value > 0.0)
        value = value.clamp(min=0.0)
    value = value.masked_fill(failed == ZERO_PROBABILITY, torch.inf)
    return value.masked_fill(failed == NOT_DEFINITE, torch.nan), active


def _marginals(
    X: Tensor, inverse: Tensor, scales: _Scales, mask: Tensor | None, spare: Tensor
) -> tuple[Tensor, Tensor]:
    """Return ``K_ii`` and ``1 - K_ii``, each free of cancellation."""
    diagonal = inverse.diagonal(dim1=-2, dim2=-1)
    torch.mul(X, inverse, out=spare)
    if mask is not None:
        spare.masked_fill_(~mask[:, :, None], 0.0)
        spare.masked_fill_(~mask[:, None, :], 0.0)
    included = scales.r * (spare @ scales.r[:, :, None]).squeeze(-1)
    if scales.ridge is not None:
        included = included + scales.r**2 * scales.ridge * diagonal
    excluded = scales.c**2 * diagonal
    if mask is not None:
        excluded = excluded.masked_fill(~mask, 1.0)
    return included.clamp(0.0, 1.0), excluded.clamp(0.0, 1.0)


def _other_squares(inverse: Tensor, weight: Tensor, spare: Tensor) -> Tensor:
    """Return ``Σ_{j≠i} weight_j inverse_ij²`` for every item ``i``."""
    torch.mul(inverse, inverse, out=spare)
    spare.diagonal(dim1=-2, dim2=-1).zero_()
    return (spare @ weight[:, :, None]).squeeze(-1)


def _gradient(
    inverse: Tensor, r: Tensor, weight: Tensor | None, spare: Tensor
) -> Tensor:
    """Return ``R (M⁻¹ + M⁻¹ diag(weight) M⁻¹) R``."""
    G = inverse
    if weight is not None:
        torch.mul(inverse, weight[:, None, :], out=spare)
        G = torch.baddbmm(inverse, spare, inverse)
    return G.mul_(r[:, :, None]).mul_(r[:, None, :])
