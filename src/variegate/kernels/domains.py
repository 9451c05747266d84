"""Where a block of parameters lives, and how a solver stays there.

Solvers need one of two things of a constrained block.  A descent method with
projections needs the nearest feasible point; a quasi-Newton method needs free
coordinates and the chain rule through them.  A domain offers both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from variegate._typing import FloatArray

__all__ = ["Domain", "Free", "Product", "Simplex"]


@dataclass(frozen=True)
class Domain(ABC):
    """A set of parameter vectors of length ``size``."""

    size: int

    @abstractmethod
    def center(self) -> FloatArray:
        """Return the point (size,) that a solver starts from."""

    @abstractmethod
    def random(self, generator: np.random.Generator) -> FloatArray:
        """Return a random point (size,), for another start of a solver."""

    # Without constraints a point is its own nearest one and its own coordinates.

    def project(self, parameters: FloatArray) -> FloatArray:
        """Return the nearest point of the domain."""
        return parameters

    def to_free(self, parameters: FloatArray) -> FloatArray:
        """Return unconstrained coordinates (size,) of a point."""
        return parameters

    def from_free(self, free: FloatArray) -> FloatArray:
        """Return the point that unconstrained coordinates stand for."""
        return free

    def pull_back(self, free: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return ``∂f/∂free`` from ``gradient``, ``∂f/∂p`` at ``from_free(free)``."""
        return gradient


@dataclass(frozen=True)
class Free(Domain):
    """All real vectors."""

    def center(self) -> FloatArray:
        """Return zeros."""
        return np.zeros(self.size)

    def random(self, generator: np.random.Generator) -> FloatArray:
        """Return standard normal numbers."""
        return generator.standard_normal(self.size)


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
        """Return weights drawn uniformly from the simplex."""
        return generator.dirichlet(np.ones(self.size))

    def project(self, parameters: FloatArray) -> FloatArray:
        """Return the nearest weights (Duchi et al., ICML 2008).

        The largest parameter is first subtracted from all, which changes no result, so
        that no digit of the sum 1 is lost beside a large number.
        """
        parameters = parameters - parameters.max()
        descending = np.sort(parameters)[::-1]
        excess = (np.cumsum(descending) - 1.0) / np.arange(1, self.size + 1)
        threshold = excess[np.flatnonzero(descending > excess)[-1]]
        return np.asarray(np.maximum(parameters - threshold, 0.0))

    def to_free(self, parameters: FloatArray) -> FloatArray:
        """Return the square roots of the weights, none of them zero."""
        return np.sqrt(np.maximum(parameters, _SMALLEST_WEIGHT))

    def from_free(self, free: FloatArray) -> FloatArray:
        """Return the weights ``z² / Σ z²`` of free coordinates ``z``."""
        squares = (free / np.abs(free).max()) ** 2
        return np.asarray(squares / squares.sum())

    def pull_back(self, free: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return ``∂f/∂z = 2 z ∘ (g - wᵀg) / Σ z²`` of ``gradient``, ``g = ∂f/∂w``."""
        weights = self.from_free(free)
        return 2.0 * free / (free @ free) * (gradient - weights @ gradient)


class Product(Domain):
    """Parameters of several domains, one after another in a flat vector.

    Parameters
    ----------
    parts : tuple of Domain
    """

    def __init__(self, parts: tuple[Domain, ...]) -> None:
        super().__init__(sum(part.size for part in parts))
        self.parts = parts

    def split(self, parameters: FloatArray) -> list[FloatArray]:
        """Return the parameters of every part, as views of one flat array."""
        ends = np.cumsum([part.size for part in self.parts])
        return np.split(parameters, ends[:-1])

    def center(self) -> FloatArray:
        """Return the centers of all parts, joined."""
        return np.concatenate([part.center() for part in self.parts])

    def random(self, generator: np.random.Generator) -> FloatArray:
        """Return random points of all parts, joined."""
        return np.concatenate([part.random(generator) for part in self.parts])

    def project(self, parameters: FloatArray) -> FloatArray:
        """Return the nearest point, part by part."""
        return self._apply_to_parts(lambda part, own: part.project(own), parameters)

    def to_free(self, parameters: FloatArray) -> FloatArray:
        """Return unconstrained coordinates, part by part."""
        return self._apply_to_parts(lambda part, own: part.to_free(own), parameters)

    def from_free(self, free: FloatArray) -> FloatArray:
        """Return the point of unconstrained coordinates, part by part."""
        return self._apply_to_parts(lambda part, own: part.from_free(own), free)

    def pull_back(self, free: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return ``∂f/∂free`` from ``gradient``, part by part."""
        slopes = iter(self.split(gradient))
        return self._apply_to_parts(
            lambda part, own: part.pull_back(own, next(slopes)), free
        )

    def _apply_to_parts(
        self, apply: Callable[[Domain, FloatArray], FloatArray], flat: FloatArray
    ) -> FloatArray:
        """Apply a function to every part and its share of ``flat``; join results."""
        values = zip(self.parts, self.split(flat), strict=True)
        return np.concatenate([apply(part, own) for part, own in values])
