"""Partitions of a table: consecutive groups, and where their rows are."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from variegate._progress import StageProgress, ignore
from variegate._typing import BoolArray, IntArray
from variegate.files.run_store import RunStore
from variegate.partitions import Engine, Serial, Threads
from variegate.tables import shuffle
from variegate.tables.columns import is_vector
from variegate.tables.errors import TableError
from variegate.tables.reading import TableFile
from variegate.tables.rows import (
    FileRows,
    GroupIndex,
    MemoryRows,
    RowReader,
    Rows,
    counted,
)
from variegate.tables.table import FolderTable, MemoryTable, Table

if TYPE_CHECKING:
    from variegate.tables.scanning import Counts

#: The most rows of a partition, pairs of rows of one group, and numbers of features;
#: and the most partitions, for which the others make room.
_ROWS, _PAIRS, _NUMBERS = 2**16, 2**22, 2**23
_PARTITIONS = 1024


@dataclass(frozen=True)
class GroupPartition:
    """Consecutive groups of a table, and where their rows are.

    Its groups and rows begin at these numbers of the table.
    """

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
        """The first file, or the name of the table."""
        return self.rows[0].path

    def check_unchanged(self) -> None:
        """Refuse files that have changed since they were listed."""
        for rows in self.rows:
            rows.check_unchanged()

    def check_groups(self, index: GroupIndex) -> None:
        """Refuse rows whose groups are not those that were counted."""
        if len(index) != self.n_groups:
            raise TableError(
                f"{self.path} changed while it was read, or two of its groups have "
                "names of the same hash: rename one"
            )

    def flags(self) -> BoolArray:
        """Return one flag a group: whether it is wanted."""
        if self.wanted is None:
            return np.ones(self.n_groups, dtype=bool)
        bits = np.frombuffer(self.wanted, dtype=np.uint8)
        return np.unpackbits(bits, count=self.n_groups).astype(bool)

    def only(self, numbers: IntArray, first_example: int = 0) -> GroupPartition:
        """Return the partition with some of its groups wanted, by their numbers."""
        if len(numbers) == self.n_groups:
            return replace(self, wanted=None, first_example=first_example)
        flags = np.zeros(self.n_groups, dtype=bool)
        flags[numbers - self.first_group] = True
        bits = np.packbits(flags).tobytes()
        return replace(self, wanted=bits, first_example=first_example)


class TableCut:
    """Cuts a table into partitions of consecutive groups.

    ``names`` are the columns that are read; ``rows`` are those that were counted.
    """

    def __init__(
        self,
        table: Table,
        reader: RowReader,
        names: Sequence[str],
        counts: Counts,
        rows: Sequence[Rows],
    ) -> None:
        self._table, self._reader, self._names = table, reader, names
        self._counts, self._rows = counts, rows
        # Groups of several files are one group, numbered by its first rows.
        _, firsts, found = np.unique(
            counts.hashes, return_index=True, return_inverse=True
        )
        ranks = np.empty(len(firsts), dtype=np.int64)
        ranks[np.argsort(firsts)] = np.arange(len(firsts))
        self._numbers = ranks[found]
        self.sizes = self.summed(counts.sizes)
        self.is_in_order = bool(counts.is_in_order.all())
        self.is_in_order &= bool((np.diff(self._numbers) >= 0).all())
        self.bounds = partition_bounds(self.sizes, self._width())

    def summed(self, counts: IntArray) -> IntArray:
        """Return counts by group from counts by group of each file."""
        sums = np.zeros(int(self._numbers.max(initial=-1)) + 1, dtype=np.int64)
        np.add.at(sums, self._numbers, counts)
        return sums

    def _width(self) -> int:
        """Return the number of numbers in the features of the first row."""
        width = 0
        features = self._reader.columns.features()
        first = next(self._reader.batches(self._rows, *features), None)
        for name in features if first is not None else ():
            assert first is not None
            cells = first[name]
            is_list = is_vector(cells.column.type) and cells.column[0].is_valid
            width += len(cells.column[0]) if is_list else 1
        return max(width, 1)

    def partitions(
        self,
        engine: Engine,
        memory: int,
        progress: StageProgress,
        store: RunStore | None,
    ) -> tuple[tuple[GroupPartition, ...], Any]:
        """Return the partitions, and an object that keeps what was shuffled for them.

        Files whose groups are scattered are shuffled.
        """
        shuffled: Any = None
        if isinstance(self._table, MemoryTable):
            rows = self._ranges(self._memory_rows())
        elif self.is_in_order and self._is_seekable():
            rows = self._ranges(self._file_rows)
        else:
            if is_local(engine):
                self._rows = counted(self._rows, progress, int(self.sizes.sum()))
                progress = ignore
            shuffled, rows = shuffle.shuffle(
                self.deals(), self.bounds, self._reader, self._names, engine=engine,
                folder=self._folder(engine, store), memory=memory, progress=progress,
            )  # fmt: skip
        ends, bounds = np.append(0, np.cumsum(self.sizes)), self.bounds.tolist()
        found = [
            GroupPartition(
                here, int(ends[end] - ends[first]), end - first, int(ends[first]), first
            )
            for here, (first, end) in zip(rows, pairwise(bounds), strict=True)
        ]
        return tuple(found), shuffled

    def _ranges(
        self, rows_between: Callable[[int, int], tuple[Rows, ...]]
    ) -> list[tuple[Rows, ...]]:
        """Return the rows of every partition, which stand one after another."""
        ends = np.append(0, np.cumsum(self.sizes))[self.bounds].tolist()
        return [rows_between(first, end) for first, end in pairwise(ends)]

    def _memory_rows(self) -> Callable[[int, int], tuple[MemoryRows, ...]]:
        table = self._table
        assert isinstance(table, MemoryTable)
        if self.is_in_order:
            return lambda first, end: (MemoryRows(table, first, end),)
        index, group = GroupIndex(), self._reader.columns.group
        batches = self._reader.batches(self._rows, group)
        numbers = np.concatenate([index.numbers(batch, group) for batch in batches])
        order = np.argsort(numbers, kind="stable")
        return lambda first, end: (MemoryRows(table, first, end, order[first:end]),)

    def _is_seekable(self) -> bool:
        return isinstance(self._table, FolderTable) or (
            isinstance(self._table, TableFile) and self._table.is_seekable
        )

    def _file_rows(self, first: int, end: int) -> tuple[FileRows, ...]:
        starts = np.append(0, np.cumsum(self._counts.n_rows)).tolist()
        found = []
        for rows, start, stop in zip(self._rows, starts, starts[1:], strict=False):
            low, high = max(first, start), min(end, stop)
            if low < high:
                assert isinstance(rows, FileRows)
                # All files were compared with the schema when they were scanned.
                found.append(
                    replace(rows, first=low - start, end=high - start, schema=None)
                )
        return tuple(found)

    def deals(self) -> list[shuffle.Deal]:
        """Return the rows of every file, and the numbers of its groups."""
        first_groups = np.append(0, np.cumsum(self._counts.n_groups)).tolist()
        first_rows = np.append(0, np.cumsum(self._counts.n_rows)).tolist()
        return [
            shuffle.Deal(rows, first_row, self._numbers[first:end])
            for rows, first_row, first, end in zip(
                self._rows, first_rows, first_groups, first_groups[1:], strict=False
            )
        ]

    def cut_at_files(self) -> bool:
        """Cut also where files begin; return whether no group lies in two files."""
        firsts = np.append(0, np.cumsum(self._counts.n_groups))
        if not self.is_in_order or firsts[-1] != len(self.sizes):
            return False
        self.bounds = np.union1d(self.bounds, firsts)
        return True

    def _folder(self, engine: Engine, store: RunStore | None) -> Path | None:
        """Return a folder that all workers see; None: any of this machine."""
        if is_local(engine):
            return None
        path = Path(self._rows[0].path).parent
        name = f".{path.name}.shuffled-{uuid.uuid4().hex[:8]}"
        if store is not None and store.path is not None:
            # That of a run that was killed is used again.
            name = store.remember("shuffled", name.encode).decode()
        return path.with_name(name)


def partition_bounds(sizes: IntArray, width: int) -> IntArray:
    """Return the numbers of the groups that partitions begin with, and of all groups.

    A partition has at most as many rows, pairs of rows of a group, and numbers as fit,
    more in large tables, and at least one group.
    """
    sizes = sizes.astype(np.float64)
    n_rows = min(_ROWS, max(_NUMBERS // width, 1))
    weights = np.maximum(sizes / n_rows, sizes * sizes / _PAIRS)
    most = max(1.0, float(weights.sum()) / _PARTITIONS)
    ends = np.cumsum(weights)
    bounds, first = [0], 0.0
    while bounds[-1] < len(sizes):
        end = int(np.searchsorted(ends, first + most, "right"))
        bounds.append(max(end, bounds[-1] + 1))
        first = float(ends[bounds[-1] - 1])
    return np.array(bounds)


def is_local(engine: Engine | None) -> bool:
    """Return whether an engine works in this process."""
    return engine is None or isinstance(engine, Serial | Threads)
