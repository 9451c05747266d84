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

    ``matrix`` (N, N) is positive semidefinite; ``log_quality`` (N,) is ``u``.  Methods
    are described in :class:`Representation`; ``K`` is the marginal kernel.
    """

    def __init__(
        self, matrix: FloatArray, log_quality: FloatArray | float = 0.0
    ) -> None:
        self.S, scale = split_scale(matrix)
        self.log_scale = scale + log_quality
        self.S.flags.writeable = self.log_scale.flags.writeable = False

    @cached_property
    def conditioning(self) -> tuple[float, float]:
        """Return ``S``'s smallest squared pivot and 1 / condition, or 0 and 0."""
        return conditioning_of_correlation(self.S)

    def choose_representation(self) -> Representation:
        """Return the kernel itself, or as ``Graded`` if singular to rounding."""
        if len(self) > RANKED_ITEMS:
            return self
        pivot, reciprocal_condition = self.conditioning
        if pivot < _EDGE_OF_PIVOTS or reciprocal_condition < _EDGE_OF_CONDITION:
            return Graded.of_similarity(self.S, self.log_scale)
        return self

    def diagonal(self) -> FloatArray:
        return np.diagonal(self.S)

    def column(self, item: int) -> FloatArray:
        return self.S[:, item]

    def submatrix(self, members: IntArray) -> FloatArray:
        return self.S[np.ix_(members, members)]

    @cached_property
    def _normalizer_and_kernel(self) -> tuple[float, FloatArray]:
        """Return ``log det(L + I)`` and ``K``."""
        return normalizer_and_marginal_kernel(self.S, self.log_scale)

    def log_normalizer(self) -> float:
        return self._normalizer_and_kernel[0]

    def marginals(self) -> FloatArray:
        return np.diagonal(self._normalizer_and_kernel[1]).copy()

    def marginal_kernel(self) -> FloatArray:
        return self._normalizer_and_kernel[1].copy()

    @cached_property
    def marginal_eigenpairs(self) -> tuple[FloatArray, Eigenvectors]:
        """Return the eigenpairs of ``K``, from ``L``'s where that is safe and fast."""
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
        return eigenpairs(self.S, self.log_scale)

    def condition(self, included: IntArray, rest: IntArray) -> Self:
        """Return the kernel of ``rest``, by the Schur complement of ``S``."""
        residual = schur_complement(self.S, included, rest)
        return type(self)(residual, self.log_scale[rest])
