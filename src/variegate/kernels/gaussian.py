"""The Gaussian kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances

from variegate._typing import FloatArray
from variegate._validation import check_number
from variegate.ground_set import GroundSet
from variegate.kernels.base import FixedKernel, check_block

#: Differences are taken feature by feature up to this many features; beyond it, the
#: expansion into inner products is much faster and centring keeps it accurate enough.
_DIRECT_FEATURES = 256


class Gaussian(FixedKernel):
    """Gaussian similarity ``S_ij = exp(-‖φ_i - φ_j‖² / σ²)``.

    The paper's convention (section 4.1): no factor of two.

    Parameters
    ----------
    bandwidth : float
        ``σ``, positive.
    block : str, optional
        The block of similarity features to read.
    """

    semidefinite = True

    def __init__(self, bandwidth: float, block: str | None = None) -> None:
        self.bandwidth = bandwidth
        self.block = block

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        check_number("a bandwidth", self.bandwidth, positive=True)
        check_block(self.block)

    def matrix(self, ground_set: GroundSet) -> FloatArray:
        """Return ``exp(-D / σ²)`` of the squared distances ``D``."""
        self.check()
        distances = squared_distances(ground_set.features(self.block))
        return gaussian(distances, self.bandwidth)


def gaussian(squared_distances: FloatArray, bandwidth: float) -> FloatArray:
    """Return ``exp(-D / σ²)``, dividing twice so that no square overflows."""
    return np.asarray(np.exp(-squared_distances / bandwidth / bandwidth))


def squared_distances(features: Any) -> FloatArray:
    """Return ``‖φ_i - φ_j‖²`` with an exact zero diagonal.

    Near-duplicates decide determinants, so small distances must not drown in the
    rounding of large norms: differences are taken directly where that is affordable.
    """
    if sparse.issparse(features):
        if features.shape[1] > _DIRECT_FEATURES:
            return np.asarray(euclidean_distances(features, squared=True))
        features = features.toarray()
    if features.shape[1] <= _DIRECT_FEATURES:
        return np.asarray(cdist(features, features, "sqeuclidean"))
    centred = features - features.mean(axis=0)
    return np.asarray(euclidean_distances(centred, squared=True))
