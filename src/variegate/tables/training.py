"""Learning from groups: in memory where they fit, one batch after another if not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from variegate._typing import IntArray
from variegate.baselines.ordering import Ordering
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Linear
from variegate.solvers import MiniBatch, Step
from variegate.tables.encoding import Encoding
from variegate.tables.groups import Groups
from variegate.tables.splitting import examples, only
from variegate.tables.table import Progress, TableError, ignore
from variegate.tables.ways import Elsewhere, Way
from variegate.tuning import LargeMarginDPPCV, OmegaPath
from variegate.tuning.contenders import LearnedDPP, TwoStage
from variegate.tuning.familiarity import Familiarity
from variegate.tuning.family import outwards
from variegate.tuning.kernel_search import KernelSearch, Winner
from variegate.tuning.race import Rule

__all__ = ["Learned", "Lesson", "features_width", "refuse_large_groups"]

#: The omegas that are learned where none is named.
OMEGAS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)

#: The omegas that the best is looked for among; below 1 are few that help the F-score.
TUNING_OMEGAS = (1 / 4, 1.0, 2.0, 4.0, 8.0, 16.0)

#: Groups that lambda and omega are chosen on, at most.
MAX_TUNING = 500

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
    """What was learned, and why that."""

    way: Way
    #: For groups unlike those that were learned from.
    elsewhere: Elsewhere | None = None
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
    def omega(self) -> float:
        """The omega to use."""
        return self.way.omega

    @property
    def lam(self) -> float:
        """The weight of the margin."""
        return float(self.way.family.models[0].lam)

    @property
    def history(self) -> list[Step]:
        """The steps of the first fit."""
        family = self.way.family
        return family.at(outwards(family.omegas)[0]).history_


@dataclass(frozen=True, eq=False)
class Lesson:
    """How to learn; ``memory`` is bytes that learning in memory may take."""

    #: What is learned with; its ``random_state`` is a seed.
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

    def learn(self, groups: Groups, numbers: IntArray) -> Learned:
        """Learn from the groups with these numbers."""
        is_small = groups.survey.index.sizes[numbers].max() <= MAX_COMPARED_ROWS
        # Threads of BLAS wait for each other longer than small matrices take.
        with threadpool_limits(1 if is_small else None, user_api="blas"):
            winner, n_compared = self._compared(groups, numbers)
            kernel = winner.way.model.kernel
            has_rank = getattr(kernel, "approximation", None)
            if not has_rank and not isinstance(kernel, Linear):
                refuse_large_groups(groups, numbers)
            learned = self._learn_by(winner, groups, numbers)
        return replace(learned, n_compared=n_compared)

    def _learn_by(self, winner: Winner, groups: Groups, numbers: IntArray) -> Learned:
        """Learn as was decided."""
        if self._bytes(groups, numbers) <= self.memory:
            return self._learn_in_memory(groups, numbers, winner)
        return self._learn_from_stream(groups, numbers, winner)

    def _bytes(self, groups: Groups, numbers: IntArray) -> int:
        """Return about how much memory L-BFGS takes."""
        sizes = groups.survey.index.sizes[numbers].astype(np.float64)
        features = sizes.sum() * features_width(groups.encoding)
        # Squared distances, two chains of Gaussians, and the linear part: triangles.
        pairs = 2.0 * (sizes @ sizes)
        return int(8.0 * (features + pairs))

    # What to learn with -----------------------------------------------------------

    def _compared(self, groups: Groups, numbers: IntArray) -> tuple[Winner, int]:
        """Return what does best on held-out groups, and how many were looked at.

        Where there is nothing to compare, or too little to do it on, it is the
        estimator as it is.
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
                *examples(groups, some),
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
        """Return the winner and its omega, the path it was chosen by and on how many.

        Without a search they are as given; it is made on groups of so many bytes.
        """
        estimator = winner.way.model
        if self.search is None or isinstance(winner.way, TwoStage):
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
                callback=None, n_jobs=None, device=None, decoder=decoder
            ),
            omegas=self.omegas or TUNING_OMEGAS,
            cv=min(3, len(numbers)),
            callback=lambda done, total: self.progress("tuning", done, total),
        )
        with groups.named(numbers):
            search.fit(*examples(groups, numbers))
        best = next(p for p in search.path_ if p.omega == search.path_.chosen)
        if winner.rule.k and winner.standings[0].mean > best.f + best.f_error:
            # A fixed number of rows is clearly better than what can be tuned.
            return winner, float(estimator.omega), None, 0
        model = clone(estimator).set_params(lam=search.best_lam_)
        way = replace(winner.way, model=model)
        tuned = replace(winner, way=way, rule=Rule(decoder))
        return tuned, search.best_omega_, search.path_, len(numbers)

    # In memory --------------------------------------------------------------------

    def _learn_in_memory(
        self, groups: Groups, numbers: IntArray, winner: Winner
    ) -> Learned:
        omegas = self.omegas or OMEGAS
        winner, omega, path, n_tuned = self._tuned(
            groups, numbers, winner, omegas, self.memory
        )
        omegas = (*omegas, omega) if winner.way.model.lam > 0.0 else (omega,)
        with groups.named(numbers):
            data = examples(groups, numbers)
            way = self._fit(winner, omegas, omega, *data)
            elsewhere = self._elsewhere(winner, way, *data)
        self.progress("learning", 1, 1)
        return Learned(way, elsewhere, path, n_tuned, winner)

    def _elsewhere(
        self, winner: Winner, way: Way, ground_sets: Any, subsets: Any
    ) -> Elsewhere | None:
        """Learn what is for groups unlike all of these, if it is wanted."""
        if winner.elsewhere is None:
            return None
        kernel = way.family.models[0].kernel_
        is_familiar = Familiarity.of(kernel, ground_sets)
        if is_familiar is None:
            return None
        other = self._fit(
            winner.elsewhere, way.family.omegas, way.omega, ground_sets, subsets
        )
        return Elsewhere(other, is_familiar)

    def _fit(
        self,
        winner: Winner,
        omegas: Sequence[float],
        omega: float,
        *data: Any,
        n_steps: int = 0,
        solver: Any = None,
        **others: Any,
    ) -> Way:
        """Fit a family, each model in about ``n_steps`` steps, or groups seen."""
        estimator = winner.way.model
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

        is_learned = isinstance(winner.way, LearnedDPP)
        watched = clone(estimator).set_params(callback=step)
        if solver is not None:
            watched.set_params(solver=solver)
        if is_learned and winner.rule.k is None:
            watched.set_params(decoder=winner.rule.how)
        way = replace(winner.way, model=watched)
        with warnings.catch_warnings():
            if self.kernels is not None:
                # What did best on held-out groups had fewer steps than these.
                warnings.simplefilter("ignore", ConvergenceWarning)
            family = way.family(omegas, *data, progress=fitted, **others)
        for model in family.models:
            # How the models were made, less what is about this machine and this table.
            model.set_params(n_jobs=None, device=None, solver=self.estimator.solver)
        how = winner.rule.how
        ordering = how if isinstance(how, Ordering) else None
        return Way(family, omega, winner.rule.k, ordering)

    # From a stream ----------------------------------------------------------------

    def _learn_from_stream(
        self, groups: Groups, numbers: IntArray, winner: Winner
    ) -> Learned:
        winner, omega, path, n_tuned = self._tuned(
            groups, numbers, winner, self.omegas or (1.0,), self.memory // 2
        )
        omegas = (*(self.omegas or ()), omega)
        if isinstance(winner.way, TwoStage):
            # Few numbers, for which some of the groups are enough.
            some = self._within(groups, numbers, len(numbers), self.memory // 2)
            with groups.named(some):
                way = self._fit(winner, omegas, omega, *examples(groups, some))
            return Learned(way, None, path, n_tuned, winner)
        # The best of the steps is told by groups that are not learned from.
        n_watched = min(_MAX_WATCHED, len(numbers) // 20)
        watched = self._within(
            groups, numbers, n_watched if n_watched >= 10 else 0, self.memory // 8
        )
        numbers = np.setdiff1d(numbers, watched)
        solver = self._solver(groups, numbers)
        validation = examples(groups, watched) if len(watched) else None
        with groups.named(numbers, watched):
            way = self._fit(
                winner,
                omegas,
                omega,
                _Stream(groups, numbers),
                None,
                n_steps=len(numbers) * solver.n_epochs,
                solver=solver,
                validation=validation,
            )
        some = self._within(groups, numbers, MAX_TUNING, self.memory // 8)
        with groups.named(some):
            elsewhere = self._elsewhere(winner, way, *examples(groups, some))
        return Learned(way, elsewhere, path, n_tuned, winner)

    def _solver(self, groups: Groups, numbers: IntArray) -> MiniBatch:
        """Return a solver whose buffer and batches are of bounded size.

        That of the estimator, if it is one for streams.
        """
        if isinstance(self.estimator.solver, MiniBatch):
            solver = self.estimator.solver
            return replace(solver, n_epochs=self.n_epochs or solver.n_epochs)
        sizes = groups.survey.index.sizes[numbers].astype(np.float64)
        features = 8.0 * sizes.mean() * features_width(groups.encoding)
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
        """Return some groups, drawn at random, that fit into so many bytes."""
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


def features_width(encoding: Encoding) -> int:
    """Return the numbers in the features of a row."""
    return sum(column.size for column in encoding.columns())


@dataclass(frozen=True, eq=False)
class _Stream:
    """Some groups as pairs, to iterate over again and again."""

    groups: Groups
    numbers: IntArray

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[tuple[GroundSet, IntArray]]:
        for group in only(self.groups, self.numbers):
            yield group.ground_set, group.wanted()
