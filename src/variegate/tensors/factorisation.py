"""Cholesky factors and inverses of batches, in place, without waiting for a GPU."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from variegate.linalg.tolerances import DOUBTFUL_PIVOT, RANK_TOLERANCE

__all__ = [
    "doubtful_pivot",
    "factor",
    "full_precision",
    "invert",
    "rank_tolerance",
    "symmetric_product",
]

#: From so many rows on, products of matrices are cut into so many parts.
_LARGE, _PARTS = 500, 8

#: Triangular matrices of up to so many rows are solved, not halved.
_SOLVED = 64


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

    The transpose of ``M`` holds the factor, lower: so it lies in memory as LAPACK
    wants it.  Logarithms are summed in double precision.

    Parameters
    ----------
    M : contiguous (B, N, N)
        Only one triangle of it is read.
    tolerance : float
        A matrix is not definite when a squared pivot is no more than this share of the
        diagonal entry.
    """
    smallest = tolerance * M.diagonal(dim1=-2, dim2=-1)
    info = torch.empty(M.shape[:-2], dtype=torch.int32, device=M.device)
    turned = M.mT
    torch.linalg.cholesky_ex(turned, out=(turned, info))
    pivots = M.diagonal(dim1=-2, dim2=-1)
    definite = (info == 0) & (pivots**2 > smallest).all(dim=-1)
    # Of a matrix that is not, something is inverted that nobody uses.
    pivots.masked_fill_(~(pivots > 0.0), 1.0)
    return 2.0 * torch.log(pivots).sum(dim=-1, dtype=torch.float64), definite


def invert(M: Tensor, spare: Tensor) -> None:
    """Turn what :func:`factor` left into the inverse, in its place.

    On a GPU by a product of triangular inverses: ``cholesky_inverse`` would wait there
    to see whether it failed.

    Parameters
    ----------
    M, spare : contiguous (B, N, N)
        What is in ``spare`` is lost.
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
    # M⁻¹ = U Uᵀ with U upper: rows and columns up to the end of a block need only what
    # of U lies right of them.
    blocks = _blocks(M.shape[-1])
    if len(blocks) == 1:
        torch.bmm(spare, spare.mT, out=M)
        return
    M.zero_()
    for start, end in blocks:
        part = spare[:, :end, start:end]
        M[:, :end, :end].baddbmm_(part, part.mT)


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


def symmetric_product(added: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return ``added + left right``, which is known to be symmetric.

    Of large matrices only the blocks at and below the diagonal are computed.
    """
    blocks = _blocks(left.shape[-1])
    if len(blocks) == 1:
        return torch.baddbmm(added, left, right)
    out = torch.empty_like(added)
    for start, end in blocks:
        below = out[:, start:end, :end]
        below.copy_(added[:, start:end, :end])
        below.baddbmm_(left[:, start:end], right[:, :, :end])
        out[:, :start, start:end] = below[:, :, :start].mT
    return out


def _blocks(size: int) -> list[tuple[int, int]]:
    """Cut the rows of a matrix where that pays: where products take the time."""
    if size < _LARGE:
        return [(0, size)]
    ends = [size * part // _PARTS for part in range(_PARTS + 1)]
    return list(itertools.pairwise(ends))


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
