"""Gathering what a report of a training shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from variegate._typing import IntArray
from variegate.application.table_defaults import UNTRAINED
from variegate.tables.cells import check_relevance
from variegate.tables.choosing import Choice
from variegate.tables.columns import check_there, is_vector
from variegate.tables.comparison import untrained_ways
from variegate.tables.derived import derived
from variegate.tables.diversity import DiversityJudge, kinds_by
from variegate.tables.evaluation import Evaluation, evaluate
from variegate.tables.groups import Group, Groups
from variegate.tables.report import Report, similarity
from variegate.tables.report.examples import example_groups
from variegate.tables.rivals import Rivals
from variegate.tables.row_texts import RowTexts, row_texts
from variegate.tables.splitting import only
from variegate.tables.table import Progress, Table, counting, ignore
from variegate.tables.terms import Terms

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["check_report_columns", "make_report", "report_of"]

#: Groups that are shown row by row.
_N_EXAMPLES = 4

#: Columns that are shown of them, where none are named.
_N_SHOWN = 4

#: Held-out groups that ways to choose are compared on, at most.
_MAX_COMPARED = 2000


def check_report_columns(
    table: Table, relevance: str | None, show: Sequence[str] | None
) -> None:
    """Refuse, before the work, columns that a report could not be made of."""
    for name in (relevance, *(show or ())):
        if name is not None:
            check_there(name, table.schema.names)
    check_relevance(table, relevance)


def make_report(
    selector: TableSelector,
    table: Table,
    relevance: str | None = None,
    show: Sequence[str] | None = None,
    model: str = "model.json",
    progress: Progress = ignore,
) -> Report:
    """Return what :meth:`TableSelector.report` does, for a table that is read."""
    table = derived(table, selector.columns_)
    groups = selector._groups(
        table, use_labels=True, relevance=relevance, progress=progress
    )
    texts = partial(row_texts, table)
    return report_of(selector, table, groups, texts, relevance, show, model, progress)


def report_of(
    selector: TableSelector,
    table: Table,
    groups: Groups,
    texts: RowTexts,
    relevance: str | None,
    show: Sequence[str] | None,
    model: str,
    progress: Progress,
) -> Report:
    """Return the report of a training on groups of a table, wherever they are."""
    learned_from, held_out = selector._split(groups.survey)
    shown = tuple(show) if show else _shown(selector, table)
    looked_at = held_out if len(held_out) else learned_from
    few = list(only(groups, looked_at[:_N_EXAMPLES]))
    examples = example_groups(texts, few, selector._chooser(), shown)
    comparison = None
    if len(held_out) > 1:
        comparison = _compared(
            selector, groups, learned_from, held_out, relevance is not None, progress
        )
    rows = np.array(similarity.typical(selector), dtype=np.int64)
    typical = texts(rows, shown) if len(rows) else {}
    return Report(
        selector, table.name, shown, tuple(examples), comparison, model, typical
    )


def _compared(
    selector: TableSelector,
    groups: Groups,
    learned_from: IntArray,
    held_out: IntArray,
    has_relevance: bool,
    progress: Progress,
) -> Evaluation:
    """Judge the model, rivals that learned from the same groups, and methods."""
    rng = np.random.default_rng(selector.seed_)
    compared = np.sort(rng.permutation(held_out)[:_MAX_COMPARED])
    rivals = Rivals.fit_some(
        groups, learned_from, selector.seed_, memory=selector.memory, progress=progress
    )
    chooser = selector._chooser()
    ways: dict[str, Callable[[Group], Choice]] = {"learned": chooser}
    ways |= rivals.ways(Terms())
    if has_relevance:
        ways |= untrained_ways(UNTRAINED, selector._untrained_terms(Terms()), 0.5)
    return evaluate(
        only(groups, compared),
        ways,
        selector.n_jobs,
        counting(progress, "comparing", len(compared)),
        DiversityJudge(kinds_by(selector.model_)),
    )


def _shown(selector: TableSelector, table: Table) -> tuple[str, ...]:
    """Return the item and the first columns of the quality."""
    names = [selector.columns_.item, *selector.columns_.quality]
    fields = [table.schema.field(name) for name in names if name is not None]
    is_short = [field.name for field in fields if not is_vector(field.type)]
    return tuple(is_short[:_N_SHOWN])
