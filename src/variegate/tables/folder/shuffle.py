"""Rows shuffled to buckets by the hash of their group, and groups put together.

All rows of a group have one hash, so they go to one bucket, which takes a range of
hashes.  Rows are collected until they fill the memory that is allowed, then written
bucket by bucket; so one file holds the rows of all buckets, in slices, and those of a
bucket are read back from it in the order in which they came.  Slices are Arrow batches
whose first column is the hash.

Then the groups of one bucket at a time are put together in memory.  A bucket that is
too large is shuffled again, to smaller ranges of hashes.  One that is all of one group
needs no sorting, however large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

from variegate._typing import AnyArray, IntArray
from variegate.linalg.compiled import read_only
from variegate.linalg.compiled.hashing import text_hashes
from variegate.tables.cells import Cells
from variegate.tables.columns import is_text
from variegate.tables.reading import data_bytes
from variegate.tables.table import TableError
from variegate.tables.writing import table_writer

HashArray = npt.NDArray[np.uint64]

#: Buckets that one is shuffled to again, at most.
_MOST_BUCKETS = 64

#: Hashes that are looked at to divide a bucket.
_LOOKED_AT = 2**16

#: A slice: its bucket, and how many rows and bytes it has.
_SLICE = np.dtype([("bucket", "i8"), ("rows", "i8"), ("bytes", "i8")])

#: Rows of some table, each with the hash of its group.
Hashed = tuple[pa.RecordBatch, HashArray]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Slices of a file of buckets; ``places`` are the numbers of their batches."""

    path: str
    slices: AnyArray
    places: IntArray

    @property
    def n_bytes(self) -> int:
        """The bytes of the rows in memory."""
        return int(self.slices["bytes"].sum())

    @property
    def n_rows(self) -> int:
        """The number of rows."""
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


