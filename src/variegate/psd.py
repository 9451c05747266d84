"""Positive semidefiniteness: the test, and the repair that must be asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate._typing import FloatArray

__all__ = [
    "Repair",
    "SimilarityRepairWarning",
    "nearest_psd",
    "smallest_eigenvalue_if_negative",
]

#: An eigenvalue this far below zero, relative to the largest, is rounding error.
_ROUNDING = 1e-10


class SimilarityRepairWarning(UserWarning):
    """A similarity was not positive semidefinite and has been changed, as asked."""


@dataclass(frozen=True)
class Repair:
    """What :func:`nearest_psd` did.

    Attributes
    ----------
    matrix : the nearest positive semidefinite matrix
    smallest_eigenvalue : of the original
    n_negative : how many eigenvalues were set to zero
    relative_change : Frobenius norm of the change over that of the original
    """

    matrix: FloatArray
    smallest_eigenvalue: float
    n_negative: int
    relative_change: float


def nearest_psd(S: FloatArray) -> Repair:
    """Return the positive semidefinite matrix nearest to ``S`` in Frobenius norm.

    Eigenvalues below zero are set to zero (Higham, 1988).
    """
    values, vectors = np.linalg.eigh(S)
    clipped = np.maximum(values, 0.0)
    matrix = (vectors * clipped) @ vectors.T
    matrix = (matrix + matrix.T) / 2.0
    norm = np.linalg.norm(values)
    return Repair(
        matrix=matrix,
        smallest_eigenvalue=float(values[0]),
        n_negative=int(np.sum(values < 0)),
        relative_change=float(np.linalg.norm(clipped - values) / norm) if norm else 0.0,
    )


def smallest_eigenvalue_if_negative(S: FloatArray) -> float | None:
    """Return the smallest eigenvalue of ``S`` if it is below zero beyond rounding."""
    scale = float(np.abs(np.diagonal(S)).max(initial=0.0))
    shifted = S + np.eye(len(S)) * (_ROUNDING * scale + np.finfo(float).tiny)
    try:
        # A Cholesky factorisation is several times cheaper than the eigenvalues.
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        values = np.linalg.eigvalsh(S)
        if values[0] < -_ROUNDING * max(scale, float(values[-1])):
            return float(values[0])
    return None
