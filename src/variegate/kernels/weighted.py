"""What the learned kernels share: a convex combination of similarities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from variegate._typing import FloatArray
from variegate.ground_set import GroundSet
from variegate.kernels.base import Kernel
from variegate.kernels.domains import Simplex
from variegate.kernels.ladder import Chains, PackedSimilarities, unchained


class WeightedSum(Kernel):
    r"""A convex combination of similarities, its weights learned.

    .. math:: S = \sum_k w_k S^k, \qquad w_k \ge 0, \quad \sum_k w_k = 1,
        \qquad \partial f / \partial w_k = \sum_{ij} G_{ij} S^k_{ij}

    A subclass says how many there are and what they are.
    """

    stackable = True
    makes_new = True

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

    def prepare(self, ground_set: GroundSet) -> PackedSimilarities:
        """Return the similarities, one triangle each."""
        return packed(unchained(self.n_weights), self.matrices(ground_set))

    def stack(self, prepared: Sequence[PackedSimilarities]) -> PackedSimilarities:
        """Return prepared ground sets of equal size as one."""
        return PackedSimilarities.stack(prepared)

    def value(self, prepared: PackedSimilarities, parameters: FloatArray) -> FloatArray:
        """Return the weighted sum."""
        return prepared.mixture(parameters)

    def pull_back(
        self, prepared: PackedSimilarities, parameters: FloatArray, G: FloatArray
    ) -> FloatArray:
        """Return ``Σ_ij G_ij S^k_ij`` for every ``k``, summed over a stack."""
        return prepared.inner_products(G)


def packed(
    chains: Chains,
    matrices: Sequence[FloatArray],
    anchors: FloatArray | None = None,
) -> PackedSimilarities:
    """Pack similarities that are finite, or refuse them."""
    parts = [*matrices, chains.scale]
    if not all(np.isfinite(part).all() for part in parts):
        raise ValueError(
            "the similarity holds NaN or infinite values: the features are too large "
            "for this kernel"
        )
    return PackedSimilarities.of(chains, matrices, anchors)
