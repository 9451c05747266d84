"""The plan of gathering a folder: how many files, and how many buckets."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from variegate._version import __version__
from variegate.partitions import Partition
from variegate.tables.folder.files import FolderTable
from variegate.tables.folder.shuffle import keys_of
from variegate.tables.reading import TableFile, data_bytes
from variegate.tables.table import TableError

#: Buckets that rows are dealt out to at a time, unless more files are asked for.
_MOST_BUCKETS = 256

#: The share of memory that rows take: they are there twice while they are put in order,
#: and a file that is written needs some.
_SHARE = 5

#: The most bytes of rows in order at a time; Arrow counts those of a text in 32 bits.
_MOST_BYTES = 2**30

#: Files that are looked into to tell how large a row is.
_LOOKED_INTO = 8

#: Types that Arrow puts in no order, and those that hold the same.
_STORED = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


@dataclass(frozen=True)
class Plan:
    """Parameters of both passes; small, as it is sent with every call.

    ``hidden`` is the folder of intermediate files, ``memory`` the most bytes of rows to
    put in order at a time.
    """

    hidden: Path
    schema: pa.Schema
    suffix: str
    group: str
    n_files: int
    buckets_a_file: int
    n_bytes: int
    memory: int

    @classmethod
    def of(
        cls,
        table: FolderTable,
        out: Path,
        group: str,
        n_files: int | None,
        rows_a_file: int | None,
        memory: int,
    ) -> Plan:
        """Look at the files, and refuse those that cannot be gathered."""
        _check_columns(table, group)
        files = list(table.parts())
        n_rows = sum(map(_n_rows, files))
        if n_files is None:
            n_files = len(files) if rows_a_file is None else -(-n_rows // rows_a_file)
        n_files = max(n_files, 1)
        n_bytes = int(n_rows * _bytes_a_row(files))
        share = min(max(memory // _SHARE, 1), _MOST_BYTES)
        # Half as many again, for some buckets are larger than others.
        wanted = -(-3 * n_bytes // (2 * share * n_files))
        out = out.resolve()
        return cls(
            hidden=out.with_name(f".{out.name}.gathering"),
            schema=_common(files),
            suffix=files[0].path.suffix,
            group=group,
            n_files=n_files,
            buckets_a_file=max(min(wanted, _MOST_BUCKETS // n_files), 1),
            n_bytes=n_bytes,
            memory=share,
        )

    @property
    def stored_schema(self) -> pa.Schema:
        """The columns by types that Arrow can put in order."""
        return _stored(self.schema)

    @property
    def dealt(self) -> Path:
        """Where rows lie that are dealt out."""
        return self.hidden / "dealt"

    def dealt_from(self, number: int) -> tuple[Path, Path]:
        """Return where the rows of a file lie that are dealt out, and their index."""
        path = self.dealt / f"{number:05}.arrow"
        return path, path.with_suffix(".npy")

    @property
    def files(self) -> Path:
        """Where the files are written."""
        return self.hidden / "files"

    def name_of(self, number: int) -> str:
        """Return the name of a file."""
        return f"part-{number:05}{self.suffix}"

    def identity(self, partitions: Sequence[Partition]) -> dict[str, Any]:
        """Return all that finished steps depend on, as plain values."""
        read = [[p.path, p.n_bytes, p.modified_ns] for p in partitions]
        return {
            "variegate": __version__,
            "group": self.group,
            "files": self.n_files,
            "buckets": self.buckets_a_file,
            "memory": self.memory,
            "read": hashlib.sha256(repr(read).encode()).hexdigest(),
        }


def _check_columns(table: FolderTable, group: str) -> None:
    names = table.schema.names
    if group not in names:
        raise TableError(
            f"{table.name} has no column {group!r}; it has "
            f"{', '.join(map(repr, names))}"
        )
    # No rows are read: what is wrong with a type is wrong with none of them.
    keys_of(pa.array([], table.schema.field(group).type), group)
    for field in _stored(table.schema):
        try:
            pa.nulls(1, field.type).take(pa.array([0]))
        except pa.ArrowNotImplementedError:
            raise TableError(
                f"column {field.name!r} holds {field.type} values, which Arrow cannot "
                "put in another order; convert it"
            ) from None


def _common(files: Sequence[TableFile]) -> pa.Schema:
    """Return the columns of the first file; empty cells are allowed where any does."""
    schema = files[0].schema
    for place, field in enumerate(schema):
        if any(file.schema.field(field.name).nullable for file in files):
            schema = schema.set(place, field.with_nullable(True))
    return schema


def _stored(schema: pa.Schema) -> pa.Schema:
    fields = [field.with_type(_STORED.get(field.type, field.type)) for field in schema]
    return pa.schema(fields, schema.metadata)


def _n_rows(file: TableFile) -> int:
    if file.n_rows is not None:
        return file.n_rows
    return sum(batch.num_rows for batch in file.batches(file.schema.names[:1]))


def _bytes_a_row(files: Sequence[TableFile]) -> float:
    """Return how much memory a row takes, by the first rows of some files."""
    n_rows = n_bytes = 0
    for file in files[:: -(-len(files) // _LOOKED_INTO)]:
        batch = next(file.batches(), None)
        if batch is not None:
            n_rows += batch.num_rows
            n_bytes += data_bytes(batch)
    return n_bytes / max(n_rows, 1)
