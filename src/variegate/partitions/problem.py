"""Learning from partitions as one function of one vector.

:class:`PartitionedProblem` is to solvers what a
:class:`~variegate.learning.problem.TrainingProblem` is.  Each partition has one of
those, kept where the partition is worked on, and sums are added up in one order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import hash as hash_of

from variegate._typing import FloatArray
from variegate.kernels import Kernel
from variegate.learning.coordinates import parameter_space
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.parameters import InfeasibleError, ParameterSpace
from variegate.learning.penalty import penalized
from variegate.learning.problem import TrainingProblem
from variegate.linalg.limits import compiled_pays
from variegate.partitions.cache import Limits, cached
from variegate.partitions.examples import PartitionedExamples
from variegate.partitions.partition import Partition
from variegate.partitions.source import Reader
from variegate.partitions.threads import one_thread

__all__ = ["Evaluation", "PartitionedProblem", "Sums", "evaluate"]


@dataclass(frozen=True, eq=False)
class Sums:
    """The sum of some losses, its gradient, and how many there are."""

    value: float
    gradient: FloatArray
    count: int

    def plus(self, other: Sums) -> Sums:
        """Return the sums of both."""
        return Sums(
            self.value + other.value,
            self.gradient + other.gradient,
            self.count + other.count,
        )


@dataclass(frozen=True, eq=False)
class Preparation:
    """How the problem of a partition is made; sent to workers with every task.

    Neither the loss nor omega is part of it: what is prepared serves all of them.
    """

    key: str
    reader: Reader
    kernel: Kernel
    fit_intercept: bool
    jitter: float
    center: FloatArray
    scale: FloatArray
    compiled: bool
    limits: Limits

    def problem(self, partition: Partition) -> TrainingProblem | None:
        """Return the problem, from the cache if it is there; None without examples."""
        partition.check_unchanged()
        make = partial(self._make, partition)
        return cached(self.key, partition, make, self.limits)

    def _make(self, partition: Partition) -> TrainingProblem | None:
        examples = self.reader.read(partition)
        if not examples:
            return None
        return TrainingProblem.of(
            examples,
            self.kernel,
            LargeMarginLoss(0.0),
            fit_intercept=self.fit_intercept,
            jitter=self.jitter,
            center=self.center,
            scale=self.scale,
            compiled=self.compiled,
        )


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A question: what partitions add to the objective at some parameters."""

    preparation: Preparation
    loss: LargeMarginLoss
    omega: float
    flat: FloatArray


def evaluate(asked: Evaluation, partition: Partition) -> Sums:
    """Return the sum of a partition's losses, its gradient, and their number."""
    with one_thread():
        problem = asked.preparation.problem(partition)
        if problem is None:
            return Sums(0.0, np.zeros(len(asked.flat)), 0)
        weighed = problem.weighed(asked.loss, asked.omega)
        return Sums(*weighed.sums(asked.flat), problem.n_sets)


def expected_f(asked: Evaluation, partition: Partition) -> Sums:
    """Return the sum of the expected F-scores of a partition, and their number."""
    with one_thread():
        problem = asked.preparation.problem(partition)
        if problem is None:
            return Sums(0.0, np.zeros(0), 0)
        return Sums(problem.expected_f_sum(asked.flat), np.zeros(0), problem.n_sets)


class PartitionedProblem:
    """The objective of learning over the examples of all partitions.

    Parameters
    ----------
    examples : PartitionedExamples
    kernel : Kernel
        Settled.
    loss : LargeMarginLoss
    omega : float
        What missing an item costs.
    fit_intercept, l2, jitter : as for TrainingProblem

    Attributes
    ----------
    space, center, scale : as for TrainingProblem
    n_sets : int
    """

    def __init__(
        self,
        examples: PartitionedExamples,
        kernel: Kernel,
        loss: LargeMarginLoss,
        *,
        omega: float = 1.0,
        fit_intercept: bool = True,
        l2: float = 0.0,
        jitter: float = 1e-6,
    ) -> None:
        self.examples = examples
        self.kernel = kernel
        self.loss = loss
        self.omega = omega
        self.l2 = l2
        self.is_smooth = loss.lam == 0.0 or not loss.hinge
        self.n_sets = len(examples)
        self.center = examples.survey.center(fit_intercept)
        self.scale = examples.survey.scale(self.center)
        self.space = parameter_space(self.scale, fit_intercept, kernel)
        # Of all partitions, so that bits do not depend on how they are cut.
        compiled = compiled_pays(examples.survey.sizes)
        prepared = (kernel, fit_intercept, jitter, self.center, self.scale, compiled)
        key = str(hash_of([examples.source.key, *prepared]))
        self._preparation = Preparation(
            key, examples.reader, *prepared, examples.limits
        )
        # What an answer depends on, with the parameters and the partitions.
        self._asked: list[Any] = [key, loss, omega]

    def value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient at a point of ``space``."""
        return self._penalized(flat, self._sums(evaluate, flat))

    def expected_f(self, flat: FloatArray) -> float:
        """Return the mean of the expected F-scores at a point of ``space``."""
        sums = self._sums(expected_f, flat)
        return sums.value / sums.count

    def batch(self, numbers: Sequence[int]) -> Batch:
        """Return the objective of some of the partitions, by their numbers."""
        return Batch(self, numbers)

    def _penalized(self, flat: FloatArray, sums: Sums) -> tuple[float, FloatArray]:
        terms = _Terms(self.space, self.kernel, self.l2, sums.count)
        return penalized(terms, self.space.unpack(flat), sums.value, sums.gradient)

    def _sums(
        self,
        function: Callable[[Evaluation, Partition], Sums],
        flat: FloatArray,
        numbers: Sequence[int] | None = None,
    ) -> Sums:
        """Ask the engine, or the journal if it knows; of all, or some partitions."""
        partitions = self.examples.source.partitions
        some = partitions if numbers is None else [partitions[k] for k in numbers]
        asked = Evaluation(self._preparation, self.loss, self.omega, flat.copy())

        def make() -> bytes:
            try:
                sums = self.examples.engine.tree_sum(
                    partial(function, asked), some, Sums.plus
                )
            except InfeasibleError as error:  # an answer, too
                return json.dumps([error.position, error.problem]).encode()
            return _to_bytes(sums)

        question = [function.__name__, *self._asked, flat, numbers]
        answer = self.examples.journal.remember(str(hash_of(question)), make)
        if answer[:1] == b"[":
            raise InfeasibleError(*json.loads(answer))
        return _from_bytes(answer)


@dataclass
class _Terms:
    """What a penalty is computed from."""

    space: ParameterSpace
    kernel: Kernel
    l2: float
    n_sets: int


class Batch:
    """The objective of some partitions: the mean of their losses, and all penalties."""

    def __init__(self, whole: PartitionedProblem, numbers: Sequence[int]) -> None:
        self._whole = whole
        self._numbers = list(numbers)
        self.space = whole.space
        self.is_smooth = whole.is_smooth

    def value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient at a point of ``space``."""
        sums = self._whole._sums(evaluate, flat, self._numbers)
        return self._whole._penalized(flat, sums)


def _to_bytes(sums: Sums) -> bytes:
    """Return the sums with all digits, after a letter that is not a bracket."""
    numbers = np.array([sums.value, *sums.gradient], dtype="<f8")
    return b"S" + sums.count.to_bytes(8, "little") + numbers.tobytes()


def _from_bytes(content: bytes) -> Sums:
    numbers = np.frombuffer(content, dtype="<f8", offset=9).astype(np.float64)
    return Sums(float(numbers[0]), numbers[1:], int.from_bytes(content[1:9], "little"))
