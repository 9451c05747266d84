"""Learning as one function of one vector, computed by PyTorch on a device.

:class:`DeviceProblem` is to solvers what a
:class:`~variegate.learning.problem.TrainingProblem` is.  Everything is brought to the
device once; an evaluation takes parameters over and brings one value and one gradient
back, and nothing waits in between.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSetError
from variegate.kernels import Kernel
from variegate.learning.coordinates import (
    feature_center,
    feature_scale,
    parameter_space,
)
from variegate.learning.device.batch import Batch, sizes_together
from variegate.learning.device.dual import FactoredStack, KindsStack, low_rank_of
from variegate.learning.device.point import Point
from variegate.learning.device.similarity import check_kernel, similarity_of
from variegate.learning.factors import Factors
from variegate.learning.infeasible import not_definite, zero_probability
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.parameters import InfeasibleError
from variegate.learning.penalty import penalized
from variegate.linalg.limits import FEWEST_FACTORED, MAX_MATRIX
from variegate.streaming import Example
from variegate.tensors.dense import NOT_DEFINITE, ZERO_PROBABILITY, loss_terms
from variegate.tensors.resolvent import Resolvent

__all__ = ["DeviceProblem"]


class Stack(Protocol):
    """Ground sets that are evaluated together."""

    batch: Batch

    def evaluate(
        self, loss: LargeMarginLoss, at: Point, u: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return losses (B,), gradients in ``u`` and parameters, and what failed."""

    def marginals(self, at: Point, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``K_ii`` (B, N), and what failed."""


class DeviceProblem:
    """The objective of a :class:`~variegate.learning.problem.TrainingProblem`.

    Parameters
    ----------
    examples : sequence of Example
    kernel : Kernel
        One that has a form for a device: see
        :func:`~variegate.learning.device.similarity.check_kernel`.
    loss : LargeMarginLoss
    device : str
        A device of PyTorch.
    fit_intercept, l2, jitter, center, scale : as for TrainingProblem
    """

    def __init__(
        self,
        examples: Sequence[Example],
        kernel: Kernel,
        loss: LargeMarginLoss,
        *,
        device: str,
        fit_intercept: bool = True,
        l2: float = 0.0,
        jitter: float = 1e-6,
        center: FloatArray | None = None,
        scale: FloatArray | None = None,
    ) -> None:
        check_kernel(kernel)
        self.kernel = kernel
        self.loss = loss
        self.l2 = l2
        self.jitter = jitter
        self.device = device
        self.n_sets = len(examples)
        self.is_smooth = loss.lam == 0.0 or not loss.hinge
        ground_sets = [example.ground_set for example in examples]
        self.center = (
            feature_center(ground_sets, fit_intercept) if center is None else center
        )
        self.scale = feature_scale(ground_sets, self.center) if scale is None else scale
        self.space = parameter_space(self.scale, fit_intercept, kernel)
        with _room(device):
            self._stacks: list[Stack] = [
                self._stack([examples[place] for place in places], factors)
                for places, factors in _together(examples, kernel, device)
            ]

    def _stack(
        self, examples: list[Example], low_rank: Sequence[Factors] | int | None
    ) -> Stack:
        batch = Batch.of(examples, self.center, self.device)
        if low_rank is None:
            return DenseStack(batch, self.kernel, self.jitter)
        if isinstance(low_rank, int):
            return KindsStack(batch, self.kernel, self.jitter)
        learned = self.kernel.domain.size > 0
        return FactoredStack(batch, low_rank, self.jitter, learned)

    def value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient at a point of ``space``."""
        with _room(self.device):
            return self._value_and_gradient(flat)

    def _value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        at = Point.of(flat, self.space, self.device)
        total = torch.zeros(
            self.space.size + 2, dtype=torch.float64, device=self.device
        )
        failures = []
        for stack in self._stacks:
            u = at.log_quality(stack.batch)
            value, in_u, in_kernel, failed = stack.evaluate(self.loss, at, u)
            in_theta = stack.batch.quality.products(in_u.reshape(-1))
            in_intercept = in_u.sum().expand(len(at.intercept))
            n_failed = (failed > 0).sum(dtype=torch.float64)
            head = torch.stack([value.sum(), n_failed])
            total += torch.cat([head, in_theta, in_intercept, in_kernel])
            failures.append(failed)
        found = total.cpu().numpy()  # the one place that waits for the device
        if found[1]:
            raise self._infeasible(failures)
        parts = self.space.unpack(flat)
        return penalized(self, parts, float(found[0]), found[2:].copy())

    def expected_f(self, flat: FloatArray) -> float:
        """Return the mean of the expected F-scores, as ``TrainingProblem`` does."""
        at = Point.of(flat, self.space, self.device)
        scores, failures = [], []
        for stack in self._stacks:
            included, failed = stack.marginals(at, at.log_quality(stack.batch))
            wanted = stack.batch.targets.indicator
            right = included.masked_fill(~wanted, 0.0).sum(dim=1)
            total = included.sum(dim=1) + wanted.sum(dim=1)
            score = 2.0 * right / torch.where(total > 0.0, total, 1.0)
            scores.append(score.masked_fill(total == 0.0, 1.0).sum())
            failures.append(failed)
        if any(bool(failed.any()) for failed in failures):
            raise self._infeasible(failures)
        return float(torch.stack(scores).sum()) / self.n_sets

    def _infeasible(self, failures: Sequence[Tensor]) -> InfeasibleError:
        """Return what to raise for the first of the ground sets that failed."""
        found = []
        for stack, failed in zip(self._stacks, failures, strict=True):
            for number in failed.nonzero().flatten().tolist():
                reason = int(failed[number])
                found.append((stack.batch.position(number), reason))
        position, reason = min(found)
        words = zero_probability if reason == ZERO_PROBABILITY else not_definite
        return words(position, self.jitter)


@contextmanager
def _room(device: str) -> Iterator[None]:
    """Say in words that a device has too little memory."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise MemoryError(
            f"the memory of {device!r} is not enough for these ground sets and what is "
            'held of them: learn in batches (solver="minibatch"), with fewer '
            "similarities, or leave device out"
        ) from error


def _together(
    examples: Sequence[Example], kernel: Kernel, device: str
) -> Iterator[tuple[IntArray, Sequence[Factors] | int | None]]:
    """Yield places of examples to be evaluated together, and how they are of low rank.

    Sizes are near each other; factors, if there are any, have the same columns.
    """
    sizes = np.array([len(example.ground_set) for example in examples])
    low_rank: dict[int, Factors | int] = {}
    for place in np.flatnonzero(sizes >= FEWEST_FACTORED).tolist():
        found = low_rank_of(kernel, examples[place])
        if found is not None:
            low_rank[place] = found
    dense = np.ones(len(sizes), dtype=bool)
    dense[list(low_rank)] = False
    _refuse_large(examples, sizes * dense)
    for places in sizes_together(sizes, np.flatnonzero(dense), device):
        yield places, None
    by_columns: dict[tuple[int, ...] | int, list[int]] = defaultdict(list)
    for place, one in low_rank.items():
        kind = one if isinstance(one, int) else tuple(one.owner.tolist())
        by_columns[kind].append(place)
    for kind, alike in by_columns.items():
        n_columns = kind if isinstance(kind, int) else len(kind)
        for places in sizes_together(sizes, np.array(alike), device, n_columns):
            those = [low_rank[place] for place in places.tolist()]
            factors = [one for one in those if isinstance(one, Factors)]
            yield places, factors or n_columns


def _refuse_large(examples: Sequence[Example], sizes: IntArray) -> None:
    """Refuse matrices that are too large; sizes of those that need none are zero."""
    if sizes.max(initial=0) > MAX_MATRIX:
        place = int(sizes.argmax())
        raise GroundSetError(
            examples[place].position,
            f"its similarity would be a matrix of {sizes[place]:,} x "
            f"{sizes[place]:,} on the device, which is too large (above "
            f"{MAX_MATRIX:,}): take a kernel of low rank (Linear of few features, "
            "Kinds, or an approximation), or leave device out",
        )


class DenseStack:
    """Ground sets whose similarities are matrices.

    Parameters
    ----------
    batch : Batch
    kernel : Kernel
    jitter : float
    """

    def __init__(self, batch: Batch, kernel: Kernel, jitter: float) -> None:
        self.batch = batch
        self.jitter = jitter
        self.mask = batch.where()
        self.similarity = similarity_of(kernel, batch)

    def evaluate(
        self, loss: LargeMarginLoss, at: Point, u: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return losses, gradients in ``u`` and in parameters, and what failed."""
        S, pull_back = self.similarity(at.kernel)
        terms = loss_terms(
            S,
            u,
            self.batch.targets,
            self.mask,
            loss.lam,
            loss.hinge,
            gradient=True,
            jitter=self.jitter,
        )
        in_kernel = pull_back(terms.similarity_gradient)
        return terms.value, terms.quality_gradient, in_kernel, terms.failed

    def marginals(self, at: Point, u: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``K_ii``, and what failed."""
        S, _ = self.similarity(at.kernel)
        resolvent = Resolvent.of(S, u, self.mask, self.jitter)
        included, _ = resolvent.invert()
        return included, (~resolvent.definite).to(torch.uint8) * NOT_DEFINITE
