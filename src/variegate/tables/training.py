"""Learning from groups: in memory where they fit, one batch after another if not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from variegate._html import count
from variegate._tuning_folds import walk
from variegate._typing import IntArray
from variegate.estimator import LargeMarginDPP
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel, Linear, Mixture, MultipleKernel
from variegate.omega_path import OmegaPath
from variegate.solvers import MiniBatch, Step
from variegate.tables.encoding import Encoding
from variegate.tables.groups import Group, Groups
from variegate.tables.survey import Survey
from variegate.tables.table import TableError
from variegate.tuning import LargeMarginDPPCV

__all__ = [
    "EMPTY_GROUPS",
    "KERNELS",
    "Learned",
    "Lesson",
    "kernel_for",
    "only",
    "split",
    "usable_groups",
]

#: What to do with groups from which nothing was chosen.
EMPTY_GROUPS = ("error", "keep", "drop")

KERNELS = ("multiple", "linear")

#: The omegas that are learned where none is named.
OMEGAS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)

#: The omegas that the best is looked for among; below 1 are few that help the F-score.
TUNING_OMEGAS = (1 / 4, 1.0, 2.0, 4.0, 8.0, 16.0)

#: Groups that lambda and omega are chosen on, at most.
MAX_TUNING = 500

#: Held-out groups that a stream is judged by while it is learned from.
_MAX_JUDGED = 500

#: Steps of stochastic gradients that are enough, as a rule.
N_STEPS = 1000

#: Bytes of features that are shuffled together when learning from a stream.
_BUFFER = 64 * 2**20

#: Called with what is being done, and (finished, all) steps of it.
Progress = Callable[[str, int, int], None]


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


def usable_groups(survey: Survey, empty_groups: str) -> IntArray:
    """Return numbers of the groups with chosen rows, or of all of them."""
    n_chosen = survey.n_chosen
    if n_chosen is None:
        raise TableError("which rows were chosen? Name the label column")
    names = survey.index.names
    if not n_chosen.any():
        where = f" in column {survey.columns.label!r}" if survey.columns.label else ""
        raise TableError(f"no row is labelled 1{where}: nothing was chosen")
    empty = n_chosen == 0
    if empty.any() and empty_groups == "error":
        count = int(empty.sum())
        raise TableError(
            f"{count:,} of {len(names):,} groups {'has' if count == 1 else 'have'} no "
            f"chosen row, the first is {names[int(np.argmax(empty))]!r}: leave such "
            "groups out (empty groups: drop), or take it that nothing was to be chosen "
            "there (empty groups: keep)"
        )
    return np.flatnonzero(~empty) if empty_groups == "drop" else np.arange(len(names))


def split(usable: IntArray, fraction: float, seed: int) -> tuple[IntArray, IntArray]:
    """Return numbers of the groups to learn from, and of those to hold out."""
    if fraction == 0.0:
        return usable, usable[:0]
    n_held_out = round(fraction * len(usable))
    if not 0 < n_held_out < len(usable):
        raise TableError(
            f"{count(len(usable), 'group')} cannot be split into a share of "
            f"{fraction:g} to hold out and the rest to learn from: give more groups, "
            "or hold out none"
        )
    shuffled = np.random.default_rng(seed).permutation(usable)
    return np.sort(shuffled[n_held_out:]), np.sort(shuffled[:n_held_out])


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
    progress: Progress = field(default=lambda stage, done, total: None)

    def learn(self, groups: Groups, numbers: IntArray, judged: IntArray) -> Learned:
        """Learn from some groups; ``judged`` are others, to watch progress by."""
        if self._bytes(groups, numbers) <= self.memory:
            names = [groups.survey.index.names[number] for number in numbers]
            return self._learn_in_memory(*examples(groups, numbers), names)
        return self._learn_from_stream(groups, numbers, judged[:_MAX_JUDGED])

    def _bytes(self, groups: Groups, numbers: IntArray) -> int:
        """Return about how much memory L-BFGS takes."""
        sizes = groups.survey.index.sizes[numbers].astype(np.float64)
        features = sizes.sum() * _width(groups.survey.encoding)
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
        count = min(len(ground_sets), MAX_TUNING)
        if count < 2:
            raise TableError(
                "one group is not enough to choose lambda and omega by: give more "
                "groups, or do not tune"
            )
        rng = np.random.default_rng(self.seed)
        some = np.sort(rng.permutation(len(ground_sets))[:count])
        search = LargeMarginDPPCV(
            self._model(),
            lams=self.lams,
            omegas=self.omegas or TUNING_OMEGAS,
            cv=min(3, count),
            target_precision=self.target_precision,
            target_recall=self.target_recall,
            n_jobs=self.n_jobs,
            random_state=self.seed,
            refit=False,
            callback=lambda done, total: self.progress("tuning", done, total),
        )
        search.fit([ground_sets[i] for i in some], [subsets[i] for i in some])
        return search.best_lam_, search.best_omega_, search.path_, count

    def _learn_from_stream(
        self, groups: Groups, numbers: IntArray, judged: IntArray
    ) -> Learned:
        omegas = self.omegas or (1.0,)
        lam, omega, path, n_tuned = self.lam, _middle(omegas), None, 0
        if self.tune:
            head = self._sample(groups, numbers)
            lam, omega, path, n_tuned = self._tune(*examples(groups, head))
            omegas = (omega,)
        solver = self._solver(groups, numbers)
        validation = examples(groups, judged) if len(judged) else None
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
        return Learned(lam, tuple(omegas), tuple(models), omega, history, path, n_tuned)

    def _solver(self, groups: Groups, numbers: IntArray) -> MiniBatch:
        sizes = groups.survey.index.sizes[numbers].astype(np.float64)
        bytes_a_group = 8.0 * sizes.mean() * _width(groups.survey.encoding)
        most = min(64, len(numbers) // 16)
        batch = int(np.clip(_BUFFER / bytes_a_group / 8, 1, max(most, 8)))
        n_epochs = self.n_epochs or min(-(-N_STEPS * batch // len(numbers)), 100)
        return MiniBatch(
            batch_size=batch,
            n_epochs=n_epochs,
            report_every=max(1, len(numbers) * n_epochs // batch // 50),
        )

    def _sample(self, groups: Groups, numbers: IntArray) -> IntArray:
        """Return groups to choose lambda and omega on that fit in memory."""
        rng = np.random.default_rng(self.seed)
        some = rng.permutation(numbers)[:MAX_TUNING]
        while len(some) > 10 and self._bytes(groups, some) > self.memory // 2:
            some = some[: len(some) // 2]
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


def examples(
    groups: Groups, numbers: IntArray
) -> tuple[list[GroundSet], list[IntArray]]:
    """Return some groups as ground sets and subsets."""
    ground_sets, subsets = [], []
    for group in only(groups, numbers):
        ground_sets.append(group.ground_set)
        subsets.append(group.wanted())
    return ground_sets, subsets


def only(groups: Groups, numbers: IntArray) -> Iterator[Group]:
    """Yield the groups with these numbers."""
    wanted = np.zeros(len(groups), dtype=bool)
    wanted[numbers] = True
    return (group for group in groups if wanted[group.number])


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
