"""A learned metric: a Gaussian of distances in a few learned directions."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from variegate._typing import FloatArray
from variegate._validation import check_count, check_number
from variegate.files.schema import MATRIX
from variegate.ground_set import GroundSet
from variegate.kernels.base import PullBack
from variegate.kernels.domains import Free
from variegate.kernels.features import KernelWithStart, as_dense, check_n_features
from variegate.kernels.gaussian import squared_distances
from variegate.linalg.limits import MEDIAN_ITEMS, should_use_compiled


class Metric(KernelWithStart):
    r"""Gaussian similarity under a learned metric of low rank.

    .. math:: S_{ij} = \exp(-\|W (x_i - x_j)\|^2 / 2)

    ``W``, of shape (rank, d), starts from the first principal components of the
    training items, scaled so that two items at the median distance have similarity
    ``exp(-1 / bandwidth²)``.  It is penalized by ``penalty / 2`` times the squared
    distance from there.

    Parameters
    ----------
    rank : int, default=16
        The number of directions; no more than there are features or items are used.
    bandwidth : float, default=0.7
        How far items are alike at the start, relative to the median distance.
    penalty : float, default=1e-3
        Pull of ``W`` towards its start.
    block : str, optional
        The block of similarity features to read.
    random_state : int, default=0
        Seed of the items that the start is taken from, where there are many.

    Attributes
    ----------
    directions_ : array of shape (rank, d), after ``fit``
        ``W`` at the start.
    """

    fitted_arrays: ClassVar = {"directions": MATRIX}
    start_name = "the metric is"

    def __init__(
        self,
        rank: int = 16,
        bandwidth: float = 0.7,
        penalty: float = 1e-3,
        block: str | None = None,
        random_state: int = 0,
    ) -> None:
        self.rank = rank
        self.bandwidth = bandwidth
        self.penalty = penalty
        self.block = block
        self.random_state = random_state

    def check(self) -> None:
        """Raise ValueError for invalid arguments of the constructor."""
        check_count("rank", self.rank)
        check_number("bandwidth", self.bandwidth, positive=True)
        super().check()

    def find_start(self, items: FloatArray, generator: np.random.Generator) -> None:
        """Set ``directions_`` from items (n, d); ValueError if all are the same."""
        components = _principal_components(items, self.rank)
        some = generator.permutation(len(items))[:MEDIAN_ITEMS]
        distances = squared_distances(items[some] @ components.T)
        apart = distances[distances > 0.0]
        if not len(apart):
            raise ValueError(
                "no two items differ in their similarity features, so a metric cannot "
                "be learned: give other features"
            )
        scale = np.sqrt(2.0 / np.median(apart)) / self.bandwidth
        self.directions_: FloatArray = scale * components

    # Parameters: the distance of W from its start ---------------------------------

    @property
    def domain(self) -> Free:
        """Return the domain of any real numbers, ``W`` minus its start, row by row."""
        return Free(self.start().size)

    def weights(self, parameters: FloatArray) -> FloatArray:
        """Return ``W`` (rank, d): the start plus the parameters."""
        start = self.start()
        return np.asarray(start + parameters.reshape(start.shape))

    # Similarity -------------------------------------------------------------------

    def prepare(self, ground_set: GroundSet) -> FloatArray:
        """Return the features (N, d) less their mean, which changes no difference."""
        features = ground_set.features(self.block)
        check_n_features(features, self.start().shape[1])
        dense = as_dense(features)
        return np.asarray(dense - dense.mean(axis=0))

    def value_and_pull_back(
        self, prepared: FloatArray, parameters: FloatArray
    ) -> tuple[FloatArray, PullBack]:
        """Return ``S = exp(-D / 2)`` (..., N, N), and a function from ``∂f/∂S``.

        ``D`` are squared distances of ``z = W x``, with ``W`` of ``parameters`` and the
        items ``x`` of ``prepared`` (..., N, d).  From a symmetric ``G = ∂f/∂S``, the
        function returns ``∂f/∂W``, flat, summed over a stack.  With ``H = G ∘ S``,
        ``∂f/∂z_i = -2 Σ_j H_ij (z_i - z_j)``: the diagonal adds ``z_i - z_i = 0``.
        """
        n_items, n_features = prepared.shape[-2:]
        # One product of all items: NumPy would take those of a stack one by one.
        flat = prepared.reshape(-1, n_features)
        W = self.weights(parameters)
        placed = (flat @ W.T).reshape(-1, n_items, len(W))
        S = _gaussian_similarity(placed)

        def pull_back(G: FloatArray) -> FloatArray:
            """Return ``∂f/∂W``, flat, from ``G = ∂f/∂S``."""
            H = G * S
            slopes = H @ placed
            slopes -= H.sum(axis=-1)[..., None] * placed
            return 2.0 * np.asarray((slopes.reshape(len(flat), -1).T @ flat).ravel())

        return S.reshape(*prepared.shape[:-1], n_items), pull_back


def _gaussian_similarity(placed: FloatArray) -> FloatArray:
    """Return ``exp(-‖z_i - z_j‖² / 2)`` (B, N, N) of ``placed``, ``z`` (B, N, r).

    By differences, as in :func:`squared_distances`.
    """
    n_sets, n_items, _ = placed.shape
    if should_use_compiled([n_items] * n_sets):
        from variegate.linalg.compiled.similarities import fill_gaussian

        S = np.empty((n_sets, n_items, n_items))
        fill_gaussian(placed, S)
        return S
    apart = placed[:, :, None] - placed[:, None]
    squared = np.einsum("bijk,bijk->bij", apart, apart)
    return np.asarray(np.exp(-0.5 * squared))


def _principal_components(items: FloatArray, rank: int) -> FloatArray:
    """Return up to ``rank`` unit directions (r, d) of largest variance, descending."""
    covariance = np.cov(items, rowvar=False).reshape(items.shape[1], -1)
    values, vectors = np.linalg.eigh(covariance)
    used = values > 1e-12 * max(values[-1], 0.0)
    used[: max(0, len(values) - rank)] = False
    if not used.any():
        used[-1] = True
    return np.asarray(vectors[:, used].T[::-1])
