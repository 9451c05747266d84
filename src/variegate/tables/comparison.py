"""Learned models and untrained methods on the same groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from variegate._typing import IntArray
from variegate.tables.choosing import ByMethod, Choice
from variegate.tables.evaluation import Evaluation, evaluate
from variegate.tables.groups import Group, Groups
from variegate.tables.selector import TableSelector
from variegate.tables.splitting import only, usable_groups
from variegate.tables.table import Table, TableError
from variegate.tables.training import Progress, ignore
from variegate.tables.using import chooser_of, groups_of

__all__ = ["Contest", "default_relevance", "untrained_ways"]


def default_relevance(selector: TableSelector) -> str | None:
    """Return the first quality column of numbers, which stands in for a relevance."""
    numbers = (c.name for c in selector.encoding_.quality if c.kind == "number")
    return next(numbers, None)


@dataclass(frozen=True)
class AsManyAsWanted:
    """A method that is told how many rows of each group are wanted."""

    method: ByMethod

    def __call__(self, group: Group) -> Choice:
        """Choose from one group."""
        return replace(self.method, k=len(group.wanted()))(group)


def untrained_ways(
    methods: Sequence[str],
    k: int | None,
    trade_off: float,
    seed: int = 0,
) -> dict[str, Callable[[Group], Choice]]:
    """Return methods by names that say how many they choose; None: as are wanted."""
    ways: dict[str, Callable[[Group], Choice]] = {}
    for name in methods:
        method = ByMethod(name, k, None, trade_off, seed)
        if k is None:
            ways[f"{name} (as many as wanted)"] = AsManyAsWanted(method)
        else:
            ways[f"{name} (k = {k})"] = method
    return ways


@dataclass(frozen=True, eq=False)
class Contest:
    """A comparison on the groups of one labelled table.

    Parameters
    ----------
    table : Table
    selectors : dict from a name to TableSelector
    ways : dict from a name to what chooses from a group
        Methods that learn nothing; they see the similarity columns of the first
        selector.
    relevance : str, optional
        The column that they go by.
    omega : float, optional
        For the selectors.
    empty_groups : {"error", "keep", "drop"}
        What to do with groups of which no row is labelled 1.
    """

    table: Table
    selectors: Mapping[str, TableSelector]
    ways: Mapping[str, Callable[[Group], Choice]]
    relevance: str | None = None
    omega: float | None = None
    empty_groups: str = "error"

    def judge(self, progress: Progress | None = None) -> Evaluation:
        """Return the scores of all."""
        report = progress or ignore
        self._check_alike()
        parts: list[Evaluation] = []
        for number, (name, selector) in enumerate(self.selectors.items()):
            ways: dict[str, Callable[[Group], Choice]] = {
                name: chooser_of(selector, self.omega)
            }
            if number == 0:
                ways |= self.ways
            groups = groups_of(
                selector,
                self.table,
                use_labels=True,
                relevance=self.relevance if number == 0 else None,
                progress=report,
            )
            used = self._used(groups)

            def told(done: int, total: int = len(used)) -> None:
                report("judging", done, total)

            parts.append(evaluate(only(groups, used), ways, selector.n_jobs, told))
        names = [*self.selectors, *self.ways]
        scores = {name: s for part in parts for name, s in part.scores.items()}
        return Evaluation({name: scores[name] for name in names}, parts[0].wanted_size)

    def _check_alike(self) -> None:
        """Refuse models of other groups or labels: nothing could be compared."""
        parts = {
            (selector.columns_.group, selector.columns_.label)
            for selector in self.selectors.values()
        }
        if len(parts) > 1:
            raise TableError(
                "the models go by different columns of groups or labels, so that "
                "there is nothing to compare"
            )

    def _used(self, groups: Groups) -> IntArray:
        used = usable_groups(groups.survey, self.empty_groups)
        if len(used) < 2:
            raise TableError(
                f"{self.table.name} has {len(used)} group to judge by: intervals need "
                "two at least"
            )
        return used
