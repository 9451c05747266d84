"""The interface of all representations of a kernel.

The kernel is ``L = diag(e^u) S diag(e^u)`` with a unit diagonal in ``S`` (zero for an
item that can never be chosen) and ``u`` the ``log_scale``.  Nothing asks for ``L``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.linalg.determinants import log_det_and_pivot
from variegate.linalg.limits import RANK_TOLERANCE
from variegate.linalg.spectrum import Eigenvectors


class Representation(ABC):
    """A positive semidefinite kernel over ``N`` items, with ``K = L (L + I)⁻¹``."""

    log_scale: FloatArray

    def choose_representation(self) -> Representation:
        """Return the representation to use from now on: this one, or a ``Graded`` one.

        ``Graded`` is for a kernel that is singular, or nearly so: its rows settle the
        rank.  Called once, before any other method.
        """
        return self

    def __len__(self) -> int:
        return len(self.log_scale)

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return the diagonal of ``S`` (N,): ones, and zeros for impossible items."""

    @abstractmethod
    def column(self, item: int) -> FloatArray:
        """Return the column (N,) of ``S`` for an item number."""

    @abstractmethod
    def submatrix(self, members: IntArray) -> FloatArray:
        """Return the rows and columns (k, k) of ``S`` for item numbers ``members``."""

    def log_det(self, members: IntArray) -> float:
        """Return ``log det L_y``, ``y`` the members: 0 if empty, -inf if singular."""
        log_det, pivot = log_det_and_pivot(self.submatrix(members))
        if not pivot > RANK_TOLERANCE:
            return -np.inf
        return log_det + 2.0 * float(self.log_scale[members].sum())

    @abstractmethod
    def log_normalizer(self) -> float:
        """Return ``log det(L + I)``."""

    @abstractmethod
    def marginals(self) -> FloatArray:
        """Return the diagonal of ``K`` (N,), the probability of each item."""

    @abstractmethod
    def marginal_kernel(self) -> FloatArray:
        """Return ``K = L (L + I)⁻¹``, (N, N)."""

    @property
    @abstractmethod
    def marginal_eigenpairs(self) -> tuple[FloatArray, Eigenvectors]:
        """Return eigenvalues (M,) of ``K``, in any order, and eigenvectors (M, N).

        Not those of ``L``: next to large entries its small eigenvalues are lost to
        rounding, while an error of rounding in ``K`` is one in a probability.
        """

    @property
    @abstractmethod
    def eigenpairs(self) -> tuple[FloatArray, Eigenvectors]:
        """Return the log-eigenvalues (M,) and the eigenvectors (M, N) of ``L``."""

    @abstractmethod
    def condition(self, included: IntArray, rest: IntArray) -> Self:
        """Return the kernel of the items ``rest``, given that ``included`` are chosen.

        With ``L'`` the result, a Schur complement in ``L``, ``det L_{A∪y} = det L_A ·
        det L'_y`` for ``A`` the items ``included`` and subsets ``y`` of ``rest``.
        """
