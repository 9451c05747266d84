"""Rows dealt out to buckets, each a range of the hashes of groups.

All rows of a group have one hash, so they are dealt to one bucket.  Rows are collected
until they fill the memory that is allowed, then written bucket by bucket; so one file
holds the rows of all buckets, in slices, and those of a bucket are read back from it in
the order in which they came.  Slices are Arrow batches whose first column is the hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from variegate._typing import AnyArray, IntArray
from variegate.tables.folder.keys import HashArray
from variegate.tables.reading import data_bytes
from variegate.tables.table import TableError
from variegate.tables.writing import table_writer

__all__ = ["Pieces", "deal_out", "even_bounds", "hashed_schema", "rearranged"]

#: A slice: its bucket, and how many rows and bytes it has.
_SLICE = np.dtype([("bucket", "i8"), ("rows", "i8"), ("bytes", "i8")])

#: Rows of some table, each with the hash of its group.
Hashed = tuple[pa.RecordBatch, HashArray]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Slices of a file of rows that were dealt out: small, so that it can be sent.

    ``places`` are the numbers of the batches in the file.
    """

    path: str
    slices: AnyArray
    places: IntArray

    @property
    def n_bytes(self) -> int:
        """How much memory the rows take."""
        return int(self.slices["bytes"].sum())

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.slices["rows"].sum())

    def of(self, first: int, end: int) -> Pieces:
        """Return the slices of some buckets."""
        buckets = self.slices["bucket"]
        wanted = (buckets >= first) & (buckets < end)
        return Pieces(self.path, self.slices[wanted], self.places[wanted])

    def batches(self) -> Iterator[Hashed]:
        """Read the rows, a slice at a time."""
        if not len(self.places):
            return
        with pa.OSFile(self.path) as file, ipc.open_file(file) as reader:
            for place in self.places.tolist():
                batch = reader.get_batch(place)
                yield batch.select(batch.schema.names[1:]), _as_hashes(batch)

    def hashes(self) -> Iterator[HashArray]:
        """Read the hashes alone."""
        if not len(self.places):
            return
        options = ipc.IpcReadOptions(included_fields=[0])
        with pa.OSFile(self.path) as file, ipc.open_file(file, options=options) as rows:
            for place in self.places.tolist():
                yield _as_hashes(rows.get_batch(place))


def _as_hashes(batch: pa.RecordBatch) -> HashArray:
    hashes: HashArray = batch.column(0).to_numpy()
    return hashes


def even_bounds(n_buckets: int) -> HashArray:
    """Return where buckets that divide all hashes evenly begin, the first left out."""
    # In whole numbers: a quarter of eight is a half of four, to the last bit.
    starts = [-(-(bucket << 64) // n_buckets) for bucket in range(1, n_buckets)]
    return np.array(starts, dtype=np.uint64)


def hashed_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a table and, before them, one for the hash."""
    name = "hash"
    while name in schema.names:
        name += "_"
    return schema.insert(0, pa.field(name, pa.uint64()))


def deal_out(
    rows: Iterable[Hashed],
    path: Path,
    schema: pa.Schema,
    bounds: HashArray,
    memory: int,
) -> Pieces:
    """Write rows to a file, by bucket; it appears whole or not at all.

    Bucket k takes hashes from ``bounds[k - 1]`` on, up to ``bounds[k]``; ``memory`` is
    the most bytes of rows to hold.
    """
    slices: list[tuple[int, int, int]] = []
    with table_writer(path, hashed_schema(schema)) as write:
        for batch, hashes in _collected(rows, memory):
            buckets = np.searchsorted(bounds, hashes, side="right")
            order = np.argsort(buckets, kind="stable")
            table = rearranged(batch, schema, order)
            hashes, buckets = hashes[order], buckets[order]
            ends = [0, *(np.flatnonzero(np.diff(buckets)) + 1).tolist(), len(buckets)]
            for first, end in pairwise(ends):
                part = table.slice(first, end - first)
                columns = [pa.array(hashes[first:end]), *part.columns]
                write(pa.record_batch(columns, schema=hashed_schema(schema)))
                slices.append((int(buckets[first]), end - first, data_bytes(part)))
    index = np.array(slices, dtype=_SLICE)
    return Pieces(str(path), index, np.arange(len(index)))


def _collected(
    rows: Iterable[Hashed], memory: int
) -> Iterator[tuple[list[pa.RecordBatch], HashArray]]:
    """Yield as many rows at a time as memory holds."""
    batches: list[pa.RecordBatch] = []
    hashes: list[HashArray] = []
    n_bytes = 0
    for batch, hashes_here in rows:
        size = data_bytes(batch)
        if batches and n_bytes + size > memory:
            yield batches, np.concatenate(hashes)
            batches, hashes, n_bytes = [], [], 0
        batches.append(batch)
        hashes.append(hashes_here)
        n_bytes += size
    if batches:
        yield batches, np.concatenate(hashes)


def rearranged(
    batches: list[pa.RecordBatch], schema: pa.Schema, order: IntArray
) -> pa.RecordBatch:
    """Return rows in another order, as one batch; ``batches`` is emptied.

    A column at a time, so that only one is held twice.
    """
    columns = [
        list(column) for column in zip(*(b.columns for b in batches), strict=True)
    ]
    batches.clear()
    indices = pa.array(order)
    taken = []
    for field in schema:
        parts = columns.pop(0)
        whole = _as_one(parts, field)
        parts.clear()
        taken.append(whole.take(indices))
    # What a small bucket leaves free is of use to the next, but not to others.
    with suppress(NotImplementedError):
        pa.default_memory_pool().release_unused()
    return pa.RecordBatch.from_arrays(taken, schema=schema)


def _as_one(parts: list[Any], field: pa.Field) -> Any:
    if len(parts) == 1:
        return parts[0]
    try:
        return pa.concat_arrays(parts)
    except pa.ArrowInvalid as error:
        if not pa.types.is_dictionary(field.type):
            raise
        raise TableError(
            f"column {field.name!r} has more different values in all files than its "
            f"type, {field.type}, can number: store it as plain values"
        ) from error
