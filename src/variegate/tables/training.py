"""Learning from groups: in memory where they fit, one batch after another if not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from variegate._progress import Progress, ignore
from variegate._typing import IntArray
from variegate.baselines.ordering import Ordering
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Linear
from variegate.solvers import MiniBatch, Step
from variegate.tables.groups import Groups
from variegate.tables.policy import Fallback, Policy
from variegate.tables.table import TableError
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

#: Groups that learning from a stream is watched by, at most.
_MAX_WATCHED = 500

#: Rows of a group whose pairs can be learned from.
MAX_ROWS = 10_000

#: Steps of stochastic gradients that are enough, as a rule.
N_STEPS = 1000

#: Bytes of features that are shuffled together when learning from a stream.
_BUFFER = 64 * 2**20


@dataclass(frozen=True, eq=False)
class Learned:
    """The policy that was learned, and what it was chosen by."""

    policy: Policy
    #: For groups unlike those that were learned from.
    fallback: Fallback | None = None
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
    """How to learn; ``memory`` is bytes that learning in memory may take."""

    #: Its ``random_state`` is a seed.
    estimator: LargeMarginDPP
    #: None: those of ``OMEGAS``, or 1 alone where groups do not fit in memory.
    omegas: tuple[float, ...] | None
    #: What chooses lambda and omega on held-out groups, if that is wanted; estimator,
    #: omegas, folds and callback are put in when it is used.
    search: LargeMarginDPPCV | None
    memory: int
    #: For the groups that are held out in turn.
    seed: int = 0
    #: What chooses the kernel of the estimator, if that is wanted.
    kernels: KernelSearch | None = None
    #: Passes over groups that do not fit in memory; None: as many as make ``N_STEPS``.
    n_epochs: int | None = None
    progress: Progress = ignore
    #: Makes examples, to be learned from where they are, of the groups with some
    #: numbers; None: groups are brought to memory or streamed.
    partitioned: Callable[[IntArray], Any] | None = None

    def learn(self, groups: Groups, numbers: IntArray) -> Learned:
        """Learn from the groups with these numbers."""
        is_small = groups.survey.index.sizes[numbers].max() <= MAX_COMPARED_ROWS
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
        sizes = groups.survey.index.sizes[numbers].astype(np.float64)
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
        small = numbers[groups.survey.index.sizes[numbers] <= MAX_COMPARED_ROWS]
        mean = groups.survey.index.sizes[small].mean() if len(small) else 1.0
        most = max(FEW_COMPARED, min(MAX_COMPARED, int(MAX_COMPARED_IN_ALL / mean)))
        some = self._within(groups, small, most, self.memory // 2)
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
        n_bytes: int,
    ) -> tuple[Winner, float, OmegaPath | None, int]:
        """Return the winner and its omega, the path of the search and its groups.

        The search is made on groups of at most ``n_bytes``.
        """
        estimator = winner.contender.model
        if self.search is None or isinstance(winner.contender, TwoStage):
            own = float(estimator.omega)
            is_own = self.kernels is not None and self.omegas is None
            return winner, own if is_own else outwards(omegas)[0], None, 0
        numbers = self._within(groups, numbers, MAX_TUNING, n_bytes)
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
        """Learn as was decided: in memory, from a stream, or from partitions."""
        fits = self._bytes(groups, numbers) <= self.memory
        given = self.omegas or (OMEGAS if fits else ())
        room = self.memory if fits else self.memory // 2
        winner, omega, path, n_tuned = self._tuned(
            groups, numbers, winner, given or (1.0,), room
        )
        is_stream = not fits and self.partitioned is None
        has_margin = winner.contender.model.lam > 0.0
        omegas = (*given, omega) if has_margin or is_stream else (omega,)
        drawn = numbers
        if isinstance(winner.contender, TwoStage):
            # Few numbers, for which some of the groups are enough.
            if not fits:
                drawn = self._within(groups, numbers, len(numbers), room)
            with groups.named(drawn):
                policy = self._fit(winner, omegas, omega, *groups.examples(drawn))
            self.progress("learning", 1, 1)
            n_sample = 0 if fits else len(drawn)
            return Learned(policy, None, path, n_tuned, winner, n_sample=n_sample)
        data: Any = None
        if self.partitioned is not None:
            with groups.named(numbers):
                examples = self.partitioned(numbers)
                policy = self._fit(winner, omegas, omega, examples, None)
        elif is_stream:
            policy, numbers = self._fit_stream(winner, omegas, omega, groups, numbers)
        else:
            with groups.named(numbers):
                data = groups.examples(numbers)
                policy = self._fit(winner, omegas, omega, *data)
        self.progress("learning", 1, 1)
        fallback = None
        if winner.fallback is not None:
            if not fits:
                drawn = self._within(groups, numbers, MAX_TUNING, self.memory // 8)
            with groups.named(drawn):
                data = data or groups.examples(drawn)
                fallback = self._fallback(winner.fallback, policy, *data)
        return Learned(policy, fallback, path, n_tuned, winner)

    def _fallback(
        self, winner: Winner, policy: Policy, ground_sets: Any, subsets: Any
    ) -> Fallback | None:
        """Learn a policy for groups unlike all of these, where there are kinds."""
        kernel = policy.family.models[0].kernel_
        is_familiar = Familiarity.of(kernel, ground_sets)
        if is_familiar is None:
            return None
        omegas, omega = policy.family.omegas, policy.omega
        return Fallback(
            self._fit(winner, omegas, omega, ground_sets, subsets), is_familiar
        )

    def _fit(
        self,
        winner: Winner,
        omegas: Sequence[float],
        omega: float,
        *data: Any,
        n_steps: int = 0,
        solver: Any = None,
        **others: Any,
    ) -> Policy:
        """Fit a family, each model in about ``n_steps`` steps, or groups seen."""
        estimator = winner.contender.model
        n_steps = n_steps or estimator.max_iter
        total, n_fitted = n_steps * len(set(omegas)), 0

        def step(one: Step) -> Any:
            done = min(one.n_seen or one.iteration, n_steps)
            self.progress("learning", n_fitted * n_steps + done, total)
            callback = self.estimator.callback
            return None if callback is None else callback(one)

        def fitted(stage: str, done: float, total: float) -> None:
            nonlocal n_fitted
            n_fitted = int(done)

        is_learned = isinstance(winner.contender, LearnedDPP)
        watched = clone(estimator).set_params(callback=step)
        if solver is not None:
            watched.set_params(solver=solver)
        if is_learned and winner.rule.k is None:
            watched.set_params(decoder=winner.rule.how)
        contender = replace(winner.contender, model=watched)
        with warnings.catch_warnings():
            if self.kernels is not None:
                # What did best on held-out groups had fewer steps than these.
                warnings.simplefilter("ignore", ConvergenceWarning)
            family = contender.family(omegas, *data, progress=fitted, **others)
        for model in family.models:
            # How the models were made, less what is about this machine and this table.
            model.set_params(n_jobs=None, device=None, solver=self.estimator.solver)
        how = winner.rule.how
        ordering = how if isinstance(how, Ordering) else None
        return Policy(family, omega, winner.rule.k, ordering)

    def _fit_stream(
        self,
        winner: Winner,
        omegas: Sequence[float],
        omega: float,
        groups: Groups,
        numbers: IntArray,
    ) -> tuple[Policy, IntArray]:
        """Fit by stochastic gradients; return also the groups that were learned from.

        The best of the steps is told by groups that are not learned from.
        """
        n_watched = min(_MAX_WATCHED, len(numbers) // 20)
        watched = self._within(
            groups, numbers, n_watched if n_watched >= 10 else 0, self.memory // 8
        )
        numbers = np.setdiff1d(numbers, watched)
        solver = self._solver(groups, numbers)
        validation = groups.examples(watched) if len(watched) else None
        with groups.named(numbers, watched):
            policy = self._fit(
                winner,
                omegas,
                omega,
                _Stream(groups, numbers),
                None,
                n_steps=len(numbers) * solver.n_epochs,
                solver=solver,
                validation=validation,
            )
        return policy, numbers

    def _solver(self, groups: Groups, numbers: IntArray) -> MiniBatch:
        """Return a solver whose buffer and batches are of bounded size.

        That of the estimator, if it is one for streams.
        """
        if isinstance(self.estimator.solver, MiniBatch):
            solver = self.estimator.solver
            return replace(solver, n_epochs=self.n_epochs or solver.n_epochs)
        sizes = groups.survey.index.sizes[numbers].astype(np.float64)
        features = 8.0 * sizes.mean() * groups.encoding.width
        # Of the larger groups, as one batch may hold many of them.
        pairs = 8.0 * 4.0 * float(np.quantile(sizes, 0.95)) ** 2
        room = min(_BUFFER / (8.0 * features), self.memory / 4.0 / pairs)
        most = max(8, min(64, len(numbers) // 16))
        batch = int(np.clip(room, 1, most))
        n_epochs = self.n_epochs or min(-(-N_STEPS * batch // len(numbers)), 100)
        return MiniBatch(
            batch_size=batch,
            n_epochs=n_epochs,
            report_every=max(1, len(numbers) * n_epochs // batch // 50),
        )

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
    sizes = groups.survey.index.sizes[numbers]
    largest = int(np.argmax(sizes))
    if sizes[largest] > MAX_ROWS:
        raise TableError(
            f"group {groups.survey.index.names[numbers[largest]]!r} has "
            f"{sizes[largest]:,} rows, and learning compares all pairs of rows in "
            f"a group: divide groups of more than {MAX_ROWS:,} rows, or use a "
            "linear kernel"
        )


@dataclass(frozen=True, eq=False)
class _Stream:
    """Some groups as pairs, to iterate over again and again."""

    groups: Groups
    numbers: IntArray

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[tuple[GroundSet, IntArray]]:
        for group in self.groups.only(self.numbers):
            yield group.ground_set, group.wanted()
