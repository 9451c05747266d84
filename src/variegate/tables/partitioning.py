"""The counts of a table by file and group, and its partitions of consecutive groups."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate._progress import StageProgress, ignore
from variegate._typing import BoolArray, IntArray
from variegate.files.run_store import RunStore, arrays_from_bytes, arrays_to_bytes
from variegate.partitions import Engine, UnreadablePartitionError
from variegate.partitions.engine import is_local
from variegate.report.wording import count
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
    accumulate_progress,
)
from variegate.tables.table import FolderTable, MemoryTable, Table

#: The most rows of a partition, pairs of rows of one group, and numbers of features;
#: and the most partitions, for which the others make room.
_ROWS, _PAIRS, _NUMBERS = 2**16, 2**22, 2**23
_PARTITIONS = 1024

#: Files that a message names.
_NAMED = 5


# Counts -------------------------------------------------------------------------------


def hash_of(name: Any) -> int:
    """Return 64 bits of a value of the group column, the same in all processes."""
    if isinstance(name, float):
        name += 0.0  # minus zero equals zero
    digest = blake2b(repr(name).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class Scanned(NamedTuple):
    """Counts of some rows: the hash, size and choices of every group, in their order.

    ``is_in_order`` where the rows of every group stand one after another.
    """

    n_rows: int
    hashes: npt.NDArray[np.uint64]
    sizes: npt.NDArray[np.int32]
    n_chosen: npt.NDArray[np.int32] | None
    is_in_order: bool
    problems: tuple[TableError, ...]


def scan_groups(
    rows: Rows,
    reader: RowReader,
    labels: BoolArray | None = None,
    also: Sequence[str] = (),
    told: Callable[[int], object] = ignore,
) -> Scanned | UnreadablePartitionError:
    """Count the groups of some rows, or return why they cannot be read.

    Columns are read ``also`` to find damage; ``told`` is called with numbers of rows.
    """
    columns, index = reader.columns, GroupIndex()
    label = columns.label if labels is None else None
    problems: dict[str, TableError] = {}
    sizes = chosen = np.zeros(0, dtype=np.int64)
    n_rows = n_runs = 0
    last = -1
    try:
        for batch in reader.batches([rows], columns.group, label, *also):
            n_rows += len(batch)
            told(len(batch))
            try:
                numbers = index.numbers(batch, columns.group)
                sizes = _add_counts(sizes, numbers, len(index))
            except TableError as error:
                problems.setdefault("group", error)
                numbers = np.zeros(len(batch), dtype=np.int64)
            n_runs += int((np.diff(numbers, prepend=last) != 0).sum())
            last = int(numbers[-1])
            try:
                flags = batch.flags(label, labels)
                if flags is not None:
                    chosen = _add_counts(chosen, numbers[flags], len(index))
            except TableError as error:
                problems.setdefault("label", error)
    except UnreadablePartitionError as error:
        return error
    hashes = np.array([hash_of(name) for name in index.names], dtype=np.uint64)
    if len(np.unique(hashes)) < len(hashes):
        problems["hash"] = TableError(
            f"two groups of {rows.path} have names of the same hash: rename one"
        )
    has_labels = label is not None or labels is not None
    return Scanned(
        n_rows,
        hashes,
        sizes.astype(np.int32),
        chosen.astype(np.int32) if has_labels else None,
        n_runs == len(index),
        tuple(problems.values()),
    )


def _add_counts(counts: IntArray, numbers: IntArray, n_groups: int) -> IntArray:
    """Add numbers to counts by group, of which there may be more now."""
    total = np.bincount(numbers, minlength=n_groups)
    total[: len(counts)] += counts
    return total


class Counts(NamedTuple):
    """Counts of all rows of a table: by file, and by group of each file."""

    #: Places of the files that can be read.
    readable: IntArray
    n_rows: IntArray
    n_groups: IntArray
    is_in_order: BoolArray
    hashes: npt.NDArray[np.uint64]
    sizes: IntArray
    n_chosen: IntArray | None

    @classmethod
    def of(
        cls,
        scanned: Sequence[Scanned | UnreadablePartitionError],
        skip_unreadable: bool,
    ) -> Counts:
        """Join the counts of files, or raise their problems."""
        found = [one for one in scanned if isinstance(one, Scanned)]
        unread = [one for one in scanned if not isinstance(one, Scanned)]
        if unread and not (skip_unreadable and found):
            raise _combine_read_errors(unread, bool(found))
        problems = [problem for one in found for problem in one.problems]
        if problems:
            raise problems[0] if len(problems) == 1 else TableError.of(problems)
        chosen = [one.n_chosen for one in found if one.n_chosen is not None]
        return cls(
            np.flatnonzero([isinstance(one, Scanned) for one in scanned]),
            np.array([one.n_rows for one in found]),
            np.array([len(one.sizes) for one in found]),
            np.array([one.is_in_order for one in found]),
            np.concatenate([one.hashes for one in found]),
            np.concatenate([one.sizes for one in found]),
            np.concatenate(chosen) if chosen else None,
        )

    def to_bytes(self) -> bytes:
        """Return the counts, for a run store."""
        found = self._asdict().items()
        return arrays_to_bytes(**{n: value for n, value in found if value is not None})

    @classmethod
    def from_bytes(cls, content: bytes) -> Counts:
        """Return the counts of :meth:`to_bytes`."""
        return cls(**{"n_chosen": None} | arrays_from_bytes(content))


def _combine_read_errors(
    unread: Sequence[UnreadablePartitionError], is_any: bool
) -> UnreadablePartitionError:
    """Return one error that names the first unreadable files."""
    first, *rest = unread
    problem = first.problem
    if rest:
        names = ", ".join(error.path for error in rest[: _NAMED - 1])
        more = len(rest) - _NAMED + 1
        problem += f"; {count(len(rest), 'other file')} cannot be read either: {names}"
        problem += f" and {more} more" if more > 0 else ""
    if is_any:
        problem += ". With skip_unreadable such files are left out"
    return UnreadablePartitionError(first.path, problem)


# Partitions ---------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupPartition:
    """Consecutive groups of a table, numbers of the first, and where their rows are."""

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
        self._first_rows = np.append(0, np.cumsum(counts.n_rows)).tolist()
        self._first_groups = np.append(0, np.cumsum(counts.n_groups)).tolist()
        # Groups of several files are one group, numbered by its first rows.
        _, firsts, found = np.unique(
            counts.hashes, return_index=True, return_inverse=True
        )
        self._numbers = np.argsort(np.argsort(firsts))[found]
        self.sizes = self.sum_over_files(counts.sizes)
        self.is_in_order = bool(counts.is_in_order.all())
        self.is_in_order &= bool((np.diff(self._numbers) >= 0).all())
        self.bounds = partition_bounds(self.sizes, self._width())

    def sum_over_files(self, counts: IntArray) -> IntArray:
        """Return counts by group from counts by group of each file."""
        sums = np.zeros(int(self._numbers.max(initial=-1)) + 1, dtype=np.int64)
        np.add.at(sums, self._numbers, counts)
        return sums

    def _width(self) -> int:
        """Return the number of numbers in the features of the first row."""
        features = self._reader.columns.features()
        first = next(self._reader.batches(self._rows, *features), None)
        width = 0
        for name in features if first is not None else ():
            assert first is not None
            cells = first[name]
            is_list = is_vector(cells.column.type) and cells.column[0].is_valid
            width += len(cells.column[0]) if is_list else 1
        return max(width, 1)

    def cut_at_files(self) -> bool:
        """Cut also where files begin; return whether no group lies in two files."""
        if not self.is_in_order or self._first_groups[-1] != len(self.sizes):
            return False
        self.bounds = np.union1d(self.bounds, self._first_groups)
        return True

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
        ends, shuffled = np.append(0, np.cumsum(self.sizes)), None
        ranges = list(pairwise(ends[self.bounds].tolist()))
        if isinstance(self._table, MemoryTable):
            rows = self._memory_rows(self._table, ranges)
        elif self.is_in_order and (
            isinstance(self._table, FolderTable)
            or (isinstance(self._table, TableFile) and self._table.is_seekable)
        ):
            rows = [self._file_rows(first, end) for first, end in ranges]
        else:
            told: Callable[[int], object] = ignore
            if is_local(engine):
                told, progress = accumulate_progress(progress, int(ends[-1])), ignore
            shuffled, rows = shuffle.shuffle(
                self.deals(), self.bounds, self._reader, self._names, engine=engine,
                folder=self._shuffle_folder(engine, store), memory=memory,
                progress=progress, told=told,
            )  # fmt: skip
        found = [
            GroupPartition(here, end_row - row, end - first, row, first)
            for here, (row, end_row), (first, end) in zip(
                rows, ranges, pairwise(self.bounds.tolist()), strict=True
            )
        ]
        return tuple(found), shuffled

    def _memory_rows(
        self, table: MemoryTable, ranges: Sequence[tuple[int, int]]
    ) -> list[tuple[Rows, ...]]:
        if self.is_in_order:
            return [(MemoryRows(table, first, end),) for first, end in ranges]
        index, group = GroupIndex(), self._reader.columns.group
        batches = self._reader.batches(self._rows, group)
        numbers = np.concatenate([index.numbers(batch, group) for batch in batches])
        order = np.argsort(numbers, kind="stable")
        return [(MemoryRows(table, a, b, order[a:b]),) for a, b in ranges]

    def _file_rows(self, first: int, end: int) -> tuple[Rows, ...]:
        """Return the rows of a partition, which stand one after another."""
        found = []
        for rows, (start, stop) in zip(
            self._rows, pairwise(self._first_rows), strict=True
        ):
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
        return [
            shuffle.Deal(rows, first_row, self._numbers[first:end])
            for rows, first_row, (first, end) in zip(
                self._rows, self._first_rows, pairwise(self._first_groups), strict=False
            )
        ]

    def _shuffle_folder(self, engine: Engine, store: RunStore | None) -> Path | None:
        if is_local(engine):
            return None
        path = Path(self._rows[0].path).parent
        name = f".{path.name}.shuffled-{uuid.uuid4().hex[:8]}"
        if store is not None and store.path is not None:
            # A run that resumes uses the folder of the one that was killed.
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
    return np.array(shuffle.run_bounds(weights, most))
