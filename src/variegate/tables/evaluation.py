"""How well choices agree with labels, group by group, and how sure that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from variegate import metrics
from variegate._typing import FloatArray, IntArray
from variegate.application.base import bootstrap_means
from variegate.tables.choosing import Choice, in_turn
from variegate.tables.diversity import Diversity
from variegate.tables.groups import Group
from variegate.tables.table import TableError

__all__ = [
    "COUNTS",
    "DIVERSITY",
    "SCORES",
    "WANTED_ROWS",
    "Evaluation",
    "Interval",
    "evaluate",
]

#: The columns of the scores of a group.
SCORES = ("precision", "recall", "f", "size")

#: The columns of the counts of a group: rows that are chosen and wanted, and all that
#: are chosen, and all that are wanted.
COUNTS = ("hits", "chosen", "wanted")

#: The columns of the diversity of a group.
DIVERSITY = Diversity._fields

#: What the wanted rows are called among ways to choose, where nothing is scored.
WANTED_ROWS = "wanted rows"

#: Samples of the groups that intervals come from.
N_BOOTSTRAP = 2000


class Interval(NamedTuple):
    """A mean over groups or rows, and where 95 % of bootstrap samples put it."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of several ways to choose on the same groups.

    Attributes
    ----------
    scores : dict from the name of a way to an array of shape (groups, 4)
        Columns are ``SCORES``.
    wanted_size : float
        Mean number of labelled rows a group.
    endings : dict from the name of a way to a list of dict
        How the search in each group ended, of ways that search: see
        :attr:`variegate.tables.choosing.Choices.endings`.
    counts : dict from the name of a way to an array of shape (groups, 3)
        Columns are ``COUNTS``.
    diversity : dict from the name of a way to an array of shape (groups, 3)
        Columns are ``DIVERSITY``: the mean cosine of two chosen rows (NaN where fewer
        than two are chosen), how many are near copies of another, and how many kinds
        they are of (NaN where the kernel is without kinds).  "wanted rows" are among
        the ways.  Empty where it was not judged.
    reference : str
        The way to compare others with, for it chooses on the same terms; by default
        the first.
    """

    scores: Mapping[str, FloatArray]
    wanted_size: float
    endings: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    counts: Mapping[str, FloatArray] = field(default_factory=dict)
    diversity: Mapping[str, FloatArray] = field(default_factory=dict)
    reference: str = ""

    def __post_init__(self) -> None:
        """Compare with the first way if no other is named."""
        if not self.reference:
            object.__setattr__(self, "reference", next(iter(self.scores)))

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(next(iter(self.scores.values())))

    def endings_in_short(self) -> dict[str, dict[str, Any]]:
        """Return how searches ended over all groups, of every way that searches.

        ``stop_reasons`` are counted, ``n_optimal`` selections are known to be the best,
        and no other is further from it than ``largest_gap``, None where that is
        unknown.
        """
        return {
            name: {
                "stop_reasons": dict(Counter(e["stop_reason"] for e in endings)),
                "n_optimal": sum(ending["is_optimal"] for ending in endings),
                "largest_gap": _largest([ending["gap"] for ending in endings]),
            }
            for name, endings in self.endings.items()
        }

    def intervals(
        self, seed: int = 0, names: Sequence[str] | None = None
    ) -> dict[str, dict[str, Interval]]:
        """Return the mean of every score of some ways, with a 95 % interval.

        All ways see the same samples of groups.
        """
        rows = {name: self.scores[name] for name in names or self.scores}
        return _intervals(rows, seed)

    def differences(self, first: str, seed: int = 0) -> dict[str, dict[str, Interval]]:
        """Return by how much ``first`` is above each of the others, in pairs."""
        rows = {
            name: self.scores[first] - rows
            for name, rows in self.scores.items()
            if name != first
        }
        return _intervals(rows, seed)

    def over_rows(self, seed: int = 0) -> dict[str, dict[str, Interval]]:
        """Return precision and recall over the rows of all groups together.

        Of all rows that were chosen, the share that was wanted, so that groups of which
        nothing was chosen do not count; and of all that were wanted, the share that was
        chosen.  NaN where there are none.
        """
        ratios = {}
        for name, counts in self.counts.items():
            hits, chosen, wanted = counts.T
            ratios[name] = {"precision": (hits, chosen), "recall": (hits, wanted)}
        return _ratios(ratios, seed)

    def diversities(self, seed: int = 0) -> dict[str, dict[str, Interval]]:
        """Return how unlike each other chosen rows are, and those that were wanted.

        ``similarity`` is the mean over groups of the mean cosine of two rows, among
        groups with two or more; ``copies`` the share of all rows with a cosine above
        0.95 to another of their group; and ``kinds``, if the kernel has them, the mean
        over groups of the number of kinds.
        """
        ratios = {}
        for name, columns in self.diversity.items():
            similarity, copies, kinds = columns.T
            is_pair = ~np.isnan(similarity)
            ratios[name] = {
                "similarity": (np.where(is_pair, similarity, 0.0), is_pair),
                "copies": (copies, self._n_chosen(name)),
            }
            if not np.isnan(kinds).any():
                ratios[name]["kinds"] = (kinds, np.ones(len(kinds)))
        return _ratios(ratios, seed)

    def _n_chosen(self, name: str) -> FloatArray:
        """Return how many rows of each group a way chose."""
        if name == WANTED_ROWS:
            return next(iter(self.counts.values()))[:, COUNTS.index("wanted")]
        return self.counts[name][:, COUNTS.index("chosen")]


def _largest(gaps: Sequence[float | None]) -> float | None:
    known = [gap for gap in gaps if gap is not None]
    return max(known) if known and len(known) == len(gaps) else None


def _intervals(
    rows: Mapping[str, FloatArray], seed: int
) -> dict[str, dict[str, Interval]]:
    if not rows:
        return {}
    table = np.column_stack(list(rows.values()))
    means = bootstrap_means(table, N_BOOTSTRAP, seed)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    numbers = np.array([table.mean(axis=0), low, high]).T.reshape(len(rows), -1, 3)
    return {
        name: {
            score: Interval(*map(float, triple))
            for score, triple in zip(SCORES, here, strict=True)
        }
        for name, here in zip(rows, numbers, strict=True)
    }


def _ratios(
    named: Mapping[str, Mapping[str, tuple[Any, Any]]], seed: int
) -> dict[str, dict[str, Interval]]:
    """Return ratios of sums over groups; both sums are of the same samples."""
    pairs = [pair for scores in named.values() for pair in scores.values()]
    if not pairs:
        return {}
    above, below = (np.column_stack(side) for side in zip(*pairs, strict=True))
    table = np.column_stack([above, below]).astype(np.float64)
    means = bootstrap_means(table, N_BOOTSTRAP, seed)
    means = np.vstack([table.mean(axis=0), means])
    top, bottom = np.hsplit(means, 2)
    found = np.divide(top, bottom, where=bottom > 0.0, out=np.full_like(top, np.nan))
    intervals = iter([_interval_of(column) for column in found.T])
    return {
        name: {score: next(intervals) for score in scores}
        for name, scores in named.items()
    }


def _interval_of(found: FloatArray) -> Interval:
    """Return the first number with what 95 % of the others are between."""
    if np.isnan(found[0]):
        return Interval(*[float("nan")] * 3)
    # A sample may hold no row that counts.
    low, high = np.nanquantile(found[1:], [0.025, 0.975])
    return Interval(float(found[0]), float(low), float(high))


def evaluate(
    groups: Iterable[Group],
    ways: Mapping[str, Callable[[Group], Choice]],
    n_jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
    diversity: Callable[[Group, IntArray], Diversity] | None = None,
) -> Evaluation:
    """Choose from every group in several ways, and compare with its labels.

    ``progress`` is told how many groups are done; ``diversity`` judges what is chosen
    beside its labels.
    """

    def judged(group: Group) -> _Judged:
        wanted = group.wanted()  # refuses groups without labels before the work
        choices = [way(group) for way in ways.values()]
        orders = [*(choice.order for choice in choices), wanted]
        return _Judged(
            [score(choice, wanted) for choice in choices],
            [_counts(choice, wanted) for choice in choices],
            [] if diversity is None else [diversity(group, one) for one in orders],
            [choice.ending for choice in choices],
            len(wanted),
        )

    found: list[_Judged] = []
    for _, one in in_turn(judged, groups, n_jobs):
        found.append(one)
        if progress is not None:
            progress(len(found))
    if not found:
        raise TableError("there are no groups to evaluate on")
    endings = {
        name: [one.endings[number] for one in found]
        for number, name in enumerate(ways)
        if found[0].endings[number] is not None
    }
    return Evaluation(
        _by_way(ways, [one.scores for one in found]),
        float(np.mean([one.n_wanted for one in found])),
        cast("dict[str, list[dict[str, Any]]]", endings),
        _by_way(ways, [one.counts for one in found]),
        _by_way([*ways, WANTED_ROWS], [one.diversity for one in found]),
    )


class _Judged(NamedTuple):
    """What there is to say about one group, way by way."""

    scores: list[tuple[float, ...]]
    counts: list[tuple[float, ...]]
    diversity: list[Diversity]
    endings: list[dict[str, Any] | None]
    n_wanted: int


def _by_way(names: Iterable[str], rows: Sequence[Any]) -> dict[str, FloatArray]:
    """Return numbers (groups, ways, columns) by ways; none if there are none."""
    if not rows[0]:
        return {}
    table = np.array(rows, dtype=np.float64)
    return {name: table[:, number] for number, name in enumerate(names)}


def _counts(choice: Choice, wanted: IntArray) -> tuple[float, float, float]:
    hits = np.isin(choice.order, wanted).sum()
    return float(hits), float(len(choice.order)), float(len(wanted))


def score(choice: Choice, wanted: Any) -> tuple[float, float, float, float]:
    """Return ``SCORES`` of a choice."""
    chosen = choice.order
    return (
        metrics.precision(chosen, wanted),
        metrics.recall(chosen, wanted),
        metrics.f_score(chosen, wanted),
        float(len(chosen)),
    )
