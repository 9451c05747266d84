"""A kernel at the edge of its rank, held as rows that settle the rank.

Where items are dependent, or nearly so, entries of ``S`` do not tell a determinant of
zero from a small one: rounding in them is as large as an item's residual.  With large
qualities that decides about probabilities.  So the rank is decided once, by a
factorisation ``S = F Fᵀ`` pivoted by quality, and then ``F`` *is* the kernel: the
normalizer, marginals, samples, log-probabilities and all decoders use its rows, and
agree on the possible subsets.
"""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np
from scipy.linalg import qr

from variegate._typing import FloatArray, IntArray
from variegate.linalg.determinants import normalizer_of_rows, pivoted_cholesky
from variegate.linalg.representations.base import Representation
from variegate.linalg.spectrum import (
    Eigenvectors,
    canonicalize_basis,
    find_repeated_eigenvalues,
    graded_eigenpairs,
)
from variegate.linalg.volume import log_volume, pivoted_rows, residual_rows

#: A set is impossible where its least squared residual is at most this: far above
#: rounding, and far below the residuals of pivots, so that little is given up.
_FLOOR_OF_MATRIX = 1e-22
_FLOOR_OF_ROWS = 1e-27

#: Rows of a factor are dependent up to this, squared, and surely so up to the second.
_DEPENDENT = 1e-18
_SURELY_DEPENDENT = 1e-27

#: The part given up of a row may change a ratio of probabilities by at most this.
_NEGLIGIBLE = 1e-9


class Graded(Representation):
    """The kernel ``L = diag(e^u) F Fᵀ diag(e^u)``, ``F`` the ``rows`` (N, R) of rank R.

    ``u`` is the ``log_scale`` (N,) and ``S = F Fᵀ``.  Rows have unit length or are
    zero.  Squared residuals of rows up to ``floor`` (N,) count as zero.  ``K`` is the
    marginal kernel ``L (L + I)⁻¹``.
    """

    def __init__(
        self, rows: FloatArray, log_scale: FloatArray, floor: FloatArray
    ) -> None:
        self.rows = np.ascontiguousarray(rows)
        self.log_scale = np.array(log_scale)
        self.floor = floor
        self.rows.flags.writeable = self.log_scale.flags.writeable = False

    @classmethod
    def of_similarity(cls, S: FloatArray, log_scale: FloatArray) -> Self:
        """Return the kernel of ``S`` (N, N), of unit diagonal, which is factored.

        Squared residuals up to 1e-12 are taken for rounding.
        """
        rows = pivoted_cholesky(S, log_scale)
        return cls(rows, log_scale, np.full(len(S), _FLOOR_OF_MATRIX))

    @classmethod
    def of_factor(cls, unit_rows: FloatArray, log_scale: FloatArray) -> Self:
        """Return the kernel of unit rows (N, D), rotated to R columns for a rank of R.

        Raise ValueError where rounding leaves the rank, and so probabilities, in doubt.
        """
        floor = np.full(len(unit_rows), _DEPENDENT)
        rows, lost = pivoted_rows(unit_rows, log_scale, floor)
        doubtful = (lost > _SURELY_DEPENDENT) & (
            np.log(np.maximum(lost, _SURELY_DEPENDENT)) + 2.0 * log_scale
            > np.log(_NEGLIGIBLE)
        )
        if doubtful.any():
            item = int(np.argmax(doubtful))
            raise ValueError(
                f"row {item} of B depends on others but for {np.sqrt(lost[item]):.1g} "
                "of its length: too little to be told from rounding, and too much to "
                "be neglected next to qualities as large as these. Drop the row, or "
                "bring the columns of B nearer to each other in size"
            )
        return cls(rows, log_scale, np.full(len(rows), _FLOOR_OF_ROWS))

    @classmethod
    def of_unit_rows(cls, unit_rows: FloatArray, log_scale: FloatArray) -> Self:
        """Return the kernel of unit rows (N, D), rotated to N columns if D > N."""
        if unit_rows.shape[1] > len(unit_rows):
            unit_rows = qr(unit_rows.T, mode="r")[0][: len(unit_rows)].T
        return cls(unit_rows, log_scale, np.full(len(unit_rows), _FLOOR_OF_ROWS))

    @property
    def rank(self) -> int:
        """Return the number of items of the largest subset of positive probability."""
        return int(self.rows.shape[1])

    def diagonal(self) -> FloatArray:
        """Return the diagonal of ``S`` (N,): ones, and zeros for rows of zeros."""
        return np.asarray((self.rows != 0.0).any(axis=1), dtype=np.float64)

    def column(self, item: int) -> FloatArray:
        """Return a column (N,) of ``S``."""
        return np.asarray(self.rows @ self.rows[item])

    def submatrix(self, members: IntArray) -> FloatArray:
        """Return the rows and columns of ``S`` for the item numbers ``members``."""
        return np.asarray(self.rows[members] @ self.rows[members].T)

    def log_det(self, members: IntArray) -> float:
        """Return ``log det L_y``, ``y`` the members: 0 if empty, -inf if singular."""
        if len(members) > self.rank:
            return -np.inf
        volume = log_volume(self.rows[members], self.floor[members])
        return volume + 2.0 * float(self.log_scale[members].sum())

    @cached_property
    def _normalizer_and_root(self) -> tuple[float, FloatArray]:
        """Return ``log det(L + I)`` and ``Q₁`` (N, R) with ``K = Q₁ Q₁ᵀ``."""
        return normalizer_of_rows(self.rows, self.log_scale)

    def log_normalizer(self) -> float:
        """Return ``log det(L + I)``."""
        return self._normalizer_and_root[0]

    def marginals(self) -> FloatArray:
        """Return the diagonal of ``K`` (N,)."""
        root = self._normalizer_and_root[1]
        return np.asarray(np.einsum("ij,ij->i", root, root).clip(0.0, 1.0))

    def marginal_kernel(self) -> FloatArray:
        """Return ``K`` (N, N)."""
        root = self._normalizer_and_root[1]
        return np.asarray(root @ root.T)

    @cached_property
    def marginal_eigenpairs(self) -> tuple[FloatArray, Eigenvectors]:
        """Return eigenvalues of ``K`` (R,), and their eigenvectors (R, N)."""
        left, singular, _ = np.linalg.svd(
            self._normalizer_and_root[1], full_matrices=False
        )
        probability = np.clip(singular**2, 0.0, 1.0)
        rows = np.ascontiguousarray(left.T)
        return probability, Eigenvectors(
            canonicalize_basis(rows, find_repeated_eigenvalues(probability))
        )

    @cached_property
    def eigenpairs(self) -> tuple[FloatArray, Eigenvectors]:
        """Return the logarithms (R,) of the eigenvalues of ``L``, and eigenvectors."""
        return graded_eigenpairs(self.rows, self.log_scale)

    def condition(self, included: IntArray, rest: IntArray) -> Self:
        """Return the kernel of items ``rest``, given that ``included`` are chosen."""
        left, noise = residual_rows(self.rows, included, rest)
        squared = np.einsum("ij,ij->i", left, left)
        floor = np.maximum(self.floor[rest], noise)
        gone = squared <= floor
        left[gone], squared[gone] = 0.0, 1.0
        length = np.sqrt(squared)
        log_scale = self.log_scale[rest] + np.log(length)
        floor = floor / squared
        rows, _ = pivoted_rows(left / length[:, None], log_scale, floor)
        return type(self)(rows, log_scale, floor)
