"""The survey of a table: its groups and labels, and their partitions.

Groups are numbered in the order of their first rows, through all files of a folder.  A
partition holds consecutive groups; its bounds follow from the sizes of groups and the
width of rows alone.  So a table has the same partitions, and sums over them the same
bits, in memory, as a file or as a folder of any number of files.

Where the rows of every group are consecutive, partitions are ranges of rows.  Otherwise
a table in memory is read by row numbers, and files are shuffled first
(:mod:`variegate.tables.shuffle`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from variegate._progress import Progress, ignore
from variegate._typing import BoolArray, IntArray
from variegate._validation import check_choice
from variegate.application.refusal import Setting
from variegate.application.table_defaults import EMPTY_GROUPS, MEMORY
from variegate.files.run_store import RunStore
from variegate.partitions import Engine, Serial
from variegate.partitions.engine import is_local
from variegate.report.wording import count
from variegate.tables.columns import Columns, missing_label_error
from variegate.tables.counts import Counts, scan_groups
from variegate.tables.derived import Derivation, newest_date, resolve_derived
from variegate.tables.encoding import ColumnStatistics, Encoding
from variegate.tables.errors import TableError
from variegate.tables.partitioning import (
    GroupPartition,
    cut_partitions,
    partition_bounds,
    row_width,
)
from variegate.tables.rows import (
    GroupIndex,
    RowReader,
    Rows,
    accumulate_progress,
    map_rows,
)
from variegate.tables.table import (
    FolderTable,
    MemoryTable,
    Table,
    hold_in_memory,
    rows_of,
)


@dataclass(frozen=True, eq=False)
class Survey:
    """The groups of a table, and the partitions that they are read in.

    By number of the group, ``sizes`` are its rows, ``n_chosen`` its rows that are
    labelled 1, None without labels, and ``n_given`` its given rows, None without a
    column of them.
    """

    #: Reads the rows of partitions; its columns are resolved.
    reader: RowReader
    sizes: IntArray
    n_chosen: IntArray | None
    n_given: IntArray | None
    partitions: tuple[GroupPartition, ...]
    #: Tells this table from others in a run store.
    key: str
    #: All rows of the table with all columns, by file, and the numbers they begin at.
    sources: tuple[tuple[Rows, int], ...]
    #: Files that were left out.
    unreadable: tuple[str, ...] = ()
    #: Whether every partition lies in one file.
    is_by_file: bool = False
    #: Keeps the shuffled files on disk.
    shuffled: Any = None

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def columns(self) -> Columns:
        """The roles of the columns."""
        return self.reader.columns

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.sizes.sum())

    def name(self, number: int) -> Any:
        """Return the name of a group by its number; read its partition to find it."""
        partition = [one for one in self.partitions if one.first_group <= number][-1]
        index = GroupIndex()
        for batch in self.reader.batches(partition.rows, self.columns.group):
            index.numbers(batch, self.columns.group)
        return index.names[int(number) - partition.first_group]

    def restricted_partitions(self, numbers: IntArray) -> Iterator[GroupPartition]:
        """Yield every partition with only groups of these sorted numbers wanted.

        Partitions may have none; ``first_example`` is the number wanted before each.
        """
        for one in self.partitions:
            bounds = one.first_group, one.first_group + one.n_groups
            first, end = np.searchsorted(numbers, bounds).tolist()
            yield one.only(numbers[first:end], first)


def survey_table(
    table: Table,
    columns: Columns,
    labels: BoolArray | None = None,
    *,
    engine: Engine | None = None,
    memory: int = MEMORY,
    progress: Progress = ignore,
    skip_unreadable: bool = False,
    by_file: bool = False,
    store: RunStore | None = None,
) -> Survey:
    """Count the groups of a table, and cut it into partitions.

    The columns are resolved; labels of every row stand in place of a column.  Without
    an engine, or with one of this process, a table whose columns take no more than
    ``memory`` bytes is held.  With ``skip_unreadable``, files that cannot be read are
    left out and named in the result; to find them all, every column is read.  With
    ``by_file``, partitions end where files do, if groups do.  The store remembers the
    counts of a run that resumes.
    """
    label = columns.label if labels is None else None
    parts = (columns.group, label, columns.item, columns.cost, columns.relevance)
    features = (columns.given, *columns.features(), columns.subtopics, *columns.per)
    features += (columns.segment,)
    used = [n for n in dict.fromkeys((*parts, *features)) if n is not None]
    names = (
        Derivation(table.schema, columns).source_columns(used) or table.schema.names[:1]
    )
    schema = pa.schema([table.schema.field(name) for name in names])
    reader = RowReader(schema, columns)
    every, n_rows = rows_of(table), None
    key = uuid.uuid4().hex
    if not isinstance(table, MemoryTable):
        key = sha256(repr((every, columns)).encode()).hexdigest()
    elif not is_local(engine):
        raise TableError(
            "workers of other processes cannot read a table in memory: write it to a "
            "file or a folder, and name that"
        )
    reading, shuffling = partial(progress, "reading"), partial(progress, "shuffling")
    if is_local(engine) and not skip_unreadable and not by_file:
        table, n_rows = hold_in_memory(
            table, every, names, memory, accumulate_progress(reading)
        )
        store = None if n_rows is not None else store
    if labels is not None and isinstance(table, FolderTable):
        raise TableError(
            "labels beside a folder that is larger than memory, or that workers read: "
            "make them a column of its files"
        )
    engine = Serial() if engine is None else engine
    rows, also = rows_of(table), used if skip_unreadable else []

    def count_groups() -> Counts:
        """Count the rows and groups of all sources."""
        work = partial(scan_groups, reader=reader, labels=labels, also=also)
        found = list(map_rows(engine, work, rows, reading))
        return Counts.of(found, rows, skip_unreadable)

    if store is None or store.path is None:
        counts = count_groups()
    else:
        step = f"scan of {key}, columns read: {also}"
        made = store.remember(step, lambda: count_groups().to_bytes())
        counts = Counts.from_bytes(made)
    n_counted = int(counts.n_rows.sum())
    if n_counted == 0:
        raise TableError(f"{table.name} has no rows")
    if labels is not None and len(labels) != n_counted:
        raise TableError(f"{len(labels)} labels for a table of {n_counted} rows")
    readable = [rows[k] for k in counts.readable]
    if n_rows is None:  # of the files that were counted
        every, n_rows = tuple(readable), counts.n_rows.tolist()
    bounds = partition_bounds(counts.sizes, row_width(readable, reader))
    # Every group lies in one file.
    is_by_file = by_file and counts.is_consecutive
    is_by_file &= len(counts.hashes) == len(counts.sizes)
    if is_by_file:
        bounds = np.union1d(bounds, counts.first_groups)
    partitions, shuffled = cut_partitions(
        readable, reader, counts, bounds,
        engine=engine, memory=memory, progress=shuffling, store=store,
    )  # fmt: skip
    return Survey(
        reader,
        counts.sizes,
        counts.n_chosen,
        counts.n_given,
        partitions,
        key,
        tuple(zip(every, accumulate(n_rows, initial=0), strict=False)),
        tuple(one.path for k, one in enumerate(rows) if k not in counts.readable),
        is_by_file,
        shuffled,
    )


# Columns ------------------------------------------------------------------------------


def resolve_columns(
    table: Table,
    columns: Columns,
    newest: Callable[[str], str] | None = None,
    *,
    needs_quality: bool = True,
) -> Columns:
    """Return roles with vectors, ages and patterns resolved by the table.

    ``newest`` returns the newest date of a column as ISO text, by default read here.
    With ``needs_quality``, numbers without a role are quality if no column is.
    """
    newest = newest or partial(newest_date, rows_of(table))
    columns = resolve_derived(table.schema, columns, newest)
    schema = Derivation(table.schema, columns).schema
    return columns.resolve(schema, needs_quality=needs_quality)


def learn_encoding(
    found: Survey, numbers: IntArray | None = None, engine: Engine | None = None
) -> Encoding:
    """Learn the encoding of columns from groups with these numbers, None for all."""
    numbers = np.arange(len(found)) if numbers is None else numbers
    return column_statistics(found, numbers, engine).encoding()


def column_statistics(
    found: Survey, numbers: IntArray, engine: Engine | None = None
) -> ColumnStatistics:
    """Return statistics of feature columns in groups with these sorted numbers.

    All rows are checked for problems, which the statistics hold.
    """
    engine = Serial() if engine is None else engine
    work = partial(partition_statistics, reader=found.reader)
    parts = list(found.restricted_partitions(numbers))
    return engine.tree_sum(work, parts, ColumnStatistics.merged)


def partition_statistics(
    partition: GroupPartition, reader: RowReader
) -> ColumnStatistics:
    """Return statistics of a partition's wanted groups; check all of its rows."""
    columns = reader.columns
    statistics = ColumnStatistics(columns, reader.derivation.schema)
    names = columns.features()
    if names:
        batch, index = (
            reader.read_all(partition.rows, columns.group, *names),
            GroupIndex(),
        )
        numbers = index.numbers(batch, columns.group)
        partition.check_groups(index)
        statistics.add(batch, partition.flags()[numbers])
    return statistics


