"""Gathering what a report of a training shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from variegate._typing import IntArray
from variegate.application.table_defaults import UNTRAINED
from variegate.tables.cells import RowTexts, check_relevance
from variegate.tables.choosing import Chooser
from variegate.tables.columns import check_there, is_vector
from variegate.tables.comparison import (
    SizeLimit,
    learn_rivals,
    method_choosers,
    rival_choosers,
)
from variegate.tables.evaluation import Evaluation
from variegate.tables.groups import Groups
from variegate.tables.judging import DiversityJudge, evaluate
from variegate.tables.report import Report, similarity
from variegate.tables.report.examples import example_groups
from variegate.tables.table import Progress, Table, stage_progress

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = ["check_report_columns", "report_of"]

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
    few = list(groups.only(looked_at[:_N_EXAMPLES]))
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
    rivals = learn_rivals(
        groups, learned_from, selector.seed_, memory=selector.memory, progress=progress
    )
    choosers: dict[str, Chooser] = {"learned": selector._chooser()}
    choosers |= rival_choosers(rivals, SizeLimit())
    if has_relevance:
        limit = selector._usual_limit(SizeLimit())
        choosers |= method_choosers(UNTRAINED, limit, 0.5)
    return evaluate(
        groups.only(compared),
        choosers,
        selector.n_jobs,
        stage_progress(progress, "comparing", len(compared)),
        DiversityJudge.of(selector.model_),
    )


def _shown(selector: TableSelector, table: Table) -> tuple[str, ...]:
    """Return the item and the first columns of the quality."""
    names = [selector.columns_.item, *selector.columns_.quality]
    fields = [table.schema.field(name) for name in names if name is not None]
    is_short = [field.name for field in fields if not is_vector(field.type)]
    return tuple(is_short[:_N_SHOWN])
