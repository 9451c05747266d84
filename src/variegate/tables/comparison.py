"""Learned models and untrained methods on the same groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from variegate._typing import BoolArray, FloatArray
from variegate._validation import check_choice
from variegate.baselines import METHODS
from variegate.tables.choosing import ByMethod, Choice
from variegate.tables.evaluation import Evaluation, evaluate
from variegate.tables.groups import Group
from variegate.tables.splitting import only, usable_groups
from variegate.tables.table import Progress, Table, TableError, counting, ignore

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["compare", "untrained_ways"]


def as_many_as_wanted(method: ByMethod) -> Callable[[Group], Choice]:
    """Tell a method how many rows of each group are wanted."""
    return lambda group: replace(method, k=len(group.wanted()))(group)


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
            ways[f"{name} (as many as wanted)"] = as_many_as_wanted(method)
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

    The ways learn nothing, and see the similarity columns of the first selector.
    ``labels`` are in place of the label column; the rest is as for
    :meth:`variegate.tables.TableSelector.evaluate`.
    """
    if len({(s.columns_.group, s.columns_.label) for s in selectors.values()}) > 1:
        raise TableError(
            "the models go by different columns of groups or labels, so that there is "
            "nothing to compare"
        )
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
        if len(used) < 2:
            # Of a single group nobody knows how much chance there is in it.
            raise TableError(
                f"{table.name} has {len(used)} group to judge by: intervals need two "
                "at least"
            )
        judging = counting(progress, "judging", len(used))
        found = evaluate(only(groups, used), here, selector.n_jobs, judging)
        scores |= found.scores
        endings |= found.endings
    ordered = {name: scores[name] for name in (*selectors, *ways)}
    return Evaluation(ordered, found.wanted_size, endings)
