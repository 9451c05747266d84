"""Learning from the groups that are done, quickly, from where it stood before.

A :class:`Lesson` says how: with which similarity, which settings, how to choose.  One
is drawn up for every similarity that DATA allows; which of them is best is decided by
:mod:`variegate.studio.comparing`.

One model is learned, for omega 1, and the knob changes it as decisions with costs do:
where a missed item costs ``omega`` times as much as a wrong one, the odds of all items
are multiplied by ``omega``, that is, half its logarithm is added to the log-quality.
What is chosen greedily then only grows as omega does, so that a slider takes nothing
away on its way up.  A model learned for each omega, as ``variegate fit`` does it, takes
several times as long, and its choices need not grow with omega.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from variegate._typing import FloatArray, IntArray
from variegate.estimator import AllAlikeWarning, LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.studio.settled import plain, settled
from variegate.tuning.family import OmegaFamily, fit_next

__all__ = ["OMEGAS", "Example", "Lesson", "lessons_for", "over_omega", "weights_of"]

#: A group, and the items that were picked from it.
Example = tuple[GroundSet, IntArray]

#: The ends of the knob, and its middle.
OMEGAS = (1 / 64, 1.0, 64.0)

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
        self, examples: Sequence[Example], start: LargeMarginDPP | None = None
    ) -> LargeMarginDPP:
        """Return a model.

        With a ``start``, which was learned by the same lesson, it goes on from there
        for a few iterations.
        """
        ground_sets = [ground_set for ground_set, _ in examples]
        picks = [picked for _, picked in examples]
        if start is None:
            model = clone(self.estimator)
        else:
            model = copy.copy(start).set_params(max_iter=_WARM_ITER)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", AllAlikeWarning)
            return fit_next(model, ground_sets, picks, self.estimator.lam, 1.0)


def over_omega(model: LargeMarginDPP) -> OmegaFamily:
    """Return what a model is at every omega of the knob, fit for model files."""
    model = plain(model)
    models = []
    for omega in OMEGAS:
        other = copy.copy(model)
        other.set_params(omega=omega)
        other.intercept_ = model.intercept_ + 0.5 * float(np.log(omega))
        models.append(other)
    return OmegaFamily(OMEGAS, tuple(models))


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
