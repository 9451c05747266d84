"""Choosers judged by the labels of groups, with intervals for their scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from variegate._progress import Progress, ignore
from variegate._typing import FloatArray, IntArray
from variegate.application.base import bootstrap_means
from variegate.application.model_facts import LearnedKernel, learned_parts
from variegate.estimator import LargeMarginDPP
from variegate.kernels import Kinds
from variegate.linalg.cosine import unit_rows
from variegate.tables.choosing import Chooser, map_groups
from variegate.tables.encoded import Group
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups
from variegate.tables.subtopics import SUBTOPIC_SCORES, subtopic_scores
from variegate.tuning.held_out import SCORES, scores_of

#: The columns of the counts of a group: rows that are chosen and wanted, and all that
#: are chosen, and all that are wanted.
COUNTS = ("hits", "chosen", "wanted")

#: The name of the wanted rows among choosers, where nothing is scored.
WANTED_ROWS = "wanted rows"

#: Samples of the groups that intervals come from.
N_BOOTSTRAP = 2000

#: Rows whose cosine is above this are near copies of each other.
NEAR_COPY = 0.95

#: Rows that are compared with all others at a time.
_CHUNK = 1024

#: Groups that are judged at most, as scores of all of them are held.
MAX_JUDGED = 1_000_000


class Interval(NamedTuple):
    """A mean over groups or rows, and where 95 % of bootstrap samples put it."""

    mean: float
    low: float
    high: float


class Endings(NamedTuple):
    """How searches ended over some groups.

    ``stop_reasons`` are counted, ``n_optimal`` selections are known to be the best, and
    no other is further from it than ``largest_gap``, None where that is unknown.
    """

    stop_reasons: dict[str, int]
    n_optimal: int
    largest_gap: float | None

    @classmethod
    def of(cls, endings: Sequence[dict[str, Any]]) -> Endings:
        """Count endings, each with the keys "stop_reason", "gap" and "is_optimal"."""
        gaps = [ending["gap"] for ending in endings]
        return cls(
            dict(Counter(ending["stop_reason"] for ending in endings)),
            sum(ending["is_optimal"] for ending in endings),
            None if None in gaps else max(gaps),
        )

    def __add__(self, other: Endings) -> Endings:  # type: ignore[override]
        """Return the endings over the groups of both."""
        gaps = self.largest_gap, other.largest_gap
        return Endings(
            dict(Counter(self.stop_reasons) + Counter(other.stop_reasons)),
            self.n_optimal + other.n_optimal,
            None if None in gaps else max(gaps),  # type: ignore[type-var]
        )


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of several choosers on the same groups.

    Attributes
    ----------
    scores : dict from the name of a chooser to an array of shape (groups, 4)
        Columns are ``SCORES``.
    counts : dict from the name of a chooser to an array of shape (groups, 3)
        Columns are ``COUNTS``.
    diversity : dict from the name of a chooser to an array of shape (groups, 3)
        Columns are the mean cosine of two chosen rows (NaN where fewer than two are
        chosen), how many are near copies of another, and how many kinds they are of
        (NaN where the kernel is without kinds).  "wanted rows" are among the choosers.
        Empty where it was not judged.
    subtopics : dict from the name of a chooser to an array of shape (groups, 3)
        Columns are ``SUBTOPIC_SCORES``, NaN for groups without a subtopic.  Empty where
        no column of subtopics was named.
    endings : dict from the name of a chooser to Endings
        How searches ended, of choosers that search.
    reference : str
        The chooser to compare others with, as it chooses within the same limit; by
        default the first.
    n_in_all : int
        Groups that could be judged by; where ``n_groups`` are fewer, they are a sample.
    unreadable : tuple of str
        Files of a folder that were left out.
    """

    scores: Mapping[str, FloatArray]
    counts: Mapping[str, FloatArray]
    diversity: Mapping[str, FloatArray] = field(default_factory=dict)
    endings: Mapping[str, Endings] = field(default_factory=dict)
    reference: str = ""
    n_in_all: int = 0
    unreadable: tuple[str, ...] = ()
    subtopics: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.reference:
            object.__setattr__(self, "reference", next(iter(self.scores)))
        object.__setattr__(self, "n_in_all", self.n_in_all or self.n_groups)

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(next(iter(self.scores.values())))

    @property
    def wanted_size(self) -> float:
        """The mean number of rows labelled 1 in a group."""
        counts = next(iter(self.counts.values()))
        return float(counts[:, COUNTS.index("wanted")].mean())

    @classmethod
    def joined(cls, parts: Sequence[Evaluation]) -> Evaluation:
        """Join evaluations of the same choosers on different groups, in this order."""
        tables: dict[str, Any] = {
            table: {
                name: np.concatenate([getattr(part, table)[name] for part in parts])
                for name in getattr(parts[0], table)
            }
            for table in ("scores", "counts", "diversity", "subtopics")
        }
        names = parts[0].endings
        ended = {n: reduce(add, [part.endings[n] for part in parts]) for n in names}
        return cls(**tables, endings=ended)

    def intervals(
        self, seed: int = 0, names: Sequence[str] | None = None
    ) -> dict[str, dict[str, Interval]]:
        """Return the mean of every score with a 95 % interval, by chooser and score.

        Scores are ``SCORES`` (precision, recall, f, size) and, if they were judged,
        ``SUBTOPIC_SCORES``, these over groups with a subtopic.  ``names`` are of
        choosers, by default all, which see the same samples of groups.
        """
        return _mean_intervals(
            {name: self._score_table(name) for name in names or self.scores}, seed
        )

    def differences(self, first: str, seed: int = 0) -> dict[str, dict[str, Interval]]:
        """Return intervals of ``first`` minus others, by other chooser and score."""
        own, others = self._score_table(first), [n for n in self.scores if n != first]
        return _mean_intervals({n: own - self._score_table(n) for n in others}, seed)

    def _score_table(self, name: str) -> FloatArray:
        """Return a chooser's ``SCORES`` (groups, 4), or with subtopics (groups, 7)."""
        parts = [self.scores[name], *(t[name] for t in (self.subtopics,) if t)]
        return np.hstack(parts)

    def over_rows(self, seed: int = 0) -> dict[str, dict[str, Interval]]:
        """Return "precision" and "recall" over rows of all groups together, by chooser.

        Of all rows that were chosen, the share that was wanted, so that groups of which
        nothing was chosen do not count; and of all that were wanted, the share that was
        chosen.  NaN where there are none.
        """
        ratios = {}
        for name, counts in self.counts.items():
            hits, chosen, wanted = counts.T
            ratios[name] = {"precision": (hits, chosen), "recall": (hits, wanted)}
        return _ratio_intervals(ratios, seed)

    def diversities(self, seed: int = 0) -> dict[str, dict[str, Interval]]:
        """Return measures of how alike rows are, by chooser and of the "wanted rows".

        ``similarity`` is the mean over groups of the mean cosine of two rows, among
        groups with two or more; ``copies`` the share of all rows with a cosine above
        0.95 to another of their group; and ``kinds``, if the kernel has them, the mean
        over groups of the number of kinds.
        """
        sizes = {name: counts[:, 1] for name, counts in self.counts.items()}
        wanted = next(iter(self.counts.values()))[:, 2]
        ratios = {}
        for name, columns in self.diversity.items():
            similarity, copies, kinds = columns.T
            is_pair = ~np.isnan(similarity)
            ratios[name] = {
                "similarity": (np.where(is_pair, similarity, 0.0), is_pair),
                "copies": (copies, sizes.get(name, wanted)),
            }
            if not np.isnan(kinds).any():
                ratios[name]["kinds"] = (kinds, np.ones(len(kinds)))
        return _ratio_intervals(ratios, seed)


