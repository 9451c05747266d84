"""The first passes over very large data: steps of Adam on batches of partitions.

A solver that sees all of the data before each step learns in its first ten iterations
what a tenth of the data could have told it.  Here a pass is cut into batches of whole
partitions, drawn by a seed and the number of the pass.  How many there are follows from
the data alone, never from the number of workers, so that results do not depend on that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from variegate._typing import FloatArray
from variegate.partitions.problem import PartitionedProblem
from variegate.solvers.adam import Adam
from variegate.solvers.minibatch import MiniBatch
from variegate.solvers.result import (
    Callback,
    SolverResult,
    Step,
    Stop,
    Verdict,
    stopped_by_callback,
    wants_to_stop,
)

__all__ = ["Passes"]

#: Batches of a pass, if there are as many partitions: enough steps for Adam to come
#: near, and batches of enough partitions to keep as many workers busy.
_N_BATCHES = 50

#: Examples from which on the first pass is made so, if nothing else is asked for.
VERY_MANY = 10_000_000


@dataclass(frozen=True)
class Passes:
    """Passes over all partitions, a step a batch.

    Parameters
    ----------
    n_passes : int
    seed : int
        Settles which partitions are together.
    settings : MiniBatch
        Rates; and the size of batches in examples, if that is given.
    """

    n_passes: int
    seed: int
    settings: MiniBatch = field(default_factory=MiniBatch)

    def solve(
        self,
        problem: PartitionedProblem,
        start: FloatArray,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Return where the passes lead, with the objective of all examples there."""
        settings = self.settings
        adam = Adam.at(problem.space, start)
        counts = problem.examples.survey.n_examples
        verdict = Verdict(
            Stop.DATA_USED, f"went through the data {self.n_passes} times", ""
        )
        history: list[Step] = []
        n_seen = 0
        for numbers in self._batches(problem):
            batch = problem.batch(numbers)
            value = adam.step(batch, settings.learning_rate, settings.decay_steps)
            n_seen += int(counts[numbers].sum())
            history.append(Step(adam.n_steps, value, adam.gradient_norm, n_seen))
            if wants_to_stop(callback, history[-1]):
                verdict = stopped_by_callback()
                break
        objective, _ = problem.value_and_gradient(adam.average)
        return SolverResult(
            adam.average,
            objective,
            *verdict,
            n_iterations=adam.n_steps,
            n_evaluations=adam.n_steps,
            history=history,
        )

    def _batches(self, problem: PartitionedProblem) -> Iterator[list[int]]:
        counts = problem.examples.survey.n_examples
        full = np.flatnonzero(counts)
        n_batches = _N_BATCHES
        if self.settings.batch_size is not None:
            n_batches = round(int(counts.sum()) / self.settings.batch_size)
        n_batches = min(max(n_batches, 1), len(full))
        for number in range(self.n_passes):
            order = np.random.default_rng([self.seed, number]).permutation(full)
            for part in np.array_split(order, n_batches):
                yield sorted(part.tolist())
