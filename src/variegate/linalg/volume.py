"""Volumes spanned by rows that are dependent, or nearly so."""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray

__all__ = ["log_volume"]


def log_volume(rows: FloatArray, floor: FloatArray) -> float:
    """Return ``log det F Fᵀ``, -inf where a pivoted residual is within ``floor``.

    Pivoted, so that whether a set is possible does not depend on the order of its
    items; by residuals of the rows, which keep digits that products of them lose.  The
    twin of :func:`variegate.compiled.graded.log_volume`.

    Parameters
    ----------
    rows : array of shape (k, R), of unit length or zero
    floor : array of shape (k,)
        Squared residuals up to this are zero.
    """
    left, floor, total = rows.copy(), floor.copy(), 0.0
    for end in range(len(rows), 0, -1):
        squared = np.einsum("ij,ij->i", left[:end], left[:end])
        pivot = int(np.argmax(squared))
        if not squared[pivot] > floor[pivot]:
            return -np.inf
        total += float(np.log(squared[pivot]))
        direction = left[pivot] / np.sqrt(squared[pivot])
        left[pivot], floor[pivot] = left[end - 1], floor[end - 1]
        rest = left[: end - 1]
        for _ in range(2):  # once more, to be orthogonal to rounding
            rest -= np.einsum("ij,j->i", rest, direction)[:, None] * direction
    return total
