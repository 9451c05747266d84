"""Learn the parameters of a model: problem, starts and solver."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from variegate._progress import ProgressPrinter
from variegate._random import as_generator
from variegate._typing import FloatArray
from variegate.kernels import Kernel, MultipleKernel
from variegate.learning.batched_problem import BatchedProblem
from variegate.learning.device_name import resolve_device
from variegate.learning.examples import Example, check_validation
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import (
    LearningProblem,
    SharedExamples,
    build_problem,
    kernel_settings,
)
from variegate.learning.quality import FeatureCoordinates
from variegate.partitions.examples import PartitionedExamples
from variegate.partitions.problem import N_BATCHES, VERY_MANY, PartitionedProblem
from variegate.solvers import Callback, MiniBatch, SolverResult, Step, Stop, as_solver
from variegate.solvers.adam import Adam
from variegate.solvers.result import Verdict

if TYPE_CHECKING:
    from variegate.estimator.large_margin import LargeMarginDPP

#: The ``solve`` of a solver.
Solve = Callable[[Any, FloatArray, Callback | None], SolverResult]


class Solution(NamedTuple):
    """A fitted kernel, learned parameters, and the result of the solver.

    ``parts`` are ``theta``, ``intercept`` (for features that are not centred) and
    ``kernel``, the parameters of the kernel.
    """

    kernel: Kernel
    parts: dict[str, FloatArray]
    result: SolverResult


#: The state of Adam, with the coordinates of the features.
AdamState = tuple[Adam, FeatureCoordinates]


def _make_solution(
    problem: LearningProblem | BatchedProblem, result: SolverResult
) -> Solution:
    """Return the solution of a problem from the result of its solver.

    The solver's intercept is for centred features, the solution's for given ones.
    """
    parts = problem.space.unpack(result.parameters)
    shift = problem.coordinates.center @ parts["theta"]
    parts["intercept"] = parts["intercept"] - shift
    return Solution(problem.kernel, parts, result)


class Learner:
    """Learns parameters with the settings of a ``LargeMarginDPP``, left unchanged.

    With ``warm``, the first start is at the fitted parameters of the model (``known``),
    those of the right shape; ``n_jobs`` are the threads for examples in memory.
    """

    def __init__(
        self, model: LargeMarginDPP, *, warm: bool, n_jobs: int | None = None
    ) -> None:
        self.model = model
        self.loss = LargeMarginLoss(model.lam)
        self.n_jobs = n_jobs and effective_n_jobs(n_jobs)
        self.device = resolve_device(model.device)
        self.solver = as_solver(model.solver, model.max_iter, model.tol)
        self.known: dict[str, FloatArray] | None = None
        if warm and hasattr(model, "theta_"):
            self.known = {
                "theta": model.theta_,
                "intercept": np.array([model.intercept_]),
                "kernel": model.kernel_parameters_,
            }

    def _new_kernel(self) -> Kernel:
        """Return an unfitted copy of the kernel, by default a ``MultipleKernel``."""
        kernel = self.model.kernel
        return MultipleKernel() if kernel is None else clone(kernel)

    def _fit_kernel(self, examples: Sequence[Example]) -> Kernel:
        """Return a copy of the kernel, fitted to the ground sets of examples."""
        kernel = self._new_kernel()
        kernel.fit([example.ground_set for example in examples])
        return kernel

    def _options(self) -> dict[str, Any]:
        """Return ``fit_intercept``, ``l2`` and ``jitter`` of the model, by name."""
        names = ("fit_intercept", "l2", "jitter")
        return {name: getattr(self.model, name) for name in names}

    def learn(
        self,
        examples: list[Example] | PartitionedExamples,
        validation: tuple[Any, Any] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Solution:
        """Learn from examples in memory or in partitions; return the solution.

        ``validation`` are held-out ground sets and subsets, for ``MiniBatch`` alone;
        ``checkpoint`` is a path, for partitions alone: ValueError otherwise.
        """
        if isinstance(self.solver, MiniBatch) and self.model.n_starts > 1:
            raise ValueError(
                f"MiniBatch starts once, but n_starts={self.model.n_starts}"
            )
        if isinstance(examples, PartitionedExamples):
            if validation is not None:
                raise ValueError("validation is for data in memory, not for partitions")
            return self._learn_from_partitions(examples, checkpoint)
        if checkpoint is not None:
            raise ValueError(
                "a checkpoint is for data in partitions: give PairPartitions, or leave "
                "out checkpoint"
            )
        if isinstance(self.solver, MiniBatch):
            if isinstance(examples, SharedExamples):
                examples = examples.with_omega(self.model.omega)
            return self._learn_in_batches(examples, validation)
        if validation is not None:
            raise ValueError(
                'validation is for solver="minibatch" or MiniBatch(...): leave it out'
            )
        problem = self._make_problem(examples)
        rng = as_generator(self.model.random_state)
        return self._solve_from_starts(
            [self.solver.solve], problem, self._generate_starts(problem, rng)
        )

    def _make_problem(self, examples: list[Example]) -> LearningProblem:
        """Return the problem of examples and a fitted kernel, on the device if given.

        Without one, ``SharedExamples`` reuse fitted kernels and prepared ground sets.
        """
        omega, options = self.model.omega, self._options() | {"n_jobs": self.n_jobs}
        if isinstance(examples, SharedExamples):
            if self.device is None:
                return examples.problem(self._new_kernel(), self.loss, omega, **options)
            examples = examples.with_omega(omega)
        kernel = self._fit_kernel(examples)
        return build_problem(examples, kernel, self.loss, device=self.device, **options)

    def _learn_from_partitions(
        self, examples: PartitionedExamples, checkpoint: str | Path | None
    ) -> Solution:
        """Learn from partitions; resume from a checkpoint, if any, and remove it."""
        model = self.model
        if self.device is not None:
            raise ValueError(
                f"device={model.device!r} is for data in memory: partitions are "
                "learned from on CPUs, leave it out"
            )
        if checkpoint is not None:
            examples = examples.with_store(checkpoint, _run_settings(model))
        store = examples.store
        try:
            seed: Any = model.random_state
            if seed is None:  # a run that resumes must know it
                draw = lambda: str(secrets.randbits(63)).encode()  # noqa: E731
                seed = int(store.remember("seed", draw))
            kernel = examples.fit_kernel(self._new_kernel())
            problem = PartitionedProblem(
                examples, kernel, self.loss, omega=model.omega, **self._options()
            )
            starts = self._generate_starts(problem, as_generator(seed))
            learned = self._solve_from_starts(
                self._make_solvers(examples, seed), problem, starts
            )
        finally:
            if checkpoint is not None:
                store.close()
        if checkpoint is not None:
            store.remove()
        return learned

    def _make_solvers(self, examples: PartitionedExamples, seed: Any) -> list[Solve]:
        """Return the ``solve`` methods to call in turn, each from the last result.

        It is the solver's own; for very many examples, that of ``MiniBatch`` precedes
        it.  ``seed`` decides the order of examples in batches.
        """
        n_passes = examples.first_passes
        if n_passes is None:
            n_passes = int(len(examples) > VERY_MANY)
        in_batches = isinstance(self.solver, MiniBatch)
        if not n_passes and not in_batches:
            return [self.solver.solve]
        passes = self.solver if in_batches else MiniBatch(n_epochs=n_passes)
        size = passes.batch_size or max(1, round(len(examples) / N_BATCHES))
        passes = replace(passes, batch_size=size, report_every=1)
        order = int(as_generator(seed).integers(2**63))
        first: Solve = partial(passes.solve, seed=order)
        return [first] if in_batches else [first, self.solver.solve]

    def _solve_from_starts(
        self, stages: Sequence[Solve], problem: Any, starts: Iterable[FloatArray]
    ) -> Solution:
        """Run all ``stages`` from every start; return the solution of least objective.

        Each stage starts at the end of the last; a callback that stops ends them all.
        A ConvergenceWarning is given if the best solution did not converge.
        """
        results: list[SolverResult] = []
        callback = self._step_callback()
        for start in starts:
            for solve in stages:
                result = solve(problem, start, callback)
                start = result.parameters
                if result.stop is Stop.CALLBACK:
                    break
            results.append(result)
            if result.stop is Stop.CALLBACK:
                break
        best = min(results, key=lambda result: result.objective)
        if best.remedy:
            warnings.warn(
                f"{best.status}. {best.remedy}", ConvergenceWarning, stacklevel=5
            )
        return _make_solution(problem, best)

    def _learn_in_batches(
        self, examples: list[Example], validation: tuple[Any, Any] | None
    ) -> Solution:
        """Learn from examples by MiniBatch; ``validation`` is as for :meth:`learn`."""
        held_out: Sequence[Example] = ()
        if validation is not None:
            held_out = check_validation(validation, self.model.omega)
        problem = BatchedProblem(
            examples,
            self._fit_kernel(examples),
            self.loss,
            validation=held_out,
            device=self.device,
            **self._options(),
        )
        seed = None
        if self.model.random_state is not None:
            seed = int(as_generator(self.model.random_state).integers(2**63))
        solve = partial(self.solver.solve, seed=seed)
        return self._solve_from_starts([solve], problem, [self._first_start(problem)])

    def _step_callback(self) -> Callback | None:
        """Return the model's callback; a verbose model's prints each step as well."""
        callback: Callback | None = self.model.callback
        if not self.model.verbose:
            return callback
        printer = ProgressPrinter(type(self.model).__name__)

        def print_step(step: Step) -> object:
            """Print a step, and return the answer of the model's callback."""
            seen = "" if step.n_seen is None else f", {step.n_seen:,} pairs"
            printer(f"step {step.iteration}{seen}, objective {step.objective:.6g}")
            return None if callback is None else callback(step)

        return print_step

    def take_steps(
        self, examples: list[Example], n_steps: int, optimizer: AdamState | None
    ) -> tuple[Solution, AdamState]:
        """Take steps of Adam on one batch; return the solution and the state of Adam.

        ``optimizer`` is the state after earlier steps, or None.
        """
        settings = self.solver if isinstance(self.solver, MiniBatch) else MiniBatch()
        settings.check()
        if self.known is None:
            kernel = self._fit_kernel(examples)
        else:
            kernel = self.model.kernel_
        options = self._options() | {"device": self.device}
        adam, coordinates = (None, None) if optimizer is None else optimizer
        batch = build_problem(
            examples, kernel, self.loss, coordinates=coordinates, **options
        )
        n_free = len(batch.space.to_free(batch.space.center()))
        if adam is None or len(adam.free) != n_free:
            # The first steps, or other parameters than those before them.
            adam = Adam.start_at(batch.space, self._first_start(batch))
        for _ in range(n_steps):
            value = adam.step(batch, settings.learning_rate, settings.decay_steps)
        status = f"took {adam.n_steps} steps of partial_fit"
        history = [Step(adam.n_steps, value, adam.gradient_norm)]
        verdict = Verdict(Stop.DATA_USED, status, "")
        result = adam.make_result(adam.average, value, verdict, history)
        return _make_solution(batch, result), (adam, batch.coordinates)

    def _first_start(self, problem: LearningProblem | BatchedProblem) -> FloatArray:
        """Return the flat parameters to start at: known ones, or the space's center."""
        space = problem.space
        parts = space.unpack(space.center())
        if self.known is not None:
            for name, values in self.known.items():
                if values.shape == parts[name].shape:
                    parts[name] = values
            shift = problem.coordinates.center @ parts["theta"]
            parts["intercept"] = parts["intercept"] + shift
        return space.pack(parts)

    def _generate_starts(
        self, problem: LearningProblem | BatchedProblem, rng: np.random.Generator
    ) -> Iterator[FloatArray]:
        """Yield ``n_starts`` flat vectors, which differ in the kernel's parameters.

        These are random after the first start; if the kernel has none, there is one.
        """
        first = self._first_start(problem)
        yield first
        domain = problem.kernel.domain
        if domain.size:
            for _ in range(self.model.n_starts - 1):
                start = first.copy()
                problem.space.unpack(start)["kernel"][:] = domain.random(rng)
                yield start


def _run_settings(model: LargeMarginDPP) -> dict[str, Any]:
    """Return the settings that a checkpoint must agree with, as plain values."""
    names = ("lam", "omega", "fit_intercept", "l2", "jitter", "max_iter", "tol")
    settings = {name: getattr(model, name) for name in (*names, "n_starts")}
    seed = model.random_state
    return settings | {
        "kernel": kernel_settings(model.kernel),
        "solver": str(model.solver),
        "random_state": seed if isinstance(seed, int) else None,
    }