def refuse_labels_among(names: Sequence[str], found: Survey, labels: BoolArray) -> None:
    """Refuse a column of ``names`` that equals the labels in all rows."""
    same = dict.fromkeys(names, True)
    for partition in found.partitions:
        for batch in found.reader.batches(partition.rows, *names):
            here = pa.array(batch.flags(None, labels))
            for name in names:
                column = batch.rows.column(name)
                is_decimal = pa.types.is_decimal(column.type)
                expected = here if is_decimal else here.cast(column.type)
                same[name] = same[name] and column.equals(expected)
    for name in names:
        if same[name]:
            raise TableError(
                f"column {name!r} holds the labels: name it as label, or name the "
                "quality columns"
            )


# Groups to learn from and groups to hold out ------------------------------------------


def usable_groups(found: Survey, empty_groups: str) -> IntArray:
    """Return sorted numbers of the groups to use; refuse a table without labels.

    ``empty_groups`` tells whether groups without a row labelled 1 are an "error", or
    used ("keep") or not ("drop").  Groups whose rows are all given are not used.
    """
    check_choice("empty_groups", empty_groups, EMPTY_GROUPS)
    n_chosen = found.n_chosen
    if n_chosen is None:
        raise missing_label_error()
    if not n_chosen.any():
        where = f" in column {found.columns.label!r}" if found.columns.label else ""
        raise TableError(f"no row is labelled 1{where}: nothing was chosen")
    is_open = np.ones(len(found), dtype=bool)
    if found.n_given is not None:
        is_open = found.n_given < found.sizes
    empty = (n_chosen == 0) & is_open
    if empty.any() and empty_groups == "error":
        n_empty, drop = int(empty.sum()), Setting("empty_groups", "drop")
        raise TableError(
            f"{n_empty:,} of {len(found):,} groups "
            f"{'has' if n_empty == 1 else 'have'} no chosen row, the first is "
            f"{found.name(int(np.argmax(empty)))!r}: leave such groups out (",
            drop,
            "), or take it that nothing was to be chosen there (",
            Setting("empty_groups", "keep"),
            ")",
            fixes=[drop],
        )
    return np.flatnonzero(is_open & ~empty if empty_groups == "drop" else is_open)


def hold_out_groups(
    usable: IntArray, fraction: float, seed: int
) -> tuple[IntArray, IntArray]:
    """Split group numbers at random; return those to learn from and those held out.

    Both are sorted; ``fraction`` of them is held out.
    """
    if fraction == 0.0:
        return usable, usable[:0]
    n_held_out = round(fraction * len(usable))
    if not 0 < n_held_out < len(usable):
        none = Setting("validation_fraction", 0)
        raise TableError(
            f"{count(len(usable), 'group')} cannot be split into a share of "
            f"{fraction:g} to hold out and the rest to learn from: give more groups, "
            "or hold out none: ",
            none,
            fixes=[none],
        )
    shuffled = np.random.default_rng(seed).permutation(usable)
    return np.sort(shuffled[n_held_out:]), np.sort(shuffled[:n_held_out])
