"""Chosen rows as a table of the kind that was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from variegate.tables.choosing import Choices
from variegate.tables.reading import TableFile
from variegate.tables.table import MemoryTable, TableError, as_table

__all__ = ["PROBABILITY", "RANK", "SELECTED", "added_fields", "with_choices"]

#: The columns that a selection adds.
SELECTED = "selected"
RANK = "selection_rank"
PROBABILITY = "inclusion_probability"


def added_fields(
    schema: pa.Schema, *, keep_all: bool, has_probability: bool
) -> list[pa.Field]:
    """Return the columns that are added to those of ``schema``."""
    fields = [pa.field(SELECTED, pa.bool_())] * keep_all
    fields.append(pa.field(RANK, pa.int32()))
    fields += [pa.field(PROBABILITY, pa.float64())] * has_probability
    for field in fields:
        if field.name in schema.names:
            raise TableError(
                f"the table already has a column {field.name!r}, which a selection "
                "adds: rename or drop it first"
            )
    return fields


def added_columns(
    choices: Choices, rows: Any, *, keep_all: bool
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the values of the added columns in some rows.

    Ranks are 0 in rows that are not selected, where nothing ranks.
    """
    columns: dict[str, np.ndarray[Any, Any]] = {}
    if keep_all:
        columns[SELECTED] = choices.selected[rows]
    columns[RANK] = choices.rank[rows]
    if choices.probability is not None:
        columns[PROBABILITY] = choices.probability[rows]
    return columns


def with_choices(frame: Any, choices: Choices, keep_all: bool) -> Any:
    """Return chosen rows (or all) of a frame, with the columns of a selection."""
    import narwhals.stable.v2 as nw

    if isinstance(frame, MemoryTable):
        frame = frame.table
    elif isinstance(frame, str | Path | TableFile):
        file = as_table(frame)
        frame = pa.Table.from_batches(list(file.batches()), file.schema)
    native = nw.from_native(frame, eager_only=True)
    has_probability = choices.probability is not None
    added_fields(
        as_table(frame).schema, keep_all=keep_all, has_probability=has_probability
    )
    rows = (
        np.arange(len(choices.rank)) if keep_all else np.flatnonzero(choices.selected)
    )
    columns = added_columns(choices, rows, keep_all=keep_all)
    kept = native[rows]
    series = [
        nw.new_series(name, values, backend=native.implementation)
        for name, values in columns.items()
    ]
    return kept.with_columns(*series).to_native()
