"""The items that a method chooses from, and items that are there already."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.baselines.redundancy import Nearest, basis_of
from variegate.decoding import Constraint

__all__ = ["Items"]


@dataclass(frozen=True, eq=False)
class Items:
    """Items to choose from, and ``included``, the numbers of those chosen before.

    Symbols are those of :mod:`variegate.baselines.methods`; ``limit`` has ``at_most``
    and perhaps ``k``, the number of all items that will be chosen, with the included.
    ``given`` (M, D) are rows of items that are there already, and not among these.
    """

    F: FloatArray
    z: FloatArray
    included: IntArray
    diversity: float
    rng: np.random.Generator
    limit: Constraint | None = None
    given: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    @cached_property
    def weights(self) -> FloatArray:
        """Relevance (N,) as weighed against diversity.

        With given items it is at most 0, so that their near copies, which have no part
        in the unit of relevance, weigh no more than the best of the others.
        """
        if len(self.given) == 0 or self.diversity == 0.0:
            return self.z
        return np.minimum(self.z, 0.0)

    @cached_property
    def basis(self) -> FloatArray:
        """An orthonormal basis (rank, D) of what included and given items span."""
        included, given = self.F[self.included], self.given
        span = basis_of(included)
        return np.concatenate([span, basis_of(given - (given @ span.T) @ span)])

    @cached_property
    def similarity_to_given(self) -> FloatArray:
        """The similarity (N,) of each item to the nearest of the given items."""
        return Nearest(self.F, self.given).all_values()

    def others(self) -> IntArray:
        """Return the numbers of items not included, the most relevant first."""
        ranked = np.argsort(-self.z, kind="stable")
        return ranked[self.is_open()[ranked]]

    def is_open(self) -> BoolArray:
        """Return a mask (N,) of the items not included, whatever the limit."""
        return ~np.isin(np.arange(len(self.F)), self.included)

    def leaves_room(self, chosen: list[int]) -> BoolArray:
        """Return a mask (N,) of the items that may be added to included and chosen."""
        if self.limit is None:
            return np.ones(len(self.F), dtype=bool)
        return self.limit.leaves_room([*self.included.tolist(), *chosen])

    def first_allowed(
        self, order: IntArray, k: int, chosen: list[int] | None = None
    ) -> IntArray:
        """Return the first ``k`` of ``order`` that the limit allows together.

        ``chosen`` are items chosen after the ``included``: both count within the limit.
        With ``limit.k``, items that leave fewer than so many in all are skipped.
        """
        if self.limit is None or self.limit.at_most is None:
            return order[:k]
        at_most, before = self.limit.at_most, chosen or []
        if self.limit.k is None or len(at_most.labels) == 1:
            return at_most.first_allowed(order, k, [*self.included.tolist(), *before])
        taken: list[int] = []
        while len(taken) < k and len(order):
            order = order[self.leaves_room([*before, *taken])[order]]
            taken += order[:1].tolist()
        return np.array(taken, dtype=np.intp)
