"""Ways to choose whose relevance scikit-learn learns, to compare a model with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from variegate._typing import IntArray
from variegate.baselines.learned import Rival, learned_rivals
from variegate.tables.cells import as_labels
from variegate.tables.choosing import Choice, limit_of
from variegate.tables.groups import Group, Groups
from variegate.tables.splitting import only, usable_groups
from variegate.tables.table import Progress, TableError, as_table, ignore
from variegate.tables.terms import Terms

if TYPE_CHECKING:
    from variegate.tables.fitted import FittedSelector

__all__ = ["MAX_GROUPS", "ByRival", "Rivals", "learn_rivals", "some_groups"]

#: Groups that rivals learn from, at most.
MAX_GROUPS = 2000


@dataclass(frozen=True, eq=False)
class ByRival:
    """Choose by a rival, with a budget in its order while rows fit."""

    rival: Rival
    k: int | None = None
    budget: float | None = None

    def __call__(self, group: Group) -> Choice:
        """Choose from one group."""
        limit = limit_of(self.budget, group.costs)
        return Choice(self.rival.order(group.ground_set, self.k, limit))


@dataclass(frozen=True, eq=False)
class Rivals:
    """What :func:`variegate.baselines.learned.learned_rivals` learned from groups.

    Their ``k`` is the best on these groups, within the budget if there is one.
    """

    rivals: Mapping[str, Rival]

    @classmethod
    def fit(
        cls, groups: Iterable[Group], seed: int = 0, budget: float | None = None
    ) -> Self:
        """Learn from labelled groups, which all have to fit in memory."""
        ground_sets, subsets = [], []
        for group in groups:
            ground_sets.append(group.ground_set)
            subsets.append(group.wanted())
        if not ground_sets:
            raise TableError("there are no groups that rivals could learn from")
        return cls(learned_rivals(ground_sets, subsets, seed, budget=budget))

    @classmethod
    def fit_some(
        cls,
        groups: Groups,
        numbers: IntArray,
        seed: int = 0,
        *,
        budget: float | None = None,
        memory: int,
        progress: Progress = ignore,
    ) -> Self:
        """Learn from as many of the groups with these numbers as there is room for."""
        progress("learning rivals", 0, 1)
        drawn = some_groups(groups, numbers, seed, memory)
        rivals = cls.fit(only(groups, drawn), seed, budget)
        progress("learning rivals", 1, 1)
        return rivals

    def ways(self, terms: Terms) -> dict[str, Callable[[Group], Choice]]:
        """Return what chooses on some terms, as many rows as is best if these are free.

        With a budget and no number of rows, at most as many.
        """
        ways = {}
        for name, rival in self.rivals.items():
            own = terms.with_k(rival.k)
            said = terms if terms.budget is not None else own
            ways[f"{name} ({said})"] = own.way(partial(ByRival, rival))
        return ways


def learn_rivals(
    selector: FittedSelector,
    train: Any,
    budget: float | None,
    empty_groups: str,
    progress: Progress = ignore,
) -> Rivals:
    """Learn from a labelled table, or from a table and its labels.

    Its columns are encoded as for the selector.
    """
    table, y = train if isinstance(train, tuple) else (train, None)
    try:
        groups = selector._groups(
            as_table(table),
            labels=as_labels(y),
            use_labels=y is None,
            use_costs=budget is not None,
            progress=progress,
        )
        used = usable_groups(groups.survey, empty_groups)
    except TableError as error:
        raise error.within("rivals cannot learn: ") from error
    return Rivals.fit_some(
        groups,
        used,
        selector.seed_,
        budget=budget,
        memory=selector.memory,
        progress=progress,
    )


def some_groups(groups: Groups, numbers: IntArray, seed: int, memory: int) -> IntArray:
    """Draw at most ``MAX_GROUPS`` whose features take no more than some memory."""
    drawn = np.random.default_rng(seed).permutation(numbers)[:MAX_GROUPS]
    encoding = groups.encoding
    width = sum(column.size for column in encoding.columns())
    n_bytes = 8 * width * np.cumsum(groups.survey.index.sizes[drawn])
    n_drawn = max(1, int(np.searchsorted(n_bytes, memory, side="right")))
    return np.sort(drawn[:n_drawn])
