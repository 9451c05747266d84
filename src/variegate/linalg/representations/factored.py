"""A kernel held as a factor, ``L = B Bᵀ`` never formed.

``N`` may be a million where ``D``, the number of columns, is a few hundred at most:
everything takes ``O(N D²)`` time and ``O(N D)`` memory.
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np
from scipy.linalg import qr

from variegate._typing import FloatArray, IntArray
from variegate.linalg.cosine import chunks
from variegate.linalg.determinants import log_det_and_pivot
from variegate.linalg.limits import (
    COMPILED_LENGTHS,
    GRADED_ITEMS,
    MAX_MATRIX,
    RANK_TOLERANCE,
    TAME_TRACE,
)
from variegate.linalg.representations.base import Representation
from variegate.linalg.representations.graded import Graded
from variegate.linalg.spectrum import (
    Eigenvectors,
    canonicalize_basis,
    find_repeated_eigenvalues,
)
from variegate.linalg.volume import log_volume

#: A Cholesky factorisation of ``S_y`` is enough where no squared pivot is smaller.
_ENOUGH = 1e-8

#: Squared residuals of unit rows that are rounding.
_FLOOR = 1e-27

#: Squares below this may have lost digits to underflow.
_TINY = 1e-280

#: Rows that differ in length by more than exp(this) lose digits that matter, and so do
#: singular values of a smaller ratio than the second.
_WIDEST_FACTOR = 10.0
_NARROWEST_SPECTRUM = 1e-4

#: Squares of shorter rows underflow.
_SMALLEST_LOG_SCALE = -300.0

_ALL = slice(None)


class Factored(Representation):
    """The kernel ``L = B Bᵀ``, held as ``B`` with one row an item.

    ``B`` (N, D) is of single or double precision; all arithmetic is double.  Accurate
    relative to the longest row: items whose rows are shorter by more than the digits of
    a number are lost, which :meth:`choose_representation` detects.  ``S`` is the matrix
    of inner products of the rows scaled to unit length, ``log_scale`` the logarithms of
    their lengths, and ``K = L (L + I)⁻¹`` the marginal kernel.
    """

    def __init__(self, B: FloatArray) -> None:
        self.B = np.ascontiguousarray(B).view()
        self.B.flags.writeable = False
        if self.B.size >= COMPILED_LENGTHS:
            from variegate.linalg.compiled.pivoting import squared_lengths

            squared = squared_lengths(self.B)
        else:
            rows = self._float64_rows(_ALL)
            squared = np.einsum("ij,ij->i", rows, rows)
        if ((squared > _TINY) & (squared < np.inf)).all():
            norms: FloatArray = np.sqrt(squared)
        else:
            norms = self._norms_without_overflow()
        self.norms = np.where(norms > 0.0, norms, 1.0)
        self._possible = norms > 0.0
        self.log_scale = np.log(self.norms)

    def _norms_without_overflow(self) -> FloatArray:
        """Return the lengths (N,) of rows without overflow; refuse NaN and inf."""
        if not np.isfinite(self.B).all():
            raise ValueError("B holds NaN or infinite values")
        largest = np.abs(self.B).max(axis=1, initial=0.0)
        safe = np.where(largest > 0.0, largest, 1.0)
        norms = np.empty(len(self.B))
        for rows in chunks(len(self.B)):
            scaled = self._float64_rows(rows) / safe[rows, None]
            norms[rows] = np.sqrt(np.einsum("ij,ij->i", scaled, scaled)) * safe[rows]
        return norms

    def _float64_rows(self, which: slice | int | IntArray) -> FloatArray:
        """Return a row or some rows of ``B`` in double precision."""
        return np.asarray(self.B[which], dtype=np.float64)

    def diagonal(self) -> FloatArray:
        """Return the diagonal of ``S`` (N,): ones, and zeros for rows of zeros."""
        return self._possible.astype(np.float64)

    def column(self, item: int) -> FloatArray:
        """Return a column (N,) of ``S``."""
        column = np.empty(len(self.B))
        direction = self._float64_rows(item) / self.norms[item]
        for rows in chunks(len(self.B)):
            column[rows] = self._float64_rows(rows) @ direction
        return column / self.norms

    def submatrix(self, members: IntArray) -> FloatArray:
        """Return the rows and columns of ``S`` for the item numbers ``members``."""
        rows = self.unit_rows(members)
        return np.asarray(rows @ rows.T)

    def unit_rows(self, which: slice | IntArray = _ALL) -> FloatArray:
        """Return all or some rows (n, D), scaled to unit length."""
        return np.asarray(self.B[which] / self.norms[which, None])

    def choose_representation(self) -> Representation:
        """Return this kernel, or a ``Graded`` copy where digits would be lost.

        That is where rows differ widely in length, or singular values do.  Factors of
        more than ``GRADED_ITEMS`` rows are returned as they are; ValueError if their
        rows differ too widely.
        """
        scales = self.log_scale[self._possible]
        spread = float(np.ptp(scales)) if len(scales) else 0.0
        wide = spread > _WIDEST_FACTOR
        if len(self) > GRADED_ITEMS:
            if wide:
                raise ValueError(
                    f"the rows of B differ in length by a factor of exp({spread:.0f}), "
                    "too much to keep the digits of the shorter ones: drop the rows "
                    "that are negligible"
                )
            return self
        log_trace = 2.0 * self.log_scale.max(initial=0.0) + np.log(max(len(self), 1))
        tiny = self.log_scale.min(initial=0.0) < _SMALLEST_LOG_SCALE
        if not (wide or tiny or log_trace > np.log(TAME_TRACE)):
            singular, _ = self._singular_value_decomposition
            least = _NARROWEST_SPECTRUM * singular.max(initial=0.0)
            if not (singular < least).any():
                return self
        return Graded.of_factor(self.unit_rows(), self.log_scale)

    def log_det(self, members: IntArray) -> float:
        """Return ``log det L_y``, ``y`` the members: 0 if empty, -inf if singular."""
        if len(members) > min(self.B.shape):
            return -np.inf
        scale = 2.0 * float(self.log_scale[members].sum())
        if not self._possible[members].all():
            return -np.inf
        log_det, share = log_det_and_pivot(self.submatrix(members))
        if share >= _ENOUGH:
            return log_det + scale
        # Products of rows have lost digits that the rows themselves still have.
        floor = np.full(len(members), _FLOOR)
        return log_volume(self.unit_rows(members), floor) + scale

    @cached_property
    def _singular_value_decomposition(self) -> tuple[FloatArray, FloatArray]:
        """Return singular values (R,) of ``B``, and right vectors in rows (R, D)."""
        triangle = np.zeros((0, self.B.shape[1]))
        for rows in chunks(len(self.B)):
            triangle = qr(np.vstack([triangle, self._float64_rows(rows)]), mode="r")[0]
            triangle = triangle[: self.B.shape[1]]
        _, singular, right = np.linalg.svd(triangle)
        return singular, right[: len(singular)]

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Return singular values above rounding (M,), and right vectors (D, M).

        By QR a chunk at a time, then the SVD of the triangle: unlike by ``BᵀB``, no
        digit is lost to squaring.
        """
        singular, right = self._singular_value_decomposition
        share = max(self.B.shape) * np.finfo(np.float64).eps
        present = singular > share * singular.max(initial=0)
        return singular[present], right[present].T

    @cached_property
    def _left_singular_vectors(self) -> FloatArray:
        """Return the left singular vectors of ``B`` in rows (M, N): ``U = B V Σ⁻¹``."""
        singular, right = self._spectrum
        vectors = np.empty((len(singular), len(self.B)))
        for rows in chunks(len(self.B)):
            vectors[:, rows] = (self._float64_rows(rows) @ (right / singular)).T
        if len(self.B) > GRADED_ITEMS:
            return vectors
        return canonicalize_basis(vectors, find_repeated_eigenvalues(singular))

    @property
    def _keep_probability(self) -> FloatArray:
        """Return the eigenvalues of ``K`` (M,): ``σ² / (1 + σ²)``, ``σ`` those of B."""
        return np.asarray((self._spectrum[0] / np.hypot(1.0, self._spectrum[0])) ** 2)

    def log_normalizer(self) -> float:
        """Return ``log det(L + I)``."""
        return float(np.logaddexp(0.0, 2.0 * np.log(self._spectrum[0])).sum())

    def marginals(self) -> FloatArray:
        """Return the diagonal of ``K`` (N,)."""
        singular, right = self._spectrum
        root = right / np.hypot(1.0, singular)
        marginals = np.empty(len(self.B))
        for rows in chunks(len(self.B)):
            part = self._float64_rows(rows) @ root
            marginals[rows] = np.einsum("ij,ij->i", part, part)
        return np.clip(marginals, 0.0, 1.0)

    def marginal_kernel(self) -> FloatArray:
        """Return ``K`` (N, N); refuse more than ``MAX_MATRIX`` items."""
        refuse_large_matrix(len(self), "the marginal kernel")
        root = self._left_singular_vectors * np.sqrt(self._keep_probability)[:, None]
        return np.asarray(root.T @ root)

    @property
    def marginal_eigenpairs(self) -> tuple[FloatArray, Eigenvectors]:
        """Return the positive eigenvalues (M,) of ``K``, and eigenvectors (M, N)."""
        return self._keep_probability, Eigenvectors(self._left_singular_vectors)

    @property
    def eigenpairs(self) -> tuple[FloatArray, Eigenvectors]:
        """Return logarithms (M,) of positive eigenvalues of ``L``, and eigenvectors."""
        vectors = Eigenvectors(self._left_singular_vectors)
        return 2.0 * np.log(self._spectrum[0]), vectors

    def condition(self, included: IntArray, rest: IntArray) -> Self:
        """Return the kernel of items ``rest``, given that ``included`` are chosen."""
        # Rows less their projections on the span of the included rows.
        span, _ = np.linalg.qr(self.unit_rows(included).T)
        residual = self._float64_rows(rest)
        for _ in range(2):  # once more, to be orthogonal to rounding
            residual = residual - (residual @ span) @ span.T
        share = residual / self.norms[rest, None]
        left = np.einsum("ij,ij->i", share, share)
        residual[left <= RANK_TOLERANCE] = 0.0
        return type(self)(residual)


def refuse_large_matrix(n_items: int, what: str) -> None:
    """Refuse an N x N matrix of more than ``MAX_MATRIX`` items, and state its size.

    ``what`` begins the message, as "the marginal kernel".
    """
    if n_items > MAX_MATRIX:
        raise ValueError(
            f"{what} of {n_items} items would take {8e-9 * n_items**2:.0f} GB; "
            f"it is made for up to {MAX_MATRIX} items"
        )
