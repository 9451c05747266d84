"""The rows of each group brought together, a bucket in memory at a time.

A bucket that is too large for memory is dealt out again, to smaller ranges of hashes.
One that is all of one group needs no sorting, however large: its rows are there in the
order in which they came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate._typing import IntArray
from variegate.tables.folder.dealing import Pieces, deal_out, rearranged
from variegate.tables.folder.keys import HashArray, keys_of
from variegate.tables.table import TableError

__all__ = ["Merging"]

#: Buckets that one is dealt out to again, at most.
_MOST_BUCKETS = 64

#: Hashes that are looked at to divide a bucket.
_LOOKED_AT = 2**16


@dataclass
class Merging:
    """Brings groups together, and counts them.

    Groups come in the order of their hashes, the rows of a group in that of the pieces.

    Parameters
    ----------
    schema : pyarrow.Schema
    group : str
        The column of groups.
    memory : int
        The most bytes of rows to hold.
    folder : Path
        Where files may lie for a while.
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
        again = deal_out(rows, path, self.schema, bounds, self.memory)
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
                    # Of 64 bits: never, unless somebody wants it to happen.
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
