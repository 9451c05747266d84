"""Eigenvectors of repeated eigenvalues, fixed by their span alone.

Where an eigenvalue is repeated, any basis of its space is as good as another, and which
one LAPACK finds hangs on the order in which it adds numbers: on the number of threads.
A sampler that keeps some of the vectors would then draw other sets from the same seed.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from variegate._typing import FloatArray

#: Eigenvalues that differ by no more than this share are repeated.
_SAME = 1e-9

#: Eigenvalues up to this share of the largest are rounding, and never kept.
_NOTHING = 1e-13

#: By how much the first item is preferred to the last among equals.
_PREFERENCE = 1e-3


def repeated_spaces(values: FloatArray) -> list[slice]:
    """Return where eigenvalues, in either order, are repeated."""
    largest = float(values.max(initial=0.0))
    present = values > _NOTHING * largest
    close = np.abs(np.diff(values)) <= _SAME * np.maximum(values[1:], values[:-1])
    close &= present[1:] & present[:-1]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], close, [False]])))
    return [slice(a, b + 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def fix_basis(rows: FloatArray, spaces: list[slice]) -> FloatArray:
    """Return orthonormal rows with a basis for each space that its span determines.

    By a pivoted QR factorisation: the first vector is the only one that has a part in
    the first pivot, the second the only other one with a part in the second, and so on.
    Pivots are items with most left of them; equals are told apart by a small preference
    for the smaller number.
    """
    if not spaces:
        return rows
    rows = rows.copy()
    weight = 1.0 - _PREFERENCE * np.arange(rows.shape[1]) / rows.shape[1]
    for space in spaces:
        triangle, order = qr(rows[space] * weight, mode="r", pivoting=True)
        basis = np.empty_like(triangle)
        basis[:, order] = triangle
        rows[space] = basis / weight
    return rows
