"""Learned models and untrained methods on the same groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate._validation import check_choice
from variegate.baselines import METHODS
from variegate.tables.choosing import ByMethod, Choice
from variegate.tables.evaluation import Evaluation, evaluate
from variegate.tables.groups import Group
from variegate.tables.splitting import only, usable_groups
from variegate.tables.table import Progress, Table, TableError, ignore

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["compare", "untrained_ways"]


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
        check_choice("method", name, METHODS)
        method = ByMethod(name, k, None, trade_off, seed)
        if k is None:
            ways[f"{name} (as many as wanted)"] = AsManyAsWanted(method)
        else:
            ways[f"{name} (k = {k})"] = method
    return ways


def compare(
    table: Table,
    selectors: Mapping[str, TableSelector],
    ways: Mapping[str, Callable[[Group], Choice]],
    *,
    relevance: str | None = None,
    omega: float | None = None,
    empty_groups: str = "error",
    labels: BoolArray | None = None,
    progress: Progress = ignore,
) -> Evaluation:
    """Return the scores of selectors and other ways on the groups of a labelled table.

    Parameters
    ----------
    selectors : dict from a name to TableSelector
    ways : dict from a name to what chooses from a group
        Methods that learn nothing; they see the similarity columns of the first
        selector.
    labels : array of bool, optional
        In place of the label column.
    relevance, omega, empty_groups, progress
        As for :meth:`variegate.tables.TableSelector.evaluate`.
    """
    _check_alike(selectors.values())
    scores: dict[str, FloatArray] = {}
    endings: dict[str, list[dict[str, Any]]] = {}
    for name, selector in selectors.items():
        here: dict[str, Callable[[Group], Choice]] = {name: selector._chooser(omega)}
        if not scores:
            here |= ways
        groups = selector._groups(
            table,
            labels=labels,
            use_labels=labels is None,
            relevance=None if scores else relevance,
            progress=progress,
        )
        used = usable_groups(groups.survey, empty_groups)
        _check_enough(used, table)

        def judged(done: int, total: int = len(used)) -> None:
            progress("judging", done, total)

        found = evaluate(only(groups, used), here, selector.n_jobs, judged)
        scores |= found.scores
        endings |= found.endings
    ordered = {name: scores[name] for name in (*selectors, *ways)}
    return Evaluation(ordered, found.wanted_size, endings)


def _check_enough(used: IntArray, table: Table) -> None:
    """Refuse a single group, of which nobody knows how much chance there is in it."""
    if len(used) < 2:
        raise TableError(
            f"{table.name} has {len(used)} group to judge by: intervals need two at "
            "least"
        )


def _check_alike(selectors: Iterable[TableSelector]) -> None:
    """Refuse models of other groups or labels: nothing could be compared."""
    if len({(s.columns_.group, s.columns_.label) for s in selectors}) > 1:
        raise TableError(
            "the models go by different columns of groups or labels, so that there is "
            "nothing to compare"
        )
