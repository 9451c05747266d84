"""Rows of a table: in memory, in a file, or shuffled to buckets.

Every table is a sequence of :class:`Rows`: a table in memory is one, a folder has one a
file.  After the survey, so is every partition of groups.  A :class:`RowReader` reads
their columns, and is sent with them to the workers of an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate._progress import StageProgress
from variegate._typing import IntArray
from variegate.partitions import Engine, Partition
from variegate.partitions.engine import is_local
from variegate.tables.batches import with_row_offsets
from variegate.tables.cells import Batch
from variegate.tables.columns import Columns
from variegate.tables.derived import Derivation
from variegate.tables.errors import TableError
from variegate.tables.reading import TableFile

if TYPE_CHECKING:
    from variegate.tables.table import MemoryTable

R = TypeVar("R")

#: Types whose rows Arrow cannot reorder, and types with the same values whose it can.
_STORED = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


class Rows(Protocol):
    """Some rows of a table, read in batches as often as needed."""

    @property
    def path(self) -> str:
        """The path of the file, or the name of the table, for messages."""
        ...

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield the columns with these names, all rows in batches."""
        ...

    def check_unchanged(self) -> None:
        """Refuse a file that has changed since it was listed."""
        ...


@dataclass(frozen=True, eq=False)
class MemoryRows:
    """Rows of a table in memory: ``first`` to ``end``, or with these ``numbers``."""

    table: MemoryTable
    first: int
    end: int
    numbers: IntArray | None = None

    is_seekable = True

    @property
    def path(self) -> str:
        """The name of the table."""
        return self.table.name

    def part(self, first: int, end: int) -> MemoryRows:
        """Return rows ``first`` to ``end - 1``, counted within these rows."""
        return replace(self, first=self.first + first, end=self.first + end)

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield the columns with these names, all rows in batches."""
        table = self.table.table.select(list(names))
        if self.numbers is None:
            table = table.slice(self.first, self.end - self.first)
            for first, rows in with_row_offsets(table.to_batches(), self.first):
                if rows.num_rows:
                    yield Batch(rows, first)
            return
        table = table.cast(sortable_schema(table.schema)).take(pa.array(self.numbers))
        for first, rows in with_row_offsets(table.to_batches()):
            here = self.numbers[first : first + rows.num_rows]
            yield Batch(rows, numbers=here)

    def check_unchanged(self) -> None:
        """Do nothing: a table in memory is not written to."""


@dataclass(frozen=True)
class FileRows:
    """Rows of a file as it was when it was listed; without an end, to the last.

    ``schema`` is that of a folder, whose files are opened by the workers and compared
    with it; a single file is ``table``.
    """

    file: Partition
    first: int = 0
    end: int | None = None
    table: TableFile | None = field(default=None, compare=False, repr=False)
    schema: pa.Schema | None = field(default=None, compare=False, repr=False)

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.file.path

    @property
    def is_seekable(self) -> bool:
        """Whether rows in the middle are found without reading those before."""
        return self.table is None or self.table.is_seekable

    def part(self, first: int, end: int) -> FileRows:
        """Return rows ``first`` to ``end - 1``, counted within these rows."""
        first, end = self.first + first, self.first + end
        return replace(self, first=first, end=end, schema=None)  # it was compared

    def batches(self, names: Sequence[str]) -> Iterator[Batch]:
        """Yield the columns with these names, rows numbered as in the file."""
        table, path = self.table, ""
        if table is None:
            table, path = open_file(self.file, self.schema), self.path
        for first, rows in table.row_range(names, self.first, self.end):
            yield Batch(rows, first, path=path)

    def check_unchanged(self) -> None:
        """Refuse a file that has changed since it was listed."""
        self.file.check_unchanged()


def map_rows(
    engine: Engine,
    function: Callable[..., R],
    items: Sequence[Any],
    progress: StageProgress,
    total: int = 0,
) -> Iterator[R]:
    """Yield ``function(item)`` for each item, in this order, and report progress.

    In this process, the function gets an argument ``told``, to call with a number of
    finished rows (or groups); ``progress`` gets their sum and ``total``.  Where other
    processes work, ``progress`` gets the numbers of finished and of all items.
    """
    if not is_local(engine):
        return engine.map(function, items, progress)
    told = accumulate_progress(progress, total)
    return engine.map(partial(function, told=told), items)


def accumulate_progress(
    progress: StageProgress, total: int = 0
) -> Callable[[int], object]:
    """Return a callback that adds up numbers of rows, and reports sum and total."""
    n_rows = 0

    def add_count(n_read: int) -> None:
        """Add a number of rows, and report the sum."""
        nonlocal n_rows
        n_rows += n_read
        progress(n_rows, total)

    return add_count


@dataclass(frozen=True)
class RowReader:
    """Reads columns of rows; vectors and ages of ``columns`` are made from others.

    Small, as it is sent to workers.  ``schema`` is that of the columns to read, from
    which vectors and ages are made.
    """

    schema: pa.Schema
    columns: Columns

    @cached_property
    def derivation(self) -> Derivation:
        """How vectors and ages are made from other columns."""
        return Derivation(self.schema, self.columns)

    def batches(self, rows: Sequence[Rows], *names: str | None) -> Iterator[Batch]:
        """Yield batches of the columns ``names``, each once; None is passed over.

        Without names, batches have the first column.  Errors name the file of a folder.
        A file that changes meanwhile is refused.
        """
        named = [name for name in dict.fromkeys(names) if name is not None]
        # Rows cannot be counted without a column.
        named = named or self.derivation.schema.names[:1]
        for piece in rows:
            piece.check_unchanged()
            for batch in piece.batches(self.derivation.source_columns(named)):
                yield self.derivation.derive_columns(batch, named)
            piece.check_unchanged()

    def read_all(self, rows: Sequence[Rows], *names: str | None) -> Batch:
        """Return columns ``names`` of all rows (not none) as one batch; skip None."""
        return Batch.joined(list(self.batches(rows, *names)))


class GroupIndex:
    """Groups of some rows, numbered in the order of their first rows."""

    def __init__(self) -> None:
        #: The value of the group column for every group.
        self.names: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self.names)

    def numbers(self, batch: Batch, name: str | None) -> IntArray:
        """Return the group number of every row, (n_rows,); 0 without a column ``name``.

        Groups that are new get the next numbers, and are added to ``names``.
        """
        if name is None:
            self.names = self.names or ["all rows"]
            return np.zeros(len(batch), dtype=np.int64)
        keys = pc.dictionary_encode(batch[name].keys())
        here = []
        for key in keys.dictionary.to_pylist():
            number = self._numbers.setdefault(key, len(self.names))
            if number == len(self.names):
                self.names.append(key)
            here.append(number)
        indices = keys.indices.to_numpy(zero_copy_only=False)
        return np.asarray(np.array(here, dtype=np.int64)[indices])


def sortable_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with views of text and bytes as types that Arrow can reorder.

    ``string_view`` becomes ``large_string``, and ``binary_view`` ``large_binary``.
    """
    fields = [one.with_type(_STORED.get(one.type, one.type)) for one in schema]
    return pa.schema(fields, schema.metadata)


