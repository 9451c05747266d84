r"""The resolvent ``(L + I)⁻¹`` of a batch of kernels, by their ``N x N`` matrices.

In one form for both ways to give a kernel: with ``X`` the matrix given and two numbers
an item,

.. math:: L + I = C^{-1} M C^{-1}, \qquad M = R X R + C^2,

- ``X = S`` with log-quality ``u``: ``r = min(e^u, 1)``, ``c = min(e^{-u}, 1)``;
- ``X = L``: ``r = c = min(L_ii^{-1/2}, 1)``, and 1 where ``L_ii = 0``,

so that no entry of ``M`` is large.  Then

.. math::

    \log\det(L + I) = \log\det M - 2 \sum_i \log c_i, \qquad
    1 - K_{ii} = c_i^2 [M^{-1}]_{ii}, \qquad
    K_{ii} = \sum_j [R X R]_{ij} [M^{-1}]_{ij},

and for a diagonal matrix ``W``,

.. math::

    \frac{\partial \log\det(L + I)}{\partial X} = R M^{-1} R, \qquad
    \frac{\partial \sum_i W_i K_{ii}}{\partial X} = R M^{-1} C W C M^{-1} R, \qquad
    \frac{\partial \sum_i W_i K_{ii}}{\partial u_k} = 2 \Bigl( W_k K_{kk} (1 - K_{kk})
        - \sum_{i \ne k} W_i K_{ik}^2 \Bigr).

Padding has ``r = 0`` and ``c = 1``; what stands there, NaN included, is never used.

A ridge of ``jitter`` times its own diagonal may be added to ``X``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from variegate.linalg.limits import DOUBTFUL_PIVOT, RANK_TOLERANCE

__all__ = [
    "Resolvent",
    "doubtful_pivot",
    "factor",
    "full_precision",
    "invert",
    "raise_diagonal",
    "rank_tolerance",
]

#: Triangular matrices of up to this many rows are solved, not halved.
_SOLVED = 64


@dataclass(eq=False)
class Resolvent:
    """The matrices that the module docstring names, in two buffers beside ``X``."""

    X: Tensor  # (B, N, N)
    mask: Tensor | None  # boolean (B, N) or None
    scales: _Scales
    log_det: Tensor  # double (B,): ``log det(L + I)``
    definite: Tensor  # boolean (B,): whether the factorisation can be trusted
    M: Tensor  # contiguous (B, N, N): its factor, then its inverse

    @classmethod
    def of(
        cls, X: Tensor, log_quality: Tensor | None, mask: Tensor | None, jitter: float
    ) -> Resolvent:
        """Factor ``M``."""
        scales = _Scales.of(X, log_quality, mask, jitter)
        M = torch.empty(X.shape, dtype=X.dtype, device=X.device)
        torch.mul(X, scales.r[:, :, None], out=M)
        M.mul_(scales.r[:, None, :])
        _clear_padding(M, mask)
        diagonal = M.diagonal(dim1=-2, dim2=-1)
        diagonal += scales.c**2
        if scales.ridge is not None:
            diagonal += scales.r**2 * scales.ridge
        log_det, definite = factor(M, doubtful_pivot(X.dtype))
        log_det = log_det + 2.0 * scales.above.sum(dim=-1, dtype=torch.float64)
        return cls(X, mask, scales, log_det, definite & scales.possible, M)

    def invert(self) -> tuple[Tensor, Tensor]:
        """Invert ``M``; return ``K_ii`` and ``1 - K_ii``, neither by cancellation."""
        self.spare = torch.empty_like(self.M)
        invert(self.M, self.spare)
        r, c, ridge = self.scales.r, self.scales.c, self.scales.ridge
        diagonal = self.M.diagonal(dim1=-2, dim2=-1)
        torch.mul(self.X, self.M, out=self.spare)
        _clear_padding(self.spare, self.mask)
        included = r * (self.spare @ r[:, :, None]).squeeze(-1)
        if ridge is not None:
            included = included + r**2 * ridge * diagonal
        return included.clamp(0.0, 1.0), (c**2 * diagonal).clamp(0.0, 1.0)

    def gradient(self, W: Tensor | None, *, of_log_det: bool) -> Tensor:
        """Return the gradient of ``Σ_i W_i K_ii``, and ``log det(L + I)``, in ``X``.

        But for the ridge.  A new tensor, or ``M``, which is lost in either case.
        """
        r, c = self.scales.r, self.scales.c
        G = self.M
        if W is not None:
            torch.mul(self.M, (c**2 * W)[:, None, :], out=self.spare)
            if of_log_det:
                G = torch.baddbmm(self.M, self.spare, self.M)
            else:
                G = torch.bmm(self.spare, self.M)
        return G.mul_(r[:, :, None]).mul_(r[:, None, :])

    def quality_gradient(self, W: Tensor, included: Tensor, excluded: Tensor) -> Tensor:
        """Return half the gradient of ``Σ_i W_i K_ii`` in ``u``."""
        c_squared = self.scales.c**2
        torch.mul(self.M, self.M, out=self.spare)
        self.spare.diagonal(dim1=-2, dim2=-1).zero_()
        others = (self.spare @ (c_squared * W)[:, :, None]).squeeze(-1)
        return W * included * excluded - c_squared * others


class _Scales(NamedTuple):
    """Numbers of each item."""

    r: Tensor  # (B, N)
    c: Tensor  # (B, N)
    above: Tensor  # (B, N): ``-log c``
    ridge: Tensor | None  # (B, N): ``jitter`` times the diagonal of ``X``
    # boolean (B,): whether the diagonal of ``X`` may be that of a kernel
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
            r = c = torch.exp(-above)
        else:
            if mask is not None:
                log_quality = log_quality.masked_fill(~mask, 0.0)
            above = log_quality.clamp(min=0.0)
            r, c = torch.exp(log_quality.clamp(max=0.0)), torch.exp(-above)
        if mask is not None:
            r = r.masked_fill(~mask, 0.0)
        ridge = jitter * diagonal if jitter else None
        return cls(r, c, above, ridge, (diagonal >= 0.0).all(dim=-1))


def _clear_padding(M: Tensor, mask: Tensor | None) -> None:
    # Not by multiplication: NaN times zero is NaN.
    if mask is not None:
        M.masked_fill_(~mask[:, :, None], 0.0).masked_fill_(~mask[:, None, :], 0.0)


def raise_diagonal(X: Tensor, jitter: float) -> None:
    """Raise the diagonal by the share ``jitter``, in place; gradients likewise."""
    if jitter:
        X.diagonal(dim1=-2, dim2=-1).mul_(1.0 + jitter)


# Cholesky factors and inverses, in place, without waiting for a GPU ---------------


def doubtful_pivot(dtype: torch.dtype) -> float:
    """Return the share of its diagonal below which a squared pivot is in doubt.

    About the root of rounding; what depends on a lesser one is refused.
    """
    return DOUBTFUL_PIVOT if dtype == torch.float64 else 2e-4


def rank_tolerance(dtype: torch.dtype) -> float:
    """Return the share of its diagonal below which a squared pivot is rounding."""
    return RANK_TOLERANCE if dtype == torch.float64 else 1e-6


def factor(M: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """Put Cholesky factors into ``M``; return ``log det M`` and whether it is definite.

    The transpose of ``M``, contiguous (B, N, N), holds the factor, lower: so it lies in
    memory as LAPACK wants it.  Logarithms are summed in double precision.  A matrix is
    not definite where a squared pivot is at most ``tolerance`` times the diagonal.
    """
    smallest = tolerance * M.diagonal(dim1=-2, dim2=-1)
    info = torch.empty(M.shape[:-2], dtype=torch.int32, device=M.device)
    turned = M.mT
    torch.linalg.cholesky_ex(turned, out=(turned, info))
    pivots = M.diagonal(dim1=-2, dim2=-1)
    definite = (info == 0) & (pivots**2 > smallest).all(dim=-1)
    # The inverse of a matrix that is not definite is computed, and not used.
    pivots.masked_fill_(~(pivots > 0.0), 1.0)
    return 2.0 * torch.log(pivots).sum(dim=-1, dtype=torch.float64), definite


def invert(M: Tensor, spare: Tensor) -> None:
    """Turn what :func:`factor` left into the inverse, in its place.

    On a GPU by a product of triangular inverses: ``cholesky_inverse`` would wait there
    to see whether it failed.  ``spare`` has the shape of ``M`` and is overwritten.
    """
    if M.numel() == 0:
        return
    if M.device.type == "cpu":
        turned = M.mT
        torch.cholesky_inverse(turned, out=turned)
    else:
        _invert_by_product(M, spare)


def _invert_by_product(M: Tensor, spare: Tensor) -> None:
    spare.zero_().diagonal(dim1=-2, dim2=-1).fill_(1.0)
    _invert_triangles(M.mT, spare.mT)
    torch.bmm(spare, spare.mT, out=M)  # M⁻¹ = U Uᵀ with U upper


def _invert_triangles(lower: Tensor, out: Tensor) -> None:
    """Turn the identity ``out`` into the inverse of lower triangular matrices.

    By halves, so that all but the smallest are products: of 16 matrices of 1000 rows,
    one call of ``solve_triangular`` takes longer, or is waited for.
    """
    size = lower.shape[-1]
    if size <= _SOLVED:
        torch.linalg.solve_triangular(lower, out, upper=False, out=out)
        return
    half = size // 2 if size <= 2 * _SOLVED else -(-size // (2 * _SOLVED)) * _SOLVED
    first, second = slice(None, half), slice(half, None)
    for part in (first, second):
        _invert_triangles(lower[:, part, part], out[:, part, part])
    below = torch.bmm(lower[:, second, first], out[:, first, first])
    out[:, second, first].baddbmm_(out[:, second, second], below, beta=0.0, alpha=-1.0)


@contextmanager
def full_precision(X: Tensor) -> Iterator[None]:
    """Keep all digits in products of single precision on a GPU.

    Networks are often trained with fewer (``torch.set_float32_matmul_precision``);
    inverses are not to be had from them.
    """
    before = torch.get_float32_matmul_precision()
    if X.device.type == "cpu" or X.dtype != torch.float32 or before == "highest":
        yield
        return
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
