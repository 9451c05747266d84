"""Learning from partitions as one function of one vector.

Solvers use a :class:`PartitionedProblem` like a
:class:`~variegate.learning.problem.TrainingProblem`.  Each partition has one of these,
kept by its worker, and sums are added in one order.

Before the solver, very large data is used in steps of Adam on batches of whole
partitions (:class:`~variegate.solvers.MiniBatch`): the first ten iterations of a solver
that sees all of the data before each step could be learned from a tenth of the data.
The batches follow from the seed and the data alone, so that results do not depend on
the number of workers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import hash as hash_of

from variegate._typing import FloatArray
from variegate.files.run_store import arrays_from_bytes, arrays_to_bytes
from variegate.kernels import Kernel
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.parameters import InfeasibleError
from variegate.learning.problem import LearningProblem, TrainingProblem
from variegate.linalg.lapack import limit_blas_to_one_thread
from variegate.linalg.limits import should_use_compiled
from variegate.partitions.cache import CACHE, Limits
from variegate.partitions.examples import PartitionedExamples
from variegate.partitions.partition import Partition, Reader

#: Batches of a pass, if there are as many partitions: enough steps for Adam, and
#: batches of enough partitions to keep as many workers busy.
N_BATCHES = 50

#: Examples above which one pass is made first by default.
VERY_MANY = 10_000_000


@dataclass(frozen=True, eq=False)
class Sums:
    """The sum of some losses, its gradient, and the number of losses."""

    value: float
    gradient: FloatArray
    count: int

    def plus(self, other: Sums) -> Sums:
        """Return the sums over the losses of both."""
        return Sums(
            self.value + other.value,
            self.gradient + other.gradient,
            self.count + other.count,
        )


@dataclass(frozen=True, eq=False)
class Preparation:
    """Makes the problem of a partition, for any loss and omega; sent with every task.

    ``key`` names the problem among those in the worker's cache; ``kernel`` is fitted;
    ``options`` are those of :class:`TrainingProblem`.
    """

    key: str
    reader: Reader
    kernel: Kernel
    options: dict[str, Any]
    limits: Limits

    def problem(self, partition: Partition) -> TrainingProblem | None:
        """Return a partition's problem, from this process's cache or made; or None.

        None if the partition has no examples.  A file that has changed is refused.
        """
        partition.check_unchanged()
        make = partial(self._make_problem, partition)
        return CACHE.get(self.key, partition, make, self.limits)

    def _make_problem(self, partition: Partition) -> TrainingProblem | None:
        """Read a partition and prepare its problem; None without examples.

        Its loss is a placeholder, which :func:`evaluate_partition` replaces.
        """
        examples = self.reader.read(partition)
        if not examples:
            return None
        loss = LargeMarginLoss(0.0)
        return TrainingProblem(examples, self.kernel, loss, **self.options)


def evaluate_partition(
    preparation: Preparation,
    loss: LargeMarginLoss,
    omega: float,
    flat: FloatArray,
    partition: Partition,
) -> Sums:
    """Return the sum of a partition's losses, its gradient, and their number.

    ``flat`` are all parameters; ``omega`` is the cost of missing an item.
    """
    with limit_blas_to_one_thread():
        problem = preparation.problem(partition)
        if problem is None:
            return Sums(0.0, np.zeros(len(flat)), 0)
        return Sums(*problem.with_loss(loss, omega).sum_losses(flat), problem.n_sets)


class PartitionedProblem(LearningProblem):
    """The objective of learning over the examples of all partitions.

    ``kernel`` is fitted, and ``omega`` is the cost of missing an item.
    """

    held_out = None

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
        self.omega = omega
        self.counts = examples.survey.n_examples
        coordinates = examples.survey.coordinates(fit_intercept)
        options: dict[str, Any] = {"fit_intercept": fit_intercept, "jitter": jitter}
        super().__init__(kernel, loss, len(examples), coordinates, l2=l2, **options)
        options |= {
            "coordinates": coordinates,
            # Of all partitions, so that bits do not depend on how they are cut.
            "compiled": should_use_compiled(examples.survey.sizes),
        }
        key = str(hash_of([examples.source.key, kernel, options]))
        options["n_jobs"] = examples.n_jobs
        self._preparation = Preparation(
            key, examples.reader, kernel, options, examples.limits
        )
        #: Sorted numbers of the partitions to sum over; None for all.
        self._numbers: list[int] | None = None
        # With parameters and partitions, they determine a sum.
        self._settings: list[Any] = [key, loss, omega]

    def value_and_gradient(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss plus penalties, and its gradient, at ``flat``."""
        flat = flat.copy()
        sums = self._sum_losses(flat)
        return self.add_penalty(flat, sums.value, sums.gradient)

    def batch(self, numbers: Sequence[int]) -> PartitionedProblem:
        """Return a copy of this problem over the partitions with these numbers only."""
        some = copy(self)
        some._numbers = sorted(int(number) for number in numbers)
        some.n_sets = int(self.counts[some._numbers].sum())
        return some

    def _sum_losses(self, flat: FloatArray) -> Sums:
        """Return the ``Sums`` over partitions at ``flat``, from the store if known."""
        partitions, numbers = self.examples.source.partitions, self._numbers
        some = partitions if numbers is None else [partitions[k] for k in numbers]
        work = partial(
            evaluate_partition, self._preparation, self.loss, self.omega, flat
        )

        def compute() -> Sums:
            """Return the sums, computed by the engine."""
            return self.examples.engine.tree_sum(work, some, Sums.plus)

        def compute_bytes() -> bytes:
            """Return the sums as bytes of arrays, or an InfeasibleError as JSON."""
            try:
                return arrays_to_bytes(**vars(compute()))
            except InfeasibleError as error:
                return json.dumps([error.position, error.problem]).encode()

        if self.examples.store.path is None:
            return compute()
        step = str(hash_of([*self._settings, flat, numbers]))
        value = self.examples.store.remember(step, compute_bytes)
        if value[:1] == b"[":
            raise InfeasibleError(*json.loads(value))
        arrays = arrays_from_bytes(value)
        return Sums(float(arrays["value"]), arrays["gradient"], int(arrays["count"]))
