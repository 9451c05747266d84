"""The Gaussian kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from variegate._typing import FloatArray, IntArray
from variegate._validation import check_number
from variegate.ground_set import GroundSet
from variegate.kernels.base import FixedKernel, check_block
from variegate.kernels.features import (
    approximate_features,
    as_dense,
    check_approximation,
    decode_feature_map,
    fit_feature_map,
    fitted_maps,
    looks_of_approximation,
)
from variegate.kernels.known import Looks

#: Differences are taken feature by feature up to this many features; beyond it, the
#: expansion into inner products is much faster and centring keeps it accurate enough.
DIRECT_FEATURES = 256


class Gaussian(FixedKernel):
    """Gaussian similarity ``S_ij = exp(-‖φ_i - φ_j‖² / σ²)``.

    The paper's convention (section 4.1): no factor of two.

    A wide Gaussian is nearly a constant: it calls all items alike, and whatever is
    chosen first takes the place of all others.  Seen from the origin, *anchored*, it
    has no constant::

        S_ij = σ²/2 (k(φ_i, φ_j) - k(φ_i, 0) - k(0, φ_j) + 1),
        k(a, b) = exp(-‖a - b‖² / σ²)

    is the inner product of ``φ_i`` and ``φ_j`` less the origin in the Gaussian's own
    space of features, and tends to ``φ_iᵀ φ_j`` as ``σ`` grows.  Like an inner product,
    it is large for items far from the origin and zero at it: centre the features.

    Parameters
    ----------
    bandwidth : float
        ``σ``, positive.
    block : str, optional
        The block of similarity features to read.
    approximation : {None, "nystroem", "fourier"}, default=None
        Approximation by a similarity of low rank, for ground sets too large for an
        N x N matrix: see ``variegate.kernels.features``.
    rank : int, optional
        The number of columns of the approximation, needed if there is one; for
        "fourier", even.
    random_state : int, default=0
        Seed of the landmarks or frequencies.
    anchored : bool, default=False
        Whether the similarity is seen from the origin.  For bandwidths of at least the
        typical length of ``φ``: anchoring adds a constant to much narrower Gaussians.
    """

    semidefinite = True

    def __init__(
        self,
        bandwidth: float,
        block: str | None = None,
        approximation: str | None = None,
        rank: int | None = None,
        random_state: int = 0,
        anchored: bool = False,
    ) -> None:
        self.bandwidth = bandwidth
        self.block = block
        self.approximation = approximation
        self.rank = rank
        self.random_state = random_state
        self.anchored = anchored

    def fit(self, ground_sets: Sequence[GroundSet]) -> Self:
        """Set ``features_``, with landmarks or frequencies, for an approximation."""
        check_approximation(self)
        if self.approximation is not None:
            self.features_ = fit_feature_map(self, ground_sets, self.block)
        return self

    def looks_at(self, sizes: IntArray) -> Looks:
        """Return the row numbers that ``fit`` reads, by index of the ground set."""
        return looks_of_approximation(self, sizes)

    def get_state(self) -> dict[str, Any]:
        """Return landmarks or frequencies as lists, "features"; or an empty dict."""
        if self.approximation is None or not hasattr(self, "features_"):
            return {}  # not fitted, such as a kernel that a fitted mixture has copied
        return {"features": self.features_.numbers.tolist()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore landmarks or frequencies from ``get_state``, checked."""
        self.check()
        if self.approximation is not None and "features" in state:
            self.features_ = decode_feature_map(self.approximation, state["features"])

    def check(self) -> None:
        """Raise ValueError for invalid arguments of the constructor."""
        check_number("a bandwidth", self.bandwidth, positive=True)
        check_block(self.block)
        check_approximation(self)

    def factors(self, ground_set: GroundSet) -> list[FloatArray] | None:
        """Return ``[F]``; None if ``approximation`` is None.

        ``F Fᵀ`` approximates the similarity; ``F`` has at most ``rank`` columns.
        """
        if self.approximation is None:
            return None
        self.check()
        items, features = ground_set.features(self.block), fitted_maps(self)
        return [approximate_features(features, items, self.bandwidth, self.anchored)]

    def matrix(self, ground_set: GroundSet) -> FloatArray:
        """Return ``exp(-D / σ²)`` (N, N) of squared distances ``D``.

        With ``anchored`` as seen from the origin; with ``approximation`` approximated.
        """
        self.check()
        factors = self.factors(ground_set)
        if factors is not None:
            return np.asarray(factors[0] @ factors[0].T)
        items = ground_set.features(self.block)
        distances = squared_distances(items)
        if self.anchored:
            return anchored_gaussian(distances, squared_norms(items), self.bandwidth)
        return gaussian(distances, self.bandwidth)


def gaussian(squared_distances: FloatArray, bandwidth: float) -> FloatArray:
    """Return ``exp(-D / σ²)`` of ``D`` (any shape); no square of ``σ`` overflows."""
    return np.asarray(np.exp(-squared_distances / bandwidth / bandwidth))


def gaussian_expm1(squared_distances: FloatArray, bandwidth: float) -> FloatArray:
    """Return ``exp(-D / σ²) - 1`` with full relative accuracy, also near 0."""
    return np.asarray(np.expm1(-squared_distances / bandwidth / bandwidth))


def anchored_gaussian(
    squared_distances: FloatArray, squared_norms: FloatArray, bandwidth: float
) -> FloatArray:
    """Return the anchored Gaussian (N, N), from ``‖φ_i - φ_j‖²`` and ``‖φ_i‖²``."""
    to_origin = gaussian_expm1(squared_norms, bandwidth)
    S = gaussian_expm1(squared_distances, bandwidth)
    S -= to_origin[:, None] + to_origin
    with np.errstate(over="ignore", invalid="ignore"):  # judged in prepare
        S *= 0.5 * bandwidth * bandwidth
    return S


def squared_norms(features: Any) -> FloatArray:
    """Return ``‖φ_i‖²`` (N,) of features (N, p), sparse or dense."""
    if sparse.issparse(features):
        return np.asarray(features.multiply(features).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", features, features))


def squared_distances(features: Any) -> FloatArray:
    """Return ``‖φ_i - φ_j‖²`` (N, N) of features (N, p), with an exact zero diagonal.

    Near-duplicates decide determinants, so small distances must not drown in the
    rounding of large norms: differences are taken directly where that is affordable.
    """
    if features.shape[1] <= DIRECT_FEATURES:
        dense = as_dense(features)
        return np.asarray(cdist(dense, dense, "sqeuclidean"))
    from sklearn.metrics.pairwise import euclidean_distances  # slow to import

    if not sparse.issparse(features):
        features = features - features.mean(axis=0)
    return np.asarray(euclidean_distances(features, squared=True))
