"""Learning as one function of one vector: data, kernel and loss put together.

:class:`TrainingProblem` is the road from parameters to objective: quality and
similarity of every ground set, the loss, and the gradient pulled back the same way.
Small ground sets of equal size are stacked and go through each step together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from variegate import quality
from variegate._typing import FloatArray, IntArray
from variegate.domains import Domain, Free
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.linalg import STACK_LIMIT, NotPositiveDefiniteError, add_to_diagonal
from variegate.objective import LargeMarginLoss, Targets, ZeroProbabilityError
from variegate.parameters import ParameterSpace

__all__ = ["TrainingProblem", "with_jitter"]

_T = TypeVar("_T")


def with_jitter(S: FloatArray, jitter: float) -> FloatArray:
    """Return ``S`` with its diagonal raised by the share ``jitter``.

    Relative to the diagonal, so that rescaling an item's features, which is the same
    as changing its quality, changes nothing else.
    """
    S = S.copy()
    add_to_diagonal(S, jitter * np.diagonal(S, axis1=-2, axis2=-1))
    return S


@dataclass(frozen=True)
class _Stack:
    """Ground sets of equal size that are evaluated together."""

    positions: list[int]
    X: FloatArray
    prepared: Any
    targets: Targets
    fixed_similarity: FloatArray | None
    fixed_log_det: FloatArray | None


class TrainingProblem:
    r"""The objective of learning, with ``L2`` penalty.

    .. math:: F(\theta, b, p) = \frac{1}{n} \sum_n f_n(\theta, b, p)
        + \frac{l_2}{2} \|\theta\|^2

    with ``f_n`` the loss of :mod:`variegate.objective` at ``u = X_n θ + b`` and
    ``S = S_n(p)``, its diagonal raised by ``jitter``.

    Parameters
    ----------
    ground_sets : sequence of GroundSet
    subsets : sequence of sorted item numbers
    kernel : Kernel
    loss : LargeMarginLoss
    false_positive, false_negative : sequences of float or of arrays (N,)
        Error costs, one entry a ground set.
    fit_intercept : bool
    l2 : float
    jitter : float

    Attributes
    ----------
    space : ParameterSpace
        Blocks ``theta``, ``intercept`` and ``kernel``, those without parameters left
        out.
    """

    def __init__(
        self,
        ground_sets: Sequence[GroundSet],
        subsets: Sequence[IntArray],
        kernel: Kernel,
        loss: LargeMarginLoss,
        *,
        false_positive: Sequence[FloatArray | float],
        false_negative: Sequence[FloatArray | float],
        fit_intercept: bool = True,
        l2: float = 0.0,
        jitter: float = 1e-6,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.l2 = l2
        self.jitter = jitter
        self.n_sets = len(ground_sets)
        blocks: dict[str, Domain] = {"theta": Free(ground_sets[0].n_features)}
        if fit_intercept:
            blocks["intercept"] = Free(1)
        if kernel.domain.size:
            blocks["kernel"] = kernel.domain
        self.space = ParameterSpace(blocks)
        self._stacks = [
            self._stack(positions, ground_sets, subsets, false_positive, false_negative)
            for positions in self._groups(ground_sets)
        ]

    def _groups(self, ground_sets: Sequence[GroundSet]) -> list[list[int]]:
        by_size: dict[int, list[int]] = defaultdict(list)
        for position, ground_set in enumerate(ground_sets):
            by_size[len(ground_set)].append(position)
        groups: list[list[int]] = []
        for size, positions in by_size.items():
            if self.kernel.stackable and size <= STACK_LIMIT:
                groups.append(positions)
            else:
                groups += [[position] for position in positions]
        return groups

    def _stack(
        self,
        positions: list[int],
        ground_sets: Sequence[GroundSet],
        subsets: Sequence[IntArray],
        false_positive: Sequence[FloatArray | float],
        false_negative: Sequence[FloatArray | float],
    ) -> _Stack:
        n_items = len(ground_sets[positions[0]])

        def costs(values: Sequence[FloatArray | float]) -> FloatArray:
            return np.stack([np.broadcast_to(values[p], n_items) for p in positions])

        targets = Targets.of(
            [subsets[position] for position in positions],
            n_items,
            costs(false_positive),
            costs(false_negative),
        )
        prepared: Any = []
        for position in positions:
            try:
                prepared.append(self.kernel.prepare(ground_sets[position]))
            except ValueError as error:
                raise ValueError(f"ground set {position}: {error}") from error
        prepared = np.stack(prepared) if self.kernel.stackable else prepared[0]
        X = np.stack([ground_sets[position].quality for position in positions])
        similarity = log_det = None
        if "kernel" not in self.space.blocks:
            similarity = self._similarity(prepared, np.zeros(0))
            log_det, _ = self._explained(
                positions, lambda: targets.log_det_and_inverse(similarity)
            )
        return _Stack(positions, X, prepared, targets, similarity, log_det)

    def _similarity(self, prepared: Any, parameters: FloatArray) -> FloatArray:
        S = self.kernel.value(prepared, parameters)
        return with_jitter(S if S.ndim == 3 else S[None], self.jitter)

    def value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient at a point of ``space``."""
        theta = flat[self.space.slices["theta"]]
        value = 0.0
        gradient = np.zeros(self.space.size)
        for stack in self._stacks:
            stack_value, stack_gradient = self._explained(
                stack.positions, partial(self._evaluate, stack, flat)
            )
            value += stack_value
            gradient += stack_gradient
        value = value / self.n_sets + 0.5 * self.l2 * float(theta @ theta)
        gradient /= self.n_sets
        gradient[self.space.slices["theta"]] += self.l2 * theta
        return value, gradient

    def _evaluate(self, stack: _Stack, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the sum of the losses of a stack and its gradient."""
        slices = self.space.slices
        intercept = flat[slices["intercept"]][0] if "intercept" in slices else 0.0
        parameters = flat[slices.get("kernel", slice(0, 0))]
        S = stack.fixed_similarity
        if S is None:
            S = self._similarity(stack.prepared, parameters)
        u = quality.log_quality(stack.X, flat[slices["theta"]], intercept)
        terms = self.loss.value_and_gradient(
            S, u, stack.targets, target_log_det=stack.fixed_log_det
        )
        gradient = np.zeros_like(flat)
        d_theta, d_intercept = quality.pull_back(stack.X, terms.quality_gradient)
        gradient[slices["theta"]] = d_theta
        if "intercept" in slices:
            gradient[slices["intercept"]] = d_intercept
        if terms.similarity_gradient is not None:
            G = with_jitter(terms.similarity_gradient, self.jitter)
            gradient[slices["kernel"]] = self.kernel.pull_back(
                stack.prepared, parameters, G if self.kernel.stackable else G[0]
            )
        return float(terms.value.sum()), gradient

    def _explained(self, positions: list[int], compute: Callable[[], _T]) -> _T:
        """Run ``compute``, turning a failed factorisation into words."""
        try:
            return compute()
        except ZeroProbabilityError as error:
            raise ValueError(
                f"ground set {positions[error.index]}: its subset has probability "
                "zero, because the similarity of its items is singular (more items "
                "than the similarity has rank, or an item twice). "
                f"Raise jitter (now {self.jitter:g}), a ridge on the similarity, or "
                "drop items from the subset"
            ) from None
        except NotPositiveDefiniteError as error:
            raise ValueError(
                f"ground set {positions[error.index]}: L + I is not positive definite. "
                "The similarity is singular or not positive semidefinite, or the "
                f"qualities are extreme; raise jitter (now {self.jitter:g})"
            ) from None