def _mean_intervals(
    rows: Mapping[str, FloatArray], seed: int
) -> dict[str, dict[str, Interval]]:
    """Return mean intervals of tables (groups, scores) by chooser; NaN is left out."""
    ratios = {
        name: {
            score: (np.nan_to_num(column), ~np.isnan(column))
            for score, column in zip(
                (*SCORES, *SUBTOPIC_SCORES)[: table.shape[1]], table.T, strict=True
            )
        }
        for name, table in rows.items()
    }
    return _ratio_intervals(ratios, seed)


def _ratio_intervals(
    named: Mapping[str, Mapping[str, tuple[Any, Any]]], seed: int
) -> dict[str, dict[str, Interval]]:
    """Return ratios of sums over groups, with bootstrap intervals; NaN for 0 / 0.

    ``named`` has a numerator and a denominator (groups,) by chooser and score.
    """
    pairs = [pair for scores in named.values() for pair in scores.values()]
    if not pairs:
        return {}
    above, below = (np.column_stack(side) for side in zip(*pairs, strict=True))
    table = np.column_stack([above, below]).astype(np.float64)
    means = bootstrap_means(table, N_BOOTSTRAP, seed)
    means = np.vstack([table.mean(axis=0), means])
    top, bottom = np.hsplit(means, 2)
    found = np.divide(top, bottom, where=bottom > 0.0, out=np.full_like(top, np.nan))
    intervals = map(_bootstrap_interval, found.T)
    return {
        name: {score: next(intervals) for score in scores}
        for name, scores in named.items()
    }


def _bootstrap_interval(found: FloatArray) -> Interval:
    """Return the first number as mean, and the central 95 % of the rest (samples)."""
    if np.isnan(found[0]):
        return Interval(*[float("nan")] * 3)
    # A sample may hold no row that counts.
    low, high = np.nanquantile(found[1:], [0.025, 0.975])
    return Interval(float(found[0]), float(low), float(high))


# Judging ------------------------------------------------------------------------------


