"""Exact sampling from the marginal kernel, item after item (Poulson, 2020).

Each item in turn is taken with its probability given the decisions before: the pivot of
an elimination of ``K``, less one where the item is left out.  That is ``O(N³)`` a
sample, nearly all of it products of matrices: for samples of many items faster than by
eigenvectors.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from variegate._typing import BoolArray, FloatArray

#: Items that are decided before the others are updated.
_BLOCK = 64


def sample_sequential(
    K: FloatArray, n_samples: int, generator: np.random.Generator
) -> BoolArray:
    """Draw boolean subsets (n_samples, N) of the process with marginal kernel ``K``."""
    uniform = generator.random((n_samples, len(K)))
    chosen = np.empty((n_samples, len(K)), dtype=bool)
    for row in range(n_samples):
        _decide_items(K.copy(), uniform[row], chosen[row])
    return chosen


def _decide_items(A: FloatArray, uniform: FloatArray, chosen: BoolArray) -> None:
    """Fill ``chosen`` (N,) with one sample, by one random number an item, ``uniform``.

    ``A`` (N, N) is ``K`` at first, and overwritten.
    """
    for begin in range(0, len(A), _BLOCK):
        end = min(begin + _BLOCK, len(A))
        block = A[begin:end, begin:end]
        _decide_block(block, uniform[begin:end], chosen[begin:end])
        if end < len(A):
            beside = solve_triangular(
                block,
                A[begin:end, end:],
                lower=True,
                unit_diagonal=True,
                check_finite=False,
            )
            pivots = np.diagonal(block)[:, None]
            A[end:, end:] -= (beside / pivots).T @ beside


def _decide_block(A: FloatArray, uniform: FloatArray, chosen: BoolArray) -> None:
    """Fill ``chosen`` (n,) for a block of items, and factor ``A`` (n, n) in place.

    An item is chosen if its random number is below its pivot, which is then less one
    if it is not chosen.  ``A`` holds the pivots on its diagonal, below it the unit
    lower factor ``T`` of ``T diag(pivots) Tᵀ``.
    """
    for i in range(len(A)):
        chosen[i] = uniform[i] < A[i, i]
        if not chosen[i]:
            A[i, i] -= 1.0
        row = A[i, i + 1 :].copy()
        A[i + 1 :, i] = row / A[i, i]
        A[i + 1 :, i + 1 :] -= np.outer(A[i + 1 :, i], row)
