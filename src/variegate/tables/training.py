"""Learning from groups: in memory where they fit, one batch after another if not."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from variegate._typing import IntArray
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, Linear, Mixture, MultipleKernel
from variegate.solvers import MiniBatch, Step
from variegate.tables.encoding import Encoding
from variegate.tables.groups import Groups
from variegate.tables.splitting import examples, only
from variegate.tables.table import TableError
from variegate.tuning.cross_validation import LargeMarginDPPCV
from variegate.tuning.folds import walk
from variegate.tuning.path import OmegaPath

__all__ = ["KERNELS", "Learned", "Lesson", "Progress", "ignore", "kernel_for"]

KERNELS = ("multiple", "linear")

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

#: Called with what is being done, and (finished, all) steps of it.
Progress = Callable[[str, int, int], None]


def ignore(stage: str, done: int, total: int) -> None:
    """Report nothing."""


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned.

    Attributes
    ----------
    lam : float
    omegas : tuple of float
        Sorted.
    models : tuple of LargeMarginDPP
        One for each.
    omega : float
        The one to use.
    history : list of Step
        Of the first fit.
    path : OmegaPath or None
        Scores on held-out groups that ``omega`` was chosen by.
    n_tuned : int
        Groups that it was chosen on, 0 if it was given.
    """

    lam: float
    omegas: tuple[float, ...]
    models: tuple[LargeMarginDPP, ...]
    omega: float
    history: list[Step]
    path: OmegaPath | None = None
    n_tuned: int = 0


