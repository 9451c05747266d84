"""Anything that is a table: a file, a folder, an Arrow table, a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from variegate.partitions import Partition
from variegate.tables.batches import data_bytes
from variegate.tables.cells import Cells
from variegate.tables.errors import TableError, TableFileError, repeated_names
from variegate.tables.reading import FORMATS, TableFile
from variegate.tables.rows import FileRows, MemoryRows, Rows, open_file

#: Formats of the files in a folder: those that state their types.
_TYPED = ("parquet", "arrow")


class Table(Protocol):
    """Columns with names, read in batches, as often as needed."""

    schema: pa.Schema

    @property
    def name(self) -> str:
        """The name in messages."""
        ...

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield batches of some columns, None for all, from the first row."""
        ...


class MemoryTable:
    """A table in memory."""

    def __init__(self, table: pa.Table, name: str = "the table") -> None:
        self.table, self.name = table, name
        self.schema = table.schema
        twice = repeated_names(self.schema.names)
        if twice:
            raise TableError(f"the table has more than one column {twice}")

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the batches that have rows, of some columns, None for all."""
        table = self.table if columns is None else self.table.select(list(columns))
        return (batch for batch in table.to_batches() if batch.num_rows)


class FolderTable:
    """The files of a folder, in the order of their names, read as one table.

    Files are those whose suffix stands for Parquet or Arrow; names that begin with
    ``.`` or ``_``, folders inside, and files that are not tables are passed over.  All
    files have the same columns of the same types, in any order.

    Parameters
    ----------
    path : str or Path
    skip_unreadable : bool, default=False
        Whether the schema is that of the first file that can be read.

    Attributes
    ----------
    path : Path
        Absolute, for workers in other directories.
    partitions : tuple of Partition
        The files, as they were when they were listed.
    schema : pyarrow.Schema
        That of the first file; others are compared with it when they are opened.

    Raises
    ------
    TableFileError
        If there is no such folder, no file in it, or one that is not a table.
    """

    def __init__(self, path: str | Path, *, skip_unreadable: bool = False) -> None:
        self.name = str(path)
        self.path = Path(path).absolute()
        self.partitions = list_files(Path(path))
        self.schema = self._first_schema(skip_unreadable)

    def __repr__(self) -> str:
        return (
            f"<FolderTable: {len(self.schema)} columns in {len(self.partitions)} files "
            f"of {self.path}>"
        )

    def _first_schema(self, skip_unreadable: bool) -> pa.Schema:
        """Return the schema of the first file that can be read.

        Without ``skip_unreadable``, or if there is none, raise the first file's error.
        """
        problems: list[TableFileError] = []
        for partition in self.partitions:
            try:
                return TableFile(partition.path).schema
            except TableFileError as error:
                problems.append(error)
                if not skip_unreadable:
                    break
        raise problems[0]

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield batches of some columns, None for all, of one file after another."""
        names = self.schema.names if columns is None else list(columns)
        schema = pa.schema(
            [self.schema.field(name) for name in names if name in self.schema.names],
            self.schema.metadata,
        )
        for file in self.files():
            for batch in file.batches(names):
                if names:
                    # Metadata of the files may differ.
                    batch = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
                yield batch

    def files(self) -> Iterator[TableFile]:
        """Yield the files as tables; refuse one with other columns than the first."""
        return (open_file(partition, self.schema) for partition in self.partitions)


def list_files(folder: Path) -> tuple[Partition, ...]:
    """Return the Parquet and Arrow files of a folder by name; refuse other tables."""
    try:
        found = sorted(path for path in folder.iterdir() if path.is_file())
    except FileNotFoundError:
        raise TableFileError(f"there is no folder {folder}") from None
    except OSError as error:
        raise TableFileError(f"cannot read {folder}: {error.strerror}") from None
    files = []
    for path in found:
        if path.name[0] in "._":
            continue
        kind = FORMATS.get(path.suffix.lower())
        if kind in _TYPED:
            files.append(path)
        elif kind is not None:
            raise TableFileError(
                f"{path}: a folder is read as one table if its files are Parquet or "
                "Arrow, which state their types; convert this one, or move it to "
                "another folder"
            )
    if not files:
        raise TableFileError(
            f"there are no Parquet or Arrow files in {folder}; folders inside it are "
            "not looked into"
        )
    return tuple(Partition.from_path(path.absolute()) for path in files)


def as_table(table: Any, skip_unreadable: bool = False) -> Table:
    """Return a path, Arrow table, data frame or table as one that gives batches."""
    if isinstance(table, TableFile | MemoryTable | FolderTable):
        return table
    if isinstance(table, str | Path):
        if Path(table).is_dir():
            return FolderTable(table, skip_unreadable=skip_unreadable)
        if not Path(table).suffix and not Path(table).exists():
            raise TableFileError(f"there is no file or folder {table}")
        return TableFile(table)
    if isinstance(table, pa.Table):
        return MemoryTable(table)
    return MemoryTable(_arrow_of_frame(table))


def rows_of(table: Table) -> tuple[Rows, ...]:
    """Return ``Rows`` that read a table: one, or of a folder one for each file."""
    if isinstance(table, MemoryTable):
        return (MemoryRows(table, 0, table.table.num_rows),)
    if isinstance(table, FolderTable):
        return tuple(FileRows(one, schema=table.schema) for one in table.partitions)
    assert isinstance(table, TableFile)
    return (FileRows(Partition.from_path(table.path.absolute()), table=table),)


def first_cells(table: Table, name: str | None) -> Cells | None:
    """Return the cells of a column in the first batch; None without column or rows."""
    for rows in rows_of(table) if name in table.schema.names else ():
        assert name is not None
        for batch in rows.batches([name]):
            return batch[name]
    return None


def hold_in_memory(
    table: Table,
    rows: Sequence[Rows],
    names: Sequence[str],
    memory: int,
    told: Callable[[int], object],
) -> tuple[Table, list[int] | None]:
    """Read columns into memory; return their table and row counts, one for each source.

    ``rows`` are the sources of the table.  Where columns ``names`` take more than
    ``memory`` bytes, return the table itself, and None.  A table in memory is returned
    as it is.  ``told`` is called with the number of rows of each batch.
    """
    if isinstance(table, MemoryTable):
        return table, [table.table.num_rows]
    pieces: list[pa.RecordBatch] = []
    n_bytes, n_rows = 0, []
    for source in rows:
        n_rows.append(0)
        for batch in source.batches(names):
            n_bytes += data_bytes(batch.rows)
            if n_bytes > memory:
                return table, None
            n_rows[-1] += len(batch)
            told(len(batch))
            pieces.append(batch.rows)
    schema = pa.schema([table.schema.field(name) for name in names])
    found = pa.Table.from_batches([piece.cast(schema) for piece in pieces], schema)
    return MemoryTable(found, table.name), n_rows


def _arrow_of_frame(frame: Any) -> pa.Table:
    """Return a data frame (pandas, polars) as an Arrow table; refuse anything else."""
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
