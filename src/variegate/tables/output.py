"""Chosen rows as a table of the type that was given, or in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from variegate._progress import Progress, ignore
from variegate._typing import AnyArray
from variegate.tables.choosing import Choices
from variegate.tables.columns import matching
from variegate.tables.errors import TableError
from variegate.tables.reading import TableFile
from variegate.tables.table import FolderTable, MemoryTable, Table, as_table
from variegate.tables.writing import check_writable, table_writer


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


@dataclass(frozen=True)
class Output:
    """The rows, columns and file of choices.

    Rows keep their order, columns and types.  The columns "selection_rank" and, from a
    model, "inclusion_probability" are added; where all rows are kept, also "selected".
    The file appears when it is complete.
    """

    keep_all: bool = False
    drop: Sequence[str] = ()
    out: str | Path | None = None

    def check(self, table: Table, *, has_probability: bool) -> None:
        """Refuse columns and files that could not be written, before the work."""
        schema = self._schema(table, has_probability)
        if self.out is not None:
            check_writable(self.out, schema)

    def of(self, X: Any, choices: Choices, progress: Progress = ignore) -> Any:
        """Return the rows as a table of the type of X, or write them."""
        if self.out is None:
            return self._frame(X, choices)
        self._write(as_table(X), choices, self.out, progress)
        return choices

    def _schema(self, table: Table, has_probability: bool) -> pa.Schema:
        """Return the columns that are kept, and after them those that are added."""
        kept = [table.schema.field(name) for name in self._kept(table.schema.names)]
        added = [pa.field("selected", pa.bool_())] * self.keep_all
        added.append(pa.field("selection_rank", pa.int32()))
        added += [pa.field("inclusion_probability", pa.float64())] * has_probability
        names = [field.name for field in kept]
        for field in added:
            if field.name in names:
                raise TableError(
                    f"the table already has a column {field.name!r}, which a selection "
                    "adds: rename or drop it first"
                )
        return pa.schema([*kept, *added], table.schema.metadata)

    def _kept(self, names: Sequence[str]) -> list[str]:
        dropped = matching(self.drop, names, "what is dropped")
        return [name for name in names if name not in dropped]

    def _added(self, choices: Choices, rows: Any) -> dict[str, AnyArray]:
        """Return the values of the added columns in some rows.

        Ranks are 0 in rows that are not selected, where nothing ranks.
        """
        columns: dict[str, AnyArray] = {}
        if self.keep_all:
            columns["selected"] = choices.selected[rows]
        columns["selection_rank"] = choices.rank[rows]
        if choices.probability is not None:
            columns["inclusion_probability"] = choices.probability[rows]
        return columns

    def _frame(self, frame: Any, choices: Choices) -> Any:
        import narwhals.stable.v2 as nw

        if isinstance(frame, MemoryTable):
            frame = frame.table
        elif isinstance(frame, str | Path | TableFile | FolderTable):
            file = as_table(frame)
            frame = pa.Table.from_batches(list(file.batches()), file.schema)
        native = nw.from_native(frame, eager_only=True)
        n_rows = len(choices.rank)
        rows = np.arange(n_rows) if self.keep_all else np.flatnonzero(choices.selected)
        series = [
            nw.new_series(name, values, backend=native.implementation)
            for name, values in self._added(choices, rows).items()
        ]
        kept = native.select(self._kept(native.columns))[rows]
        return kept.with_columns(*series).to_native()

    def _write(
        self, table: Table, choices: Choices, path: str | Path, progress: Progress
    ) -> None:
        schema = self._schema(table, choices.probability is not None)
        first = 0
        with table_writer(path, schema) as write:
            for batch in table.batches(self._kept(table.schema.names)):
                end = first + batch.num_rows
                rows = np.arange(first, end)
                if not self.keep_all:
                    rows = rows[choices.selected[first:end]]
                    batch = batch.take(pa.array(rows - first))
                if len(rows):
                    arrays = [
                        # What is not known is left empty.
                        pa.array(values, schema.field(name).type, from_pandas=True)
                        for name, values in self._added(choices, rows).items()
                    ]
                    write(pa.record_batch([*batch.columns, *arrays], schema=schema))
                first = end
                progress("writing", first, len(choices.rank))
