"""The judge of choosers: their choices compared with the labels of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from variegate._progress import Progress, ignore
from variegate._typing import FloatArray, IntArray
from variegate.application.model_facts import LearnedKinds, learned_kinds
from variegate.estimator import LargeMarginDPP
from variegate.linalg.cosine import unit_rows
from variegate.tables.choosing import Chooser, in_turn
from variegate.tables.evaluation import WANTED_ROWS, Evaluation
from variegate.tables.folder.groups import FolderGroups
from variegate.tables.groups import Group, Groups
from variegate.tables.table import TableError, stage_progress
from variegate.tuning.held_out import scores_of

#: Rows whose cosine is above this are near copies of each other.
NEAR_COPY = 0.95

#: Rows that are compared with all others at a time.
_CHUNK = 1024

#: Groups of a folder that are judged at most, as scores of all of them come here.
MAX_JUDGED = 1_000_000


def judge(
    groups: Groups,
    numbers: IntArray,
    choosers: Mapping[str, Chooser],
    n_jobs: int | None = None,
    progress: Progress = ignore,
    diversity: DiversityJudge | None = None,
    *,
    seed: int = 0,
) -> Evaluation:
    """Compare choosers with the labels of the groups with these numbers.

    Groups of a folder are judged where the engine reads its files.  If they are more
    than ``MAX_JUDGED``, a sample is drawn by the seed.
    """
    if not isinstance(groups, FolderGroups):
        told = stage_progress(progress, "judging", len(numbers))
        return evaluate(groups.only(numbers), choosers, n_jobs, told, diversity)
    n_in_all = len(numbers)
    if n_in_all > MAX_JUDGED:
        rng = np.random.default_rng(seed)
        numbers = np.sort(rng.choice(numbers, MAX_JUDGED, replace=False))
    work = partial(_evaluate_file, choosers=choosers, diversity=diversity)
    parts = list(groups.map(work, numbers, partial(progress, "judging")))
    if not parts:
        raise TableError("there are no groups to evaluate on")
    unreadable = groups.survey.unreadable
    return replace(Evaluation.joined(parts), n_in_all=n_in_all, unreadable=unreadable)


def _evaluate_file(
    groups: Iterable[Group],
    choosers: Mapping[str, Chooser],
    diversity: DiversityJudge | None,
) -> Evaluation:
    """Evaluate the groups of a file; endings travel as counts."""
    found = evaluate(groups, choosers, diversity=diversity)
    return replace(found, endings={}, _ended=found.endings_in_short())


def evaluate(
    groups: Iterable[Group],
    choosers: Mapping[str, Chooser],
    n_jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
    diversity: DiversityJudge | None = None,
) -> Evaluation:
    """Choose from every group by several choosers, and compare with its labels.

    ``progress`` is called with the number of groups that are done; ``diversity`` judges
    the chosen rows beside the labels.
    """

    def judged(group: Group) -> tuple[Any, ...]:
        wanted = group.wanted()  # refuses groups without labels before the work
        choices = [chooser(group) for chooser in choosers.values()]
        orders = [*(choice.order for choice in choices), wanted]
        return (
            [scores_of(order, wanted) for order in orders[:-1]],
            [_counts(order, wanted) for order in orders[:-1]],
            [] if diversity is None else [diversity(group, one) for one in orders],
            [choice.ending for choice in choices],
            len(wanted),
        )

    found: list[tuple[Any, ...]] = []
    for _, one in in_turn(judged, groups, n_jobs):
        found.append(one)
        if progress is not None:
            progress(len(found))
    if not found:
        raise TableError("there are no groups to evaluate on")
    scores, counts, diversities, endings, n_wanted = zip(*found, strict=True)
    by_chooser = zip(choosers, zip(*endings, strict=True), strict=True)
    return Evaluation(
        _by_chooser(choosers, scores),
        float(np.mean(n_wanted)),
        {name: list(ended) for name, ended in by_chooser if ended[0] is not None},
        _by_chooser(choosers, counts),
        _by_chooser([*choosers, WANTED_ROWS], diversities),
    )


def _by_chooser(names: Iterable[str], rows: Sequence[Any]) -> dict[str, FloatArray]:
    """Return numbers (groups, choosers, columns) by choosers."""
    if not rows[0]:
        return {}
    table = np.array(rows, dtype=np.float64)
    return {name: table[:, number] for number, name in enumerate(names)}


def _counts(order: IntArray, wanted: IntArray) -> tuple[float, float, float]:
    return float(np.isin(order, wanted).sum()), float(len(order)), float(len(wanted))


# Diversity ------------------------------------------------------------------------


class Diversity(NamedTuple):
    """The diversity of the chosen rows of one group.

    The mean cosine of two of them, NaN where there are fewer than two; how many are
    near copies of another; and how many kinds they are of, NaN where the model knows no
    kinds.
    """

    similarity: float
    copies: float
    kinds: float


@dataclass(frozen=True, eq=False)
class DiversityJudge:
    """Judges rows by the encoded similarity columns, and by the kinds of a model."""

    kinds: LearnedKinds | None = None

    @classmethod
    def of(cls, model: LargeMarginDPP) -> DiversityJudge:
        """Return a judge by the kinds of a model, of a mixture the heaviest."""
        found = learned_kinds(model)
        return cls(max(found, key=lambda one: one.weight) if found else None)

    def __call__(self, group: Group, chosen: IntArray) -> Diversity:
        """Return the diversity of some rows of a group."""
        F = unit_rows(group.embeddings()[chosen])
        n_kinds = np.nan
        if self.kinds is not None:
            n_kinds = 0.0
            if len(chosen):
                kinds = self.kinds
                p = kinds.kernel.kinds(group.take(chosen), kinds.parameters)
                n_kinds = float(len(np.unique(p.argmax(axis=1))))
        return Diversity(_mean_cosine(F), float(_n_copies(F)), n_kinds)


def _mean_cosine(F: FloatArray) -> float:
    """Return the mean over pairs: ``Σ_{i≠j} f_i · f_j = |Σ f_i|² - Σ |f_i|²``."""
    n = len(F)
    if n < 2:
        return float("nan")
    total = F.sum(axis=0)
    return float(total @ total - np.vdot(F, F)) / (n * (n - 1))


def _n_copies(F: FloatArray) -> int:
    n_copies = 0
    for first in range(0, len(F), _CHUNK):
        S = F[first : first + _CHUNK] @ F.T
        rows = np.arange(len(S))
        S[rows, first + rows] = 0.0
        n_copies += int((S > NEAR_COPY).any(axis=1).sum())
    return n_copies
