"""Similarity matrices that the user brings."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse

from variegate._typing import FloatArray
from variegate.ground_set import GroundSet
from variegate.kernels.base import FixedKernel
from variegate.psd import (
    SimilarityRepairWarning,
    nearest_psd,
    smallest_eigenvalue_if_negative,
)

_ASYMMETRY = 1e-8


class Precomputed(FixedKernel):
    """The ground set's similarity features are the N x N similarity itself.

    Parameters
    ----------
    repair : bool, default=False
        What to do with a matrix that is not positive semidefinite: refuse it (False),
        or replace it by the nearest one that is and warn how much that changed (True).
    block : str, optional
        The block of similarity features that holds the matrix.
    """

    def __init__(self, repair: bool = False, block: str | None = None) -> None:
        self.repair = repair
        self.block = block

    def matrix(self, ground_set: GroundSet) -> FloatArray:
        """Return the given matrix once it has passed, or been repaired."""
        features = ground_set.features(self.block)
        S = features.toarray() if sparse.issparse(features) else features
        if S.shape[0] != S.shape[1]:
            raise ValueError(
                f"a precomputed similarity is a square matrix, got shape {S.shape}"
            )
        asymmetry = float(np.abs(S - S.T).max())
        if asymmetry > _ASYMMETRY * float(np.abs(S).max()):
            raise ValueError(
                f"the similarity is not symmetric: S and its transpose differ by "
                f"{asymmetry:.3g}; use (S + S.T) / 2 if that is what you mean"
            )
        S = (S + S.T) / 2.0
        smallest = smallest_eigenvalue_if_negative(S)
        if smallest is None:
            return np.asarray(S)
        repair = nearest_psd(S)
        if not self.repair:
            raise ValueError(
                "the similarity is not positive semidefinite: its smallest eigenvalue "
                f"is {smallest:.3g}; Precomputed(repair=True) takes the nearest matrix "
                f"that is, a relative change of {repair.relative_change:.2g}"
            )
        warnings.warn(
            f"set {repair.n_negative} negative eigenvalues of a similarity (smallest "
            f"{smallest:.3g}) to zero, a relative change of "
            f"{repair.relative_change:.2g}",
            SimilarityRepairWarning,
            stacklevel=2,
        )
        return repair.matrix
