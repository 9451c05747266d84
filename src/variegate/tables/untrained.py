"""Choosing without a model, by an untrained method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from variegate._progress import Progress, ignore
from variegate.application.refusal import Setting
from variegate.application.table_defaults import MEMORY
from variegate.tables.choosing import ByMethod, choose
from variegate.tables.columns import Columns
from variegate.tables.derived import Derivation, derive, last_day, newest
from variegate.tables.errors import TableError
from variegate.tables.groups import Groups
from variegate.tables.output import Output
from variegate.tables.survey import learn_encoding, survey
from variegate.tables.table import Table, as_table, rows_of

#: Methods that do not ask whether rows are alike.
_WITHOUT_SIMILARITY = ("top", "random")


def select_untrained(
    X: Any,
    columns: Columns,
    method: str = "dpp",
    k: int | None = None,
    budget: float | None = None,
    *,
    trade_off: float = 0.5,
    keep_all: bool = False,
    drop: Sequence[str] = (),
    out: str | Path | None = None,
    seed: int = 0,
    memory: int = MEMORY,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Any:
    """Return rows of every group that a method of :func:`variegate.select` chooses.

    Parameters
    ----------
    X, keep_all, drop, out, progress : as for :meth:`TableSelector.select`
    columns : Columns
        Its group, similarity, categorical, relevance and cost.
    method : str, default="dpp"
    k, budget : int, float, optional
        How many rows, or what they may cost together; one of the two.
    trade_off : float, default=0.5
        From 0 (relevance only) to 1 (diversity only).
    seed : int, default=0
        For methods that draw at random.
    memory, n_jobs : as for :class:`TableSelector`
    """
    if k is None and budget is None:
        raise TableError("say how many rows to choose: k or budget")
    if budget is not None and columns.cost is None:
        raise TableError("a budget needs ", Setting("cost"), ", the column of costs")
    table, output = as_table(X), Output(keep_all, drop, out)
    output.check(table, has_probability=False)
    progress = progress or ignore
    groups = untrained_groups(table, columns, method, memory, progress)
    chooser = ByMethod(method, k, budget, trade_off, seed)
    return output.of(X, choose(groups, chooser, n_jobs, progress), progress)


def untrained_groups(
    table: Table,
    columns: Columns,
    method: str,
    memory: int = MEMORY,
    progress: Progress = ignore,
) -> Groups:
    """Return groups whose features are those that tell whether rows are alike."""
    if not columns.similarity and method not in _WITHOUT_SIMILARITY:
        raise TableError(
            f"method {method!r} needs to know whether rows are alike: name a column of "
            "vectors, or columns of numbers, as ",
            Setting("similarity"),
        )
    if columns.relevance is None and method == "top":
        raise TableError(
            "method 'top' needs a column that says how good a row is: name it as ",
            Setting("relevance"),
        )
    wanted = replace(columns, quality=(), label=None, item=None)

    def latest(name: str) -> str:
        return newest(max(last_day(rows, name) for rows in rows_of(table)), name)

    wanted = derive(table.schema, wanted, latest)
    schema = Derivation(table.schema, wanted).schema
    wanted = wanted.resolve(schema, is_untyped=table.is_untyped, needs_quality=False)
    found = survey(table, wanted, memory=memory, progress=progress)
    return Groups(found, learn_encoding(found), memory=memory)