def check_sortable(schema: pa.Schema) -> None:
    """Refuse columns whose rows Arrow cannot put in another order."""
    for column in unsortable_columns(schema):
        raise TableError(
            f"column {column.name!r} holds {column.type} values, which Arrow "
            "cannot put in another order; convert it"
        )


def unsortable_columns(schema: pa.Schema) -> list[pa.Field]:
    """Return the columns whose rows Arrow cannot put in another order."""
    found = []
    for column in sortable_schema(schema):
        try:
            pa.nulls(1, column.type).take(pa.array([0]))
        except pa.ArrowNotImplementedError:
            found.append(column)
    return found


# Files --------------------------------------------------------------------------------


def open_file(partition: Partition, schema: pa.Schema | None = None) -> TableFile:
    """Open the file of a partition, which must be as it was listed.

    Its columns must be those of ``schema``, if one is given.
    """
    partition.check_unchanged()
    table = TableFile(partition.path)
    difference = "" if schema is None else _schema_difference(table.schema, schema)
    if difference:
        raise TableError(
            f"{partition.path} {difference}: all files of a folder must have the same "
            "columns"
        )
    return table


def _schema_difference(found: pa.Schema, expected: pa.Schema) -> str:
    """Return how a file differs from the first of a folder, as text; "" if equal."""
    for name in dict.fromkeys((*expected.names, *found.names)):
        if name not in found.names:
            return f"has no column {name!r}, which the first file has"
        if name not in expected.names:
            return f"has a column {name!r}, which the first file has not"
        here, there = found.field(name).type, expected.field(name).type
        if here != there:
            return f"holds {here} in column {name!r}, where the first file has {there}"
    return ""
