"""Learning from groups: in memory where they fit, one batch after another if not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from variegate._typing import IntArray
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, Linear, Mixture, MultipleKernel
from variegate.solvers import MiniBatch, Step
from variegate.tables.encoding import Encoding
from variegate.tables.groups import Groups
from variegate.tables.splitting import examples, only
from variegate.tables.table import Progress, TableError, ignore
from variegate.tuning import LargeMarginDPPCV, OmegaFamily, OmegaPath
from variegate.tuning.family import outwards

__all__ = ["Learned", "Lesson", "kernel_for"]

#: The omegas that are learned where none is named.
OMEGAS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)

#: The omegas that the best is looked for among; below 1 are few that help the F-score.
TUNING_OMEGAS = (1 / 4, 1.0, 2.0, 4.0, 8.0, 16.0)

#: Groups that lambda and omega are chosen on, at most.
MAX_TUNING = 500

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
    """What was learned: ``omega`` is the one to use."""

    family: OmegaFamily
    omega: float
    #: Scores on held-out groups that ``omega`` was chosen by.
    path: OmegaPath | None = None
    #: Groups that it was chosen on, 0 if it was given.
    n_tuned: int = 0

    @property
    def lam(self) -> float:
        """The weight of the margin."""
        return float(self.family.models[0].lam)

    @property
    def history(self) -> list[Step]:
        """The steps of the first fit."""
        return self.family.at(outwards(self.family.omegas)[0]).history_


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
    #: Passes over groups that do not fit in memory; None: as many as make ``N_STEPS``.
    n_epochs: int | None = None
    progress: Progress = ignore

    def learn(self, groups: Groups, numbers: IntArray) -> Learned:
        """Learn from the groups with these numbers."""
        self._refuse_large(groups, numbers)
        if self._bytes(groups, numbers) <= self.memory:
            return self._learn_in_memory(groups, numbers)
        return self._learn_from_stream(groups, numbers)

    def _refuse_large(self, groups: Groups, numbers: IntArray) -> None:
        """Refuse groups whose pairs of rows would not fit in memory."""
        kernel = self.estimator.kernel
        if getattr(kernel, "approximation", None) or isinstance(kernel, Linear):
            return
        sizes = groups.survey.index.sizes[numbers]
        largest = int(np.argmax(sizes))
        if sizes[largest] > MAX_ROWS:
            raise TableError(
                f"group {groups.survey.index.names[numbers[largest]]!r} has "
                f"{sizes[largest]:,} rows, and learning compares all pairs of rows in "
                f"a group: divide groups of more than {MAX_ROWS:,} rows, or use a "
                "linear kernel"
            )

    def _bytes(self, groups: Groups, numbers: IntArray) -> int:
        """Return about how much memory L-BFGS takes."""
        sizes = groups.survey.index.sizes[numbers].astype(np.float64)
        features = sizes.sum() * _width(groups.encoding)
        # Squared distances, two chains of Gaussians, and the linear part: triangles.
        pairs = 2.0 * (sizes**2).sum()
        return int(8.0 * (features + pairs))

    # In memory --------------------------------------------------------------------

    def _learn_in_memory(self, groups: Groups, numbers: IntArray) -> Learned:
        omegas = self.omegas or OMEGAS
        estimator, omega, path, n_tuned = self._tuned(
            groups, numbers, omegas, self.memory
        )
        omegas = (*omegas, omega) if estimator.lam > 0.0 else (omega,)
        with groups.named(numbers):
            family = self._fit(
                estimator, omegas, estimator.max_iter, *examples(groups, numbers)
            )
        self.progress("learning", 1, 1)
        return Learned(family, omega, path, n_tuned)

    def _tuned(
        self,
        groups: Groups,
        numbers: IntArray,
        omegas: Sequence[float],
        n_bytes: int,
    ) -> tuple[LargeMarginDPP, float, OmegaPath | None, int]:
        """Return an estimator and its omega, the path it was chosen by and on how many.

        Without a search they are as given; it is made on groups of so many bytes.
        """
        if self.search is None:
            return self.estimator, outwards(omegas)[0], None, 0
        numbers = self._within(groups, numbers, MAX_TUNING, n_bytes)
        if len(numbers) < 2:
            raise TableError(
                "one group is not enough to choose lambda and omega by: give more "
                "groups, or do not tune"
            )
        search = clone(self.search).set_params(
            estimator=clone(self.estimator).set_params(callback=None, n_jobs=None),
            omegas=self.omegas or TUNING_OMEGAS,
            cv=min(3, len(numbers)),
            callback=lambda done, total: self.progress("tuning", done, total),
        )
        with groups.named(numbers):
            search.fit(*examples(groups, numbers))
        estimator = clone(self.estimator).set_params(lam=search.best_lam_)
        return estimator, search.best_omega_, search.path_, len(numbers)

    def _fit(
        self,
        estimator: LargeMarginDPP,
        omegas: Sequence[float],
        n_steps: int,
        *data: Any,
        **others: Any,
    ) -> OmegaFamily:
        """Fit a family, each model in about ``n_steps`` steps, or groups seen."""
        total, n_fitted = n_steps * len(set(omegas)), 0

        def step(one: Step) -> Any:
            done = min(one.n_seen or one.iteration, n_steps)
            self.progress("learning", n_fitted * n_steps + done, total)
            callback = self.estimator.callback
            return None if callback is None else callback(one)

        def fitted(done: int, _: int) -> None:
            nonlocal n_fitted
            n_fitted = done

        watched = clone(estimator).set_params(callback=step)
        family = OmegaFamily.fit(watched, omegas, *data, progress=fitted, **others)
        for model in family.models:
            # How the models were made, less what is about this machine and this table.
            model.set_params(n_jobs=None, solver=self.estimator.solver)
        return family

    # From a stream ----------------------------------------------------------------

    def _learn_from_stream(self, groups: Groups, numbers: IntArray) -> Learned:
        estimator, omega, path, n_tuned = self._tuned(
            groups, numbers, self.omegas or (1.0,), self.memory // 2
        )
        omegas = (*(self.omegas or ()), omega)
        # The best of the steps is told by groups that are not learned from.
        n_watched = min(_MAX_WATCHED, len(numbers) // 20)
        watched = self._within(
            groups, numbers, n_watched if n_watched >= 10 else 0, self.memory // 8
        )
        numbers = np.setdiff1d(numbers, watched)
        solver = self._solver(groups, numbers)
        validation = examples(groups, watched) if len(watched) else None
        with groups.named(numbers, watched):
            family = self._fit(
                clone(estimator).set_params(solver=solver),
                omegas,
                len(numbers) * solver.n_epochs,
                _Stream(groups, numbers),
                validation=validation,
            )
        return Learned(family, omega, path, n_tuned)

    def _solver(self, groups: Groups, numbers: IntArray) -> MiniBatch:
        """Return a solver whose buffer and batches are of bounded size.

        That of the estimator, if it is one for streams.
        """
        if isinstance(self.estimator.solver, MiniBatch):
            solver = self.estimator.solver
            return replace(solver, n_epochs=self.n_epochs or solver.n_epochs)
        sizes = groups.survey.index.sizes[numbers].astype(np.float64)
        features = 8.0 * sizes.mean() * _width(groups.encoding)
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


def _width(encoding: Encoding) -> int:
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


def kernel_for(kernel: Any, encoding: Encoding) -> Kernel:
    """Return the kernel that a name stands for, over all blocks of the similarity.

    None stands for "multiple".
    """
    if isinstance(kernel, Kernel):
        return kernel
    blocks = list(encoding.blocks) if len(encoding.blocks) > 1 else None
    if kernel != "linear":
        return MultipleKernel(blocks=blocks)
    if blocks is None:
        return Linear()
    return Mixture([Linear(block=block) for block in blocks])
