"""Learning as one function of one vector: data, kernel and loss put together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from importlib import import_module
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSet, name_items, name_position_in_errors
from variegate.kernels import Kernel
from variegate.kernels.mixture import scale_penalty
from variegate.kernels.weighted import PackedSimilarities
from variegate.learning.examples import Example, check_examples
from variegate.learning.factors import low_rank_factors, prepare_low_rank_embedding
from variegate.learning.objective import LargeMarginLoss, Targets, ZeroProbabilityError
from variegate.learning.parameters import InfeasibleError
from variegate.learning.quality import (
    FeatureCoordinates,
    FeatureMoments,
    log_quality,
    parameter_space,
    pull_back,
)
from variegate.learning.stacks import (
    DenseStack,
    DualStack,
    EmbeddedStack,
    groups_of_equal_size,
    prepare_stack,
    stack_costs,
)
from variegate.linalg.determinants import NotPositiveDefiniteError
from variegate.linalg.lapack import limit_blas_to_one_thread
from variegate.linalg.limits import should_use_compiled

Stack = DenseStack | DualStack | EmbeddedStack

#: The module of ``DeviceProblem``.  It stands on this room, so that it is looked up by
#: name, and imported only where a device is named.
DEVICE_PROBLEM = "variegate.torch.problem"


class LearningProblem:
    r"""The objective of learning, with ``L2`` penalty, for solvers.

    .. math:: F(\theta, b, p) = \frac{1}{n} \sum_n f_n(\theta, b, p)
        + \frac{l_2}{2} \|\theta\|^2

    with ``f_n`` the loss of :mod:`variegate.learning.objective` at the log-qualities
    ``u = X_n θ + b`` and the similarity ``S = S_n(p)`` for the kernel's parameters
    ``p``, its diagonal raised by ``jitter``.  A ``flat`` vector holds all parameters.

    With an intercept the features are centred, which changes neither the model nor
    the penalty but takes away the correlation of ``θ`` and ``b`` that solvers suffer
    from: the part ``intercept`` of ``flat`` is ``b + θᵀ center``.

    Attributes
    ----------
    space : ParameterSpace
        Divides ``flat`` into the parts ``theta``, ``intercept`` and ``kernel``; the
        last two may be empty.
    coordinates : FeatureCoordinates
    n_sets : int
        The number of ground sets.
    """

    def __init__(
        self,
        kernel: Kernel,
        loss: LargeMarginLoss,
        n_sets: int,
        coordinates: FeatureCoordinates,
        *,
        fit_intercept: bool = True,
        l2: float = 0.0,
        jitter: float = 1e-6,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.n_sets = n_sets
        self.coordinates = coordinates
        self.l2 = l2
        self.jitter = jitter
        self.space = parameter_space(coordinates, fit_intercept, kernel)

    @property
    def is_smooth(self) -> bool:
        """Whether the objective has a gradient everywhere."""
        return self.loss.lam == 0.0 or not self.loss.hinge

    @abstractmethod
    def value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective ``F`` and its gradient at ``flat``."""

    def add_penalty(
        self, flat: FloatArray, value: float, gradient: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return ``F`` and its gradient at ``flat`` from ``Σ_n f_n`` and its gradient.

        Adds the ``L2`` penalty and the kernel's; ``gradient`` is overwritten.
        """
        gradient /= self.n_sets
        parts, slopes = self.space.unpack(flat), self.space.unpack(gradient)
        theta = parts["theta"]
        penalty, slope = self.kernel.penalty_and_gradient(parts["kernel"])
        slopes["theta"][:] += self.l2 * theta
        slopes["kernel"][:] += slope
        penalty += 0.5 * self.l2 * float(theta @ theta)
        return value / self.n_sets + penalty, gradient


def build_problem(
    examples: Sequence[Example],
    kernel: Kernel,
    loss: LargeMarginLoss,
    *,
    device: str | None = None,
    n_jobs: int | None = None,
    compiled: bool | None = None,
    **options: Any,
) -> LearningProblem:
    """Return a :class:`TrainingProblem`, or with ``device`` a ``DeviceProblem``.

    Only the former uses ``n_jobs`` and ``compiled``; both take ``options``.
    """
    if device is None:
        return TrainingProblem(
            examples, kernel, loss, n_jobs=n_jobs, compiled=compiled, **options
        )
    make = import_module(DEVICE_PROBLEM).DeviceProblem
    problem: LearningProblem = make(examples, kernel, loss, device=device, **options)
    return problem


class TrainingProblem(LearningProblem):
    """The objective of examples in memory, by NumPy and compiled loops.

    Parameters
    ----------
    examples : sequence of Example
        Their positions name the ground sets in errors.
    kernel : Kernel
    loss : LargeMarginLoss
    coordinates : FeatureCoordinates, optional
        By default those of these ground sets.
    n_jobs : int, optional
        Threads that stacks of ground sets are shared among, with BLAS held to one
        thread each.  Sums are added in one order: any number gives the same bits.  If
        not given, one thread, which leaves BLAS as it is configured.
    compiled : bool, optional
        Whether compiled loops do the work; by default, if
        :func:`~variegate.linalg.limits.should_use_compiled` for these ground sets.  A
        part of a larger problem takes the answer for the whole.
    **options
        ``fit_intercept``, ``l2`` and ``jitter``.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        kernel: Kernel,
        loss: LargeMarginLoss,
        *,
        coordinates: FeatureCoordinates | None = None,
        n_jobs: int | None = None,
        compiled: bool | None = None,
        **options: Any,
    ) -> None:
        ground_sets = [example.ground_set for example in examples]
        if compiled is None:
            compiled = should_use_compiled(
                [len(ground_set) for ground_set in ground_sets]
            )
        if coordinates is None:
            fit_intercept = options.get("fit_intercept", True)
            coordinates = FeatureMoments.from_ground_sets(ground_sets).coordinates(
                fit_intercept
            )
        super().__init__(kernel, loss, len(examples), coordinates, **options)
        self.n_jobs = n_jobs
        self._compiled = compiled
        self._given = {
            example.position: example.ground_set.given
            for example in examples
            if len(example.ground_set.given)
        }
        groups = groups_of_equal_size(ground_sets, kernel.stackable)
        self._stacks = [
            self._make_stack([examples[k] for k in each]) for each in groups
        ]

    def _make_stack(self, examples: list[Example]) -> Stack:
        """Return a stack of examples of equal size; a single one may be of low rank."""
        places, ground_sets, subsets, *costs = zip(*examples, strict=True)
        positions, n_items = np.array(places), len(ground_sets[0])
        wrong, missed = (stack_costs(each, n_items) for each in costs)
        given = [ground_set.given for ground_set in ground_sets]
        targets = Targets.from_subsets(subsets, n_items, wrong, missed, given)
        X = np.stack([ground_set.quality for ground_set in ground_sets])
        X -= self.coordinates.center
        if len(positions) == 1:
            with name_position_in_errors(positions[0]):
                make, low_rank = self._prepare_low_rank(ground_sets[0])
            if make is not None:
                with self._explain_failures(positions):
                    return make(
                        positions, X[0], low_rank, targets, self.kernel, self.jitter
                    )
        prepared = prepare_stack(self.kernel, positions, ground_sets)
        if isinstance(prepared, PackedSimilarities):
            prepared = replace(prepared, compiled=self._compiled)
        parts = (positions, X, prepared, targets, self.kernel, self.jitter)
        with self._explain_failures(positions):
            return DenseStack(*parts, self._compiled)

    def _prepare_low_rank(
        self, ground_set: GroundSet
    ) -> tuple[type[DualStack] | type[EmbeddedStack] | None, Any]:
        """Return class and ``prepared`` data of a low-rank stack, or (None, None)."""
        factors = low_rank_factors(self.kernel, ground_set)
        if factors is not None:
            return DualStack, factors
        embedded = prepare_low_rank_embedding(self.kernel, ground_set)
        return None if embedded is None else EmbeddedStack, embedded

    def value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective ``F`` and its gradient at ``flat``."""
        return self.add_penalty(flat, *self.sum_losses(flat))

    def sum_losses(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return ``Σ_n f_n`` and its gradient at ``flat``, without penalties."""
        gradient, value = np.zeros(self.space.size), 0.0
        evaluate = partial(self._evaluate_stack, self.space.unpack(flat))
        # Most of the time is spent in compiled code, which runs in threads.  BLAS
        # rounds differently on other numbers of threads: it is held to one, with one
        # job too.
        with nullcontext() if self.n_jobs is None else limit_blas_to_one_thread():
            is_serial = min(self.n_jobs or 1, len(self._stacks)) == 1
            results = (map if is_serial else self._pool.map)(evaluate, self._stacks)
            for stack_value, stack_gradient in results:
                value += stack_value
                gradient += stack_gradient
        return value, gradient

    def _evaluate_stack(
        self, parts: dict[str, FloatArray], stack: Stack
    ) -> tuple[float, FloatArray]:
        """Return the sum of a stack's losses, and its gradient as a flat vector.

        ``parts`` are the parameters ``theta``, ``intercept`` and ``kernel``.
        """
        gradient = np.zeros(self.space.size)
        slopes = self.space.unpack(gradient)
        u = self._log_quality(parts, stack)
        with self._explain_failures(stack.positions):
            value, in_u, in_kernel = stack.evaluate(self.loss, parts["kernel"], u)
        slopes["theta"][:], in_intercept = pull_back(stack.X, in_u)
        slopes["intercept"][:] = in_intercept
        if in_kernel is not None:
            slopes["kernel"][:] = in_kernel
        return value, gradient

    @staticmethod
    def _log_quality(parts: dict[str, FloatArray], stack: Stack) -> FloatArray:
        """Return ``u`` (B, N) of a stack, or (N,) of one with a low rank.

        Infinite at given items.
        """
        u = log_quality(stack.X, parts["theta"], parts["intercept"].sum())
        return stack.targets.log_quality(u)

    def with_loss(self, loss: LargeMarginLoss, omega: float) -> TrainingProblem:
        """Return a copy with another loss and costs of missing items times ``omega``.

        So that each cost is ``omega``, this problem must have been built with costs of
        1 for all errors.  Prepared ground sets are shared, threads are not.
        """
        other = copy(self)
        other.__dict__.pop("_pool", None)
        other.loss = loss
        other._stacks = [copy(stack) for stack in self._stacks]
        for stack in other._stacks:
            stack.targets = stack.targets.with_omega(omega)
        return other

    def expected_f(self, flat: FloatArray) -> float:
        r"""Return the mean over ground sets of the expected F-score at ``flat``.

        :math:`2 \sum_{i \in y} K_{ii} / (\sum_i K_{ii} + |y|)`: the F-score with the
        numbers of right and of chosen items replaced by their expectations, from the
        probabilities ``K_ii`` of items.  1 where ``y`` is empty and the sum zero.
        """
        parts = self.space.unpack(flat)
        scores = []
        for stack in self._stacks:
            with self._explain_failures(stack.positions):
                u = self._log_quality(parts, stack)
                included = stack.marginals(parts["kernel"], u)
            wanted, given = stack.targets.indicator, stack.targets.given
            if given is not None:
                wanted, included = wanted & ~given, np.where(given, 0.0, included)
            right = np.where(wanted, included, 0.0).sum(axis=1)
            total = included.sum(axis=1) + wanted.sum(axis=1)
            scores.append(np.where(total > 0, 2.0 * right / (total + (total == 0)), 1))
        return float(np.concatenate(scores).sum()) / self.n_sets

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        """The ``n_jobs`` threads that stacks are shared among."""
        return ThreadPoolExecutor(self.n_jobs)

    @contextmanager
    def _explain_failures(self, positions: IntArray) -> Iterator[None]:
        """Raise failed factorisations as InfeasibleError, with position and remedy."""
        try:
            yield
        except ZeroProbabilityError as error:
            position = int(positions[error.index])
            given = self._given.get(position, ())
            raise zero_probability_error(position, self.jitter, given) from None
        except NotPositiveDefiniteError as error:
            position = int(positions[error.index])
            given = self._given.get(position, ())
            raise not_definite_error(position, self.jitter, given) from None


