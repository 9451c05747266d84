"""Rows shuffled to buckets, each of which holds all rows of consecutive groups.

The rows of each file are collected until they fill the memory that is allowed, then
written bucket by bucket: one file of Arrow batches holds the rows of all buckets, in
slices, and those of a bucket are read back in the order of the table.  The first two
columns of a slice are the numbers of groups and rows in the table.

A bucket is sorted in memory when it is read, so callers cut buckets that fit.  One of a
single group needs no sorting, however large.
"""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from variegate._progress import StageProgress, ignore
from variegate._typing import AnyArray, IntArray
from variegate.partitions import Engine
from variegate.tables.batches import data_bytes
from variegate.tables.cells import Batch
from variegate.tables.errors import TableError
from variegate.tables.rows import (
    GroupIndex,
    RowReader,
    Rows,
    map_rows,
    sortable_schema,
)
from variegate.tables.writing import table_writer

#: A slice: its bucket, the number of its rows, and of its batch in the file.
_SLICE = np.dtype([("bucket", "i8"), ("rows", "i8"), ("place", "i8")])

#: Bytes of the two numbers that are stored with each row.
NUMBERS_BYTES = 16


@dataclass(frozen=True, eq=False)
class Deal:
    """The rows of a file, its first row in the table, and numbers of its groups."""

    rows: Rows
    first_row: int
    numbers: IntArray


