"""Chosen rows in a file: those of the table, in its order, with its types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from variegate.tables.choosing import Choices
from variegate.tables.columns import check_there
from variegate.tables.frames import added_columns, added_fields
from variegate.tables.table import Table, as_table
from variegate.tables.training import Progress
from variegate.tables.writing import check_writable, table_writer

__all__ = ["check_output", "write_choices", "write_table"]


def write_table(table: Any, path: str | Path) -> None:
    """Write a data frame or an Arrow table to a file, whole or not at all.

    Parameters
    ----------
    table : data frame, Arrow table or path of a file
    path : str or Path
        Its suffix says the format: ``.parquet``, ``.csv``, ``.jsonl`` or ``.arrow``.
    """
    source = as_table(table)
    with table_writer(path, source.schema) as write:
        for batch in source.batches():
            write(batch)


def check_output(
    table: Table,
    path: Path,
    *,
    keep_all: bool,
    has_probability: bool,
    drop: Sequence[str] = (),
) -> None:
    """Refuse now what could not be written after the work."""
    for name in drop:
        check_there(name, table.schema.names)
    schema = _schema(table, drop, keep_all=keep_all, has_probability=has_probability)
    check_writable(path, schema)


def _schema(
    table: Table, drop: Sequence[str], *, keep_all: bool, has_probability: bool
) -> pa.Schema:
    kept = [field for field in table.schema if field.name not in drop]
    schema = pa.schema(kept, table.schema.metadata)
    for field in added_fields(
        schema, keep_all=keep_all, has_probability=has_probability
    ):
        schema = schema.append(field)
    return schema


def write_choices(
    table: Table,
    choices: Choices,
    path: Path,
    *,
    keep_all: bool = False,
    drop: Sequence[str] = (),
    progress: Progress | None = None,
) -> None:
    """Write the chosen rows of a table, or all, and what was chosen.

    Columns in ``drop`` are left out.  The file is there at the end or not at all.
    """
    has_probability = choices.probability is not None
    schema = _schema(table, drop, keep_all=keep_all, has_probability=has_probability)
    kept = [name for name in table.schema.names if name not in drop]
    first = 0
    with table_writer(path, schema) as write:
        for batch in table.batches(kept):
            end = first + batch.num_rows
            rows = np.arange(first, end)
            if not keep_all:
                rows = rows[choices.selected[first:end]]
                batch = batch.take(pa.array(rows - first))
            if len(rows):
                added = added_columns(choices, rows, keep_all=keep_all)
                arrays = [
                    # What is not known is left empty.
                    pa.array(values, schema.field(name).type, from_pandas=True)
                    for name, values in added.items()
                ]
                write(pa.record_batch([*batch.columns, *arrays], schema=schema))
            first = end
            if progress is not None:
                progress("writing", first, len(choices.rank))
