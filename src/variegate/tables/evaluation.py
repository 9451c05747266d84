"""How well choices agree with labels, group by group, and how sure that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    endings : dict from the name of a way to a list of dict
        How the search in each group ended, of ways that search: see
        :attr:`variegate.tables.choosing.Choices.endings`.
    """

    scores: Mapping[str, FloatArray]
    wanted_size: float
    endings: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)

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


def evaluate(
    groups: Iterable[Group],
    ways: Mapping[str, Callable[[Group], Choice]],
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Choose from every group in several ways, and compare with its labels.

    ``progress`` is told how many groups are done.
    """

    def chosen(group: Group) -> list[Choice]:
        group.wanted()  # refuses groups without labels before the work
        return [way(group) for way in ways.values()]

    tables: list[Any] = []
    sizes: list[int] = []
    endings: dict[str, list[dict[str, Any]]] = {}
    for group, choices in in_turn(chosen, groups, n_jobs):
        wanted = group.wanted()
        tables.append([score(choice, wanted) for choice in choices])
        sizes.append(len(wanted))
        for name, choice in zip(ways, choices, strict=True):
            if choice.ending is not None:
                endings.setdefault(name, []).append(choice.ending)
        if progress is not None:
            progress(len(tables))
    if not tables:
        raise TableError("there are no groups to evaluate on")
    scores = np.array(tables, dtype=np.float64)
    by_way = {name: scores[:, number] for number, name in enumerate(ways)}
    return Evaluation(by_way, float(np.mean(sizes)), endings)


def score(choice: Choice, wanted: Any) -> tuple[float, float, float, float]:
    """Return ``SCORES`` of a choice."""
    chosen = choice.order
    return (
        metrics.precision(chosen, wanted),
        metrics.recall(chosen, wanted),
        metrics.f_score(chosen, wanted),
        float(len(chosen)),
    )