def write_buckets(
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
    for column in schema:
        parts = columns.pop(0)
        whole = _as_one(parts, column)
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


# Groups put together ------------------------------------------------------------------


@dataclass
class Merging:
    """Puts groups together, and counts them.

    Groups come in the order of their hashes, the rows of a group in that of the pieces.
    At most ``memory`` bytes of rows are held; ``folder`` is for temporary files.
    """

    schema: pa.Schema
    group: str
    memory: int
    folder: Path
    n_rows: int = field(default=0, init=False)
    n_groups: int = field(default=0, init=False)

    def batches(self, pieces: Sequence[Pieces]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a bucket, group by group."""
        n_bytes = sum(piece.n_bytes for piece in pieces)
        if n_bytes <= self.memory:
            yield from self._sorted(pieces)
            return
        sample = _sample(pieces)
        if sample[0] == sample[-1]:
            yield from self._of_one_group(pieces)
            return
        n_buckets = min(int(2 * n_bytes // self.memory) + 1, _MOST_BUCKETS)
        bounds = _bounds(sample, n_buckets)
        path = self.folder / f"again-{uuid4().hex[:8]}.arrow"
        rows = chain.from_iterable(piece.batches() for piece in pieces)
        again = write_buckets(rows, path, self.schema, bounds, self.memory)
        for bucket in range(len(bounds) + 1):
            yield from self.batches([again.of(bucket, bucket + 1)])
        path.unlink()

    def _sorted(self, pieces: Sequence[Pieces]) -> Iterator[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = []
        hashes: list[HashArray] = []
        for piece in pieces:
            for batch, hashes_here in piece.batches():
                batches.append(batch)
                hashes.append(hashes_here)
        if not batches:
            return
        keys = [keys_of(batch.column(self.group), self.group) for batch in batches]
        order, n_groups = _order(keys, np.concatenate(hashes))
        del keys, hashes
        self.n_groups += n_groups
        self.n_rows += len(order)
        yield rearranged(batches, self.schema, order)

    def _of_one_group(self, pieces: Sequence[Pieces]) -> Iterator[pa.RecordBatch]:
        name: Any = None
        self.n_groups += 1
        for piece in pieces:
            for batch, _ in piece.batches():
                names = pc.unique(keys_of(batch.column(self.group), self.group))
                name = names[0] if name is None else name
                if len(names) > 1 or names[0] != name:
                    # Of 64 bits: never, unless by intent.
                    raise TableError(
                        f"groups {name.as_py()!r} and {names[-1].as_py()!r} have the "
                        "same hash, and both are larger than memory: rename one"
                    )
                self.n_rows += batch.num_rows
                yield batch


def _order(keys: list[Any], hashes: HashArray) -> tuple[IntArray, int]:
    """Return the order that brings groups together, and how many they are.

    Groups stand in the order of their hashes; those of one hash, should there be any,
    in that of their first rows.
    """
    found = pc.dictionary_encode(pa.concat_arrays(keys))
    numbers = found.indices.to_numpy(zero_copy_only=False)
    n_groups = len(found.dictionary)
    hash_of_group = np.empty(n_groups, dtype=np.uint64)
    hash_of_group[numbers] = hashes
    rank = np.empty(n_groups, dtype=np.int64)
    rank[np.argsort(hash_of_group, kind="stable")] = np.arange(n_groups)
    return np.argsort(rank[numbers], kind="stable"), n_groups


def _sample(pieces: Sequence[Pieces]) -> HashArray:
    """Return some hashes of a bucket in order, lowest and highest among them."""
    step = max(sum(piece.n_rows for piece in pieces) // _LOOKED_AT, 1)
    found: list[HashArray] = []
    for piece in pieces:
        for hashes in piece.hashes():
            found += [hashes[::step], np.array([hashes.min(), hashes.max()])]
    return np.sort(np.concatenate(found))


def _bounds(sample: HashArray, n_buckets: int) -> HashArray:
    """Return where buckets begin that have about as many rows each.

    A group that is larger than that has a bucket of its own.  At least one bound is
    above the lowest hash and none above the highest, so that every bucket is smaller.
    """
    places = np.linspace(0, len(sample) - 1, n_buckets + 1).astype(np.int64)
    starts, times = np.unique(sample[places], return_counts=True)
    ends = starts[times > 1] + np.uint64(1)
    bounds = np.unique(np.concatenate([starts, ends]))
    inside: HashArray = bounds[(bounds > sample[0]) & (bounds <= sample[-1])]
    return inside


# Hashes, the same in all processes, as those of Python are not ------------------------


def keys_of(column: Any, name: str, first: int = 0) -> Any:
    """Return the key of the group of every row; ``first`` rows come before them.

    Keys are equal where groups are: 0.0 and -0.0 are one, dictionaries are looked up.
    Where a row has none, it is refused.
    """
    keys = Cells(column, name, first).keys()
    if pa.types.is_float16(keys.type):
        keys = keys.cast(pa.float32())
    return pc.add(keys, 0.0) if pa.types.is_floating(keys.type) else keys


def hashes_of(keys: Any) -> HashArray:
    """Return 64 bits for every key: equal for equal keys, for others nearly never."""
    kind = keys.type
    if pa.types.is_boolean(kind):
        keys = keys.cast(pa.uint8())
    elif pa.types.is_floating(kind):
        keys = keys.cast(pa.float64()).view(pa.uint64())
    elif pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        keys = keys.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    if pa.types.is_integer(keys.type):
        numbers = keys.to_numpy(zero_copy_only=False)
        return _mixed(numbers.astype(np.int64).view(np.uint64))
    return _mixed(_text_hashes(keys))


def _text_hashes(keys: Any) -> HashArray:
    if not (is_text(keys.type) or pa.types.is_binary(keys.type)):
        # Whatever else there is, such as decimals, differs where its text does.
        keys = pa.array([repr(key) for key in keys.to_pylist()], pa.large_string())
    texts = keys.cast(pa.large_binary())
    _, offsets, data = texts.buffers()
    window = slice(texts.offset, texts.offset + len(texts) + 1)
    places = (
        np.frombuffer(offsets, np.int64)[window] if len(texts) else np.zeros(1, int)
    )
    letters = np.frombuffer(data or b"", np.uint8)
    found: HashArray = text_hashes(read_only(letters), read_only(places))
    return found


def _mixed(values: HashArray) -> HashArray:
    """Return values whose bits all depend on all bits (the last step of SplitMix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: HashArray = values ^ (values >> np.uint64(31))
    return mixed
