"""Gathering the data of a report: example groups, comparison and typical rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from variegate import metrics
from variegate._progress import Progress
from variegate._typing import IntArray
from variegate.application.table_defaults import UNTRAINED
from variegate.tables.choosing import Chooser
from variegate.tables.columns import check_column_exists, is_vector
from variegate.tables.comparison import (
    learn_rivals,
    method_choosers,
    rival_choosers,
)
from variegate.tables.derived import Derivation
from variegate.tables.encoded import Group
from variegate.tables.evaluation import DiversityJudge, Evaluation, judge_groups
from variegate.tables.fitting import split_groups
from variegate.tables.groups import Groups
from variegate.tables.limits import NO_LIMIT
from variegate.tables.report.description import kind_tables
from variegate.tables.table import Table

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

#: Groups that are shown row by row.
_N_EXAMPLES = 4

#: Columns that are shown of them, where none are named.
_N_SHOWN = 4

#: Held-out groups that ways to choose are compared on, at most.
_MAX_COMPARED = 2000


@dataclass(frozen=True)
class ExampleRow:
    """A row to look at: its rank is from 1 for chosen rows, and 0 for others.

    The probability is that the model includes it; a row labelled 1 is wanted.
    """

    cells: tuple[str, ...]
    rank: int
    probability: float
    is_wanted: bool


@dataclass(frozen=True)
class ExampleGroup:
    """A group to look at; ``f`` is the F-score of what was chosen from it."""

    name: str
    rows: tuple[ExampleRow, ...]
    f: float


@dataclass(frozen=True, eq=False)
class Report:
    """The data of a report: a fitted selector, and the name of its training table.

    Examples and rows that are typical of learned kinds, by their places in the table,
    have the columns ``show``.  Scores on held-out groups are of the model, which is the
    first, of rivals that learned from the same groups, and of methods that learn
    nothing.  ``model`` is the name of the file that the model is in.
    """

    selector: TableSelector
    table: str
    show: tuple[str, ...] = ()
    examples: tuple[ExampleGroup, ...] = ()
    comparison: Evaluation | None = None
    model: str = "model.json"
    typical: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


def check_report_columns(
    schema: pa.Schema, relevance: str | None, show: Sequence[str] | None
) -> None:
    """Refuse, before the work, columns of a report that the table lacks."""
    for name in (relevance, *(show or ())):
        if name is not None:
            check_column_exists(name, schema.names)


def make_report(
    selector: TableSelector,
    table: Table,
    relevance: str | None,
    show: Sequence[str] | None,
    model: str,
    progress: Progress,
    **how: Any,
) -> Report:
    """Return the report of a training, of a ``table`` that it reads again.

    ``relevance`` is a column for untrained methods, None to leave them out, ``show``
    the columns of examples, by default the item and some of the quality, and ``model``
    a file name.  ``how`` are ``engine`` and ``skip_unreadable``, to read groups by.
    """
    schema = Derivation(table.schema, selector.columns_).schema
    check_report_columns(schema, relevance, show)
    columns = selector._required_columns(True, relevance=relevance)
    groups = selector._read_groups(table, columns, progress=progress, **how)
    shown = tuple(show) if show else _shown_columns(selector, schema)
    learned_from, held_out = split_groups(selector, groups.survey)
    looked_at = held_out if len(held_out) else learned_from
    few = list(groups.only(looked_at[:_N_EXAMPLES]))
    examples = example_groups(groups, few, selector._make_chooser(), shown)
    comparison = None
    if len(held_out) > 1:
        comparison = _compare_on_held_out(
            selector, groups, learned_from, held_out, progress
        )
    kinds = [kind for table in kind_tables(selector) for kind in table.rows]
    rows = np.unique([row["row"] - 1 for *_, several in kinds for row in several])
    typical = groups.read_texts(rows.astype(np.int64), shown) if len(rows) else {}
    return Report(
        selector, table.name, shown, tuple(examples), comparison, model, typical
    )


def _compare_on_held_out(
    selector: TableSelector,
    groups: Groups,
    learned_from: IntArray,
    held_out: IntArray,
    progress: Progress,
) -> Evaluation:
    """Judge the model, rivals and untrained methods on a sample of held-out groups."""
    rng = np.random.default_rng(selector.seed_)
    compared = np.sort(rng.permutation(held_out)[:_MAX_COMPARED])
    rivals = learn_rivals(
        groups, learned_from, selector.seed_, memory=selector.memory, progress=progress
    )
    choosers: dict[str, Chooser] = {"learned": selector._make_chooser()}
    choosers |= rival_choosers(rivals, NO_LIMIT)
    if groups.survey.columns.relevance is not None:
        limit = selector._default_limit(NO_LIMIT)
        choosers |= method_choosers(UNTRAINED, limit, 0.5)
    return judge_groups(
        groups,
        compared,
        choosers,
        selector.n_jobs,
        progress,
        DiversityJudge.of(selector.model_),
        stage="comparing",
    )


def _shown_columns(selector: TableSelector, schema: pa.Schema) -> tuple[str, ...]:
    """Return the item and quality columns without vectors, ``_N_SHOWN`` at most."""
    names = [selector.columns_.item, *selector.columns_.quality]
    fields = [schema.field(name) for name in names if name is not None]
    is_short = [field.name for field in fields if not is_vector(field.type)]
    return tuple(is_short[:_N_SHOWN])


def example_groups(
    every: Groups, groups: Sequence[Group], chooser: Chooser, show: Sequence[str]
) -> list[ExampleGroup]:
    """Return ``groups`` of ``every`` as examples, with cells of columns ``show``.

    Only rows that are chosen or wanted are in them, and next to these the
    three most probable others.
    """
    if not groups:
        return []
    choices = [chooser(group) for group in groups]
    wanted_rows = np.concatenate([group.rows for group in groups])
    cells = every.read_texts(np.sort(wanted_rows), show)
    examples = []
    for group, choice in zip(groups, choices, strict=True):
        assert group.chosen is not None  # examples are made of labelled groups
        assert choice.probability is not None  # and by a model
        rank = np.zeros(len(group), dtype=np.int64)
        rank[choice.order] = np.arange(1, len(choice.order) + 1)
        rows = [
            ExampleRow(
                cells[int(group.rows[i])],
                int(rank[i]),
                float(choice.probability[i]),
                bool(group.chosen[i]),
            )
            for i in _rows_to_show(rank, choice.probability, group.chosen)
        ]
        f = metrics.f_score(choice.order, group.chosen)
        examples.append(ExampleGroup(str(group.name), tuple(rows), f))
    return examples


def _rows_to_show(rank: IntArray, probability: Any, wanted: Any) -> list[int]:
    """Return positions of chosen rows by rank, then missed ones, then three others.

    The latter two have the most probable first.  Arguments are arrays (n_rows,).
    """
    chosen = np.flatnonzero(rank)
    by_rank = chosen[np.argsort(rank[chosen])]
    rest = np.flatnonzero(rank == 0)
    rest = rest[np.argsort(-probability[rest], kind="stable")]
    missed = rest[wanted[rest]]
    # Given rows have no probability.
    others = rest[~wanted[rest] & ~np.isnan(probability[rest])][:3]
    return [*by_rank.tolist(), *missed.tolist(), *others.tolist()]
