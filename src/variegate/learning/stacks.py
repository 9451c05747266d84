"""Ground sets of equal size that are evaluated together, as the problem holds them.

A :class:`DenseStack` is ``B`` ground sets with N x N similarities; a :class:`DualStack`
or :class:`EmbeddedStack` is one ground set with a similarity of low rank.  ``u`` are
log-qualities of shape (B, N), or (N,) of one with a low rank; ``parameters`` are the
kernel's; ``K`` is the marginal kernel, so ``K_ii`` is the probability of an item.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSet, GroundSetError, name_position_in_errors
from variegate.kernels import Kernel
from variegate.kernels.base import PullBack
from variegate.kernels.weighted import PackedSimilarities
from variegate.learning.dual import (
    DualPoint,
    LowRankResolvent,
    log_det_and_inverse_of_target,
)
from variegate.learning.factors import Factors
from variegate.learning.objective import LargeMarginLoss, Targets, impossible_item_error
from variegate.linalg.determinants import Resolvent, add_jitter, with_jitter
from variegate.linalg.lapack import scratch_array
from variegate.linalg.limits import STACK_ENTRIES, STACK_LIMIT, STACK_SETS


def groups_of_equal_size(
    ground_sets: Sequence[GroundSet], stackable: bool
) -> list[list[int]]:
    """Return lists of indices of ground sets to be stacked, with equally many items.

    Lists have one index for large ground sets, and for all if not ``stackable``.
    """
    by_size: dict[int, list[int]] = defaultdict(list)
    for position, ground_set in enumerate(ground_sets):
        by_size[len(ground_set)].append(position)
    groups: list[list[int]] = []
    for size, positions in by_size.items():
        step = 1
        if stackable and size <= STACK_LIMIT:
            step = min(STACK_SETS, max(1, STACK_ENTRIES // size**2))
        groups += [positions[k : k + step] for k in range(0, len(positions), step)]
    return groups


def stack_costs(costs: Sequence[FloatArray | float], n_items: int) -> FloatArray:
    """Return costs as an array (B, N), or (B, 1) if each set has one number."""
    if all(isinstance(cost, float | int) for cost in costs):
        return np.array(costs, dtype=np.float64)[:, None]
    return np.stack([np.broadcast_to(cost, n_items) for cost in costs])


def prepare_stack(
    kernel: Kernel, positions: IntArray, ground_sets: Sequence[GroundSet]
) -> Any:
    """Return ground sets of equal size, prepared for ``kernel.value``.

    If the kernel does not take stacks, there must be only one, prepared by itself.
    ``positions`` are their numbers in errors.
    """
    together = kernel.prepare_together(ground_sets) if kernel.stackable else None
    if together is not None:
        return together
    prepared = []
    for position, ground_set in zip(positions.tolist(), ground_sets, strict=True):
        with name_position_in_errors(position):
            prepared.append(kernel.prepare(ground_set))
    return kernel.stack(prepared) if kernel.stackable else prepared[0]


@dataclass
class _Stack:
    """Ground sets of equal size, or one.

    Attributes
    ----------
    positions : (B,)
        Numbers of the ground sets in errors.
    X : (B, N, d), or (N, d) of one with a low rank
        Quality features, centred.
    prepared : the ground sets as the kernel prepared them, or their factors
    learned : bool
        Whether the kernel has parameters.
    """

    positions: IntArray
    X: FloatArray
    prepared: Any
    targets: Targets
    kernel: Kernel
    jitter: float

    def __post_init__(self) -> None:
        """Set ``learned``, whether the kernel has parameters."""
        self.learned = self.kernel.domain.size > 0

    def impossible_item_error(self, index: int, item: int) -> GroundSetError:
        """Return the error for an item of ground set ``index`` that has no features."""
        given = self.targets.given
        is_given = given is not None and bool(given[index, item])
        return impossible_item_error(self.positions[index], item, is_given)


@dataclass
class DenseStack(_Stack):
    """Ground sets with their similarities; compiled loops do the work, or NumPy."""

    compiled: bool

    def __post_init__(self) -> None:
        """Compute ``S`` and ``log det S_y`` now if the kernel has no parameters."""
        super().__post_init__()
        self.target_log_det: FloatArray | None = None
        if not self.learned:
            # Neither the similarity nor its determinants will ever change.
            self.prepared, _ = self._similarity_and_pull_back(np.zeros(0))
            own = np.diagonal(self.prepared, axis1=-2, axis2=-1)
            impossible = self.targets.indicator & (own <= 0.0)
            if impossible.any():
                stack, item = np.argwhere(impossible)[0]
                raise self.impossible_item_error(stack, item)
            self.target_log_det, _ = self.targets.log_det_and_inverse(self.prepared)

    def _similarity_and_pull_back(
        self, parameters: FloatArray
    ) -> tuple[FloatArray, PullBack]:
        """Return ``S`` (B, N, N) with jitter, and a function from gradients in ``S``.

        The function returns the gradient in the kernel's parameters.  ``S`` may be in a
        scratch array, which the next call overwrites.
        """
        pull_back: PullBack
        if isinstance(self.prepared, PackedSimilarities):
            room = scratch_array("similarity", self.prepared.shape)
            S = self.prepared.mixture(parameters, room)
            pull_back = partial(self.kernel.pull_back, self.prepared, parameters)
        else:
            S, pull_back = self.kernel.value_and_pull_back(self.prepared, parameters)
        S = S if S.ndim == 3 else S[None]
        if not self.kernel.makes_new:
            return with_jitter(S, self.jitter), pull_back
        add_jitter(S, self.jitter)
        return S, pull_back

    def marginals(self, parameters: FloatArray, u: FloatArray) -> FloatArray:
        """Return the probabilities ``K_ii`` (B, N) of items."""
        at = self._similarity_and_pull_back
        S = at(parameters)[0] if self.learned else self.prepared
        return Resolvent.of(S, u).included

    def evaluate(
        self, loss: LargeMarginLoss, parameters: FloatArray, u: FloatArray
    ) -> tuple[float, FloatArray, FloatArray | None]:
        """Return the sum of losses, its gradient in ``u``, and that in parameters.

        The last is None if the kernel has none.
        """
        S, pull_back = self.prepared, None
        if self.learned:
            S, pull_back = self._similarity_and_pull_back(parameters)
        terms = loss.value_and_gradient(
            S,
            u,
            self.targets,
            target_log_det=self.target_log_det,
            similarity_gradient=self.learned,
            out=scratch_array("gradient", S.shape) if self.learned else None,
            compiled=self.compiled,
        )
        G, slope = terms.similarity_gradient, None
        if G is not None and pull_back is not None:
            add_jitter(G, self.jitter)
            G = G if self.kernel.stackable else G[0]
            slope = pull_back(G)
        return float(terms.value.sum()), terms.quality_gradient, slope


class _LowRankStack(_Stack):
    """One ground set whose similarity has a low rank."""

    @abstractmethod
    def _weighted_factors(
        self, parameters: FloatArray
    ) -> tuple[Factors, FloatArray, FloatArray]:
        """Return factors, their weights (K,), and the ridge (N,) added to ``S_ii``."""

    @abstractmethod
    def _kernel_gradient(self, at: DualPoint, parameters: FloatArray) -> FloatArray:
        """Return the gradient of the loss in the kernel's parameters."""

    def marginals(self, parameters: FloatArray, u: FloatArray) -> FloatArray:
        """Return the probabilities ``K_ii`` (1, N) of items."""
        return LowRankResolvent(*self._weighted_factors(parameters), u).included[None]

    def evaluate(
        self, loss: LargeMarginLoss, parameters: FloatArray, u: FloatArray
    ) -> tuple[float, FloatArray, FloatArray | None]:
        """Return loss, gradient in ``u``, and in parameters: None or empty without."""
        at = DualPoint(loss, *self._weighted_factors(parameters), u, self.targets)
        if at.is_flat:
            return 0.0, np.zeros(len(u)), np.zeros(len(parameters))
        slope = self._kernel_gradient(at, parameters) if self.learned else None
        return at.value, at.quality_gradient(), slope


