"""What is done with a selector: split, encode, choose.

These functions take a :class:`~variegate.tables.selector.TableSelector`, fitted unless
said otherwise.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from variegate._typing import BoolArray, IntArray
from variegate._validation import check_count, check_number
from variegate.decoding import as_decoder
from variegate.tables.cells import as_flags
from variegate.tables.choosing import ByModel, Choices, choose
from variegate.tables.columns import Columns
from variegate.tables.groups import Groups
from variegate.tables.splitting import split, usable_groups
from variegate.tables.survey import Survey, survey
from variegate.tables.table import Table, TableError
from variegate.tables.training import Progress, ignore
from variegate.tuning.omega import model_at, resolve_omega

if TYPE_CHECKING:
    from variegate.tables.selector import TableSelector

__all__ = [
    "as_labels",
    "choose_from",
    "chooser_of",
    "groups_of",
    "refuse_labels_among",
    "rows_of",
    "split_of",
    "with_columns",
]


def rows_of(report: Progress, stage: str) -> Callable[[int], None]:
    """Return what reports rows; how many there are is known only in the end."""
    return lambda done: report(stage, done, 0)


def as_labels(y: Any) -> BoolArray:
    """Return labels that are given beside a table."""
    values: IntArray = np.asarray(y)
    if values.ndim != 1:
        raise TableError(f"y must have one label a row, got shape {values.shape}")
    try:
        column = pa.array(values.tolist(), from_pandas=True)
    except (pa.ArrowException, TypeError) as error:
        raise TableError(f"y must be 1 or 0 for every row: {error}") from None
    return as_flags(column, "y", 0)


def refuse_labels_among(names: Sequence[str], table: Table, labels: BoolArray) -> None:
    """Refuse columns that were taken for features and are the labels themselves."""
    same = dict.fromkeys(names, True)
    first = 0
    for batch in table.batches(list(names)):
        here = pa.array(labels[first : first + batch.num_rows])
        for name in names:
            kind = batch.column(name).type
            same[name] = same[name] and batch.column(name).equals(
                here.cast(kind) if not pa.types.is_decimal(kind) else here
            )
        first += batch.num_rows
    for name in names:
        if same[name]:
            raise TableError(
                f"column {name!r} holds the labels: name it as label, or name the "
                "quality columns"
            )


def split_of(selector: TableSelector, found: Survey) -> tuple[IntArray, IntArray]:
    """Return numbers of the groups to learn from, and of those to hold out."""
    usable = usable_groups(found, selector.empty_groups)
    return split(usable, selector.validation_fraction, selector.seed_)


def with_columns(
    selector: TableSelector,
    group: str | None = None,
    label: str | None = None,
    cost: str | None = None,
) -> TableSelector:
    """Return the selector with other names for columns that are no features."""
    other = copy.copy(selector)
    given = {"group": group, "label": label, "cost": cost}
    other.columns_ = selector.columns_.updated(given)
    return other


def groups_of(
    selector: TableSelector,
    table: Table,
    *,
    labels: BoolArray | None = None,
    use_labels: bool = False,
    use_costs: bool = False,
    relevance: str | None = None,
    progress: Progress = ignore,
) -> Groups:
    """Return the groups of another table, its columns encoded as in training."""
    columns = replace(
        selector.columns_,
        label=selector.columns_.label if use_labels else None,
        cost=selector.columns_.cost if use_costs else None,
        relevance=relevance,
    )
    if use_costs and columns.cost is None:
        raise TableError("a budget needs a column of costs: name it with cost")
    _check_columns(table, columns)
    found = survey(table, columns, labels, rows_of(progress, "reading"))
    encoding = selector.encoding_
    return Groups(
        table, found, encoding, labels, selector.memory, rows_of(progress, "encoding")
    )


def _check_columns(table: Table, columns: Columns) -> None:
    """Refuse a table without the columns that the model was learned with."""
    try:
        columns.resolve(table.schema, is_untyped=table.is_untyped)
    except TableError as error:
        raise TableError(f"{table.name} does not fit the model: {error}") from None


def chooser_of(
    selector: TableSelector,
    omega: float | None = None,
    k: int | None = None,
    budget: float | None = None,
) -> ByModel:
    """Return what chooses from a group."""
    if k is not None:
        check_count("k", k)
    if budget is not None:
        check_number("budget", budget, positive=True)
    if omega is not None:
        check_number("omega", omega, positive=True)
    wanted = resolve_omega(selector.omegas_, omega, selector.omega_)
    model = model_at(selector.omegas_, selector.models_, wanted)
    return ByModel(model, as_decoder(selector.decoder), k, budget, selector.seed_)


def choose_from(
    selector: TableSelector,
    table: Table,
    k: int | None = None,
    budget: float | None = None,
    omega: float | None = None,
    progress: Progress | None = None,
) -> tuple[Choices, Groups]:
    """Choose from every group of a table; return the groups as well."""
    report = progress or ignore
    chooser = chooser_of(selector, omega, k, budget)
    groups = groups_of(selector, table, use_costs=budget is not None, progress=report)
    choices = choose(
        groups,
        groups.survey.n_rows,
        chooser,
        selector.n_jobs,
        lambda done: report("choosing", done, len(groups)),
    )
    return choices, groups
