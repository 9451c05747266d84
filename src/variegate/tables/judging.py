"""The judge of choosers: their choices compared with the labels of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from variegate.tables.encoded import Group
from variegate.tables.errors import TableError
from variegate.tables.evaluation import WANTED_ROWS, Endings, Evaluation
from variegate.tables.groups import Groups
from variegate.tuning.held_out import scores_of

#: Rows whose cosine is above this are near copies of each other.
NEAR_COPY = 0.95

#: Rows that are compared with all others at a time.
_CHUNK = 1024

#: Groups that are judged at most, as scores of all of them are held.
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
    stage: str = "judging",
) -> Evaluation:
    """Compare choosers with the labels of the groups with these numbers.

    If they are more than ``MAX_JUDGED``, a sample is drawn by the seed.
    """
    n_in_all = len(numbers)
    if n_in_all > MAX_JUDGED:
        rng = np.random.default_rng(seed)
        numbers = np.sort(rng.choice(numbers, MAX_JUDGED, replace=False))
    work = partial(
        evaluate,
        choosers=choosers,
        n_jobs=groups.threads(n_jobs),
        diversity=diversity,
    )
    parts = list(groups.map(work, numbers, partial(progress, stage)))
    if not parts:
        raise TableError("there are no groups to evaluate on")
    unreadable = groups.survey.unreadable
    return replace(Evaluation.joined(parts), n_in_all=n_in_all, unreadable=unreadable)


def evaluate(
    groups: Iterable[Group],
    choosers: Mapping[str, Chooser],
    n_jobs: int | None = None,
    diversity: DiversityJudge | None = None,
) -> Evaluation:
    """Choose from every group by several choosers, and compare with its labels.

    ``diversity`` judges the chosen rows beside the labels.
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
        )

    found = [one for _, one in in_turn(judged, groups, n_jobs)]
    if not found:
        raise TableError("there are no groups to evaluate on")
    scores, counts, diversities, endings = zip(*found, strict=True)
    by_chooser = zip(choosers, zip(*endings, strict=True), strict=True)
    return Evaluation(
        _by_chooser(choosers, scores),
        _by_chooser(choosers, counts),
        _by_chooser([*choosers, WANTED_ROWS], diversities),
        {name: Endings.of(ended) for name, ended in by_chooser if ended[0] is not None},
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