class DualStack(_LowRankStack):
    """One ground set whose similarity is a weighted sum of fixed ``Factors``."""

    def __post_init__(self) -> None:
        """Raise GroundSetError for wanted items that can never be chosen."""
        super().__post_init__()
        members = self.targets.members[0][self.targets.present[0]]
        impossible = members[(self.prepared.squared[members] <= 0.0).all(axis=1)]
        if len(impossible):
            raise self.impossible_item_error(0, impossible[0])
        if not self.learned:  # fails now rather than at the first evaluation
            log_det_and_inverse_of_target(*self._weighted_factors(np.zeros(0)), members)

    def _weighted_factors(
        self, parameters: FloatArray
    ) -> tuple[Factors, FloatArray, FloatArray]:
        """Return the fixed factors, their weights (K,), and the ridge (N,)."""
        factors: Factors = self.prepared
        weights = factors.weights(parameters)
        return factors, weights, self.jitter * (factors.squared @ weights)

    def _kernel_gradient(self, at: DualPoint, parameters: FloatArray) -> FloatArray:
        """Return the gradient of the loss in the weights of the factors."""
        return at.weight_gradient(self.jitter)


class EmbeddedStack(_LowRankStack):
    """One ground set whose similarity is made of a few features that are learned."""

    def _weighted_factors(
        self, parameters: FloatArray
    ) -> tuple[Factors, FloatArray, FloatArray]:
        """Return the kernel's embedding as factors, weights (K,) and ridge (N,)."""
        parts, weights, ridge = self.kernel.embedding(self.prepared, parameters)
        factors = Factors.concatenate(parts)
        own = factors.squared @ weights + ridge
        return factors, weights, ridge + self.jitter * own

    def _kernel_gradient(self, at: DualPoint, parameters: FloatArray) -> FloatArray:
        """Return the gradient of the loss in the parameters of the embedding."""
        # The jitter is relative to the diagonal, and so part of its derivative.
        diagonal, product = at.diagonal(), at.gradient_times_factor()
        product += (self.jitter * diagonal)[:, None] * at.factors.columns
        slope: FloatArray = self.kernel.pull_back_embedding(
            self.prepared, parameters, product, (1.0 + self.jitter) * diagonal
        )
        return slope
