"""Convex combinations of kernels of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSet
from variegate.kernels.base import Embedding, FixedKernel, Kernel, PullBack
from variegate.kernels.domains import Domain, Product, Simplex
from variegate.kernels.features import KernelWithStart
from variegate.kernels.known import Looks, merge_looks
from variegate.kernels.weighted import (
    PackedSimilarities,
    WeightedSum,
    pack_similarities,
    single_rung_chains,
)


class Mixture(WeightedSum):
    r"""A convex combination of kernels, its weights learned.

    .. math:: S = \sum_k w_k S^k(p_k), \qquad w_k \ge 0, \quad \sum_k w_k = 1

    The parameters are the weights and then, kernel by kernel, those of the kernels that
    have any.

    Parameters
    ----------
    kernels : sequence of kernels
        For features of several kinds, let each kernel name its block:
        ``Mixture([Gaussian(1.0, block="colour"), Linear(block="texture")])``.

    Attributes
    ----------
    kernels_ : list of fitted copies, after ``fit``
    """

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = kernels

    def _checked_kernels(self) -> Sequence[Kernel]:
        """Return the given kernels; ValueError unless a non-empty list of kernels."""
        if not hasattr(self.kernels, "__len__"):
            raise ValueError(f"kernels must be a list of kernels, got {self.kernels!r}")
        if not len(self.kernels):
            raise ValueError("a mixture needs at least one kernel")
        for kernel in self.kernels:
            if not isinstance(kernel, Kernel):
                raise ValueError(f"a mixture combines kernels, got {kernel!r}")
        return self.kernels

    def check(self) -> None:
        """Raise ValueError unless ``kernels`` is a list of valid kernels."""
        for kernel in self._checked_kernels():
            kernel.check()

    def fit(self, ground_sets: Sequence[GroundSet]) -> Self:
        """Set ``kernels_``, a fitted copy of every kernel, and return the mixture."""
        self.kernels_ = [
            clone(part).fit(ground_sets) for part in self._checked_kernels()
        ]
        return self

    def looks_at(self, sizes: IntArray) -> Looks:
        """Return the row numbers that any kernel reads, by index of the ground set."""
        return merge_looks(part.looks_at(sizes) for part in self._checked_kernels())

    def get_state(self) -> dict[str, Any]:
        """Return the states of all kernels, a list, under the key "kernels"."""
        return {"kernels": [kernel.get_state() for kernel in self._current_kernels()]}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore fitted copies of the kernels from ``get_state``."""
        self.kernels_ = [clone(part) for part in self._checked_kernels()]
        for kernel, part in zip(self.kernels_, state["kernels"], strict=True):
            kernel.set_state(part)

    def _current_kernels(self) -> Sequence[Kernel]:
        """Return the fitted kernels, or before ``fit`` the given ones."""
        return getattr(self, "kernels_", None) or self._checked_kernels()

    def _learned_kernels(self) -> dict[int, Kernel]:
        """Return the kernels with parameters of their own, by index in ``kernels``."""
        parts = enumerate(self._current_kernels())
        return {k: part for k, part in parts if not isinstance(part, FixedKernel)}

    def _fixed_indices(self) -> IntArray:
        """Return the indices in ``kernels`` of those without parameters."""
        learned = self._learned_kernels()
        return np.array([k for k in range(self.n_weights) if k not in learned], np.intp)

    @property
    def stackable(self) -> bool:  # type: ignore[override]
        """Tell whether every kernel takes ground sets of equal size in a stack."""
        return all(kernel.stackable for kernel in self._current_kernels())

    @property
    def n_weights(self) -> int:
        """Return the number of kernels, each of which has a weight."""
        return len(self._checked_kernels())

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        """Return the simplex of the weights, then the domains of learned kernels."""
        learned = [kernel.domain for kernel in self._learned_kernels().values()]
        weights = Simplex(self.n_weights)
        return Product((weights, *learned)) if learned else weights

    def split(self, parameters: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return the weights, and a list of the parameters of every learned kernel."""
        domain = self.domain
        if not isinstance(domain, Product):
            return parameters, []
        weights, *others = domain.split(parameters)
        return weights, others

    def penalty_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the sum of penalties, and its gradient in all parameters."""
        weights, others = self.split(parameters)
        each = zip(self._learned_kernels().values(), others, strict=True)
        found = [kernel.penalty_and_gradient(own) for kernel, own in each]
        gradients = [np.zeros(len(weights)), *(gradient for _, gradient in found)]
        total = sum((value for value, _ in found), 0.0)
        return total, np.concatenate(gradients)

    def factors(self, ground_set: GroundSet) -> list[FloatArray] | None:
        """Return one factor (N, D_k) for each kernel; None unless all have just one."""
        factors = []
        for kernel in self._current_kernels():
            factor = _single_factor(kernel, ground_set)
            if factor is None:
                return None
            factors.append(factor)
        return factors

    def prepare_embedding(self, ground_set: GroundSet, most: int) -> list[Any] | None:
        """Return, kernel by kernel, a fixed one's factor or a learned one's input.

        None where a kernel has neither factor nor embedding, where all columns together
        exceed ``most``, or where no kernel is learned: :meth:`factors` serve there.
        """
        learned, prepared = self._learned_kernels(), []
        if not learned:
            return None
        for place, kernel in enumerate(self._current_kernels()):
            if place in learned:
                part = kernel.prepare_embedding(ground_set, most)
                n_columns = kernel.embedding_size
            else:
                part = _single_factor(kernel, ground_set)
                n_columns = None if part is None else part.shape[1]
            if part is None or n_columns is None or n_columns > most:
                return None
            most -= n_columns
            prepared.append(part)
        return prepared

    def _embeddings(
        self, prepared: list[Any], parameters: FloatArray
    ) -> list[tuple[Kernel, FloatArray, Embedding]]:
        """Return (kernel, its parameters, its embedding) for each of ``kernels``.

        ``prepared`` is from :meth:`prepare_embedding`; a fixed kernel has no parameters
        and its factor as embedding.
        """
        learned = self._learned_kernels()
        own = dict(zip(learned, self.split(parameters)[1], strict=True))
        one, none = np.ones(1), np.zeros(0)
        return [
            (kernel, own[place], kernel.embedding(part, own[place]))
            if place in learned
            else (kernel, none, Embedding([part], one, 0.0))
            for place, (kernel, part) in enumerate(
                zip(self._current_kernels(), prepared, strict=True)
            )
        ]

    def embedding(self, prepared: list[Any], parameters: FloatArray) -> Embedding:
        """Return all kernels' factors, their weights and the weighted sum of ridges."""
        weights, _ = self.split(parameters)
        parts = [part for _, _, part in self._embeddings(prepared, parameters)]
        factors = [factor for part in parts for factor in part.factors]
        pairs = list(zip(weights, parts, strict=True))
        of_factors = np.concatenate([w * part.weights for w, part in pairs])
        ridge = float(sum(w * part.ridge for w, part in pairs))
        return Embedding(factors, of_factors, ridge)

    def pull_back_embedding(
        self,
        prepared: list[Any],
        parameters: FloatArray,
        product: FloatArray,
        diagonal: FloatArray,
    ) -> FloatArray:
        """Return the gradient in the weights and in the parameters of the kernels.

        By ``⟨G, F Fᵀ⟩ = ⟨F, G F⟩``: ``product`` is ``G Φ``, with all kernels' factors
        ``F`` side by side in ``Φ``, and ``diagonal`` (N,) that of ``G``.
        """
        weights, _ = self.split(parameters)
        slopes, gradients, start = np.zeros(self.n_weights), [], 0
        for place, (kernel, own, part) in enumerate(
            self._embeddings(prepared, parameters)
        ):
            slopes[place] = part.ridge * diagonal.sum()
            first = start
            for weight, factor in zip(part.weights, part.factors, strict=True):
                columns = product[:, start : start + factor.shape[1]]
                slopes[place] += weight * np.einsum("ij,ij->", factor, columns)
                start += factor.shape[1]
            if len(own):
                of_part = kernel.pull_back_embedding(
                    prepared[place], own, product[:, first:start], diagonal
                )
                gradients.append(weights[place] * of_part)
        return np.concatenate([slopes, *gradients])

    def matrices(self, ground_set: GroundSet) -> Sequence[FloatArray]:
        """Return the similarities (N, N) of only the kernels without parameters."""
        parts = self._current_kernels()
        return [parts[index].prepare(ground_set) for index in self._fixed_indices()]

    def prepare(self, ground_set: GroundSet) -> Any:
        """Return the packed similarities of fixed kernels, if all kernels are fixed.

        Otherwise a ``_Prepared``, with the prepared ground set of learned ones as well.
        """
        learned = self._learned_kernels()
        if not learned:
            return super().prepare(ground_set)
        fixed = self.matrices(ground_set)
        return _Prepared(
            pack_similarities(single_rung_chains(len(fixed)), fixed) if fixed else None,
            [kernel.prepare(ground_set) for kernel in learned.values()],
        )

    def similarity(self, ground_set: GroundSet, parameters: FloatArray) -> FloatArray:
        """Return the weighted sum (N, N); fixed kernels are not packed to make it."""
        if self._learned_kernels():
            return super().similarity(ground_set, parameters)
        S = np.zeros((len(ground_set), len(ground_set)))
        for weight, matrix in zip(parameters, self.matrices(ground_set), strict=True):
            S += weight * matrix
        return S

    def stack(self, prepared: Sequence[Any]) -> Any:
        """Stack prepared ground sets of equal size, kernel by kernel."""
        if not isinstance(prepared[0], _Prepared):
            return super().stack(prepared)
        fixed = [one.fixed for one in prepared if one.fixed is not None]
        return _Prepared(
            PackedSimilarities.stack(fixed) if fixed else None,
            [
                kernel.stack([one.learned[k] for one in prepared])
                for k, kernel in enumerate(self._learned_kernels().values())
            ],
        )

    def value(self, prepared: Any, parameters: FloatArray) -> FloatArray:
        """Return the weighted sum (..., N, N) of the similarities."""
        return self.value_and_pull_back(prepared, parameters)[0]

    def pull_back(
        self, prepared: Any, parameters: FloatArray, G: FloatArray
    ) -> FloatArray:
        """Return ``∂f/∂p`` in weights, then in learned kernels' parameters."""
        return self.value_and_pull_back(prepared, parameters)[1](G)

    def value_and_pull_back(
        self, prepared: Any, parameters: FloatArray
    ) -> tuple[FloatArray, PullBack]:
        """Return the similarity and a function from ``G = ∂f/∂S`` to ``∂f/∂p``."""
        if not isinstance(prepared, _Prepared):
            return prepared.mixture(parameters), prepared.inner_products
        weights, others = self.split(parameters)
        learned = self._learned_kernels()
        each = zip(learned.values(), prepared.learned, others, strict=True)
        parts = [kernel.value_and_pull_back(ready, own) for kernel, ready, own in each]
        S: Any = 0.0
        if prepared.fixed is not None:
            S = prepared.fixed.mixture(weights[self._fixed_indices()])
        for place, (value, _) in zip(learned, parts, strict=True):
            S = S + weights[place] * value

        def pull_back(G: FloatArray) -> FloatArray:
            """Return the gradient in weights, then in learned kernels' parameters."""
            slopes, gradients = np.zeros(self.n_weights), []
            if prepared.fixed is not None:
                slopes[self._fixed_indices()] = prepared.fixed.inner_products(G)
            for place, (value, of_part) in zip(learned, parts, strict=True):
                slopes[place] = float(np.vdot(G, value))
                gradients.append(weights[place] * of_part(G))
            return np.concatenate([slopes, *gradients])

        return np.asarray(S), pull_back


def scale_penalty(kernel: Kernel, factor: float) -> Kernel:
    """Return an unfitted copy of a kernel with penalties, if any, times ``factor``."""
    scaled: Kernel = clone(kernel)
    for part in scaled.kernels if isinstance(scaled, Mixture) else [scaled]:
        if isinstance(part, KernelWithStart):
            part.penalty *= factor
    return scaled


def _single_factor(kernel: Kernel, ground_set: GroundSet) -> FloatArray | None:
    """Return the only factor of a fixed kernel; None if it is learned or has others."""
    factors = kernel.factors(ground_set) if isinstance(kernel, FixedKernel) else None
    return factors[0] if factors is not None and len(factors) == 1 else None


class _Prepared(NamedTuple):
    """A ground set, or a stack of them, for a mixture with learned kernels."""

    fixed: PackedSimilarities | None  # None if all kernels are learned
    learned: list[Any]  # by kernel, as it has prepared the ground sets