def kernel_settings(kernel: Kernel | None) -> str:
    """Return the repr of an unfitted kernel, never abbreviated; "" for None."""
    whole: Any = {"N_CHAR_MAX": 10**6}
    return "" if kernel is None else kernel.__repr__(**whole)


class SharedExamples(list[Example]):
    """Examples in memory for several fits with different settings.

    The states of fitted kernels are kept, and the ground sets as the last kernel
    prepared them, for fits with a kernel of the same settings except its penalty.  All
    errors cost 1 here; each fit multiplies the cost of missing an item by its omega.
    """

    def __init__(self, ground_sets: Any, subsets: Any) -> None:
        super().__init__(check_examples(ground_sets, subsets, 1.0))
        self._states: dict[Any, dict[str, Any]] = {}
        self._prepared: tuple[Any, TrainingProblem] | None = None

    def release_prepared(self) -> None:
        """Release the memory of the prepared ground sets."""
        self._prepared = None

    def with_omega(self, omega: float) -> list[Example]:
        """Return the examples, missing an item ``omega`` times as costly."""
        return [example._replace(false_negative=omega) for example in self]

    def problem(
        self,
        kernel: Kernel,
        loss: LargeMarginLoss,
        omega: float,
        *,
        l2: float,
        n_jobs: int | None,
        **options: Any,
    ) -> TrainingProblem:
        """Return the problem of a fit; its kernel is ``kernel``, fitted, or an equal.

        The problem shares the ground sets as prepared for earlier fits with the same
        kernel settings, but for the penalty, and the same ``options``.
        """
        name = type(kernel), kernel_settings(scale_penalty(kernel, 0.0))
        if self._prepared is None or self._prepared[0] != (name, options):
            self.release_prepared()  # before the next
            if state := self._states.get(name):
                kernel.set_state(state)
            else:
                kernel.fit([example.ground_set for example in self])
                self._states[name] = kernel.get_state()
            problem = TrainingProblem(self, kernel, loss, **options)
            self._prepared = (name, options), problem
        problem = self._prepared[1].with_loss(loss, omega)
        if kernel_settings(problem.kernel) != kernel_settings(kernel):
            kernel.set_state(problem.kernel.get_state())
            problem.kernel = kernel
        problem.l2, problem.n_jobs = l2, n_jobs
        return problem


def zero_probability_error(
    position: int, jitter: float, given: Sequence[int] | IntArray = ()
) -> InfeasibleError:
    """Return the error of a ground set whose wanted subset has probability zero.

    ``given`` are the ground set's given items.
    """
    beside = f" beside the {name_items(given)}," if len(given) else ","
    others = " or from the given items" if len(given) else ""
    return InfeasibleError(
        position,
        f"its subset has probability zero{beside} because the similarity of its items "
        "is singular (more items than the similarity has rank, or an item "
        f"twice). Raise jitter (now {jitter:g}), a ridge on the "
        f"similarity, or drop items from the subset{others}",
    )


def not_definite_error(
    position: int, jitter: float, given: Sequence[int] | IntArray = ()
) -> InfeasibleError:
    """Return the error of a ground set whose ``L + I`` cannot be factored.

    ``given`` are the ground set's given items.
    """
    together = f", at the {name_items(given)} together" if len(given) else ""
    return InfeasibleError(
        position,
        "L + I is not positive definite. The similarity is singular or not "
        f"positive semidefinite{together}, or the qualities are extreme; raise jitter "
        f"(now {jitter:g})",
    )