def judge_groups(
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

    If they are more than ``MAX_JUDGED``, a sample is drawn by the seed.  ``stage`` is
    the first argument of ``progress``; others are as for ``evaluate_choosers``.
    """
    n_in_all = len(numbers)
    if n_in_all > MAX_JUDGED:
        rng = np.random.default_rng(seed)
        numbers = np.sort(rng.choice(numbers, MAX_JUDGED, replace=False))
    threads = groups.threads(n_jobs)
    work = partial(
        evaluate_choosers, choosers=choosers, n_jobs=threads, diversity=diversity
    )
    parts = list(groups.map(work, numbers, partial(progress, stage)))
    if not parts:
        raise TableError("there are no groups to evaluate on")
    unreadable = groups.survey.unreadable
    return replace(Evaluation.joined(parts), n_in_all=n_in_all, unreadable=unreadable)


def evaluate_choosers(
    groups: Iterable[Group],
    choosers: Mapping[str, Chooser],
    n_jobs: int | None = None,
    diversity: DiversityJudge | None = None,
) -> Evaluation:
    """Choose from every group by choosers with names; score them by its labels.

    ``diversity`` measures how alike chosen rows are; ``n_jobs`` None is one thread.
    """

    def judge_group(group: Group) -> tuple[Any, ...]:
        """Return scores, counts, diversity, endings and subtopic scores by chooser."""
        wanted = group.wanted()  # refuses groups without labels before the work
        choices = [chooser(group) for chooser in choosers.values()]
        orders = [*(choice.order for choice in choices), wanted]
        return (
            [scores_of(order, wanted) for order in orders[:-1]],
            [
                (np.isin(order, wanted).sum(), len(order), len(wanted))
                for order in orders[:-1]
            ],
            [] if diversity is None else [diversity(group, one) for one in orders],
            [choice.ending for choice in choices],
            subtopic_scores(group, orders[:-1], wanted),
        )

    found = [one for _, one in map_groups(judge_group, groups, n_jobs)]
    if not found:
        raise TableError("there are no groups to evaluate on")
    scores, counts, diversities, endings, subtopics = zip(*found, strict=True)
    by_chooser = zip(choosers, zip(*endings, strict=True), strict=True)
    return Evaluation(
        _split_by_chooser(choosers, scores),
        _split_by_chooser(choosers, counts),
        _split_by_chooser([*choosers, WANTED_ROWS], diversities),
        {name: Endings.of(ended) for name, ended in by_chooser if ended[0] is not None},
        subtopics=_split_by_chooser(choosers, subtopics),
    )


def _split_by_chooser(
    names: Iterable[str], values: Sequence[Any]
) -> dict[str, FloatArray]:
    """Return an array (groups, columns) by chooser, of (groups, choosers, columns).

    Empty if the first group has values of no chooser.
    """
    if not values[0]:
        return {}
    table = np.array(values, dtype=np.float64)
    return {name: table[:, number] for number, name in enumerate(names)}


# Diversity ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DiversityJudge:
    """Judges rows by the encoded similarity columns, and by the kinds of a model."""

    kinds: LearnedKernel[Kinds] | None = None

    @classmethod
    def of(cls, model: LargeMarginDPP) -> DiversityJudge:
        """Return a judge by the kinds of a model: of several the heaviest, or none."""
        found = learned_parts(model, Kinds)
        return cls(max(found, key=lambda one: one.weight) if found else None)

    def __call__(self, group: Group, chosen: IntArray) -> tuple[float, int, float]:
        """Return mean cosine, near copies and kinds of rows at positions ``chosen``.

        The mean cosine of two rows is NaN for fewer than two; near copies of another
        row are counted; the number of kinds is NaN where the model has none.
        """
        F = unit_rows(group.embeddings()[chosen])
        n_kinds = np.nan
        if self.kinds is not None:
            n_kinds = 0.0
            if len(chosen):
                kinds = self.kinds
                p = kinds.kernel.kinds(group.take(chosen), kinds.parameters)
                n_kinds = float(len(np.unique(p.argmax(axis=1))))
        return _mean_cosine(F), _count_near_copies(F), n_kinds


def _mean_cosine(F: FloatArray) -> float:
    """Return the mean cosine of two unit rows of ``F`` (N, p); NaN for fewer than two.

    ``Σ_{i≠j} f_i · f_j = |Σ f_i|² - Σ |f_i|²``.
    """
    n = len(F)
    if n < 2:
        return float("nan")
    total = F.sum(axis=0)
    return float(total @ total - np.vdot(F, F)) / (n * (n - 1))


def _count_near_copies(F: FloatArray) -> int:
    """Count rows with a cosine above ``NEAR_COPY`` to another unit row of ``F``."""
    n_copies = 0
    for first in range(0, len(F), _CHUNK):
        S = F[first : first + _CHUNK] @ F.T
        rows = np.arange(len(S))
        S[rows, first + rows] = 0.0
        n_copies += int((S > NEAR_COPY).any(axis=1).sum())
    return n_copies
