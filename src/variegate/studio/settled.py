"""Kinds whose start is settled once, on all items that the studio shows.

A model learns from the groups that are done, at first from one or two; what kinds of
items there are is seen from all groups, with or without picks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, Kinds, Mixture, MultipleKernel

__all__ = ["SettledKinds", "plain", "settled"]


class SettledKinds(Kinds):
    """:class:`variegate.Kinds` that start from given centres; parameters as there.

    Parameters
    ----------
    state : dict, optional
        That of kinds which were fitted, with ``center`` and ``centers``.
    """

    def __init__(
        self,
        n_kinds: int = 16,
        sharpness: float = 5.0,
        apart: float = 0.05,
        penalty: float = 1e-3,
        block: str | None = None,
        random_state: int = 0,
        state: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(n_kinds, sharpness, apart, penalty, block, random_state)
        self.state = state

    def fit(self, ground_sets: Sequence[GroundSet]) -> Self:
        """Take the centres that were given, whatever the ground sets."""
        if self.state is None:
            return super().fit(ground_sets)
        self.set_state(self.state)
        return self


def settled(kernel: Kernel, ground_sets: Sequence[GroundSet]) -> Kernel:
    """Return a kernel whose start is that which all of these ground sets give."""
    if isinstance(kernel, Mixture):
        parts = [settled(part, ground_sets) for part in kernel.kernels]
        mixture: Kernel = clone(kernel).set_params(kernels=parts)
        return mixture
    if isinstance(kernel, Kinds):
        state = clone(kernel).fit(ground_sets).get_state()
        return SettledKinds(**_kinds_parameters(kernel), state=state)
    if isinstance(kernel, MultipleKernel) and kernel.bandwidths is None:
        found = clone(kernel).fit(ground_sets).bandwidths_
        several: Any = {name: values.tolist() for name, values in found.items()}
        bandwidths = several[None] if list(several) == [None] else several
        ladder: Kernel = clone(kernel).set_params(bandwidths=bandwidths)
        return ladder
    return kernel


def plain(model: LargeMarginDPP) -> LargeMarginDPP:
    """Return a fitted model whose kernel is one that model files know."""
    fitted = _unsettled(model.kernel_)
    if fitted is not model.kernel_:
        fitted.set_state(model.kernel_.get_state())
    parts = {
        "theta": model.theta_,
        "intercept": np.array([model.intercept_]),
        "kernel": model.kernel_parameters_,
    }
    copied: LargeMarginDPP = clone(model)
    copied.set_params(kernel=_unsettled(model.kernel))
    return copied._set_fitted(fitted, parts, model.solver_result_)


def _unsettled(kernel: Any) -> Any:
    """Return a kernel with the same parameters, not fitted, of a class of its own."""
    if isinstance(kernel, SettledKinds):
        return Kinds(**_kinds_parameters(kernel))
    if isinstance(kernel, Mixture):
        parts = [_unsettled(part) for part in kernel.kernels]
        return clone(kernel).set_params(kernels=parts)
    return kernel


def _kinds_parameters(kernel: Kinds) -> dict[str, Any]:
    given: dict[str, Any] = kernel.get_params(deep=False)
    return {name: value for name, value in given.items() if name != "state"}
