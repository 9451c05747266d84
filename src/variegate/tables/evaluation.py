"""Scores of choosers over groups, with intervals that say how sure they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from variegate._typing import FloatArray
from variegate.application.base import bootstrap_means
from variegate.tuning.held_out import SCORES

#: The columns of the counts of a group: rows that are chosen and wanted, and all that
#: are chosen, and all that are wanted.
COUNTS = ("hits", "chosen", "wanted")

#: The name of the wanted rows among choosers, where nothing is scored.
WANTED_ROWS = "wanted rows"

#: Samples of the groups that intervals come from.
N_BOOTSTRAP = 2000


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
        """Count the endings of groups."""
        gaps = [ending["gap"] for ending in endings]
        return cls(
            dict(Counter(ending["stop_reason"] for ending in endings)),
            sum(ending["is_optimal"] for ending in endings),
            None if None in gaps else max(gaps),
        )

    def __add__(self, other: Endings) -> Endings:  # type: ignore[override]
        """Return the endings of both."""
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
        """The mean number of labelled rows a group."""
        counts = next(iter(self.counts.values()))
        return float(counts[:, COUNTS.index("wanted")].mean())

    @classmethod
    def joined(cls, parts: Sequence[Evaluation]) -> Evaluation:
        """Return the evaluation of all groups from those of some groups each."""
        tables: dict[str, Any] = {
            table: {
                name: np.concatenate([getattr(part, table)[name] for part in parts])
                for name in getattr(parts[0], table)
            }
            for table in ("scores", "counts", "diversity")
        }
        names = parts[0].endings
        ended = {n: reduce(add, [part.endings[n] for part in parts]) for n in names}
        return cls(**tables, endings=ended)

    def intervals(
        self, seed: int = 0, names: Sequence[str] | None = None
    ) -> dict[str, dict[str, Interval]]:
        """Return the mean of every score of some choosers, with a 95 % interval.

        All choosers see the same samples of groups.
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
        """Return how many rows of each group were chosen."""
        if name == WANTED_ROWS:
            return next(iter(self.counts.values()))[:, COUNTS.index("wanted")]
        return self.counts[name][:, COUNTS.index("chosen")]


def _intervals(
    rows: Mapping[str, FloatArray], seed: int
) -> dict[str, dict[str, Interval]]:
    ratios = {
        name: {
            score: (column, np.ones(len(table)))
            for score, column in zip(SCORES, table.T, strict=True)
        }
        for name, table in rows.items()
    }
    return _ratios(ratios, seed)


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
