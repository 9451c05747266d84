"""Positive semidefiniteness: the test, and the repair that must be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from variegate._typing import FloatArray
from variegate._validation import check_real
from variegate.linalg.determinants import add_to_diagonal, split_scale

#: Entries that differ by less than this share of the largest are taken as equal.
_ASYMMETRY = 1e-8

#: With a unit diagonal, an eigenvalue no further below zero is rounding error.
_ROUNDING = 1e-10


class SimilarityRepairWarning(UserWarning):
    """A similarity was not positive semidefinite and has been changed, as asked."""


@dataclass(frozen=True)
class Repair:
    """The result of :func:`~variegate.nearest_psd`.

    Attributes
    ----------
    matrix : the nearest positive semidefinite matrix
    smallest_eigenvalue : of the original
    n_negative : number of eigenvalues that were set to zero
    relative_change : Frobenius norm of the change over that of the original
    """

    matrix: FloatArray
    smallest_eigenvalue: float
    n_negative: int
    relative_change: float


def nearest_psd(S: FloatArray) -> Repair:
    """Return the positive semidefinite matrix nearest to ``S``, as a ``Repair``.

    In Frobenius norm: eigenvalues below zero are set to zero (Higham, 1988).
    """
    S = check_symmetric(S, "S")
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


class NotSemidefiniteError(ValueError):
    """A matrix has an eigenvalue below zero."""


def check_symmetric(matrix: Any, name: str) -> FloatArray:
    """Return a float64 copy of a matrix, made exactly symmetric.

    ValueError, which calls the matrix ``name``, unless it is real, square, finite, and
    symmetric to rounding.
    """
    check_real(name, matrix)
    M = np.array(matrix, dtype=np.float64)
    if M.ndim != 2 or M.shape[0] != M.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {M.shape}")
    if not np.isfinite(M).all():
        raise ValueError(f"{name} holds NaN or infinite values")
    if np.array_equal(M, M.T):
        return M
    asymmetry = float(np.abs(M - M.T).max(initial=0.0))
    if asymmetry > _ASYMMETRY * float(np.abs(M).max(initial=0.0)):
        raise ValueError(
            f"{name} is not symmetric: it differs from its transpose by "
            f"{asymmetry:.3g}; use ({name} + {name}.T) / 2 if that is what you mean"
        )
    return M / 2.0 + M.T / 2.0


def check_semidefinite(M: FloatArray, name: str) -> None:
    """Refuse a symmetric matrix with an eigenvalue below zero, and say how far below.

    The matrix, ``name`` in messages, is judged with its diagonal scaled to one, so that
    large entries do not hide a defect among small ones.
    """
    diagonal = np.diagonal(M)
    if (diagonal < 0).any():
        item = int(np.argmin(diagonal))
        raise NotSemidefiniteError(
            f"{name} is not positive semidefinite: {name}[{item}, {item}] is "
            f"{diagonal[item]:.3g}"
        )
    scaled, _ = split_scale(M)
    add_to_diagonal(scaled, _ROUNDING)
    # A Cholesky factorisation is several times cheaper than the eigenvalues; the
    # transpose is in LAPACK's order already, so nothing is copied.
    _, info = lapack.dpotrf(scaled.T, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        smallest = float(np.linalg.eigvalsh(split_scale(M)[0])[0])
        if smallest < -_ROUNDING:
            raise NotSemidefiniteError(
                f"{name} is not positive semidefinite: with its diagonal scaled to "
                f"one, its smallest eigenvalue is {smallest:.3g}"
            )
