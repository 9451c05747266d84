"""Convex combinations of kernels of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from sklearn.base import clone

from variegate._typing import FloatArray
from variegate.ground_set import GroundSet
from variegate.kernels.base import FixedKernel
from variegate.kernels.weighted import WeightedSum


class Mixture(WeightedSum):
    """A convex combination of kernels, its weights learned.

    Parameters
    ----------
    kernels : sequence of kernels without parameters of their own
        For features of several kinds, let each kernel name its block:
        ``Mixture([Gaussian(1.0, block="colour"), Linear(block="texture")])``.

    Attributes
    ----------
    kernels_ : list of fitted copies, after ``fit``
    """

    def __init__(self, kernels: Sequence[FixedKernel]) -> None:
        self.kernels = kernels

    def _checked(self) -> Sequence[FixedKernel]:
        if not hasattr(self.kernels, "__len__"):
            raise ValueError(f"kernels must be a list of kernels, got {self.kernels!r}")
        if not len(self.kernels):
            raise ValueError("a mixture needs at least one kernel")
        for kernel in self.kernels:
            if not isinstance(kernel, FixedKernel):
                raise ValueError(
                    "a mixture combines kernels without parameters of their own, "
                    f"got {kernel!r}"
                )
        return self.kernels

    def fit(self, ground_sets: Sequence[GroundSet]) -> Self:
        """Fit a copy of every kernel."""
        self.kernels_ = [clone(part).fit(ground_sets) for part in self._checked()]
        return self

    def get_state(self) -> dict[str, Any]:
        """Return what the parts have settled."""
        return {"kernels": [kernel.get_state() for kernel in self._parts()]}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take back what the parts have settled."""
        self.kernels_ = [clone(part) for part in self._checked()]
        for kernel, part in zip(self.kernels_, state["kernels"], strict=True):
            kernel.set_state(part)

    def _parts(self) -> Sequence[FixedKernel]:
        return getattr(self, "kernels_", None) or self._checked()

    @property
    def n_weights(self) -> int:
        """The number of kernels."""
        return len(self._checked())

    def factors(self, ground_set: GroundSet) -> list[FloatArray] | None:
        """Return the factor of every kernel, if all have one."""
        factors = []
        for kernel in self._parts():
            parts = kernel.factors(ground_set)
            if parts is None or len(parts) != 1:
                return None
            factors += parts
        return factors

    def matrices(self, ground_set: GroundSet) -> Sequence[FloatArray]:
        """Return the similarity of every kernel."""
        return [kernel.prepare(ground_set) for kernel in self._parts()]
