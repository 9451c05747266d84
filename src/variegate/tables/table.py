"""Anything that is a table: a file, a folder, an Arrow table, a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from variegate._progress import Progress
from variegate.application.refusal import RefusalError
from variegate.tables.file_errors import repeated
from variegate.tables.folder.files import FolderTable
from variegate.tables.reading import TableFile


def stage_progress(
    progress: Progress, stage: str, total: int
) -> Callable[[int], object]:
    """Return a callback for the number of finished steps of a stage."""
    return lambda done: progress(stage, done, total)


class TableError(RefusalError):
    """A table does not hold what was asked of it."""


class Table(Protocol):
    """Columns with names, read in batches, as often as one likes."""

    schema: pa.Schema

    #: Whether columns have no types, so that numbers are written as text.
    is_untyped: bool

    @property
    def name(self) -> str:
        """The name in messages."""
        ...

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read some columns, or all, from the beginning."""
        ...


class MemoryTable:
    """A table that is in memory."""

    is_untyped = False
    name = "the table"

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.schema = table.schema
        twice = repeated(self.schema.names)
        if twice:
            raise TableError(f"the table has more than one column {twice}")

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Read some columns, or all, from the beginning."""
        table = self.table if columns is None else self.table.select(list(columns))
        if table.num_columns == 0:
            return
        for batch in table.to_batches(max_chunksize=_ROWS):
            if batch.num_rows:
                yield batch


#: Rows that are looked at together.
_ROWS = 16_384


def as_table(table: Any) -> Table:
    """Return a path, an Arrow table or a data frame as a table.

    A folder of files is one table; all of them are opened to see that they fit.
    """
    if isinstance(table, TableFile | MemoryTable | FolderTable):
        return table
    if isinstance(table, str | Path):
        return _opened(Path(table))
    if isinstance(table, pa.Table):
        return MemoryTable(table)
    return MemoryTable(_arrow_of_frame(table))


def parts_of(table: Table) -> Iterator[Table]:
    """Yield the files of a folder one by one, or the table itself."""
    parts = getattr(table, "parts", None)
    return iter([table]) if parts is None else parts()


def _opened(path: Path) -> Table:
    if not path.is_dir():
        return TableFile(path)
    folder = FolderTable(path)
    folder.check()
    return folder


def _arrow_of_frame(frame: Any) -> pa.Table:
    """Return a data frame of pandas, polars and others as an Arrow table."""
    import narwhals.stable.v2 as nw

    try:
        native = nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        message = " ".join(str(error).split())
        raise TableError(f"the table has columns of the same name: {message}") from None
    except TypeError:
        shape = getattr(frame, "shape", None)
        what = type(frame).__name__ + (f" of shape {shape}" if shape else "")
        raise TableError(
            f"expected a data frame (pandas, polars), an Arrow table or the path of a "
            f"file, got a {what}. Columns are found by their names; a step before in "
            "a Pipeline keeps them after .set_output(transform='pandas')"
        ) from None
    try:
        if native.implementation.is_pandas():
            # The row labels of pandas are not data, named or not.
            return pa.Table.from_pandas(native.to_native(), preserve_index=False)
        return native.to_arrow()
    except (pa.ArrowException, TypeError) as error:
        message = " ".join(str(error).split())
        raise TableError(f"a column of the table cannot be read: {message}") from None
