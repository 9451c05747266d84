"""Groups for methods that learn nothing: embeddings and perhaps a relevance."""

from __future__ import annotations

from dataclasses import replace

from variegate.tables.columns import Columns
from variegate.tables.groups import DEFAULT_MEMORY, Groups
from variegate.tables.survey import learn_encoding, survey
from variegate.tables.table import Table, TableError
from variegate.tables.training import Progress, ignore
from variegate.tables.using import rows_of

__all__ = ["untrained_groups"]

#: Methods that do not ask whether rows are alike.
_WITHOUT_SIMILARITY = ("top", "random")


def untrained_groups(
    table: Table,
    columns: Columns,
    method: str,
    memory: int = DEFAULT_MEMORY,
    progress: Progress | None = None,
) -> Groups:
    """Return groups whose features are those that tell whether rows are alike."""
    if not columns.similarity and method not in _WITHOUT_SIMILARITY:
        raise TableError(
            f"method {method!r} needs to know whether rows are alike: name a column of "
            "vectors, or columns of numbers, as similarity"
        )
    if columns.relevance is None and method == "top":
        raise TableError("method 'top' needs a column that says how good a row is: "
                         "name it as relevance")  # fmt: skip
    wanted = replace(columns, quality=(), label=None, item=None)
    wanted = wanted.resolve(
        table.schema, is_untyped=table.is_untyped, needs_quality=False
    )
    report = progress or ignore
    found = survey(table, wanted, report=rows_of(report, "reading"))
    encoding = learn_encoding(table, found, report=rows_of(report, "encoding"))
    return Groups(table, found, encoding, None, memory, rows_of(report, "encoding"))
