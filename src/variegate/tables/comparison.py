"""Learned models and other ways to choose, on the same groups and the same terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from variegate._typing import BoolArray, IntArray
from variegate._validation import check_choice
from variegate.baselines import METHODS
from variegate.report.words import count
from variegate.tables.choosing import ByMethod, Choice, in_turn
from variegate.tables.diversity import DiversityJudge, kinds_by
from variegate.tables.evaluation import Evaluation, evaluate
from variegate.tables.groups import Group, Groups
from variegate.tables.splitting import only, usable_groups
from variegate.tables.table import Progress, Table, TableError, counting, ignore
from variegate.tables.terms import Terms

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["Ways", "compare", "enough", "model_ways", "untrained_ways"]

Ways = Mapping[str, Callable[[Group], Choice]]


def untrained_ways(
    methods: Sequence[str], terms: Terms, trade_off: float, seed: int = 0
) -> dict[str, Callable[[Group], Choice]]:
    """Return methods by names that say how many they choose."""
    for name in methods:
        check_choice("method", name, METHODS)
    return {
        f"{name} ({terms})": terms.way(_by_method(name, trade_off, seed))
        for name in methods
    }


def _by_method(
    name: str, trade_off: float, seed: int
) -> Callable[[int | None, float | None], ByMethod]:
    return lambda k, budget: ByMethod(name, k, budget, trade_off, seed)


def model_ways(
    name: str, selector: TableSelector, omega: float | None, terms: Terms
) -> dict[str, Callable[[Group], Choice]]:
    """Return a model that decides how much to choose, and one that keeps terms."""
    free = selector._chooser(omega)
    ways: dict[str, Callable[[Group], Choice]] = {name: free}
    if not terms.are_free:
        ways[f"{name} ({terms})"] = terms.way(partial(selector._chooser_for, omega))
    return ways


def compare(
    table: Table,
    selectors: Mapping[str, TableSelector],
    ways: Ways,
    *,
    terms: Terms | None = None,
    relevance: str | None = None,
    omega: float | None = None,
    empty_groups: str = "error",
    labels: BoolArray | None = None,
    progress: Progress = ignore,
) -> Evaluation:
    """Return the scores of selectors and other ways on the groups of a labelled table.

    The ways see the columns of the first selector, by which diversity is judged too.
    Models choose as much as they like and, where the terms are not free, once more on
    these.  ``labels`` are in place of the label column; the rest is as for
    :meth:`variegate.tables.TableSelector.evaluate`.
    """
    if len({(s.columns_.group, s.columns_.label) for s in selectors.values()}) > 1:
        raise TableError(
            "the models go by different columns of groups or labels, so that there is "
            "nothing to compare"
        )
    terms = terms or Terms()

    def groups_for(
        selector: TableSelector, relevance: str | None = None
    ) -> tuple[Groups, IntArray]:
        groups = selector._groups(
            table,
            labels=labels,
            use_labels=labels is None,
            use_costs=terms.budget is not None,
            relevance=relevance,
            empty_groups=empty_groups,
            progress=progress,
        )
        return groups, enough(usable_groups(groups.survey, empty_groups), table)

    (name, first), *others = selectors.items()
    here = model_ways(name, first, omega, terms)
    for other, selector in others:
        groups, used = groups_for(selector)
        there = model_ways(other, selector, omega, terms)
        here |= _remembered(only(groups, used), there, selector.n_jobs)
    # First as much as they like, then on the terms, then whatever is no model.
    alike = [way for way in here if way not in selectors]
    here = {way: here[way] for way in (*selectors, *alike)} | dict(ways)
    groups, used = groups_for(first, relevance)
    found = evaluate(
        only(groups, used),
        here,
        first.n_jobs,
        counting(progress, "judging", len(used)),
        DiversityJudge(kinds_by(first._model_at(omega))),
    )
    return replace(found, reference=name if terms.are_free else f"{name} ({terms})")


def enough(used: IntArray, table: Table) -> IntArray:
    """Refuse to judge by a single group."""
    if len(used) < 2:
        # Of a single group nobody knows how much chance there is in it.
        raise TableError(
            f"{table.name} has {count(len(used), 'group')} to judge by: intervals need "
            "two at least"
        )
    return used


def _remembered(
    groups: Iterable[Group], ways: Ways, n_jobs: int | None
) -> dict[str, Callable[[Group], Choice]]:
    """Choose from groups, and return what gives back the choices.

    For groups of the same numbers, whose features may be others.
    """

    def chosen(group: Group) -> list[Choice]:
        found = (way(group) for way in ways.values())
        # Without the probabilities, which take the room of all rows.
        return [choice._replace(probability=None) for choice in found]

    kept = {group.number: found for group, found in in_turn(chosen, groups, n_jobs)}

    def recall(place: int) -> Callable[[Group], Choice]:
        return lambda group: kept[group.number][place]

    return {name: recall(place) for place, name in enumerate(ways)}
