"""A flat view over the structured parameters of a model.

Solvers work on one vector; the model thinks of ``θ``, an intercept and the kernel's
parameters.  :class:`ParameterSpace` knows which slice is which, and the domain of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from variegate._typing import FloatArray
from variegate.domains import Domain

__all__ = ["ParameterSpace"]


class ParameterSpace:
    """Named blocks of parameters, each with its domain, laid out one after another.

    Parameters
    ----------
    blocks : mapping from name to Domain
    """

    def __init__(self, blocks: Mapping[str, Domain]) -> None:
        self.blocks = dict(blocks)
        self.slices: dict[str, slice] = {}
        self.size = 0
        for name, domain in self.blocks.items():
            self.slices[name] = slice(self.size, self.size + domain.size)
            self.size += domain.size

    def center(self) -> FloatArray:
        """Return the point that a solver starts from."""
        return self._blockwise(lambda domain, _: domain.center(), np.zeros(self.size))

    def project(self, flat: FloatArray) -> FloatArray:
        """Return the nearest feasible point."""
        return self._blockwise(lambda domain, part: domain.project(part), flat)

    def to_free(self, flat: FloatArray) -> FloatArray:
        """Return unconstrained coordinates."""
        return self._blockwise(lambda domain, part: domain.to_free(part), flat)

    def from_free(self, free: FloatArray) -> FloatArray:
        """Return the point that unconstrained coordinates stand for."""
        return self._blockwise(lambda domain, part: domain.from_free(part), free)

    def pull_back(self, free: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient in unconstrained coordinates."""
        parts = [
            domain.pull_back(free[self.slices[name]], gradient[self.slices[name]])
            for name, domain in self.blocks.items()
        ]
        return np.concatenate(parts) if parts else gradient

    def _blockwise(
        self, apply: Callable[[Domain, FloatArray], FloatArray], flat: FloatArray
    ) -> FloatArray:
        parts = [
            apply(domain, flat[self.slices[name]])
            for name, domain in self.blocks.items()
        ]
        return np.concatenate(parts) if parts else flat
