"""How well choices agree with labels, group by group, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from variegate import metrics
from variegate._typing import FloatArray
from variegate.application.intervals import bootstrap_means
from variegate.tables.choosing import Choice, in_turn
from variegate.tables.groups import Group
from variegate.tables.table import TableError

__all__ = ["SCORES", "Evaluation", "Interval", "evaluate"]

#: The columns of the scores of a group.
SCORES = ("precision", "recall", "f", "size")

#: Samples of the groups that intervals come from.
N_BOOTSTRAP = 2000


class Interval(NamedTuple):
    """A mean over groups, and where 95 % of bootstrap samples put it."""

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
    """

    scores: Mapping[str, FloatArray]
    wanted_size: float

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return len(next(iter(self.scores.values())))

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


def evaluate(
    groups: Iterable[Group],
    ways: Mapping[str, Callable[[Group], Choice]],
    n_jobs: int | None = None,
    report: Callable[[int], None] | None = None,
) -> Evaluation:
    """Choose from every group in several ways, and compare with its labels."""

    def scored(group: Group) -> FloatArray:
        wanted = group.wanted()
        return np.array([score(way(group), wanted) for way in ways.values()])

    tables, sizes = [], []
    for done, (group, rows) in enumerate(in_turn(scored, groups, n_jobs)):
        tables.append(rows)
        sizes.append(len(group.wanted()))
        if report is not None:
            report(done + 1)
    if not tables:
        raise TableError("there are no groups to evaluate on")
    scores = np.array(tables, dtype=np.float64)
    by_way = {name: scores[:, number] for number, name in enumerate(ways)}
    return Evaluation(by_way, float(np.mean(sizes)))


def score(choice: Choice, wanted: Any) -> tuple[float, float, float, float]:
    """Return ``SCORES`` of a choice."""
    chosen = choice.order
    return (
        metrics.precision(chosen, wanted),
        metrics.recall(chosen, wanted),
        metrics.f_score(chosen, wanted),
        float(len(chosen)),
    )
