"""The linear kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate._typing import FloatArray
from variegate.ground_set import GroundSet
from variegate.kernels.base import FixedKernel, check_block
from variegate.kernels.features import as_dense


class Linear(FixedKernel):
    """Inner products ``S_ij = φ_iᵀ φ_j`` (paper eq. 7).

    Rank-deficient as soon as there are more items than features: a subset larger than
    the number of features has probability zero, but for the ``jitter``.  Large ground
    sets with few features are learned from without making the matrix.

    Parameters
    ----------
    normalize : bool, default=False
        Scale rows to unit length first: the cosine similarity.  Rows of zeros stay.
    block : str, optional
        The block of similarity features to read.
    """

    semidefinite = True

    def __init__(self, normalize: bool = False, block: str | None = None) -> None:
        self.normalize = normalize
        self.block = block

    def check(self) -> None:
        """Raise ValueError for invalid arguments of the constructor."""
        check_block(self.block)

    def matrix(self, ground_set: GroundSet) -> FloatArray:
        """Return ``Φ Φᵀ`` (N, N) of features ``Φ``, with unit rows if ``normalize``."""
        features = ground_set.features(self.block)
        if self.normalize:
            features = _unit_rows(features)
        with np.errstate(over="ignore", invalid="ignore"):  # judged in prepare
            product = features @ features.T
        return as_dense(product)

    def factors(self, ground_set: GroundSet) -> list[FloatArray] | None:
        """Return ``[Φ]``; None where features are at least half as many as items."""
        features = ground_set.features(self.block)
        # Wide sparse features must stay sparse; a subclass may mean another matrix.
        if (
            2 * features.shape[1] >= len(ground_set)
            or type(self).matrix is not Linear.matrix
        ):
            return None
        if self.normalize:
            features = _unit_rows(features)
        return [as_dense(features)]


def _unit_rows(features: Any) -> Any:
    """Return rows scaled to unit length, sparse or dense; rows of zeros stay."""
    from sklearn.preprocessing import normalize  # slow to import, seldom needed

    return normalize(features)
