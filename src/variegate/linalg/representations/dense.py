"""A kernel held as a matrix."""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.linalg.determinants import (
    conditioning_of_correlation,
    normalizer_and_marginal_kernel,
    schur_complement,
    split_scale,
)
from variegate.linalg.limits import RANKED_ITEMS, TAME_TRACE
from variegate.linalg.representations.base import Representation
from variegate.linalg.representations.graded import Graded
from variegate.linalg.spectrum import (
    NARROW,
    Eigenvectors,
    eigenpairs,
    symmetric_eigenpairs,
)

#: A matrix is at the edge of its rank where a squared pivot, as a share of the
#: diagonal, or one over its condition number is below these: rounding then matters.
_EDGE_OF_PIVOTS = 1e-8
_EDGE_OF_CONDITION = 1e-9


class Dense(Representation):
    """The kernel ``diag(exp u) matrix diag(exp u)``, held as ``S`` and ``log_scale``.

    ``matrix`` (N, N) is positive semidefinite, ``u`` is ``log_quality`` (N,).  ``S``
    has a unit diagonal, the kernel is ``L = diag(exp log_scale) S diag(exp log_scale)``
    and ``K`` the marginal kernel ``L (L + I)⁻¹``.
    """

    def __init__(
        self, matrix: FloatArray, log_quality: FloatArray | float = 0.0
    ) -> None:
        self.S, scale = split_scale(matrix)
        self.log_scale = scale + log_quality
        self.S.flags.writeable = self.log_scale.flags.writeable = False

    @cached_property
    def conditioning(self) -> tuple[float, float]:
        """Return ``S``'s smallest squared pivot and 1 / condition, 0, 0 if singular."""
        return conditioning_of_correlation(self.S)

    def choose_representation(self) -> Representation:
        """Return this kernel, or a ``Graded`` one if small and nearly singular."""
        if len(self) > RANKED_ITEMS:
            return self
        pivot, reciprocal_condition = self.conditioning
        if pivot < _EDGE_OF_PIVOTS or reciprocal_condition < _EDGE_OF_CONDITION:
            return Graded.of_similarity(self.S, self.log_scale)
        return self

    def diagonal(self) -> FloatArray:
        """Return the diagonal of ``S`` (N,): ones, and zeros for impossible items."""
        return np.diagonal(self.S)

    def column(self, item: int) -> FloatArray:
        """Return a column (N,) of ``S``."""
        return self.S[:, item]

    def submatrix(self, members: IntArray) -> FloatArray:
        """Return the rows and columns of ``S`` for the item numbers ``members``."""
        return self.S[np.ix_(members, members)]

    @cached_property
    def _normalizer_and_kernel(self) -> tuple[float, FloatArray]:
        """Return ``log det(L + I)`` and ``K`` (N, N)."""
        return normalizer_and_marginal_kernel(self.S, self.log_scale)

    def log_normalizer(self) -> float:
        """Return ``log det(L + I)``."""
        return self._normalizer_and_kernel[0]

    def marginals(self) -> FloatArray:
        """Return the diagonal of ``K`` (N,)."""
        return np.diagonal(self._normalizer_and_kernel[1]).copy()

    def marginal_kernel(self) -> FloatArray:
        """Return ``K`` (N, N)."""
        return self._normalizer_and_kernel[1].copy()

    @cached_property
    def marginal_eigenpairs(self) -> tuple[FloatArray, Eigenvectors]:
        """Return the eigenvalues (M,) and eigenvectors (M, N) of ``K``."""
        # Rounding in the eigenvalues of a tame L is then also rounding in K.  Where
        # qualities spread, they take five times as long, for digits beyond those of K.
        trace = float(np.exp(2.0 * np.minimum(self.log_scale, 300.0)).sum())
        u = self.log_scale
        spread = float(u.max(initial=-np.inf) - u.min(initial=np.inf))
        if trace <= TAME_TRACE and spread <= NARROW:
            log_values, vectors = self.eigenpairs
            values = np.exp(log_values)
            return values / (1.0 + values), vectors
        values, vectors = symmetric_eigenpairs(self.marginal_kernel())
        return np.clip(values, 0.0, 1.0), vectors

    @cached_property
    def eigenpairs(self) -> tuple[FloatArray, Eigenvectors]:
        """Return the logarithms (M,) of the eigenvalues of ``L``, and eigenvectors."""
        return eigenpairs(self.S, self.log_scale)

    def condition(self, included: IntArray, rest: IntArray) -> Self:
        """Return the kernel of items ``rest``, given that ``included`` are chosen."""
        residual = schur_complement(self.S, included, rest)
        return type(self)(residual, self.log_scale[rest])
