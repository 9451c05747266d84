"""One ground set with a similarity of low rank, in a training problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.kernels import Kernel
from variegate.learning.dual import DualPoint, check_target, dual_loss, marginals
from variegate.learning.factors import Factors
from variegate.learning.objective import LargeMarginLoss, Targets, impossible_item

__all__ = ["DualStack", "EmbeddedStack"]


class DualStack:
    """One ground set whose similarity is a weighted sum of fixed factors.

    Parameters
    ----------
    positions : array of one int
        Its place among the ground sets, for messages.
    X : array of shape (N, d)
        Quality features.
    factors : Factors
    targets : Targets of one ground set
    jitter : float
    learned : bool
        Whether the weights are learned.
    """

    def __init__(
        self,
        positions: IntArray,
        X: FloatArray,
        factors: Factors,
        targets: Targets,
        jitter: float,
        learned: bool,
    ) -> None:
        self.positions = positions
        self.X = X
        self.factors = factors
        self.targets = targets
        self.jitter = jitter
        self.learned = learned
        members = targets.members[0][targets.present[0]]
        impossible = members[(factors.squared[members] <= 0.0).all(axis=1)]
        if len(impossible):
            raise impossible_item(positions[0], impossible[0])
        if not learned:  # say now what would fail later
            check_target(*self._similarity(np.zeros(0)), members)

    def _similarity(
        self, parameters: FloatArray
    ) -> tuple[Factors, FloatArray, FloatArray]:
        weights = self.factors.weights(parameters)
        return self.factors, weights, self.jitter * (self.factors.squared @ weights)

    def marginals(self, parameters: FloatArray, u: FloatArray) -> FloatArray:
        """Return ``K_ii``, as the one row of a matrix."""
        return marginals(*self._similarity(parameters), u)[None]

    def evaluate(
        self, loss: LargeMarginLoss, parameters: FloatArray, u: FloatArray
    ) -> tuple[float, FloatArray, FloatArray | None]:
        """Return the loss and its gradients in ``u`` and in learned weights."""
        terms = dual_loss(
            loss,
            self.factors,
            self.factors.weights(parameters),
            u,
            self.targets,
            self.jitter,
            weight_gradient=self.learned,
        )
        slope = terms.weight_gradient if self.learned else None
        return terms.value, terms.quality_gradient, slope


class EmbeddedStack:
    """One ground set whose similarity is that of a few learned features.

    Parameters
    ----------
    positions, X, targets, jitter : as for :class:`DualStack`
    prepared : what the kernel's embedding needs of the ground set
    kernel : Kernel
        With an ``embedding``.
    """

    def __init__(
        self,
        positions: IntArray,
        X: FloatArray,
        prepared: Any,
        targets: Targets,
        kernel: Kernel,
        jitter: float,
    ) -> None:
        self.positions = positions
        self.X = X
        self.prepared = prepared
        self.targets = targets
        self.kernel = kernel
        self.jitter = jitter

    def _similarity(
        self, parameters: FloatArray
    ) -> tuple[Factors, FloatArray, FloatArray]:
        """Return the learned features, their weights, and the ridge with the jitter."""
        parts, weights, ridge = self.kernel.embedding(self.prepared, parameters)
        factors = Factors.of(parts)
        own = factors.squared @ weights + ridge
        return factors, weights, ridge + self.jitter * own

    def marginals(self, parameters: FloatArray, u: FloatArray) -> FloatArray:
        """Return ``K_ii``, as the one row of a matrix."""
        return marginals(*self._similarity(parameters), u)[None]

    def evaluate(
        self, loss: LargeMarginLoss, parameters: FloatArray, u: FloatArray
    ) -> tuple[float, FloatArray, FloatArray | None]:
        """Return the loss and its gradients in ``u`` and in the kernel's parameters."""
        similarity = self._similarity(parameters)
        at = DualPoint.of(loss, *similarity, u, self.targets)
        # The jitter is relative to the diagonal, and so part of its derivative.
        diagonal, product = at.diagonal(), at.times_factor()
        product += (self.jitter * diagonal)[:, None] * similarity[0].columns
        slope = self.kernel.pull_back_embedding(
            self.prepared, parameters, product, (1.0 + self.jitter) * diagonal
        )
        return at.value, at.quality_gradient(), slope
