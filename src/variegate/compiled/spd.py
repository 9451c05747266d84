"""Cholesky factorisation and inverse of many small positive definite matrices.

LAPACK is called once a matrix by NumPy's stacked routines, and for ten by ten matrices
the calls cost more than the arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def invert_stack(M: Any, tolerance: float, log_det: Any, inverse: Any) -> int:
    """Fill ``log_det`` (B,) and ``inverse`` (B, N, N) from ``M`` (B, N, N).

    Returns the place of the first matrix with a squared pivot of no more than the
    share ``tolerance`` of its diagonal entry, or -1.
    """
    n_matrices, n = M.shape[0], M.shape[1]
    factor = np.empty((n, n))
    for b in range(n_matrices):
        # M = R Rᵀ with R lower triangular.
        total = 0.0
        for j in range(n):
            pivot = M[b, j, j]
            for k in range(j):
                pivot -= factor[j, k] * factor[j, k]
            if not pivot > tolerance * M[b, j, j]:
                return b
            root = np.sqrt(pivot)
            factor[j, j] = root
            total += np.log(root)
            for i in range(j + 1, n):
                entry = M[b, i, j]
                for k in range(j):
                    entry -= factor[i, k] * factor[j, k]
                factor[i, j] = entry / root
        log_det[b] = 2.0 * total
        # R⁻¹ in place, column by column.
        for j in range(n):
            factor[j, j] = 1.0 / factor[j, j]
            for i in range(j + 1, n):
                entry = 0.0
                for k in range(j, i):
                    entry -= factor[i, k] * factor[k, j]
                factor[i, j] = entry / factor[i, i]
        # M⁻¹ = R⁻ᵀ R⁻¹, one triangle computed and mirrored.
        for i in range(n):
            for j in range(i + 1):
                entry = 0.0
                for k in range(i, n):
                    entry += factor[k, i] * factor[k, j]
                inverse[b, i, j] = entry
                inverse[b, j, i] = entry
    return -1
