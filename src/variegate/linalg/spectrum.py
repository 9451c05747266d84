"""Eigenpairs of L-ensembles, with eigenvectors that are computed on demand.

The basis that LAPACK finds for a repeated eigenvalue depends on the order in which it
adds numbers, and so on the number of threads.  A sampler that keeps some of the vectors
would then draw other sets from the same seed: the basis is fixed by its span alone.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh, lapack, qr

from variegate._typing import FloatArray, IntArray
from variegate.linalg.determinants import pivoted_cholesky

#: Eigenvalues that differ by no more than this share are repeated.
_SAME = 1e-9

#: Eigenvalues up to this share of the largest are rounding, and never kept.
_NOTHING = 1e-13

#: By how much the first item is preferred to the last among equals.
_PREFERENCE = 1e-3


def find_repeated_eigenvalues(values: FloatArray) -> list[slice]:
    """Return a slice of ``values`` (M,), sorted either way, for each repeated value.

    Values are repeated if they are equal up to rounding; zeros, up to rounding, are
    left out.
    """
    largest = float(values.max(initial=0.0))
    present = values > _NOTHING * largest
    close = np.abs(np.diff(values)) <= _SAME * np.maximum(values[1:], values[:-1])
    close &= present[1:] & present[:-1]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], close, [False]])))
    return [slice(a, b + 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def canonicalize_basis(rows: FloatArray, spaces: list[slice]) -> FloatArray:
    """Return orthonormal rows (M, N), each space with a basis that its span determines.

    Each of ``spaces`` is a slice of rows that span one space, as those of a repeated
    eigenvalue; other rows stay.  The new basis is triangular in pivot columns: row
    ``j`` of a space is zero in the pivots of the rows before it.  The pivots are those
    of a QR factorisation, with a small preference for smaller columns to break ties.
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


#: The largest spread of log-qualities at which eigenvalues of ``L`` are as well
#: conditioned as those of ``S``, but for a few digits.
NARROW = 4.0

#: LAPACK's dgejsv, asked to expect rows of widely different length.
_GRADED_ROWS = 2

#: Up to this size there is nothing to gain by leaving eigenvectors for later.
_SMALL = 100

#: SciPy 1.15 has no dstevd: all eigenvectors are finished at once.
_HAS_DSTEVD = hasattr(lapack, "dstevd")

#: The share of eigenvectors asked for one by one after which all are finished.
_FEW = 0.125


class Eigenvectors:
    """Orthonormal vectors in rows, (M, N).

    They may be ``unfinished``: the eigenvectors of the tridiagonal matrix that a
    symmetric one was reduced to, (N, N) in columns, with the reflectors and factors of
    LAPACK's dsytrd for the lower triangle.  Their back-transformation is the most
    expensive step of an eigendecomposition, and one sample takes a handful of vectors.
    When many have been selected, all are transformed in one product.
    """

    def __init__(
        self,
        rows: FloatArray | None,
        unfinished: tuple[FloatArray, FloatArray, FloatArray] | None = None,
    ) -> None:
        self._rows, self._unfinished, self._n_asked = rows, unfinished, 0
        found = rows if unfinished is None else unfinished[0]
        assert found is not None
        self.shape = found.shape

    def _back_transform(self, which: IntArray | slice) -> FloatArray:
        """Return finished eigenvectors, in rows, for the indices ``which``."""
        unfinished = self._unfinished
        if unfinished is None:  # another thread has just finished them
            return self.all()[which]
        vectors, reflectors, factors = unfinished
        columns = vectors[:, which]
        lower = np.asfortranarray(columns[1:])
        lwork = 64 * max(1, lower.shape[1])
        turned, _, info = lapack.dormqr(
            "L", "N", reflectors[1:, :-1], factors, lower, lwork, overwrite_c=1
        )
        if info != 0:
            raise np.linalg.LinAlgError("the eigenvectors could not be turned back")
        rows = np.empty((columns.shape[1], len(columns)))
        rows[:, 0] = columns[0]
        rows[:, 1:] = turned.T
        return rows

    def all(self) -> FloatArray:
        """Return all eigenvectors, in rows (M, N)."""
        if self._rows is None:
            # Threads that arrive together do the same work twice, which is right.
            self._rows = self._back_transform(slice(None))
            self._unfinished = None
        return self._rows

    def select(self, wanted: IntArray) -> tuple[FloatArray, IntArray]:
        """Return a matrix with the wanted vectors among its rows, and where they are.

        ``wanted`` (T,) are numbers of vectors, also repeated; entry ``t`` of the second
        result (T,) is the row of the matrix that holds vector ``wanted[t]``.
        """
        if self._rows is None:
            distinct, where = np.unique(wanted, return_inverse=True)
            self._n_asked += len(distinct)
            if self._n_asked <= _FEW * self.shape[0]:
                return self._back_transform(distinct), where
        return self.all(), wanted


