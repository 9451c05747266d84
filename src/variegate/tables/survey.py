"""The first readings of a table: its groups and labels, then column statistics.

How columns become features is learned from some of the groups only, so that those which
are held out have no part in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate._progress import Progress, ignore
from variegate._typing import BoolArray, IntArray
from variegate._validation import check_choice
from variegate.application.refusal import Setting
from variegate.application.table_defaults import EMPTY_GROUPS
from variegate.partitions.tree import add_in_tree
from variegate.report.wording import count
from variegate.tables.cells import Batch, batches
from variegate.tables.columns import Columns, no_label
from variegate.tables.encoding import ColumnStatistics, Encoding
from variegate.tables.table import Table, TableError, parts_of


class GroupIndex:
    """Groups, numbered in the order of their first rows."""

    def __init__(self) -> None:
        self._found: list[Any] = []
        #: The value of the group column for every group.
        self.names: Sequence[Any] = self._found
        #: The number of rows of every group.
        self.sizes: IntArray = np.zeros(0, dtype=np.int64)
        self._numbers: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def add(self, batch: Batch, name: str | None) -> IntArray:
        """Count some rows, and return the number of the group of each."""
        numbers = self.numbers(batch, name, grow=True)
        self.sizes = self.counted(self.sizes, numbers)
        return numbers

    def counted(self, counts: IntArray, numbers: IntArray) -> IntArray:
        """Return counts by group, of which there may be more now, and these added."""
        total = np.bincount(numbers, minlength=len(self))
        total[: len(counts)] += counts
        return total

    def numbers(
        self, batch: Batch, name: str | None, *, grow: bool = False
    ) -> IntArray:
        """Return the number of the group of every row."""
        if name is None:
            if grow and not self._found:
                self._found.append("all rows")
            return np.zeros(len(batch), dtype=np.int64)
        keys = pc.dictionary_encode(batch[name].keys())
        here = []
        for key in keys.dictionary.to_pylist():
            number = self._numbers.get(key)
            if number is None:
                if not grow:
                    raise TableError(
                        f"the table changed while it was read: group {key!r} is new"
                    )
                number = self._numbers[key] = len(self._found)
                self._found.append(key)
            here.append(number)
        indices = keys.indices.to_numpy(zero_copy_only=False)
        return np.asarray(np.array(here, dtype=np.int64)[indices])


@dataclass(frozen=True, eq=False)
class Survey:
    """The first reading of a table: resolved columns, groups, and rows of each."""

    columns: Columns
    index: GroupIndex
    n_rows: int
    #: How many rows of each group are labelled 1, where there are labels.
    n_chosen: IntArray | None


def survey(
    table: Table,
    columns: Columns,
    labels: BoolArray | None = None,
    progress: Progress = ignore,
) -> Survey:
    """Read groups and labels; those of every row may be given in place of a column."""
    found = count_groups(table, columns, labels, progress)
    if found.n_rows == 0:
        raise TableError(f"{table.name} has no rows")
    if labels is not None and len(labels) != found.n_rows:
        raise TableError(f"{len(labels)} labels for a table of {found.n_rows} rows")
    return found


def count_groups(
    table: Table,
    columns: Columns,
    labels: BoolArray | None = None,
    progress: Progress = ignore,
    also: Sequence[str] = (),
) -> Survey:
    """Read groups and labels of a table that may have no rows.

    Other columns are read ``also``, to see that they can be.
    """
    index = GroupIndex()
    label = columns.label if labels is None else None
    n_rows, n_chosen = 0, index.sizes
    for batch in batches(table, columns.group, label, *also):
        numbers = index.add(batch, columns.group)
        flags = flags_of(batch, label, labels)
        if flags is not None:
            n_chosen = index.counted(n_chosen, numbers[flags])
        n_rows = batch.end
        progress("reading", n_rows, 0)
    has_labels = label is not None or labels is not None
    return Survey(columns, index, n_rows, n_chosen if has_labels else None)


def learn_encoding(
    table: Table,
    found: Survey,
    numbers: IntArray | None = None,
    progress: Progress = ignore,
) -> Encoding:
    """Learn how columns become features, from the rows of some groups or of all.

    ``found`` is the survey of the same table, ``numbers`` are those of the groups.
    Statistics of files are merged in one order, with or without an engine.
    """
    is_wanted = np.full(len(found.index), numbers is None)
    is_wanted[numbers if numbers is not None else []] = True

    def parts() -> Iterator[ColumnStatistics]:
        first = 0
        for part in parts_of(table):
            statistics = column_statistics(part, found, is_wanted, progress, first)
            first += statistics.n_rows
            yield statistics

    return add_in_tree(ColumnStatistics.merged, parts()).encoding()


def column_statistics(
    table: Table,
    found: Survey,
    is_wanted: BoolArray,
    progress: Progress = ignore,
    first: int = 0,
) -> ColumnStatistics:
    """Return the column statistics of wanted groups, given one flag a group.

    In messages, rows are counted with those ``first`` before this part of a table.
    """
    columns = found.columns
    statistics = ColumnStatistics(columns, table.schema)
    names = columns.features()
    for batch in batches(table, columns.group, *names, first=first) if names else ():
        groups = found.index.numbers(batch, columns.group)
        statistics.add(batch, is_wanted[groups])
        progress("looking at columns", batch.end, 0)
    return statistics


def refuse_labels_among(names: Sequence[str], table: Table, labels: BoolArray) -> None:
    """Refuse columns that were taken for features and are the labels themselves."""
    same = dict.fromkeys(names, True)
    for batch in batches(table, *names):
        here = pa.array(labels[batch.first : batch.end])
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


def flags_of(
    batch: Batch, label: str | None, labels: BoolArray | None
) -> BoolArray | None:
    """Return which rows are labelled 1: as given, or by a column, if there is one."""
    if labels is None:
        return None if label is None else batch[label].flags()
    if len(labels) < batch.end:
        raise TableError(f"{len(labels)} labels for a table of more rows")
    return labels[batch.first : batch.end]


# Groups to learn from and groups to hold out ------------------------------------------


def usable_groups(survey: Survey, empty_groups: str) -> IntArray:
    """Return numbers of the groups with chosen rows, or of all of them."""
    check_choice("empty_groups", empty_groups, EMPTY_GROUPS)
    n_chosen = survey.n_chosen
    if n_chosen is None:
        raise no_label()
    names = survey.index.names
    if not n_chosen.any():
        where = f" in column {survey.columns.label!r}" if survey.columns.label else ""
        raise TableError(f"no row is labelled 1{where}: nothing was chosen")
    empty = n_chosen == 0
    if empty.any() and empty_groups == "error":
        n_empty, drop = int(empty.sum()), Setting("empty_groups", "drop")
        raise TableError(
            f"{n_empty:,} of {len(names):,} groups "
            f"{'has' if n_empty == 1 else 'have'} no chosen row, the first is "
            f"{names[int(np.argmax(empty))]!r}: leave such groups out (",
            drop,
            "), or take it that nothing was to be chosen there (",
            Setting("empty_groups", "keep"),
            ")",
            fixes=[drop],
        )
    return np.flatnonzero(~empty) if empty_groups == "drop" else np.arange(len(names))


def split(usable: IntArray, fraction: float, seed: int) -> tuple[IntArray, IntArray]:
    """Return numbers of the groups to learn from, and of those to hold out."""
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
