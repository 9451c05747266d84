"""Learning from the groups that are done, quickly, from where it stood before.

A :class:`Lesson` says how: with which similarity, which settings, how to choose.  One
is drawn up for every similarity that DATA allows; which of them is best is decided by
:mod:`variegate.studio.comparing`.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from variegate._typing import FloatArray, IntArray
from variegate.estimator import AllAlikeWarning, LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.studio.settled import plain, settled
from variegate.tuning.family import OmegaFamily, fit_next, outwards

__all__ = ["OMEGAS", "Example", "Lesson", "lessons_for", "weights_of"]

#: A group, and the items that were picked from it.
Example = tuple[GroundSet, IntArray]

#: The omegas that are learned; the knob goes from the first to the last.
OMEGAS = (1 / 64, 1 / 8, 1.0, 8.0, 64.0)

#: The weight of the margin away from omega 1: what makes omega act.
_FAR_LAM = 16.0

#: What is learned with.  A penalty that is strong enough for a single group; iterations
#: and a tolerance for fits that start where the last one ended.
ESTIMATOR = LargeMarginDPP(lam=4.0, l2=1e-2, decoder="greedy", max_iter=60, tol=1e-2)

#: Iterations of a fit that goes on from one with a group less.
_WARM_ITER = 10

#: Items that kernels are settled on, at most.
_SETTLED_ITEMS = 20_000


@dataclass(frozen=True, eq=False)
class Lesson:
    """How to learn.

    Attributes
    ----------
    name : str
        Of the similarity, as people read it.
    estimator : LargeMarginDPP
        With a settled kernel, and a decoder to choose by.
    """

    name: str
    estimator: LargeMarginDPP

    @property
    def decoder(self) -> str:
        """How a set is chosen."""
        return str(self.estimator.decoder)

    def fit(
        self, examples: Sequence[Example], start: OmegaFamily | None = None
    ) -> OmegaFamily:
        """Return models for all omegas.

        With a ``start``, a family of the same lesson, each goes on from there for a few
        iterations; without, those beside omega 1 go on from their neighbours.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", AllAlikeWarning)
            if start is not None:
                pairs = zip(OMEGAS, start.models, strict=True)
                models = {o: self._go_on(m, o, examples, _WARM_ITER) for o, m in pairs}
            else:
                models = self._from_the_middle(examples)
        return OmegaFamily(OMEGAS, tuple(models[omega] for omega in OMEGAS))

    def _from_the_middle(
        self, examples: Sequence[Example]
    ) -> dict[float, LargeMarginDPP]:
        first, sides = outwards(OMEGAS)
        most = self.estimator.max_iter
        models = {first: self._go_on(self.estimator, first, examples, most)}
        for side in sides:
            here = models[first]
            for omega in side:
                here = models[omega] = self._go_on(here, omega, examples, most)
        return models

    def fit_one(self, examples: Sequence[Example]) -> LargeMarginDPP:
        """Return a model for omega 1."""
        return self._go_on(self.estimator, 1.0, examples, self.estimator.max_iter)

    def _go_on(
        self,
        model: LargeMarginDPP,
        omega: float,
        examples: Sequence[Example],
        most: int,
    ) -> LargeMarginDPP:
        """Learn for an omega, from where a model is, in so many iterations."""
        ground_sets = [ground_set for ground_set, _ in examples]
        picks = [picked for _, picked in examples]
        own = self.estimator.lam
        lam = own if omega == 1.0 else max(own, _FAR_LAM)
        following = copy.copy(model).set_params(max_iter=most)
        return fit_next(following, ground_sets, picks, lam, omega)

    def shown(self, family: OmegaFamily) -> OmegaFamily:
        """Return a family that a model file can hold."""
        return OmegaFamily(family.omegas, tuple(plain(m) for m in family.models))


def lessons_for(
    kernels: Mapping[str, Kernel], ground_sets: Sequence[GroundSet]
) -> dict[str, Lesson]:
    """Return a lesson for every similarity, settled on all groups or many of them."""
    some: list[GroundSet] = []
    n_items = 0
    for ground_set in ground_sets:
        if some and n_items + len(ground_set) > _SETTLED_ITEMS:
            break
        some.append(ground_set)
        n_items += len(ground_set)
    return {
        name: Lesson(name, clone(ESTIMATOR).set_params(kernel=settled(kernel, some)))
        for name, kernel in kernels.items()
    }


def weights_of(
    model: LargeMarginDPP, names: Sequence[str]
) -> tuple[tuple[str, float], ...]:
    """Return the weights of features by name, the strongest first."""
    theta: FloatArray = model.theta_
    pairs = zip(names, theta.tolist(), strict=True)
    return tuple(sorted(pairs, key=lambda pair: -abs(pair[1])))