def symmetric_eigenpairs(A: FloatArray) -> tuple[FloatArray, Eigenvectors]:
    """Return the eigenvalues (N,), ascending, and eigenvectors of a symmetric matrix.

    ``A`` (N, N) may be overwritten.
    """
    if len(A) <= _SMALL or not _HAS_DSTEVD:
        values, vectors = eigh(A, driver="evd", check_finite=False)
        rows = np.ascontiguousarray(vectors.T)
        return values, Eigenvectors(
            canonicalize_basis(rows, find_repeated_eigenvalues(values))
        )
    lwork, _ = lapack.dsytrd_lwork(len(A), lower=1)
    # The transpose is in LAPACK's order already, so nothing is copied.
    reflectors, diagonal, beside, factors, info = lapack.dsytrd(
        A.T, lower=1, lwork=int(lwork), overwrite_a=1
    )
    if info == 0:
        values, vectors, info = lapack.dstevd(diagonal, beside, compute_v=1)
    if info != 0:
        raise np.linalg.LinAlgError("the eigenvalues did not converge")
    unfinished = Eigenvectors(None, (vectors, reflectors, factors))
    spaces = find_repeated_eigenvalues(values)
    if spaces:
        return values, Eigenvectors(canonicalize_basis(unfinished.all(), spaces))
    return values, unfinished


def eigenpairs(S: FloatArray, log_scale: FloatArray) -> tuple[FloatArray, Eigenvectors]:
    """Return logarithms (M,) of the eigenvalues of ``L``, and its eigenvectors.

    ``L = diag(exp u) S diag(exp u)``, ``u = log_scale``, and ``S`` has a unit diagonal.
    Eigenvalues that are zero to rounding have the logarithm -inf, or are left out; the
    order ascends or descends, by the method.

    The usual method is accurate relative to the largest eigenvalue only.  Where the
    qualities spread widely, ``L = G Gᵀ`` by pivoted Cholesky and the singular values
    of ``G`` by Jacobi's method, which finds each to nearly all of its digits (Demmel
    and Veselić, 1992).
    """
    if len(S) == 0:
        return np.zeros(0), Eigenvectors(S)
    top = float(log_scale.max())
    if top - float(log_scale.min()) > NARROW:
        return graded_eigenpairs(pivoted_cholesky(S, log_scale), log_scale)
    scale = np.exp(log_scale - top)
    L = scale[:, None] * S
    L *= scale
    values, vectors = symmetric_eigenpairs(L)
    rounding = len(S) * np.finfo(np.float64).eps * values[-1]
    with np.errstate(divide="ignore"):
        return np.log(np.where(values > rounding, values, 0.0)) + 2.0 * top, vectors


def graded_eigenpairs(
    F: FloatArray, log_scale: FloatArray
) -> tuple[FloatArray, Eigenvectors]:
    """Return the log-eigenvalues (R,), descending, and eigenvectors of ``L``.

    ``L = diag(exp u) F Fᵀ diag(exp u)`` with ``F`` (N, R) and ``u = log_scale`` (N,).
    By Jacobi's method: accurate however widely qualities spread.
    """
    if F.shape[1] == 0:
        return np.zeros(0), Eigenvectors(np.zeros((0, len(F))))
    top = float(log_scale.max())
    singular, left, _, scaling, _, info = lapack.dgejsv(
        np.exp(log_scale - top)[:, None] * F, joba=_GRADED_ROWS
    )
    if info != 0:
        raise np.linalg.LinAlgError("the singular values did not converge")
    with np.errstate(divide="ignore"):
        log_values = 2.0 * np.log(singular * scaling[0] / scaling[1])
    rows = np.ascontiguousarray(left.T)
    rows = canonicalize_basis(
        rows, find_repeated_eigenvalues(np.exp(log_values - log_values.max()))
    )
    return log_values + 2.0 * top, Eigenvectors(rows)
