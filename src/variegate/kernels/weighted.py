"""What the learned kernels share: a convex combination of similarities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from variegate._typing import FloatArray
from variegate.domains import Simplex
from variegate.ground_set import GroundSet
from variegate.kernels.base import Kernel


class WeightedSum(Kernel):
    r"""A convex combination of similarities, its weights learned.

    .. math:: S = \sum_k w_k S^k, \qquad w_k \ge 0, \quad \sum_k w_k = 1,
        \qquad \partial f / \partial w_k = \sum_{ij} G_{ij} S^k_{ij}

    A subclass says how many there are and what they are.
    """

    stackable = True

    @property
    @abstractmethod
    def n_weights(self) -> int:
        """The number of similarities."""

    @abstractmethod
    def matrices(self, ground_set: GroundSet) -> Sequence[FloatArray]:
        """Return the similarities of a ground set."""

    @property
    def domain(self) -> Simplex:
        """The simplex, one weight a similarity."""
        return Simplex(self.n_weights)

    def prepare(self, ground_set: GroundSet) -> FloatArray:
        """Return the similarities, (K, N, N)."""
        prepared = np.stack(self.matrices(ground_set))
        if not np.isfinite(prepared).all():
            raise ValueError(
                "the similarity holds NaN or infinite values: the features are too "
                "large for this kernel"
            )
        return prepared

    def value(self, prepared: FloatArray, parameters: FloatArray) -> FloatArray:
        """Return the weighted sum."""
        flat = prepared.reshape(*prepared.shape[:-2], -1)
        size = prepared.shape[-1]
        return np.asarray((parameters @ flat).reshape(*prepared.shape[:-3], size, size))

    def pull_back(
        self, prepared: FloatArray, parameters: FloatArray, G: FloatArray
    ) -> FloatArray:
        """Return ``Σ_ij G_ij S^k_ij`` for every ``k``, summed over a stack."""
        flat = prepared.reshape(*prepared.shape[:-2], -1)
        inner = flat @ G.reshape(*G.shape[:-2], -1, 1)
        return np.asarray(inner.reshape(-1, len(parameters)).sum(axis=0))
