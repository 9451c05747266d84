"""Sums over the rows of a matrix of any precision, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit


# Sums may be reordered, which is what lets the processor add several at a time.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def squared_lengths(B: Any) -> Any:
    """Return the squared lengths of the rows of ``B``, reading it once."""
    squared = np.empty(len(B))
    for i in range(len(B)):
        total = 0.0
        for j in range(B.shape[1]):
            x = np.float64(B[i, j])
            total += x * x
        squared[i] = total
    return squared
