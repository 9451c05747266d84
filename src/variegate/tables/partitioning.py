"""The partitions of a table: consecutive groups, with their rows."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from variegate._progress import StageProgress
from variegate._typing import BoolArray, IntArray
from variegate.files.run_store import RunStore
from variegate.partitions import Engine
from variegate.partitions.engine import is_local
from variegate.tables.columns import is_vector
from variegate.tables.counts import Counts
from variegate.tables.errors import TableError
from variegate.tables.rows import FileRows, GroupIndex, MemoryRows, RowReader, Rows
from variegate.tables.shuffle import run_bounds, shuffle

#: The most rows of a partition, pairs of rows of one group, and numbers of features;
#: and the most partitions, for which the others make room.
_ROWS, _PAIRS, _NUMBERS = 2**16, 2**22, 2**23
_PARTITIONS = 1024


@dataclass(frozen=True)
class GroupPartition:
    """Consecutive groups of a table: their rows, counts, and first numbers in it."""

    rows: tuple[Rows, ...]
    n_rows: int
    n_groups: int
    first_row: int
    first_group: int
    #: Examples in the partitions before, where groups are examples.
    first_example: int = 0
    #: Which of its groups are wanted, one bit each; None: all of them.
    wanted: bytes | None = None

    @property
    def path(self) -> str:
        """The path of its first file, or the name of a table, for messages."""
        return self.rows[0].path

    def check_unchanged(self) -> None:
        """Refuse files that have changed since they were listed."""
        for rows in self.rows:
            rows.check_unchanged()

    def check_groups(self, index: GroupIndex) -> None:
        """Refuse rows in which ``index`` found more or fewer groups than counted."""
        if len(index) != self.n_groups:
            raise TableError(
                f"{self.path} changed while it was read, or two of its groups have "
                "names of the same hash: rename one"
            )

    def flags(self) -> BoolArray:
        """Return which groups of the partition are wanted, (n_groups,)."""
        if self.wanted is None:
            return np.ones(self.n_groups, dtype=bool)
        bits = np.frombuffer(self.wanted, dtype=np.uint8)
        return np.unpackbits(bits, count=self.n_groups).astype(bool)

    def only(self, numbers: IntArray, first_example: int = 0) -> GroupPartition:
        """Return the partition with only groups of these table numbers wanted."""
        if len(numbers) == self.n_groups:
            return replace(self, wanted=None, first_example=first_example)
        flags = np.zeros(self.n_groups, dtype=bool)
        flags[numbers - self.first_group] = True
        bits = np.packbits(flags).tobytes()
        return replace(self, wanted=bits, first_example=first_example)


def cut_partitions(
    rows: Sequence[MemoryRows | FileRows],
    reader: RowReader,
    counts: Counts,
    bounds: IntArray,
    *,
    engine: Engine,
    memory: int,
    progress: StageProgress,
    store: RunStore | None,
) -> tuple[tuple[GroupPartition, ...], Any]:
    """Cut rows into partitions of groups from ``bounds[k]`` to ``bounds[k + 1]``.

    Files whose groups are scattered are shuffled, in ``memory`` bytes; the store
    remembers their folder.  Return the partitions, and an object that keeps the
    shuffled files, None without any.
    """
    ends, kept = np.append(0, np.cumsum(counts.sizes))[bounds], None
    ranges = list(pairwise(ends.tolist()))
    parts: list[tuple[Rows, ...]]
    if counts.is_consecutive and all(one.is_seekable for one in rows):
        parts = [_rows_between(rows, counts.n_rows, *one) for one in ranges]
    elif isinstance(rows[0], MemoryRows):
        order, table = _order_by_group(rows[0], reader), rows[0].table
        parts = [(MemoryRows(table, a, b, order[a:b]),) for a, b in ranges]
    else:
        kept, parts = shuffle(
            counts.deals(rows), bounds, reader, engine=engine,
            folder=_shuffle_folder(rows[0].path, engine, store), memory=memory,
            progress=progress, total=int(ends[-1]),
        )  # fmt: skip
    found = [
        GroupPartition(here, end_row - row, end - first, row, first)
        for here, (row, end_row), (first, end) in zip(
            parts, ranges, pairwise(bounds.tolist()), strict=True
        )
    ]
    return tuple(found), kept


def _rows_between(
    rows: Sequence[MemoryRows | FileRows], n_rows: IntArray, first: int, end: int
) -> tuple[Rows, ...]:
    """Return rows ``first`` to ``end - 1`` of sources that have ``n_rows`` each."""
    starts = np.cumsum(n_rows) - n_rows
    lows = np.maximum(first - starts, 0).tolist()
    highs = np.minimum(end - starts, n_rows).tolist()
    return tuple(
        one.part(low, high)
        for one, low, high in zip(rows, lows, highs, strict=True)
        if low < high
    )


def _order_by_group(rows: MemoryRows, reader: RowReader) -> IntArray:
    """Return row numbers sorted by group, in table order within each group."""
    index, group = GroupIndex(), reader.columns.group
    batches = reader.batches([rows], group)
    numbers = np.concatenate([index.numbers(batch, group) for batch in batches])
    return np.argsort(numbers, kind="stable")


def _shuffle_folder(file: str, engine: Engine, store: RunStore | None) -> Path | None:
    """Return a new or stored hidden folder beside that of ``file``, None if local."""
    if is_local(engine):
        return None
    path = Path(file).parent
    name = f".{path.name}.shuffled-{uuid.uuid4().hex[:8]}"
    if store is not None and store.path is not None:
        # A run that resumes uses the folder of the one that was killed.
        name = store.remember("shuffled", name.encode).decode()
    return path.with_name(name)


def row_width(rows: Sequence[Rows], reader: RowReader) -> int:
    """Return how many numbers the feature columns of the first row hold, 1 at least."""
    features = reader.columns.features()
    first = next(reader.batches(rows, *features), None)
    columns = [] if first is None else [first[name].column for name in features]
    widths = [
        len(column[0]) if is_vector(column.type) and column[0].is_valid else 1
        for column in columns
    ]
    return max(sum(widths), 1)


def partition_bounds(sizes: IntArray, width: int) -> IntArray:
    """Return the groups that partitions begin with, and at last the number of groups.

    ``sizes`` are the rows of each group, ``width`` the numbers of a row.  A partition
    has one group or, in all, at most ``_ROWS`` rows, ``_PAIRS`` pairs of them and
    ``_NUMBERS`` numbers; many groups make larger partitions, about ``_PARTITIONS``.
    """
    sizes = sizes.astype(np.float64)
    n_rows = min(_ROWS, max(_NUMBERS // width, 1))
    weights = np.maximum(sizes / n_rows, sizes * sizes / _PAIRS)
    most = max(1.0, float(weights.sum()) / _PARTITIONS)
    return np.array(run_bounds(weights, most))