@dataclass(frozen=True, eq=False)
class Lesson:
    """How to learn.

    Parameters
    ----------
    lam : float
    omegas : tuple of float or None
        None: those of ``OMEGAS``, or 1 alone where groups do not fit in memory.
    kernel : Kernel
    l2 : float
    decoder : name or Decoder
    max_iter : int
    tol : float
    n_epochs : int or None
        Passes over groups that do not fit in memory; None: as many as make
        ``N_STEPS`` steps.
    tune : bool
        Whether to choose lambda and omega on held-out groups.
    lams : sequence of float
        To choose from.
    target_precision, target_recall : float or None
    memory : int
        Bytes that learning in memory may take.
    n_jobs : int or None
    seed : int
    """

    lam: float
    omegas: tuple[float, ...] | None
    kernel: Kernel
    l2: float
    decoder: Any
    max_iter: int
    tol: float
    n_epochs: int | None
    tune: bool
    lams: Sequence[float]
    target_precision: float | None
    target_recall: float | None
    memory: int
    n_jobs: int | None
    seed: int
    progress: Progress = ignore

    def learn(self, groups: Groups, numbers: IntArray) -> Learned:
        """Learn from the groups with these numbers."""
        self._refuse_large(groups, numbers)
        if self._bytes(groups, numbers) <= self.memory:
            names = [groups.survey.index.names[number] for number in numbers]
            learned = self._learn_in_memory(*examples(groups, numbers), names)
        else:
            learned = self._learn_from_stream(groups, numbers)
        for omega, model in zip(learned.omegas, learned.models, strict=True):
            result = model.solver_result_
            if result.remedy:
                warnings.warn(
                    f"for omega {omega:g}, learning {result.status}. {result.remedy}",
                    ConvergenceWarning,
                    stacklevel=3,
                )
        return learned

    def _refuse_large(self, groups: Groups, numbers: IntArray) -> None:
        """Refuse groups whose pairs of rows would not fit in memory."""
        if getattr(self.kernel, "approximation", None) or isinstance(
            self.kernel, Linear
        ):
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

    def _model(self, **others: Any) -> LargeMarginDPP:
        return LargeMarginDPP(
            lam=self.lam,
            kernel=self.kernel,
            l2=self.l2,
            decoder=self.decoder,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.seed,
            **others,
        )

    # In memory --------------------------------------------------------------------

    def _learn_in_memory(
        self, ground_sets: list[GroundSet], subsets: list[IntArray], names: list[Any]
    ) -> Learned:
        omegas = self.omegas or OMEGAS
        lam, omega, path, n_tuned = self.lam, _middle(omegas), None, 0
        if self.tune:
            lam, omega, path, n_tuned = self._tune(ground_sets, subsets)
        omegas = tuple(sorted({*omegas, omega})) if lam > 0.0 else (omega,)
        done = 0

        def step(_: Step) -> None:
            nonlocal done
            done += 1
            total = self.max_iter * len(omegas)
            self.progress("learning", min(done, total), total)

        model = self._model(callback=step, n_jobs=self.n_jobs)
        fitted = {}
        history: list[Step] = []
        with _named(names):
            for (_, here), one in walk(model, ground_sets, subsets, [lam], omegas):
                history = history or one.history_
                fitted[here] = one
        models = tuple(fitted[omega] for omega in omegas)
        for one in models:
            one.set_params(callback=None, warm_start=False, n_jobs=None)
        self.progress("learning", 1, 1)
        return Learned(lam, omegas, models, omega, history, path, n_tuned)

    def _tune(
        self, ground_sets: list[GroundSet], subsets: list[IntArray]
    ) -> tuple[float, float, OmegaPath, int]:
        """Choose lambda and omega by cross-validation, on some of the groups."""
        n_tuned = min(len(ground_sets), MAX_TUNING)
        if n_tuned < 2:
            raise TableError(
                "one group is not enough to choose lambda and omega by: give more "
                "groups, or do not tune"
            )
        rng = np.random.default_rng(self.seed)
        some = np.sort(rng.permutation(len(ground_sets))[:n_tuned])
        search = LargeMarginDPPCV(
            self._model(),
            lams=self.lams,
            omegas=self.omegas or TUNING_OMEGAS,
            cv=min(3, n_tuned),
            target_precision=self.target_precision,
            target_recall=self.target_recall,
            n_jobs=self.n_jobs,
            random_state=self.seed,
            refit=False,
            callback=lambda done, total: self.progress("tuning", done, total),
        )
        search.fit([ground_sets[i] for i in some], [subsets[i] for i in some])
        return search.best_lam_, search.best_omega_, search.path_, n_tuned

    # From a stream ----------------------------------------------------------------

    def _learn_from_stream(self, groups: Groups, numbers: IntArray) -> Learned:
        omegas = self.omegas or (1.0,)
        lam, omega, path, n_tuned = self.lam, _middle(omegas), None, 0
        if self.tune:
            head = self._within(groups, numbers, MAX_TUNING, self.memory // 2)
            lam, omega, path, n_tuned = self._tune(*examples(groups, head))
            omegas = tuple(sorted({*(self.omegas or ()), omega}))
        # The best of the steps is told by groups that are not learned from.
        n_watched = min(_MAX_WATCHED, len(numbers) // 20)
        watched = self._within(
            groups, numbers, n_watched if n_watched >= 10 else 0, self.memory // 8
        )
        numbers = np.setdiff1d(numbers, watched)
        validation = examples(groups, watched) if len(watched) else None
        solver = self._solver(groups, numbers)
        n_seen = len(numbers) * solver.n_epochs
        models: list[LargeMarginDPP] = []
        for position, here in enumerate(omegas):

            def step(one: Step, before: int = position * n_seen) -> None:
                done = before + (one.n_seen or 0)
                self.progress("learning", done, n_seen * len(omegas))

            model = self._model(solver=solver, callback=step)
            model.set_params(lam=lam, omega=here)
            model.fit(_Stream(groups, numbers), validation=validation)
            models.append(model.set_params(callback=None, solver="lbfgs"))
        history = models[0].history_
        return Learned(lam, omegas, tuple(models), omega, history, path, n_tuned)

    def _solver(self, groups: Groups, numbers: IntArray) -> MiniBatch:
        """Return a solver whose buffer and batches are of bounded size."""
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
        some = np.random.default_rng(self.seed).permutation(numbers)[:most]
        while len(some) > 2 and self._bytes(groups, some) > n_bytes:
            some = some[: max(2, len(some) // 2)]
        return np.sort(some)


@contextmanager
def _named(names: Sequence[Any]) -> Iterator[None]:
    """Call ground sets by the names of their groups in messages."""
    try:
        yield
    except ValueError as error:
        message = re.sub(
            r"ground set (\d+)", lambda m: f"group {names[int(m[1])]!r}", str(error)
        )
        raise TableError(message) from error


def _middle(omegas: Sequence[float]) -> float:
    """Return the omega nearest to 1."""
    return min(omegas, key=lambda omega: abs(np.log(omega)))


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
    """Return the kernel that a name stands for, over all blocks of the similarity."""
    if isinstance(kernel, Kernel):
        return kernel
    blocks = list(encoding.blocks) if len(encoding.blocks) > 1 else None
    if kernel == "multiple":
        return MultipleKernel(blocks=blocks)
    if blocks is None:
        return Linear()
    return Mixture([Linear(block=block) for block in blocks])
