"""Gathering what a report of a training shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa

from variegate.tables.cells import as_numbers
from variegate.tables.choosing import Choice
from variegate.tables.columns import check_there, is_vector
from variegate.tables.comparison import untrained_ways
from variegate.tables.evaluation import evaluate
from variegate.tables.groups import Group
from variegate.tables.report import Report
from variegate.tables.report.examples import example_groups
from variegate.tables.selector import TableSelector
from variegate.tables.splitting import only
from variegate.tables.table import Table
from variegate.tables.training import Progress, ignore
from variegate.tables.using import chooser_of, groups_of, split_of

__all__ = ["check_report_columns", "make_report"]

#: Groups that are shown row by row.
_N_EXAMPLES = 4

#: Columns that are shown of them, where none are named.
_N_SHOWN = 4

#: Held-out groups that untrained methods are compared on, at most.
_MAX_COMPARED = 2000


def check_report_columns(
    table: Table, relevance: str | None, show: Sequence[str] | None
) -> None:
    """Refuse, before the work, columns that a report could not be made of."""
    for name in (relevance, *(show or ())):
        if name is not None:
            check_there(name, table.schema.names)
    if relevance is not None and not table.is_untyped:
        # No rows are read: what is wrong with a type is wrong with none of them.
        nothing = pa.array([], table.schema.field(relevance).type)
        as_numbers(nothing, relevance, 0, is_untyped=False)


def make_report(
    selector: TableSelector,
    table: Table,
    relevance: str | None = None,
    show: Sequence[str] | None = None,
    model: str = "model.json",
    progress: Progress | None = None,
) -> Report:
    """Return the report of a selector that was fitted on ``table``.

    Parameters
    ----------
    selector : TableSelector
    table : Table
    relevance : str, optional
        A column that untrained methods go by; without it they are left out.
    show : sequence of str, optional
        Columns of the rows of the examples.
    model : str
        The name of the file that the model is in.
    progress : callable, optional
    """
    report = progress or ignore
    groups = groups_of(
        selector, table, use_labels=True, relevance=relevance, progress=report
    )
    learned_from, held_out = split_of(selector, groups.survey)
    shown = tuple(show) if show else _shown(selector, table)
    looked_at = held_out if len(held_out) else learned_from
    few = list(islice(only(groups, looked_at), _N_EXAMPLES))
    examples = example_groups(table, few, chooser_of(selector), shown)
    comparison = None
    if relevance is not None and len(held_out) > 1:
        rng = np.random.default_rng(selector.seed_)
        compared = np.sort(rng.permutation(held_out)[:_MAX_COMPARED])
        k = max(1, round(selector.training_["chosen_sizes"]["mean"]))
        ways: dict[str, Callable[[Group], Choice]] = {"learned": chooser_of(selector)}
        ways |= untrained_ways(("dpp", "mmr", "top"), k, 0.5)
        comparison = evaluate(
            only(groups, compared),
            ways,
            selector.n_jobs,
            lambda done: report("comparing", done, len(compared)),
        )
    return Report(selector, table.name, shown, tuple(examples), comparison, model)


def _shown(selector: TableSelector, table: Table) -> tuple[str, ...]:
    """Return the item and the first columns of the quality."""
    columns = selector.columns_
    names = [columns.item, *columns.quality]
    is_short = [
        name
        for name in names
        if name is not None and not is_vector(table.schema.field(name).type)
    ]
    return tuple(is_short[:_N_SHOWN])
