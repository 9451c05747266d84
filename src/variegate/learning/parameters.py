"""A flat view over the structured parameters of a model.

Solvers work on one vector; the model thinks of ``θ``, an intercept and the kernel's
parameters.  :class:`ParameterSpace` knows which slice is which, and the domain of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from variegate._typing import FloatArray
from variegate.ground_set import GroundSetError
from variegate.kernels.domains import Domain, Free, Product


class InfeasibleError(GroundSetError):
    """A ground set's loss is infinite at a point; a search may step back from it."""


@dataclass(frozen=True, eq=False)
class Scaled(Free):
    """Real vectors whose free coordinates are ``root @ (scale * parameters)``.

    With the spread of each feature as the scale and a root of their correlations, steps
    and tolerance of a solver do not depend on the units of features, nor on how they
    are correlated.  Without a root, it is the identity.
    """

    scale: FloatArray
    root: FloatArray | None = None

    @cached_property
    def _inverse(self) -> FloatArray | None:
        """The inverse of ``root``, or None for the identity."""
        return None if self.root is None else np.asarray(np.linalg.inv(self.root))

    def to_free(self, parameters: FloatArray) -> FloatArray:
        """Return the free coordinates of parameters."""
        scaled = parameters * self.scale
        return scaled if self.root is None else self.root @ scaled

    def from_free(self, free: FloatArray) -> FloatArray:
        """Return the parameters at free coordinates."""
        scaled = free if self._inverse is None else self._inverse @ free
        return scaled / self.scale

    def pull_back(self, free: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return ``∂f/∂free`` from ``gradient``, that in the parameters."""
        scaled = gradient / self.scale
        return scaled if self._inverse is None else self._inverse.T @ scaled


class ParameterSpace(Product):
    """The domain of one flat vector: named parts, each with a domain, in this order."""

    def __init__(self, domains: Mapping[str, Domain]) -> None:
        super().__init__(tuple(domains.values()))
        ends = np.cumsum([0, *(domain.size for domain in self.parts)]).tolist()
        self.slices = dict(zip(domains, map(slice, ends, ends[1:]), strict=True))

    def unpack(self, flat: FloatArray) -> dict[str, FloatArray]:
        """Return the parts of a flat vector by name, as views into the vector."""
        return {name: flat[part] for name, part in self.slices.items()}

    def pack(self, parts: Mapping[str, FloatArray]) -> FloatArray:
        """Return the flat vector of parts given by name."""
        return np.concatenate([parts[name] for name in self.slices])

    def without_roots(self) -> ParameterSpace:
        """Return a copy whose :class:`Scaled` parts have no ``root``, for Adam.

        Each of their free coordinates is one parameter times its scale.
        """
        other = copy(self)
        other.parts = tuple(
            replace(domain, root=None) if isinstance(domain, Scaled) else domain
            for domain in self.parts
        )
        return other
