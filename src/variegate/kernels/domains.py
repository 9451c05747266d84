"""Where a block of parameters lives, and how a solver stays there.

Solvers need one of two things of a constrained block.  A descent method with
projections needs the nearest feasible point; a quasi-Newton method needs free
coordinates and the chain rule through them.  A domain offers both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from variegate._typing import FloatArray

__all__ = ["Domain", "Free", "Simplex"]


@dataclass(frozen=True)
class Domain(ABC):
    """A set of parameter vectors of length ``size``."""

    size: int

    @abstractmethod
    def center(self) -> FloatArray:
        """Return the point that a solver starts from."""

    @abstractmethod
    def random(self, generator: np.random.Generator) -> FloatArray:
        """Return a random point, for starting again elsewhere."""

    @abstractmethod
    def project(self, parameters: FloatArray) -> FloatArray:
        """Return the nearest point of the domain."""

    @abstractmethod
    def to_free(self, parameters: FloatArray) -> FloatArray:
        """Return unconstrained coordinates of a point."""

    @abstractmethod
    def from_free(self, free: FloatArray) -> FloatArray:
        """Return the point that unconstrained coordinates stand for."""

    @abstractmethod
    def pull_back(self, free: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient in free coordinates from that at ``from_free(free)``."""


@dataclass(frozen=True)
class Free(Domain):
    """All real vectors."""

    def center(self) -> FloatArray:
        """Return the origin."""
        return np.zeros(self.size)

    def random(self, generator: np.random.Generator) -> FloatArray:
        """Return a standard normal vector."""
        return generator.standard_normal(self.size)

    def project(self, parameters: FloatArray) -> FloatArray:
        """Return ``parameters``."""
        return parameters

    def to_free(self, parameters: FloatArray) -> FloatArray:
        """Return ``parameters``."""
        return parameters

    def from_free(self, free: FloatArray) -> FloatArray:
        """Return ``free``."""
        return free

    def pull_back(self, free: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return ``gradient``."""
        return gradient


#: A weight below this is given a free coordinate as if it were this, because a
#: coordinate of zero has no gradient and would stay zero for ever.
_SMALLEST_WEIGHT = 1e-6


@dataclass(frozen=True)
class Simplex(Domain):
    """Non-negative weights that sum to one.

    Free coordinates ``z`` stand for ``w = z² / Σ z²``.  Unlike those of a softmax they
    reach zero weights at finite values and keep a useful slope near them: on the
    paper's synthetic data L-BFGS ends at lower objectives, from a single start, than
    with a softmax or with normalised absolute values.
    """

    def center(self) -> FloatArray:
        """Return equal weights."""
        return np.full(self.size, 1.0 / self.size)

    def random(self, generator: np.random.Generator) -> FloatArray:
        """Return a point drawn uniformly."""
        return generator.dirichlet(np.ones(self.size))

    def project(self, parameters: FloatArray) -> FloatArray:
        """Return the nearest weights (Duchi et al., ICML 2008)."""
        descending = np.sort(parameters)[::-1]
        excess = (np.cumsum(descending) - 1.0) / np.arange(1, self.size + 1)
        threshold = excess[np.flatnonzero(descending > excess)[-1]]
        return np.asarray(np.maximum(parameters - threshold, 0.0))

    def to_free(self, parameters: FloatArray) -> FloatArray:
        """Return the square roots of the weights."""
        return np.sqrt(np.maximum(parameters, _SMALLEST_WEIGHT))

    def from_free(self, free: FloatArray) -> FloatArray:
        """Return the normalised squares."""
        squares = (free / np.abs(free).max()) ** 2
        return np.asarray(squares / squares.sum())

    def pull_back(self, free: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return ``2 z ∘ (g - wᵀg) / Σ z²``."""
        weights = self.from_free(free)
        return 2.0 * free / (free @ free) * (gradient - weights @ gradient)