@dataclass(frozen=True, eq=False)
class BucketSlices:
    """Slices of a file of buckets: an array of ``_SLICE``, rows of one bucket each."""

    path: str
    slices: AnyArray

    @property
    def n_rows(self) -> int:
        """The number of rows in all slices."""
        return int(self.slices["rows"].sum())

    def of_buckets(self, first: int, end: int) -> BucketSlices:
        """Return the slices of buckets ``first`` to ``end - 1``."""
        buckets = self.slices["bucket"]
        wanted = (buckets >= first) & (buckets < end)
        return BucketSlices(self.path, self.slices[wanted])

    def batches(self, names: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield slices: group numbers, row numbers, then columns ``names`` or all."""
        if not len(self.slices):
            return
        with pa.OSFile(self.path) as file, ipc.open_file(file) as reader:
            for place in self.slices["place"].tolist():
                batch = reader.get_batch(place)
                if names is not None:
                    batch = batch.select([*batch.schema.names[:2], *names])
                yield batch


def numbered_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the numbers "group" and "row" before other columns."""
    for name in ("row", "group"):
        while name in schema.names:
            name += "_"
        schema = schema.insert(0, pa.field(name, pa.int64()))
    return schema


def write_buckets(
    batches: Iterable[tuple[pa.RecordBatch, IntArray]],
    path: Path,
    schema: pa.Schema,
    bounds: IntArray,
    first_row: int,
    memory: int,
) -> BucketSlices:
    """Write rows to a file, by bucket; it appears whole or not at all.

    With each batch come the group numbers of its rows; ``first_row`` is the number in
    the table of the first row.  Bucket k takes groups from ``bounds[k]`` to
    ``bounds[k + 1]``; ``memory`` is the most bytes to hold.
    """
    slices: list[tuple[int, int, int]] = []
    numbered = numbered_schema(schema)
    with table_writer(path, numbered) as write:
        for held, numbers in _collect_batches(batches, memory):
            rows = np.arange(first_row, first_row + len(numbers))
            first_row += len(numbers)
            buckets = np.searchsorted(bounds, numbers, side="right") - 1
            order = np.argsort(buckets, kind="stable")
            table = reorder_rows(held, schema, order)
            numbers, buckets, rows = numbers[order], buckets[order], rows[order]
            ends = [0, *(np.flatnonzero(np.diff(buckets)) + 1).tolist(), len(buckets)]
            for first, end in pairwise(ends):
                part = table.slice(first, end - first)
                counted = (pa.array(numbers[first:end]), pa.array(rows[first:end]))
                write(pa.record_batch([*counted, *part.columns], schema=numbered))
                slices.append((int(buckets[first]), end - first, len(slices)))
    return BucketSlices(str(path), np.array(slices, dtype=_SLICE))


def _collect_batches(
    batches: Iterable[tuple[pa.RecordBatch, IntArray]], memory: int
) -> Iterator[tuple[list[pa.RecordBatch], IntArray]]:
    """Yield lists of batches of up to ``memory`` bytes, with group numbers of rows."""
    held: list[pa.RecordBatch] = []
    numbers: list[IntArray] = []
    n_bytes = 0
    for batch, numbers_here in batches:
        size = data_bytes(batch)
        if held and n_bytes + size > memory:
            yield held, np.concatenate(numbers)
            held, numbers, n_bytes = [], [], 0
        held.append(batch)
        numbers.append(numbers_here)
        n_bytes += size
    if held:
        yield held, np.concatenate(numbers)


def reorder_rows(
    batches: list[pa.RecordBatch], schema: pa.Schema, order: IntArray
) -> pa.RecordBatch:
    """Concatenate batches and return their rows in the given order, as one batch.

    ``order`` holds row positions in the concatenation.  The list ``batches`` is
    emptied; columns are copied and released one at a time, to save memory.
    """
    columns = [
        list(column) for column in zip(*(b.columns for b in batches), strict=True)
    ]
    batches.clear()
    indices = pa.array(order)
    taken = []
    for column in schema:
        parts = columns.pop(0)
        whole = _concat_arrays(parts, column)
        parts.clear()
        taken.append(whole.take(indices))
    # The allocator keeps freed memory for the next bucket, but not for others.
    with suppress(NotImplementedError):
        pa.default_memory_pool().release_unused()
    return pa.RecordBatch.from_arrays(taken, schema=schema)


def _concat_arrays(parts: list[Any], column: pa.Field) -> Any:
    """Concatenate Arrow arrays of one column; TableError if a dictionary overflows."""
    if len(parts) == 1:
        return parts[0]
    try:
        return pa.concat_arrays(parts)
    except pa.ArrowInvalid as error:
        if not pa.types.is_dictionary(column.type):
            raise
        raise TableError(
            f"column {column.name!r} has more different values in all files than its "
            f"type, {column.type}, can number: store it as plain values"
        ) from error


def read_bucket(
    pieces: Sequence[BucketSlices], names: Sequence[str] | None = None
) -> pa.RecordBatch | None:
    """Return the rows of a bucket by group, in table order within each; None if empty.

    ``pieces`` hold its slices, in the order of files.  Columns are as in ``batches``.
    """
    batches = [batch for piece in pieces for batch in piece.batches(names)]
    if not batches:
        return None
    numbers = np.concatenate([batch.column(0).to_numpy() for batch in batches])
    order = np.argsort(numbers, kind="stable")
    return reorder_rows(batches, batches[0].schema, order)


def file_bounds(
    sizes: IntArray, n_files: int, rows_a_bucket: int
) -> tuple[IntArray, list[int]]:
    """Cut groups into files of about equal numbers of rows, and these into buckets.

    ``sizes`` are the rows of each group.  A bucket has one group or at most
    ``rows_a_bucket`` rows.  Return the first group of each bucket, then the number of
    groups; and the first bucket of each file, then the number of buckets.
    """
    ends = np.cumsum(sizes)
    n_rows = int(ends[-1]) if len(ends) else 0
    wanted = np.arange(1, n_files) * (n_rows / n_files)
    files = np.unique([0, *(np.searchsorted(ends, wanted) + 1), len(sizes)])
    files = files[files <= len(sizes)]
    bounds: list[int] = []
    starts: list[int] = []
    for first, end in pairwise(files.tolist()):
        starts.append(len(bounds))
        buckets = run_bounds(sizes[first:end], rows_a_bucket)
        bounds += [first + place for place in buckets[:-1]]
    return np.array([*bounds, len(sizes)]), [*starts, len(bounds)]


def run_bounds(weights: AnyArray, most: float) -> list[int]:
    """Return bounds, from 0 to the end, of runs with a sum of at most ``most``.

    A single weight above ``most`` is a run.
    """
    ends, bounds, first = np.cumsum(weights), [0], 0.0
    while bounds[-1] < len(weights):
        end = int(np.searchsorted(ends, first + most, "right"))
        bounds.append(max(end, bounds[-1] + 1))
        first = float(ends[bounds[-1] - 1])
    return bounds


# The partitions of a table whose groups are scattered ---------------------------------


@dataclass(frozen=True)
class BucketRows:
    """The rows of bucket ``number`` in order of groups; ``path`` is for messages."""

    path: str
    pieces: tuple[BucketSlices, ...] = field(compare=False, repr=False)
    number: int

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield columns ``names`` of the rows as one batch; none of an empty bucket."""
        rows = read_bucket(self.pieces, names)
        if rows is not None:
            numbers = rows.column(1).to_numpy()
            yield Batch(rows.select(list(names)), numbers=numbers)

    def check_unchanged(self) -> None:
        """Do nothing: the file was checked when its rows were dealt out."""


class ShuffledTable:
    """Buckets on disk, whose files in ``folder`` are deleted with this object.

    Of a local engine, they are opened and deleted at once, where the system allows it.
    """

    def __init__(
        self, folder: Path, dealt: Sequence[BucketSlices], is_local: bool
    ) -> None:
        self._dealt = list(dealt)
        if is_local and Path("/proc/self/fd").is_dir():
            # Without a name, files go with the process, however that ends.
            descriptors = [os.open(piece.path, os.O_RDONLY) for piece in dealt]
            self._dealt = [
                BucketSlices(f"/proc/self/fd/{number}", piece.slices)
                for number, piece in zip(descriptors, dealt, strict=True)
            ]
            for number in descriptors:
                weakref.finalize(self, os.close, number)
            _remove_folder(folder)
        else:
            weakref.finalize(self, _remove_folder, folder)

    def bucket(self, number: int) -> tuple[BucketSlices, ...]:
        """Return the slices of bucket ``number``, by file that has rows of it."""
        found = (piece.of_buckets(number, number + 1) for piece in self._dealt)
        return tuple(piece for piece in found if len(piece.slices))


def _remove_folder(folder: Path) -> None:
    """Delete the files of a folder, and the folder if it is then empty."""
    for path in folder.glob("*"):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def shuffle(
    deals: Sequence[Deal],
    bounds: IntArray,
    reader: RowReader,
    *,
    engine: Engine,
    folder: Path | None,
    memory: int,
    progress: StageProgress,
    total: int,
) -> tuple[ShuffledTable, list[tuple[Rows, ...]]]:
    """Deal rows of files out to buckets; return these, and the ``Rows`` of each.

    Bucket k takes groups from ``bounds[k]`` to ``bounds[k + 1]``.  ``folder`` is one
    that all workers see; None stands for a temporary one of this process.  ``memory``
    is in bytes a process; ``total`` is the number of rows, for the progress.
    """
    place = Path(tempfile.mkdtemp(prefix="variegate-")) if folder is None else folder
    if folder is not None:
        _remove_folder(folder)
        folder.mkdir(exist_ok=True)
    # Rows are held twice while they are put in order.
    memory = max(memory // 4, 1)
    work = partial(deal_out, reader=reader, bounds=bounds, folder=place, memory=memory)
    full = (
        f"there is no room for temporary files in {place.parent}: set TMPDIR to a "
        "folder on another disk, or allow more memory"
    )
    try:
        with explain_full_disk(full):
            items = list(enumerate(deals))
            dealt = list(map_rows(engine, work, items, progress, total))
    except BaseException:
        _remove_folder(place)
        raise
    shuffled = ShuffledTable(place, dealt, folder is None)
    rows: list[tuple[Rows, ...]] = [
        (BucketRows(deals[0].rows.path, shuffled.bucket(k), k),)
        for k in range(len(bounds) - 1)
    ]
    return shuffled, rows


def deal_out(
    item: tuple[int, Deal],
    reader: RowReader,
    bounds: IntArray,
    folder: Path,
    memory: int,
    told: Callable[[int], object] = ignore,
) -> BucketSlices:
    """Write the rows of a file by bucket to a file in ``folder``; return its slices.

    ``item`` is the number of the file and its deal; bucket k takes groups from
    ``bounds[k]`` to ``bounds[k + 1]``.  ``told`` gets the number of rows of each batch.
    """
    number, deal = item
    index, group = GroupIndex(), reader.columns.group
    stored = sortable_schema(reader.schema)

    def batches() -> Iterator[tuple[pa.RecordBatch, IntArray]]:
        """Yield the batches of the file with the group numbers of their rows."""
        for batch in deal.rows.batches(stored.names):
            numbers = deal.numbers[index.numbers(batch, group)]
            yield batch.rows.cast(stored), numbers
            told(len(batch))

    deal.rows.check_unchanged()
    path = folder / f"{number:05}.arrow"
    pieces = write_buckets(batches(), path, stored, bounds, deal.first_row, memory)
    deal.rows.check_unchanged()
    return pieces


@contextmanager
def explain_full_disk(message: str) -> Iterator[None]:
    """Raise an OSError with this message where the block finds the disk full."""
    try:
        yield
    except OSError as error:
        cause = error.__cause__ or error
        full = (errno.ENOSPC, errno.EDQUOT)
        if isinstance(cause, OSError) and cause.errno in full:
            raise OSError(message) from error
        raise
