"""Cholesky factorisation and inverse of small positive definite matrices.

LAPACK is called once a matrix by NumPy's stacked routines, and for ten by ten matrices
the calls cost more than the arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit

# Sums may be taken in any order; nothing else of IEEE arithmetic is given up.
_FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_FAST)
def invert(
    M: Any, n: int, tolerance: float, work: Any, inverse: Any
) -> tuple[bool, float]:
    """Fill ``inverse`` (n, n) and return whether it exists, and ``log det M``.

    A squared pivot of no more than the share ``tolerance`` of its diagonal entry
    counts as zero.
    """
    log_det = 0.0
    for j in range(n):
        pivot = M[j, j]
        for k in range(j):
            pivot -= work[j, k] * work[j, k]
        if not pivot > tolerance * M[j, j]:
            return False, 0.0
        root = np.sqrt(pivot)
        work[j, j] = root
        log_det += 2.0 * np.log(root)
        for i in range(j + 1, n):
            entry = M[i, j]
            for k in range(j):
                entry -= work[i, k] * work[j, k]
            work[i, j] = entry / root
    for j in range(n):
        work[j, j] = 1.0 / work[j, j]
        for i in range(j + 1, n):
            entry = 0.0
            for k in range(j, i):
                entry -= work[i, k] * work[k, j]
            work[i, j] = entry / work[i, i]
    for i in range(n):
        for j in range(i + 1):
            entry = 0.0
            for k in range(i, n):
                entry += work[k, i] * work[k, j]
            inverse[i, j] = entry
            inverse[j, i] = entry
    return True, log_det
