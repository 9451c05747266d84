"""A folder of Parquet or Arrow files that is one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from variegate.partitions import (
    Partition,
    PartitionError,
    UnreadablePartitionError,
)
from variegate.tables.file_errors import TableFileError
from variegate.tables.reading import FORMATS, TableFile

#: Formats of the files in a folder: those that state their types.
_TYPED = ("parquet", "arrow")


class FolderTable:
    """The files of a folder, in the order of their names, read as one table.

    Files are those whose suffix stands for Parquet or Arrow; names that begin with
    ``.`` or ``_``, folders inside, and files that are not tables are passed over.  All
    files have the same columns of the same types, in any order.

    Parameters
    ----------
    path : str or Path
    skip_unreadable : bool, default=False
        Whether the schema may be that of the first file that can be read, if the first
        cannot.

    Attributes
    ----------
    path : Path
    partitions : tuple of Partition
        The files, as they were when they were listed.
    schema : pyarrow.Schema
        That of the first file; others are compared with it when they are opened.

    Raises
    ------
    TableFileError
        If there is no such folder, no file in it, or one that is no table.
    """

    is_untyped = False

    def __init__(self, path: str | Path, *, skip_unreadable: bool = False) -> None:
        self.path = Path(path)
        self.partitions = list_files(self.path)
        self.schema = self._first_schema(skip_unreadable)

    def __repr__(self) -> str:
        return (
            f"<FolderTable: {len(self.schema)} columns in {len(self.partitions)} files "
            f"of {self.path}>"
        )

    @property
    def name(self) -> str:
        """The name in messages."""
        return str(self.path)

    def _first_schema(self, skip_unreadable: bool) -> pa.Schema:
        problem: Exception | None = None
        for partition in self.partitions:
            try:
                return TableFile(partition.path).schema
            except TableFileError as error:
                problem = problem or error
                if not skip_unreadable:
                    break
        assert problem is not None  # there are files in a folder
        raise problem

    def check(self) -> None:
        """Open every file, and refuse one that has other columns."""
        for partition in self.partitions:
            self._open(partition)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield some columns, or all, of one file after another, in batches."""
        names = self.schema.names if columns is None else list(columns)
        schema = pa.schema(
            [self.schema.field(name) for name in names if name in self.schema.names],
            self.schema.metadata,
        )
        for partition in self.partitions:
            for batch in self._open(partition).batches(names):
                if names:
                    # What files say beside the types may differ.
                    batch = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
                yield batch

    def parts(self) -> Iterator[TableFile]:
        """Yield the files, each a table by itself."""
        return map(self._open, self.partitions)

    def _open(self, partition: Partition) -> TableFile:
        try:
            return open_file(partition, self.schema)
        except PartitionError as error:
            raise TableFileError(str(error)) from error


def as_folder(folder: str | Path | FolderTable, skip_unreadable: bool) -> FolderTable:
    """Return a folder, by its absolute path, for workers in other directories."""
    if isinstance(folder, FolderTable):
        return folder
    return FolderTable(Path(folder).absolute(), skip_unreadable=skip_unreadable)


def list_files(folder: Path) -> tuple[Partition, ...]:
    """Return the Parquet and Arrow files of a folder, sorted by name."""
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
                "Arrow, which state their types; convert this one, or put it elsewhere"
            )
    if not files:
        raise TableFileError(
            f"there are no Parquet or Arrow files in {folder}; folders inside it are "
            "not looked into"
        )
    try:
        return tuple(map(Partition.of, files))
    except PartitionError as error:
        raise TableFileError(str(error)) from error


def open_file(partition: Partition, schema: pa.Schema | None = None) -> TableFile:
    """Open the file of a partition, which must be as it was listed.

    Raises a ``PartitionError`` if it has changed, cannot be read, or has other columns
    than ``schema``, if one is given.
    """
    partition.check_unchanged()
    try:
        table = TableFile(partition.path)
    except TableFileError as error:
        raise unreadable(partition, error) from error
    difference = "" if schema is None else _difference(table.schema, schema)
    if difference:
        raise PartitionError(
            partition.path,
            f"{difference}: all files of a folder must have the same columns",
        )
    return table


def unreadable(partition: Partition, error: TableFileError) -> UnreadablePartitionError:
    """Return the error of a damaged file, in the words of its reader."""
    said = str(error)
    for known in (f"{partition.path}: ", f"{partition.path} "):
        said = said.removeprefix(known)
    return UnreadablePartitionError(partition.path, f"cannot be read: {said}")


def _difference(found: pa.Schema, expected: pa.Schema) -> str:
    """Return the first thing in which a file differs from the first of a folder."""
    for name in expected.names:
        if name not in found.names:
            return f"has no column {name!r}, which the first file has"
        here, there = found.field(name).type, expected.field(name).type
        if here != there:
            return f"holds {here} in column {name!r}, where the first file has {there}"
    for name in found.names:
        if name not in expected.names:
            return f"has a column {name!r}, which the first file has not"
    return ""
