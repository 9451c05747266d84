"""The counts of a table by file and group, and its partitions of consecutive groups."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate._progress import StageProgress, ignore
from variegate._typing import BoolArray, IntArray
from variegate.application.refusal import Setting
from variegate.files.run_store import RunStore, arrays_from_bytes, arrays_to_bytes
from variegate.partitions import Engine
from variegate.partitions.engine import is_local
from variegate.report.wording import count
from variegate.tables.cells import Batch
from variegate.tables.columns import is_vector
from variegate.tables.errors import UNREADABLE, TableError, TableFileError
from variegate.tables.rows import FileRows, GroupIndex, MemoryRows, RowReader, Rows
from variegate.tables.shuffle import Deal, run_bounds, shuffle

#: The most rows of a partition, pairs of rows of one group, and numbers of features;
#: and the most partitions, for which the others make room.
_ROWS, _PAIRS, _NUMBERS = 2**16, 2**22, 2**23
_PARTITIONS = 1024

#: Files that a message names.
_NAMED = 5


# Counts -------------------------------------------------------------------------------


def hash_of(name: Any) -> int:
    """Return a 64-bit hash of a group name, the same in all processes."""
    if isinstance(name, float):
        name += 0.0  # minus zero equals zero
    digest = blake2b(repr(name).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class Scanned(NamedTuple):
    """Counts of a file and of its groups, these in the order of their first rows.

    By group: the hash of its name, its rows, its rows labelled 1 (None without labels)
    and its given rows (None without a column of them).  ``is_in_order`` where the rows
    of every group stand one after another.
    """

    n_rows: int
    hashes: npt.NDArray[np.uint64]
    sizes: IntArray
    n_chosen: IntArray | None
    n_given: IntArray | None
    is_in_order: bool
    problems: tuple[TableError, ...]


def scan_groups(
    rows: Rows,
    reader: RowReader,
    labels: BoolArray | None = None,
    also: Sequence[str] = (),
    told: Callable[[int], object] = ignore,
) -> Scanned | Exception:
    """Count the groups of some rows, or return the error of an unreadable file.

    ``labels`` of all rows stand in place of a column.  Columns are read ``also`` to
    find damage; ``told`` is called with the number of rows of each batch.
    """
    group, given, index = reader.columns.group, reader.columns.given, GroupIndex()
    label = reader.columns.label if labels is None else None
    problems: dict[str, TableError] = {}
    sizes = n_chosen = n_given = np.zeros(0, dtype=np.int64)
    n_rows = n_runs = 0
    last = -1
    try:
        for batch in reader.batches([rows], group, label, given, *also):
            n_rows += len(batch)
            told(len(batch))
            numbers, flags = np.zeros(len(batch), dtype=np.int64), None
            is_given = None
            try:
                numbers = index.numbers(batch, group)
            except TableError as error:
                problems.setdefault("group", error)
            try:
                flags = batch.flags(label, labels)
            except TableError as error:
                problems.setdefault("label", error)
            try:
                is_given = given_rows(batch, given, flags)
            except TableError as error:
                problems.setdefault("given", error)
            sizes = _add_counts(sizes, numbers, len(index))
            if flags is not None:
                n_chosen = _add_counts(n_chosen, numbers[flags], len(index))
            if is_given is not None:
                n_given = _add_counts(n_given, numbers[is_given], len(index))
            n_runs += int((np.diff(numbers, prepend=last) != 0).sum())
            last = int(numbers[-1])
    except UNREADABLE as error:
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
        sizes,
        n_chosen if has_labels else None,
        None if given is None else n_given,
        n_runs == len(index),
        tuple(problems.values()),
    )


def given_rows(
    batch: Batch, given: str | None, flags: BoolArray | None = None
) -> BoolArray | None:
    """Return which rows are given, (n_rows,); None without a column ``given``.

    Given rows that are labelled 1 (``flags``, None without labels) are refused.
    """
    if given is None:
        return None
    cells = batch[given]
    found = cells.flags("given")
    if flags is not None and (found & flags).any():
        raise cells.error(
            f"says that row {cells.row(found & flags)} is there already, but it is "
            "labelled 1: a given row cannot be chosen. Correct one of the two"
        )
    return found


def _add_counts(counts: IntArray, numbers: IntArray, n_groups: int) -> IntArray:
    """Return ``counts``, grown to ``n_groups``, plus one for the group of each row."""
    total = np.bincount(numbers, minlength=n_groups)
    total[: len(counts)] += counts
    return total


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts of all rows of a table: by file, and by group of each file.

    A group that lies in several files has an entry for each of them.
    """

    #: Places of the readable files among all; the next three are by readable file.
    readable: IntArray
    n_rows: IntArray
    n_groups: IntArray
    is_in_order: BoolArray
    #: By group of each file, file after file: hashes of names, rows, rows labelled 1,
    #: given rows.
    hashes: npt.NDArray[np.uint64]
    file_sizes: IntArray
    file_chosen: IntArray | None = None
    file_given: IntArray | None = None

    @classmethod
    def of(
        cls,
        scanned: Sequence[Scanned | Exception],
        rows: Sequence[Rows],
        skip_unreadable: bool | None = None,
    ) -> Counts:
        """Join the counts of files, one for each of ``rows``, or raise their problems.

        Unreadable files are left out if ``skip_unreadable``; with False, the error
        names this setting, with None it does not.
        """
        found = [one for one in scanned if isinstance(one, Scanned)]
        unread = {
            source.path: one
            for source, one in zip(rows, scanned, strict=True)
            if not isinstance(one, Scanned)
        }
        if unread and not (skip_unreadable and found):
            raise _join_read_errors(unread, skip_unreadable is False and bool(found))
        problems = [problem for one in found for problem in one.problems]
        if problems:
            if len(problems) == 1:
                raise problems[0]
            raise TableError.from_problems(problems)
        chosen = [one.n_chosen for one in found if one.n_chosen is not None]
        given = [one.n_given for one in found if one.n_given is not None]
        return cls(
            np.flatnonzero([isinstance(one, Scanned) for one in scanned]),
            np.array([one.n_rows for one in found]),
            np.array([len(one.sizes) for one in found]),
            np.array([one.is_in_order for one in found]),
            np.concatenate([one.hashes for one in found]),
            np.concatenate([one.sizes for one in found]),
            np.concatenate(chosen) if chosen else None,
            np.concatenate(given) if given else None,
        )

    def to_bytes(self) -> bytes:
        """Return the counts as bytes for a run store."""
        names = [one.name for one in fields(self)]
        found = {name: getattr(self, name) for name in names}
        return arrays_to_bytes(**{n: v for n, v in found.items() if v is not None})

    @classmethod
    def from_bytes(cls, content: bytes) -> Counts:
        """Return the counts that :meth:`to_bytes` wrote."""
        return cls(**arrays_from_bytes(content))

    @cached_property
    def numbers(self) -> IntArray:
        """The group number in the table of each entry of ``hashes``.

        Groups are numbered from 0 in the order of their first rows in all files.
        """
        _, firsts, found = np.unique(
            self.hashes, return_index=True, return_inverse=True
        )
        return np.asarray(np.argsort(np.argsort(firsts))[found])

    @cached_property
    def sizes(self) -> IntArray:
        """The number of rows of every group in all files, (n_groups,)."""
        return self._sum_over_files(self.file_sizes)

    @property
    def n_chosen(self) -> IntArray | None:
        """The rows labelled 1 of every group, (n_groups,); None without labels."""
        known = self.file_chosen
        return None if known is None else self._sum_over_files(known)

    @property
    def n_given(self) -> IntArray | None:
        """The given rows of every group, (n_groups,); None without a column of them."""
        known = self.file_given
        return None if known is None else self._sum_over_files(known)

    def _sum_over_files(self, counts: IntArray) -> IntArray:
        """Sum ``counts``, one for each of ``hashes``, by group; return (n_groups,)."""
        sums = np.zeros(int(self.numbers.max(initial=-1)) + 1, dtype=np.int64)
        np.add.at(sums, self.numbers, counts)
        return sums

    @property
    def first_groups(self) -> IntArray:
        """Where each file begins in ``hashes``, and their number: (n_files + 1,)."""
        return np.append(0, np.cumsum(self.n_groups))

    @property
    def is_consecutive(self) -> bool:
        """Whether the rows of every group stand one after another, in all files."""
        return bool(self.is_in_order.all() and (np.diff(self.numbers) >= 0).all())

    def deals(self, rows: Sequence[Rows]) -> list[Deal]:
        """Return ``Deal(rows, first row, group numbers)`` of each readable file."""
        numbers = np.split(self.numbers, self.first_groups[1:-1])
        first_rows = (np.cumsum(self.n_rows) - self.n_rows).tolist()
        return list(map(Deal, rows, first_rows, numbers))


def _join_read_errors(unread: Mapping[str, Exception], has_hint: bool) -> Exception:
    """Join read errors, by path, into one; ``has_hint`` tells how to skip files."""
    (_, first), *rest = unread.items()
    problem: list[str | Setting] = [str(first)]
    if rest:
        names = ", ".join(path for path, _ in rest[: _NAMED - 1])
        more = len(rest) - _NAMED + 1
        problem += [
            f"; {count(len(rest), 'other file')} cannot be read either: {names}",
            f" and {more} more" if more > 0 else "",
        ]
    if has_hint:
        problem += [". With ", Setting("skip_unreadable"), " such files are left out"]
    return TableFileError(*problem)


# Partitions ---------------------------------------------------------------------------


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
