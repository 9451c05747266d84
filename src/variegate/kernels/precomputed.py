"""Similarity matrices that the user brings."""

from __future__ import annotations

import warnings

from variegate._typing import FloatArray
from variegate.ground_set import GroundSet
from variegate.kernels.base import FixedKernel, check_block
from variegate.kernels.features import as_dense
from variegate.linalg.psd import (
    NotSemidefiniteError,
    SimilarityRepairWarning,
    check_semidefinite,
    check_symmetric,
    nearest_psd,
)


class Precomputed(FixedKernel):
    """The ground set's similarity features are the N x N similarity itself.

    Parameters
    ----------
    repair : bool, default=False
        Whether to replace a matrix that is not positive semidefinite by the nearest one
        that is, with a warning that tells the change (True), or to refuse it (False).
    block : str, optional
        The block of similarity features that holds the matrix.
    """

    semidefinite = True  # or refused, or repaired

    def __init__(self, repair: bool = False, block: str | None = None) -> None:
        self.repair = repair
        self.block = block

    def check(self) -> None:
        """Raise ValueError for invalid arguments of the constructor."""
        check_block(self.block)

    def matrix(self, ground_set: GroundSet) -> FloatArray:
        """Return the given matrix; one not semidefinite is repaired or a ValueError."""
        features = as_dense(ground_set.features(self.block))
        S = check_symmetric(features, "the similarity")
        try:
            check_semidefinite(S, "the similarity")
        except NotSemidefiniteError as error:
            repair = nearest_psd(S)
            if not self.repair:
                raise ValueError(
                    f"{error}; Precomputed(repair=True) takes the nearest matrix that "
                    f"will do, a relative change of {repair.relative_change:.2g}"
                ) from None
            warnings.warn(
                f"set {repair.n_negative} negative eigenvalues of a similarity "
                f"(smallest {repair.smallest_eigenvalue:.3g}) to zero, a relative "
                f"change of {repair.relative_change:.2g}",
                SimilarityRepairWarning,
                stacklevel=2,
            )
            return repair.matrix
        return S
