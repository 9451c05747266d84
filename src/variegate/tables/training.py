"""Learning from groups: choose a contender on a sample, then learn from all."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from variegate._progress import Progress, ignore
from variegate._typing import IntArray
from variegate.baselines.learned import Ordering
from variegate.estimator import LargeMarginDPP
from variegate.files.run_store import RunStore
from variegate.kernels import Linear
from variegate.learning.device_name import device_named
from variegate.partitions import Limits, PartitionedExamples, Serial, Threads
from variegate.solvers import MiniBatch, Step
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups
from variegate.tables.policy import Policy
from variegate.tuning import LargeMarginDPPCV, OmegaPath
from variegate.tuning.family import outwards
from variegate.tuning.kernel_search import Familiarity, KernelSearch, Winner
from variegate.tuning.race import LearnedDPP, Rule, TwoStage

#: The omegas that are learned where none is named.
OMEGAS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)

#: The omegas that the best is looked for among; below 1 are few that help the F-score.
TUNING_OMEGAS = (1 / 4, 1.0, 2.0, 4.0, 8.0, 16.0)

#: Groups that lambda and omega are chosen on, at most.
MAX_TUNING = 500

#: Iterations of each fit that they are chosen by, which starts from its neighbour's.
MAX_TUNING_ITER = 25

#: Groups that kernels are compared on, at most, rows of such a group, and rows of all,
#: which may be more where groups are few.
MAX_COMPARED = 300
MAX_COMPARED_ROWS = 500
MAX_COMPARED_IN_ALL = 7500
FEW_COMPARED = 50

#: Groups without which nothing is compared.
MIN_COMPARED = 4

#: Rows of a group whose pairs can be learned from.
MAX_ROWS = 10_000

#: Bytes of the groups that settings are chosen on, or that a model which learns in
#: memory learns from.  A constant, so that models do not depend on the memory allowed.
_SAMPLE_BYTES = 2**29


@dataclass(frozen=True, eq=False)
class Learned:
    """The policy that was learned, and what it was chosen by."""

    policy: Policy
    #: Scores on held-out groups that omega was chosen by.
    path: OmegaPath | None = None
    #: Groups that it was chosen on, 0 if it was given.
    n_tuned: int = 0
    #: What was compared, and on how many groups.
    winner: Winner | None = None
    n_compared: int = 0
    #: Groups that were learned from, where they are a sample of all; else 0.
    n_sample: int = 0

    @property
    def lam(self) -> float:
        """The weight of the margin."""
        return float(self.policy.family.models[0].lam)

    @property
    def history(self) -> list[Step]:
        """The steps of the first fit."""
        family = self.policy.family
        return family.at(outwards(family.omegas)[0]).history_


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """How to learn from groups; ``memory`` is bytes that a process may hold."""

    #: Its ``random_state`` is a seed.
    estimator: LargeMarginDPP
    #: None: those of ``OMEGAS``.
    omegas: tuple[float, ...] | None
    #: What chooses lambda and omega on held-out groups, if that is wanted; estimator,
    #: omegas, folds and callback are put in when it is used.
    search: LargeMarginDPPCV | None
    memory: int
    #: For the groups that are held out in turn.
    seed: int = 0
    #: What chooses the kernel of the estimator, if that is wanted.
    kernels: KernelSearch | None = None
    #: Passes of stochastic gradients before the solver; None: by the number of groups.
    first_passes: int | None = None
    progress: Progress = ignore
    #: Where answers are written down, for a run that is resumed.
    store: RunStore | None = None

    def learn(self, groups: Groups, numbers: IntArray) -> Learned:
        """Learn from the groups with these numbers."""
        is_small = groups.survey.sizes[numbers].max() <= MAX_COMPARED_ROWS
        # Threads of BLAS wait for each other longer than small matrices take.
        with threadpool_limits(1 if is_small else None, user_api="blas"):
            winner, n_compared = self._compared(groups, numbers)
            kernel = winner.contender.model.kernel
            has_rank = getattr(kernel, "approximation", None)
            if not has_rank and not isinstance(kernel, Linear):
                refuse_large_groups(groups, numbers)
            learned = self._learn(winner, groups, numbers)
        return replace(learned, n_compared=n_compared)

    def _bytes(self, groups: Groups, numbers: IntArray) -> int:
        """Return about how much memory L-BFGS takes."""
        sizes = groups.survey.sizes[numbers].astype(np.float64)
        features = sizes.sum() * groups.encoding.width
        # Squared distances, two chains of Gaussians, and the linear part: triangles.
        pairs = 2.0 * (sizes @ sizes)
        return int(8.0 * (features + pairs))

    # Choosing a contender ---------------------------------------------------------

    def _compared(self, groups: Groups, numbers: IntArray) -> tuple[Winner, int]:
        """Return the winner on held-out groups, and the number of these.

        Without a comparison, or groups for it, that is the estimator as it is.
        """
        given = Winner(LearnedDPP("", self.estimator, ()), Rule(self.estimator.decoder))
        if self.kernels is None:
            return given, 0
        small = numbers[groups.survey.sizes[numbers] <= MAX_COMPARED_ROWS]
        mean = groups.survey.sizes[small].mean() if len(small) else 1.0
        most = max(FEW_COMPARED, min(MAX_COMPARED, int(MAX_COMPARED_IN_ALL / mean)))
        some = self._within(groups, small, most, _SAMPLE_BYTES // 2)
        if len(some) < MIN_COMPARED:
            return given, 0
        with groups.named(some):
            winner = self.kernels.run(
                *groups.examples(some),
                seed=self.seed,
                progress=self.progress,
            )
        return winner, len(some)

    def _tuned(
        self,
        groups: Groups,
        numbers: IntArray,
        winner: Winner,
        omegas: Sequence[float],
    ) -> tuple[Winner, float, OmegaPath | None, int]:
        """Return the winner and its omega, the path of the search and its groups."""
        estimator = winner.contender.model
        if self.search is None or isinstance(winner.contender, TwoStage):
            own = float(estimator.omega)
            is_own = self.kernels is not None and self.omegas is None
            return winner, own if is_own else outwards(omegas)[0], None, 0
        numbers = self._within(groups, numbers, MAX_TUNING, _SAMPLE_BYTES)
        if len(numbers) < 2:
            raise TableError(
                "one group is not enough to choose lambda and omega by: give more "
                "groups, or do not tune"
            )
        decoder = estimator.decoder if winner.rule.k else winner.rule.how
        search = clone(self.search).set_params(
            estimator=clone(estimator).set_params(
                callback=None,
                n_jobs=None,
                device=None,
                decoder=decoder,
                max_iter=min(estimator.max_iter, MAX_TUNING_ITER),
            ),
            omegas=self.omegas or TUNING_OMEGAS,
            cv=min(3, len(numbers)),
            callback=lambda done, total: self.progress("tuning", done, total),
        )
        with groups.named(numbers):
            search.fit(*groups.examples(numbers))
        best = next(p for p in search.path_ if p.omega == search.path_.chosen)
        if winner.rule.k and winner.standings[0].mean > best.f + best.f_error:
            # A fixed number of rows is clearly better than what can be tuned.
            return winner, float(estimator.omega), None, 0
        model = clone(estimator).set_params(lam=search.best_lam_)
        contender = replace(winner.contender, model=model)
        tuned = replace(winner, contender=contender, rule=Rule(decoder))
        return tuned, search.best_omega_, search.path_, len(numbers)

    # Learning ---------------------------------------------------------------------

    def _learn(self, winner: Winner, groups: Groups, numbers: IntArray) -> Learned:
        """Learn as was decided, and a fallback where there are kinds."""
        given = self.omegas or OMEGAS
        winner, omega, path, n_tuned = self._tuned(groups, numbers, winner, given)
        has_margin = winner.contender.model.lam > 0.0
        omegas = (*given, omega) if has_margin else (omega,)
        sample = self._within(groups, numbers, len(numbers), _SAMPLE_BYTES)
        policy = self._policy(winner, omegas, omega, groups, numbers, sample)
        self.progress("learning", 1, 1)
        is_two_stage = isinstance(winner.contender, TwoStage)
        n_sample = len(sample) if is_two_stage and len(sample) < len(numbers) else 0
        if winner.fallback is not None:
            kernel = policy.family.models[0].kernel_
            is_familiar = Familiarity.of(kernel, groups.examples(sample)[0])
            if is_familiar is not None:
                omegas = policy.family.omegas
                fallback = self._policy(
                    winner.fallback, omegas, omega, groups, numbers, sample
                )
                policy = replace(policy, fallback=fallback, is_familiar=is_familiar)
        return Learned(policy, path, n_tuned, winner, n_sample=n_sample)

    def _policy(
        self,
        winner: Winner,
        omegas: Sequence[float],
        omega: float,
        groups: Groups,
        numbers: IntArray,
        sample: IntArray,
    ) -> Policy:
        """Learn from all groups; a regression has few weights, and needs a sample."""
        if isinstance(winner.contender, TwoStage):
            with groups.named(sample):
                return self._fit(winner, omegas, omega, *groups.examples(sample))
        with groups.named(numbers):
            return self._fit(winner, omegas, omega, *self._data(groups, numbers))

    def _data(self, groups: Groups, numbers: IntArray) -> tuple[Any, Any]:
        """Return groups as partitions; for a device or mini-batches, as lists."""
        n_bytes, estimator = self._bytes(groups, numbers), self.estimator
        fits = n_bytes <= self.memory
        is_on_device = device_named(estimator.device) is not None
        if is_on_device and not fits:
            raise TableError(
                f"learning takes about {n_bytes / 1e9:.1f} GB, more than memory="
                f"{self.memory:,}, and device={estimator.device!r} holds all of it: "
                "raise memory, or leave out device"
            )
        if is_on_device or (isinstance(estimator.solver, MiniBatch) and fits):
            return groups.examples(numbers)
        engine, n_jobs = groups.engine, 1
        if type(engine) is Serial:
            # Threads share partitions or, where there is one, its groups.
            n_jobs = effective_n_jobs(estimator.n_jobs)
            engine = Threads(n_jobs)
            n_jobs = n_jobs if len(groups.survey.partitions) == 1 else 1
        examples = PartitionedExamples(
            groups.source(numbers),  # type: ignore[arg-type]
            engine,
            n_jobs=n_jobs,
            store=self.store,
            first_passes=self.first_passes,
            limits=Limits(memory=max(self.memory // 2, 1)),
        )
        return examples, None

    def _fit(
        self,
        winner: Winner,
        omegas: Sequence[float],
        omega: float,
        *data: Any,
    ) -> Policy:
        """Fit a family of models."""
        estimator = winner.contender.model
        n_steps = estimator.max_iter
        total, n_fitted = n_steps * len(set(omegas)), 0

        def step(one: Step) -> Any:
            done = min(one.iteration, n_steps)
            self.progress("learning", n_fitted * n_steps + done, total)
            callback = self.estimator.callback
            return None if callback is None else callback(one)

        def fitted(stage: str, done: float, total: float) -> None:
            nonlocal n_fitted
            n_fitted = int(done)

        is_learned = isinstance(winner.contender, LearnedDPP)
        watched = clone(estimator).set_params(callback=step)
        if is_learned and winner.rule.k is None:
            watched.set_params(decoder=winner.rule.how)
        contender = replace(winner.contender, model=watched)
        with warnings.catch_warnings():
            if self.kernels is not None:
                # What did best on held-out groups had fewer steps than these.
                warnings.simplefilter("ignore", ConvergenceWarning)
            family = contender.family(omegas, *data, progress=fitted)
        for model in family.models:
            # How the models were made, less what is about this machine.
            model.set_params(n_jobs=None, device=None)
        how = winner.rule.how
        ordering = how if isinstance(how, Ordering) else None
        return Policy(family, omega, winner.rule.k, ordering)

    def _within(
        self, groups: Groups, numbers: IntArray, most: int, n_bytes: int
    ) -> IntArray:
        """Return some groups, drawn at random, that fit into ``n_bytes``."""
        rng = np.random.default_rng(self.estimator.random_state)
        some = rng.permutation(numbers)[:most]
        while len(some) > 2 and self._bytes(groups, some) > n_bytes:
            some = some[: max(2, len(some) // 2)]
        return np.sort(some)


def refuse_large_groups(groups: Groups, numbers: IntArray) -> None:
    """Refuse groups whose pairs of rows would not fit in memory."""
    sizes = groups.survey.sizes[numbers]
    largest = int(np.argmax(sizes))
    if sizes[largest] > MAX_ROWS:
        raise TableError(
            f"group {groups.survey.name(numbers[largest])!r} has "
            f"{sizes[largest]:,} rows, and learning compares all pairs of rows in "
            f"a group: divide groups of more than {MAX_ROWS:,} rows, or use a "
            "linear kernel"
        )
