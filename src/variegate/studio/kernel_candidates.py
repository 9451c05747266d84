"""Candidate kernels: learning with one of them, and comparing all of them.

One model is learned, for omega 1, and the knob changes it as decisions with costs do:
where a missed item costs ``omega`` times as much as a wrong one, the odds of all items
are multiplied by ``omega``, that is, half its logarithm is added to the log-quality.
The greedy choice then only grows with omega, so that a slider takes nothing away on its
way up.  A model learned for each omega, as ``variegate fit`` does it, takes several
times as long, and its choices need not grow with omega.

Kernels start from all groups: a model learns from the groups that are done, at first
from one or two, but kinds of items and bandwidths are seen in all items.

The comparison is that of :class:`variegate.tuning.kernel_search.KernelSearch`, as
``variegate fit`` makes it, made when 4, 8, 16, 32, ... groups are done.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from variegate._typing import IntArray
from variegate.estimator import AllAlikeWarning, LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import (
    FixedKernel,
    Kernel,
    Kinds,
    Linear,
    Mixture,
    MultipleKernel,
)
from variegate.tuning.family import OmegaFamily, fit_from_neighbour
from variegate.tuning.kernel_search import KernelSearch

#: A group, and the numbers of the items that were picked from it.
Example = tuple[GroundSet, IntArray]

#: A penalty that is strong enough for a single group; iterations and a tolerance for
#: fits that start where the last one ended.
_ESTIMATOR = LargeMarginDPP(lam=4.0, l2=1e-2, decoder="greedy", max_iter=60, tol=1e-2)

#: Iterations of a fit that starts from one with a group less, the most items that
#: kernels are initialized on, and the most groups that they are compared on.
_WARM_ITER = 10
_MOST_ITEMS = 20_000
_MOST_COMPARED = 150


def fit_model(
    estimator: LargeMarginDPP,
    examples: Sequence[Example],
    start: LargeMarginDPP | None = None,
) -> LargeMarginDPP:
    """Return a clone of ``estimator`` fitted to examples.

    With ``start``, a fitted model, a copy of it is fitted for ``_WARM_ITER`` more
    iterations.
    """
    ground_sets, picks = map(list, zip(*examples, strict=True))
    if start is None:
        model = clone(estimator)
    else:
        model = copy.copy(start).set_params(max_iter=_WARM_ITER)
    return fit_from_neighbour(model, ground_sets, picks, estimator.lam, 1.0)


def candidates_for(
    kernels: Mapping[str, Kernel], ground_sets: Sequence[GroundSet]
) -> dict[str, LargeMarginDPP]:
    """Return unfitted estimators by kernel name, initialized on the first groups.

    Kernels for which these groups do not suffice, such as Gaussians where no two items
    differ in similarity, are left out; ValueError if that leaves none.
    """
    ends = np.cumsum([len(ground_set) for ground_set in ground_sets])
    some = ground_sets[: max(1, int((ends <= _MOST_ITEMS).sum()))]
    found, problems = {}, list[ValueError]()
    for name, kernel in kernels.items():
        try:
            initialized = initialize_kernel(kernel, some)
        except ValueError as error:
            problems.append(error)
            continue
        found[name] = clone(_ESTIMATOR).set_params(kernel=initialized)
    if not found:
        raise problems[0]
    return found


def odds_family(model: LargeMarginDPP) -> OmegaFamily:
    """Return a family: for each omega, ``model`` with odds multiplied by omega."""
    model = copy.copy(model)
    model.kernel_ = model.kernel = _storable_kernel(model.kernel_)
    return OmegaFamily.by_odds(model)


def _storable_kernel(kernel: Kernel) -> Kernel:
    """Return a copy of a fitted kernel, of a class that model files can hold."""
    kernel = copy.copy(kernel)
    if isinstance(kernel, InitializedKinds):
        kernel.__class__ = Kinds
    if isinstance(kernel, Mixture):
        kernel.kernels = list(map(_storable_kernel, kernel.kernels))
        kernel.kernels_ = list(map(_storable_kernel, kernel.kernels_))
    return kernel


class InitializedKinds(Kinds):
    """:class:`variegate.Kinds` that keep their first centres in every fit and clone."""

    def fit(self, ground_sets: Sequence[GroundSet]) -> Self:
        """Compute the centres of kinds, unless there are some; return this kernel."""
        return self if hasattr(self, "centers_") else super().fit(ground_sets)

    def __sklearn_clone__(self) -> Self:
        """Return a copy with the centres, which ``clone`` would drop."""
        return copy.copy(self)


def initialize_kernel(kernel: Kernel, ground_sets: Sequence[GroundSet]) -> Any:
    """Return a kernel whose later fits start from these ground sets.

    Centres of ``Kinds`` and default bandwidths are computed here, and every later fit
    starts from them; other kernels are returned as they are.
    """
    if isinstance(kernel, Mixture):
        parts = [initialize_kernel(part, ground_sets) for part in kernel.kernels]
        return clone(kernel).set_params(kernels=parts)
    if isinstance(kernel, Kinds):
        return InitializedKinds(**kernel.get_params(deep=False)).fit(ground_sets)
    if isinstance(kernel, MultipleKernel) and kernel.bandwidths is None:
        found = clone(kernel).fit(ground_sets).bandwidths_
        several: Any = {name: values.tolist() for name, values in found.items()}
        bandwidths = several[None] if list(several) == [None] else several
        return clone(kernel).set_params(bandwidths=bandwidths)
    return kernel


@dataclass(frozen=True, eq=False)
class Comparison:
    """The best of several candidates, and a sentence about all of them."""

    candidate: LargeMarginDPP
    sentence: str


def is_compared(n: int) -> bool:
    """Return whether candidates are compared once n groups are done: 4, 8, 16, ..."""
    return n >= 4 and n & (n - 1) == 0


def compare(
    kernels: Mapping[str, Kernel],
    ground_sets: Sequence[GroundSet],
    examples: Sequence[Example],
) -> Comparison:
    """Compare kernels by cross-validation on the last ``_MOST_COMPARED`` examples.

    ``ground_sets`` are those of all groups, on which kernels are initialized.
    """
    some = examples[-_MOST_COMPARED:]
    found: dict[str, Any] = {
        name: estimator.kernel
        for name, estimator in candidates_for(kernels, ground_sets).items()
    }
    search = KernelSearch(
        clone(_ESTIMATOR),
        found,
        Linear(),
        [n for n, k in found.items() if isinstance(k, FixedKernel | MultipleKernel)],
        decoders=("greedy",),
        varies=("penalty", "l2"),
        tries_sizes=False,
    )
    compared, picks = map(list, zip(*some, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", AllAlikeWarning)
        winner = search.run(compared, picks)
    first, *others = winner.standings
    scores = ", ".join(f"{one.name} {one.mean:.2f}" for one in others)
    return Comparison(
        clone(winner.contender.model),
        f"In cross-validation on {len(some)} groups, {first.name} did best "
        f"(F {first.mean:.2f}" + (f"; {scores})." if scores else ")."),
    )
