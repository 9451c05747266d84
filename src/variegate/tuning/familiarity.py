"""Ground sets that are like those that kinds were learned from, and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from variegate._typing import FloatArray
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, Kinds, Mixture

__all__ = ["Familiarity"]

#: Ground sets that are looked at, at most.
_MAX_SETS = 500

#: The share of training sets below which the usual ends.
_UNUSUAL = 0.01


@dataclass(frozen=True, eq=False)
class Familiarity:
    """How near the items of a ground set are to the kinds that a kernel has seen.

    Kinds that were not there in training cannot be told apart by what was learned of
    others.  A ground set is unfamiliar if its items, on average, have no larger cosine
    with the nearest centre of a kind than ``least``: what training items have whose
    principal components are shuffled, or, if that is less, the first percentile of the
    training sets, less the distance from there to their median.

    Attributes
    ----------
    kernel : Kernel
        Settled, with :class:`variegate.Kinds` in it.
    least : float
    """

    kernel: Kernel
    least: float

    @classmethod
    def of(cls, kernel: Kernel, ground_sets: Sequence[GroundSet]) -> Self | None:
        """Return that of some training sets; None for a kernel without kinds."""
        if not kinds_of(kernel):
            return None
        some = ground_sets[:: -(-len(ground_sets) // _MAX_SETS)]
        low, middle = np.quantile([_mean(kernel, one) for one in some], [_UNUSUAL, 0.5])
        by_chance = [_by_chance(kinds, some) for kinds in kinds_of(kernel)]
        least = min(float(low - (middle - low)), float(np.mean(by_chance)))
        return cls(kernel, least)

    def __call__(self, ground_set: GroundSet) -> bool:
        """Return whether a ground set is like those of training."""
        return _mean(self.kernel, ground_set) > self.least


def kinds_of(kernel: Kernel) -> list[Kinds]:
    """Return the kinds in a settled kernel."""
    parts = kernel.kernels_ if isinstance(kernel, Mixture) else [kernel]
    return [part for part in parts if isinstance(part, Kinds)]


def _mean(kernel: Kernel, ground_set: GroundSet) -> float:
    return float(np.mean([kinds.familiarity(ground_set) for kinds in kinds_of(kernel)]))


def _by_chance(kinds: Kinds, ground_sets: Sequence[GroundSet]) -> float:
    """Return how near to a kind items are that have no kind, but the same spread."""
    rng = np.random.default_rng(0)
    items = np.concatenate([kinds.prepare(ground_set) for ground_set in ground_sets])
    _, axes = np.linalg.eigh(items.T @ items)
    along: FloatArray = rng.permuted(items @ axes, axis=0)
    shuffled = GroundSet(
        along[:, :1], {kinds.block or "": along @ axes.T + kinds.center_}
    )
    return float(kinds.familiarity(shuffled).mean())
