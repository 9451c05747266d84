"""Learning in batches: one step of Adam a batch.

Three ideas.  A pass goes over the examples block by block; a block of ``buffer_size``
pairs is shuffled and cut into batches, and its order follows from the seed, the number
of the pass and that of the block alone, so that a run can resume anywhere.  Steps
and averaging are those of :mod:`variegate.solvers.adam`.  The state of
a run is a few plain values, which a checkpoint holds.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from variegate._typing import FloatArray
from variegate._validation import check_count, check_number
from variegate.files.run_store import CheckpointError, RunStore
from variegate.learning.batched_problem import BatchedProblem
from variegate.solvers.adam import Adam
from variegate.solvers.result import (
    Callback,
    Problem,
    SolverResult,
    Step,
    Stop,
    Verdict,
    callback_verdict,
    wants_to_stop,
)

logger = logging.getLogger(__name__)

#: A share of the pairs to hold out is cut to this many: judging takes time.
LARGEST_VALIDATION = 10_000

#: Adam is hardly under way before this many steps.
_FEW_STEPS = 50

#: The size of batches, if not given; and how many of few pairs there are to be.
#: Of 80 pairs, ten steps lose 0.06 of F against L-BFGS, 100 steps 0.001; even batches
#: of two pairs lose nothing.
_BATCH_SIZE = 256
_ENOUGH_STEPS = 100


@dataclass(frozen=True)
class MiniBatch:
    r"""Adam on one batch of ground sets after another, its path averaged.

    The objective of a batch is the mean of its losses plus the whole penalty,
    :math:`\frac{l_2}{2} \|\theta\|^2`, so its expectation over batches is the
    objective of learning.  Weights on the simplex are moved in the free coordinates
    that L-BFGS uses.

    Parameters
    ----------
    batch_size : int, optional
        Ground sets a step.  Small ones of equal size are evaluated together, so larger
        batches cost less a set.  If not given, 256, or fewer where the pairs are so
        few that all passes together were less than 100 steps.
    n_epochs : int
        Passes over the data.
    learning_rate : float
        Length of the first steps in a coordinate.
    decay_steps : float
        Step ``t`` has the rate ``learning_rate / sqrt(1 + t / decay_steps)``.
    buffer_size : int, optional
        Pairs that are shuffled together; 8 batches if not given.  Beyond the buffer
        the order is that of the data.
    validation_fraction : float
        Share of the pairs, from their head, that is held out to judge by: never more
        than 10,000 pairs.
    n_validation : int, optional
        The number of pairs to hold out, in place of a share.
    report_every : int
        Batches between reports: to the callback, in the history, and to ``patience``.
    patience : int, optional
        Stop after this many reports without a better held-out objective.
    checkpoint_every : int
        Batches between checkpoints.

    Notes
    -----
    A report is a :class:`Step` with ``n_seen``, the number of pairs learned from
    so far, every pass counted.  With data held out, its ``objective`` and
    ``expected_f`` are those of the average on that data, and the best average is
    returned.  Without, its ``objective`` is a running mean of the batches'.
    """

    batch_size: int | None = None
    n_epochs: int = 10
    learning_rate: float = 0.05
    decay_steps: float = 100.0
    buffer_size: int | None = None
    validation_fraction: float = 0.0
    n_validation: int | None = None
    report_every: int = 100
    patience: int | None = None
    checkpoint_every: int = 100

    def check(self) -> None:
        """Refuse settings that make no sense."""
        for name in ("n_epochs", "report_every", "checkpoint_every"):
            check_count(name, getattr(self, name))
        for name in ("batch_size", "buffer_size", "n_validation", "patience"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        for name in ("learning_rate", "decay_steps"):
            check_number(name, getattr(self, name), positive=True)
        check_number("validation_fraction", self.validation_fraction)
        if self.validation_fraction >= 1.0:
            raise ValueError(
                f"validation_fraction must be below 1, got {self.validation_fraction!r}"
            )
        if self.validation_fraction and self.n_validation:
            raise ValueError("give validation_fraction or n_validation, not both")

    def n_to_hold_out(self, n_examples: int) -> int:
        """Return how many examples at the head are only for judging by."""
        if not self.validation_fraction:
            return self.n_validation or 0
        share = max(1, round(self.validation_fraction * n_examples))
        return min(share, LARGEST_VALIDATION)

    def solve(
        self,
        problem: BatchedProblem,
        start: FloatArray,
        callback: Callback | None = None,
        *,
        seed: int | None = None,
        checkpoint: str | Path | None = None,
    ) -> SolverResult:
        """Minimize the expected objective of a batch from a feasible ``start``.

        Parameters
        ----------
        problem : BatchedProblem
        start : array
        callback : callable, optional
            Called with every report.
        seed : int, optional
            Settles the order of the data within buffers.
        checkpoint : path, optional
            A file to resume from if it exists.  Written every ``checkpoint_every``
            batches, removed at the end.

        Returns
        -------
        SolverResult
        """
        self.check()
        if not hasattr(problem, "blocks"):
            raise ValueError(
                "MiniBatch needs a problem that comes in batches, such as a "
                "BatchedProblem; for one that is all in memory use LBFGS()"
            )
        if self.patience is not None and not problem.has_held_out:
            raise ValueError(
                f"patience={self.patience} needs data that is held out: give "
                "validation to fit, or validation_fraction or n_validation"
            )
        described = {} if checkpoint is None else self._describe_run(problem, seed)
        with RunStore(checkpoint, described) as store:
            run = _Run(self, problem, start, seed, store)
            verdict = run.learn(callback)
            store.remove()
        adam, state = run.adam, run.state
        objective, parameters = state.mean, adam.average
        if problem.has_held_out:
            objective, parameters = state.best_objective, state.best
        return adam.result(parameters, objective, verdict, state.history)

    def _describe_run(
        self, problem: BatchedProblem, seed: int | None
    ) -> dict[str, Any]:
        """Return plain values that differ from those of another run."""
        run = asdict(self) | {"seed": seed, **problem.description()}
        # How often a file is written changes nothing in the answer.
        del run["checkpoint_every"]
        return run


@dataclass
class _State:
    """The values that a run resumes from, besides the state of Adam.

    ``epoch``, ``block`` and ``batch`` count the finished passes, blocks of the pass and
    batches of the block; ``running`` is a mean over about the last report's batches,
    times ``weight``.
    """

    order: int
    best: FloatArray
    epoch: int = 0
    block: int = 0
    batch: int = 0
    n_seen: int = 0
    running: float = 0.0
    weight: float = 0.0
    best_objective: float = np.inf
    n_worse: int = 0
    history: list[Step] = field(default_factory=list)

    def update_running_mean(self, value: float, length: int) -> None:
        """Bring the running mean over about ``length`` values up to date."""
        keep = 1.0 - 1.0 / length
        self.running = keep * self.running + (1.0 - keep) * value
        self.weight = keep * self.weight + (1.0 - keep)

    @property
    def mean(self) -> float:
        """The running mean of the objective."""
        return self.running / self.weight


@dataclass(eq=False)
class _Run:
    """One run of the solver."""

    settings: MiniBatch
    problem: BatchedProblem
    start: FloatArray
    seed: int | None
    store: RunStore

    def __post_init__(self) -> None:
        self.adam = Adam.start_at(self.problem.space, self.start)
        # Without a seed the order is random, but a run that resumes must know it.
        order = secrets.randbits(63) if self.seed is None else self.seed
        self.state = _State(order, self.start)
        if (stored := self.store.get("state")) is not None:
            self._restore_checkpoint(stored)

    # Learning ---------------------------------------------------------------------

    def learn(self, callback: Callback | None) -> Verdict:
        settings, adam = self.settings, self.adam
        for problem, size in self._batches():
            value = adam.step(problem, settings.learning_rate, settings.decay_steps)
            self.state.update_running_mean(value, settings.report_every)
            self.state.n_seen += size
            if adam.n_steps % settings.report_every == 0:
                verdict = self._report_progress(callback)
                if verdict is not None:
                    return verdict
            if adam.n_steps % settings.checkpoint_every == 0 and self.store.path:
                self._save_checkpoint()
        unreported = adam.n_steps % settings.report_every
        return (self._report_progress(callback) if unreported else None) or Verdict(
            Stop.DATA_USED,
            f"went through the data n_epochs={settings.n_epochs} times, in "
            f"{adam.n_steps} steps",
            self._few_steps_remedy(),
        )

    def _few_steps_remedy(self) -> str:
        """Return a remedy where every pass was one step, and all were few."""
        settings = self.settings
        if self.adam.n_steps >= _FEW_STEPS or self.adam.n_steps > settings.n_epochs:
            return ""
        return (
            "That is too little to learn much: a batch holds all of the data. Lower "
            f"batch_size (now {settings.batch_size or _BATCH_SIZE}), raise n_epochs, "
            'or use solver="lbfgs"'
        )

    def _batches(self) -> Iterator[tuple[Problem, int]]:
        """Yield the next batches with their sizes, and count them."""
        settings, place = self.settings, self.state
        batch_size = settings.batch_size or _BATCH_SIZE
        buffer_size = settings.buffer_size or 8 * batch_size
        while place.epoch < settings.n_epochs:
            for block in self.problem.blocks(buffer_size, place.block):
                rng = np.random.default_rng([place.order, place.epoch, place.block])
                order = rng.permutation(len(block))
                # Batches of nearly equal size: a last one of two pairs would be noise.
                n_batches = max(1, round(len(block) / batch_size))
                is_whole = place.block == 0 and len(block) < buffer_size
                if settings.batch_size is None and is_whole:
                    wanted = -(-_ENOUGH_STEPS // settings.n_epochs)
                    n_batches = max(n_batches, min(wanted, len(block)))
                parts = np.array_split(order, n_batches)
                while place.batch < n_batches:
                    part = parts[place.batch]
                    place.batch += 1
                    yield self.problem.batch([block[k] for k in part]), len(part)
                place.block += 1
                place.batch = 0
            place.epoch += 1
            place.block = 0

    def _report_progress(self, callback: Callback | None) -> Verdict | None:
        """Judge the average, tell the callback; return a verdict if that is the end."""
        state, expected_f = self.state, None
        objective = state.mean
        if self.problem.has_held_out:
            objective, expected_f = self.problem.judge(self.adam.average)
            state.n_worse += 1
            if objective < state.best_objective:
                state.best_objective, state.n_worse = objective, 0
                state.best = self.adam.average
        n_steps, norm = self.adam.n_steps, self.adam.gradient_norm
        step = Step(n_steps, objective, norm, state.n_seen, expected_f)
        state.history.append(step)
        if wants_to_stop(callback, step):
            return callback_verdict()
        if state.n_worse == self.settings.patience:
            return Verdict(
                Stop.EARLY,
                f"stopped early: the objective on held-out data has not fallen for "
                f"patience={self.settings.patience} reports; the best parameters are "
                "kept",
                "",
            )
        return None

    # Resuming ---------------------------------------------------------------------

    def _save_checkpoint(self) -> None:
        state = vars(self.state) | {"best": self.state.best.tolist()}
        content = {"adam": self.adam.state(), "run": state}
        self.store.put("state", json.dumps(content).encode())

    def _restore_checkpoint(self, stored: bytes) -> None:
        try:
            content = json.loads(stored)
            self.adam = Adam.from_state(content["adam"])
            self.state = _State(**content["run"])
            self.state.best = np.array(self.state.best, dtype=np.float64)
            self.state.history = [Step(*step) for step in self.state.history]
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{self.store.path} is damaged: {type(error).__name__} {error}"
            ) from None
        logger.info(
            "resuming from %s after %d steps", self.store.path, self.adam.n_steps
        )
