"""Pivoted Cholesky factorisation of a graded, perhaps singular kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit


@njit(cache=True, nogil=True)
def pivoted_cholesky(
    S: Any, log_scale: Any, tolerance: float, rounding: float, factor: Any
) -> int:
    """Fill ``factor`` (N, N) and return its number of columns.

    See :func:`variegate.linalg.determinants.pivoted_cholesky`; ``rounding`` is that of
    an entry of ``S``.
    """
    n = S.shape[0]
    residual = np.empty(n)
    weights = np.empty((n, n))  # each entry is written before it is read
    for i in range(n):
        residual[i] = S[i, i]
    for rank in range(n):
        pivot, best = -1, -np.inf
        for i in range(n):
            if residual[i] > tolerance:
                value = np.log(residual[i]) + 2.0 * log_scale[i]
                if value > best:
                    pivot, best = i, value
        if pivot < 0:
            return int(rank)
        root = np.sqrt(residual[pivot])
        for i in range(n):
            # Zero from the start, or explained by the pivots so far.
            if residual[i] <= tolerance:
                factor[i, rank] = 0.0
                continue
            entry = S[i, pivot]
            for k in range(rank):
                entry -= factor[i, k] * factor[pivot, k]
            factor[i, rank] = entry / root
            residual[i] -= factor[i, rank] * factor[i, rank]
            if i == pivot:
                continue
            share = factor[i, rank] / root
            total = 1.0 + abs(share)
            for k in range(rank):
                weights[i, k] -= share * weights[pivot, k]
                total += abs(weights[i, k])
            weights[i, rank] = share
            if residual[i] <= max(tolerance, rounding * total * total):
                residual[i] = 0.0
        residual[pivot] = 0.0
    return int(n)
