"""The first readings of a table: its groups and labels, then what its columns hold.

How columns become features is learned from some of the groups only, so that those which
are held out have no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate._typing import BoolArray, IntArray
from variegate.tables.cells import as_flags, as_keys
from variegate.tables.columns import Columns
from variegate.tables.encoding import Encoding, Surveyor
from variegate.tables.table import Progress, Table, TableError, ignore

__all__ = ["GroupIndex", "Survey", "learn_encoding", "refuse_labels_among", "survey"]


class GroupIndex:
    """Groups, numbered in the order of their first rows.

    Attributes
    ----------
    names : list
        The value of the group column for every group.
    sizes : array of int
        Rows of each.
    """

    def __init__(self) -> None:
        self.names: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._sizes = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> IntArray:
        """The number of rows of every group."""
        return self._sizes[: len(self.names)]

    def add(self, batch: Any, name: str | None, first_row: int) -> IntArray:
        """Count some rows, and return the number of the group of each."""
        numbers = self.numbers(batch, name, first_row, grow=True)
        missing = len(self.names) - len(self._sizes)
        if missing > 0:
            # Twice the room, so that a million groups are not copied a million times.
            room = np.zeros(max(missing, len(self._sizes)), dtype=np.int64)
            self._sizes = np.concatenate([self._sizes, room])
        self._sizes += np.bincount(numbers, minlength=len(self._sizes))
        return numbers

    def numbers(
        self, batch: Any, name: str | None, first_row: int, *, grow: bool = False
    ) -> IntArray:
        """Return the number of the group of every row."""
        if name is None:
            if grow and not self.names:
                self.names, self._numbers = ["all rows"], {"all rows": 0}
            return np.zeros(batch.num_rows, dtype=np.int64)
        keys = pc.dictionary_encode(as_keys(batch.column(name), name, first_row))
        here = []
        for key in keys.dictionary.to_pylist():
            number = self._numbers.get(key)
            if number is None:
                if not grow:
                    raise TableError(
                        f"the table changed while it was read: group {key!r} is new"
                    )
                number = self._numbers[key] = len(self.names)
                self.names.append(key)
            here.append(number)
        indices = keys.indices.to_numpy(zero_copy_only=False)
        return np.asarray(np.array(here, dtype=np.int64)[indices])


@dataclass(frozen=True, eq=False)
class Survey:
    """What a first reading found.

    Attributes
    ----------
    columns : Columns
        Resolved.
    index : GroupIndex
    n_rows : int
    n_chosen : array of int, or None
        How many rows of each group are labelled 1.
    """

    columns: Columns
    index: GroupIndex
    n_rows: int
    n_chosen: IntArray | None


def survey(
    table: Table,
    columns: Columns,
    labels: BoolArray | None = None,
    progress: Progress = ignore,
) -> Survey:
    """Read the groups and the labels of a table.

    Parameters
    ----------
    table : Table
    columns : Columns
        Resolved.
    labels : array of bool, optional
        The label of every row, in place of a column.
    progress : callable, optional
    """
    index = GroupIndex()
    label = columns.label if labels is None else None
    parts = [name for name in (columns.group, label) if name is not None]
    n_rows = 0
    n_chosen = np.zeros(0, dtype=np.int64)
    # Rows cannot be counted without a column.
    for batch in table.batches(parts or table.schema.names[:1]):
        numbers = index.add(batch, columns.group, n_rows)
        flags = _flags(batch, label, labels, n_rows, is_untyped=table.is_untyped)
        if flags is not None:
            here = np.bincount(numbers[flags], minlength=len(index))
            here[: len(n_chosen)] += n_chosen
            n_chosen = here
        n_rows += batch.num_rows
        progress("reading", n_rows, 0)
    if n_rows == 0:
        raise TableError(f"{table.name} has no rows")
    if labels is not None and len(labels) != n_rows:
        raise TableError(f"{len(labels)} labels for a table of {n_rows} rows")
    has_labels = label is not None or labels is not None
    return Survey(columns, index, n_rows, n_chosen if has_labels else None)


def learn_encoding(
    table: Table,
    found: Survey,
    numbers: IntArray | None = None,
    progress: Progress = ignore,
) -> Encoding:
    """Learn how columns become features, from the rows of some groups.

    Parameters
    ----------
    table : Table
    found : Survey
        Of the same table.
    numbers : array of int, optional
        The groups; all of them by default.
    progress : callable, optional
    """
    columns = found.columns
    surveyor = Surveyor(columns, table.schema, table.is_untyped)
    is_wanted = np.full(len(found.index), numbers is None)
    is_wanted[numbers if numbers is not None else []] = True
    names = [name for name in (columns.group, *columns.features()) if name is not None]
    n_rows = 0
    for batch in table.batches(list(dict.fromkeys(names))) if names else ():
        groups = found.index.numbers(batch, columns.group, n_rows)
        surveyor.add(batch, n_rows, is_wanted[groups])
        n_rows += batch.num_rows
        progress("looking at columns", n_rows, 0)
    return surveyor.encoding()


def refuse_labels_among(names: Sequence[str], table: Table, labels: BoolArray) -> None:
    """Refuse columns that were taken for features and are the labels themselves."""
    same = dict.fromkeys(names, True)
    first = 0
    for batch in table.batches(list(names)):
        here = pa.array(labels[first : first + batch.num_rows])
        for name in names:
            kind = batch.column(name).type
            same[name] = same[name] and batch.column(name).equals(
                here.cast(kind) if not pa.types.is_decimal(kind) else here
            )
        first += batch.num_rows
    for name in names:
        if same[name]:
            raise TableError(
                f"column {name!r} holds the labels: name it as label, or name the "
                "quality columns"
            )


def _flags(
    batch: Any,
    label: str | None,
    labels: BoolArray | None,
    first_row: int,
    *,
    is_untyped: bool,
) -> BoolArray | None:
    if labels is not None:
        if len(labels) < first_row + batch.num_rows:
            raise TableError(f"{len(labels)} labels for a table of more rows")
        return labels[first_row : first_row + batch.num_rows]
    if label is None:
        return None
    return as_flags(batch.column(label), label, first_row, is_untyped=is_untyped)
