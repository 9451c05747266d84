"""The last reading: rows as records of numbers, brought together group by group.

A row is one fixed-size record (group, row, item, label, cost, relevance, quality,
similarity).  Where all of them take little memory they are held in it.  Where they do
not, they are dealt out to shards, each of a range of groups, on an unnamed temporary
file that vanishes with the process; a shard is then read and sorted when its turn
comes.  So the rows of a group may be scattered over the table, and memory holds no more
than a shard.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from variegate._progress import Progress, ignore
from variegate._typing import AnyArray, BoolArray, FloatArray, IntArray
from variegate.application.refusal import Setting
from variegate.application.table_defaults import MEMORY
from variegate.ground_set import GroundSet, GroundSetError, ValidationError
from variegate.tables.cells import Batch, Cells, batches, row_texts
from variegate.tables.encoding import Encoding
from variegate.tables.survey import Survey, flags_of
from variegate.tables.table import Table, TableError

#: Bytes of records in a shard.
_SHARD = 32 * 2**20


@dataclass(frozen=True, eq=False)
class Group:
    """The rows of one group, in the order of the table.

    ``rows`` says where they are in the table.  Of N rows, the quality is an array of
    shape (N, d) and each block of the similarity, if the quality does not serve both
    purposes, one of shape (N, p); labels, costs and relevance are of shape (N,).
    """

    name: Any
    number: int
    rows: IntArray
    quality: FloatArray
    blocks: dict[str, FloatArray]
    chosen: BoolArray | None
    costs: FloatArray | None
    relevance: FloatArray | None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def ground_set(self) -> GroundSet:
        """The group as a ground set; a single block goes without a name."""
        return self.take(slice(None))

    def take(self, rows: Any) -> GroundSet:
        """Return some rows as a ground set."""
        blocks = {name: block[rows] for name, block in self.blocks.items()}
        similarity = blocks if len(blocks) > 1 else next(iter(blocks.values()), None)
        costs = None if self.costs is None else self.costs[rows]
        return GroundSet(self.quality[rows], similarity, costs)

    def wanted(self) -> IntArray:
        """Return the rows that are labelled 1."""
        if self.chosen is None:
            raise TableError("there are no labels to compare with")
        return np.flatnonzero(self.chosen)

    def embeddings(self) -> FloatArray:
        """Return all similarity features side by side, for methods without kernels."""
        blocks = list(self.blocks.values()) or [self.quality]
        return blocks[0] if len(blocks) == 1 else np.column_stack(blocks)


class Groups:
    """The groups of a table, in the order of their first rows, again and again.

    ``survey`` is what the first reading of the same table found; ``labels`` are those
    of every row, in place of a column; ``memory`` is the most bytes of records to hold.
    """

    def __init__(
        self,
        table: Table,
        survey: Survey,
        encoding: Encoding,
        labels: BoolArray | None = None,
        memory: int = MEMORY,
        progress: Progress = ignore,
    ) -> None:
        self.survey = survey
        self.encoding = encoding
        self._table = table
        self._labels = labels
        self._type = _record_type(survey, encoding)
        self._unknown: dict[str, int] = {}
        fits_in_memory = survey.n_rows * self._type.itemsize <= memory
        records = self._records(table, progress)
        self._shards: Iterable[AnyArray] = (
            _held(records, survey.n_rows, self._type)
            if fits_in_memory
            else _Spooled(records, survey.index.sizes, self._type)
        )

    def __len__(self) -> int:
        return len(self.survey.index)

    def __iter__(self) -> Iterator[Group]:
        for shard in self._shards:
            breaks = (np.flatnonzero(np.diff(shard["group"])) + 1).tolist()
            for first, end in pairwise([0, *breaks, len(shard)]):
                yield self._group(shard[first:end])

    def only(self, numbers: IntArray) -> Iterator[Group]:
        """Yield the groups with these numbers, in their order."""
        wanted = np.zeros(len(self), dtype=bool)
        wanted[numbers] = True
        return (group for group in self if wanted[group.number])

    def examples(self, numbers: IntArray) -> tuple[list[GroundSet], list[IntArray]]:
        """Return the groups with these numbers as ground sets and subsets."""
        some = list(self.only(numbers))
        return [group.ground_set for group in some], [group.wanted() for group in some]

    def texts(self, rows: IntArray, show: Sequence[str]) -> dict[int, tuple[str, ...]]:
        """Return cells of some rows as text: see :func:`row_texts`."""
        return row_texts(self._table, rows, show)

    def shards(self) -> Iterator[AnyArray]:
        """Yield the records of some groups after others, sorted by group."""
        return iter(self._shards)

    @contextmanager
    def named(
        self, numbers: IntArray, validation: IntArray | None = None
    ) -> Iterator[None]:
        """Call ground sets by the names of the groups that they were made of.

        These have ``numbers``, in the order of the ground sets; those that are only
        judged by have the numbers ``validation``.
        """
        try:
            yield
        except GroundSetError as error:
            if isinstance(error, ValidationError) and validation is not None:
                numbers = validation
            name = self.survey.index.names[numbers[error.position]]
            raise TableError(f"group {name!r}: {in_rows(error.problem)}") from error

    def unknown_levels(self) -> dict[str, int]:
        """Return how many rows of which columns have categories never seen before."""
        return dict(self._unknown)

    def _records(self, table: Table, progress: Progress) -> Iterator[AnyArray]:
        """Read the table as records, in the order of its rows."""
        columns = self.survey.columns
        label = columns.label if self._labels is None else None
        parts = (columns.group, label, columns.item, columns.cost, columns.relevance)
        features = [column.name for column in self.encoding.columns()]
        n_rows = 0
        for batch in batches(table, *parts, *features):
            records = np.zeros(len(batch), dtype=self._type)
            self._fill_parts(records, batch)
            self._fill_features(records, batch)
            yield records
            n_rows = batch.end
            progress("encoding", n_rows, 0)
        if n_rows != self.survey.n_rows:
            raise TableError(f"{table.name} changed while it was read")

    def _fill_parts(self, records: AnyArray, batch: Batch) -> None:
        """Fill in group, row, item, label, cost and relevance."""
        columns = self.survey.columns
        records["group"] = self.survey.index.numbers(batch, columns.group)
        records["row"] = np.arange(batch.first, batch.end)
        if columns.item is not None:
            keys = batch[columns.item].keys()
            # Of text: two items of a group share such a hash once in ages, while
            # those of the numbers -1 and -2 are equal.
            records["item"] = [hash(repr(key)) for key in keys.to_pylist()]
        flags = flags_of(batch, columns.label, self._labels)
        if flags is not None:
            records["label"] = flags
        if columns.cost is not None:
            records["cost"] = costs_of(batch[columns.cost])
        if columns.relevance is not None:
            cells = batch[columns.relevance]
            numbers = self.encoding.filled(cells.name, cells.numbers())
            records["relevance"] = _all_there(numbers, cells, "relevance")

    def _fill_features(self, records: AnyArray, batch: Batch) -> None:
        """Fill in quality and similarity, and count what was not there in training."""
        encoding = self.encoding
        records["quality"] = encoding.encode(encoding.quality, batch)
        for block, columns in encoding.blocks.items():
            records[field_of(block)] = encoding.encode(columns, batch)
        for name, column in {c.name: c for c in encoding.columns()}.items():
            n_unknown = column.n_unknown(batch[name])
            if n_unknown:
                self._unknown[name] = self._unknown.get(name, 0) + n_unknown

    def _group(self, records: AnyArray) -> Group:
        columns = self.survey.columns
        number = int(records["group"][0])
        name = self.survey.index.names[number]
        if columns.item is not None:
            _check_unique(records, columns.item, name)
        has_labels = columns.label is not None or self._labels is not None
        return Group(
            name,
            number,
            records["row"].astype(np.int64),
            records["quality"].astype(np.float64),
            {
                block: records[field_of(block)].astype(np.float64)
                for block in self.encoding.blocks
            },
            records["label"].astype(bool) if has_labels else None,
            records["cost"].copy() if columns.cost is not None else None,
            records["relevance"].copy() if columns.relevance is not None else None,
        )


def in_rows(problem: str) -> str:
    """Return a problem of a ground set in the words of tables, rows counted from 1."""
    problem = re.sub(
        r"\bitem (\d+)\b", lambda found: f"its row {int(found[1]) + 1}", problem
    )
    problem = problem.replace("is in the subset", "was chosen")
    for word, meant in (("ground set", "group"), ("item", "row")):
        problem = re.sub(rf"\b{word}(s?)\b", rf"{meant}\1", problem)
    return problem


def field_of(block: str) -> str:
    """Return the name of a block of the similarity in records."""
    return f"similarity {block}"


def _record_type(survey: Survey, encoding: Encoding) -> np.dtype[Any]:
    width = sum(column.size for column in encoding.quality)
    fields: list[Any] = [("group", "i8"), ("row", "i8"), ("label", "?")]
    fields += [("item", "i8")] * (survey.columns.item is not None)
    fields += [("cost", "f8")] * (survey.columns.cost is not None)
    fields += [("relevance", "f8")] * (survey.columns.relevance is not None)
    fields.append(("quality", "f8", (width,)))
    for block, columns in encoding.blocks.items():
        # Directions are at most 1; other numbers may be larger than those learned from.
        fits = all(
            column.is_single and column.kind == "direction" for column in columns
        )
        kind = "f4" if fits else "f8"
        width = sum(column.size for column in columns)
        fields.append((field_of(block), kind, (width,)))
    return np.dtype(fields)


def costs_of(cells: Cells) -> FloatArray:
    """Return costs, all of which must be above zero."""
    costs = _all_there(cells.numbers(), cells, "cost")
    bad = costs <= 0.0
    if bad.any():
        raise TableError(
            f"column {cells.name!r}, the cost, holds {costs[bad][0]:g} in row "
            f"{cells.row(bad)}: costs must be above zero"
        )
    return costs


def _all_there(numbers: FloatArray, cells: Cells, part: str) -> FloatArray:
    bad = np.isnan(numbers)
    if bad.any():
        raise TableError(
            f"column {cells.name!r}, the {part}, has no value in row "
            f"{cells.row(bad)}: correct it, or name another column"
        )
    return numbers


def _check_unique(records: AnyArray, item: str, group: Any) -> None:
    order = np.argsort(records["item"], kind="stable")
    same = np.flatnonzero(np.diff(records["item"][order]) == 0)
    if len(same):
        first, second = records["row"][order[[same[0], same[0] + 1]]] + 1
        raise repeated_item(first, second, group, item)


def repeated_item(first: int, second: int, group: Any, item: str) -> TableError:
    """Return the error of two rows of a group with the same item."""
    return TableError(
        f"rows {first} and {second} of group {group!r} have the same {item!r}: "
        "items of a group must differ, unless you leave out ",
        Setting("item"),
        fixes=[Setting("item", left_out=True)],
    )


def _sorted(records: AnyArray) -> AnyArray:
    """Return records by group, those of a group in the order of the table."""
    numbers = records["group"]
    if (np.diff(numbers) >= 0).all():
        return records
    return records[np.argsort(numbers, kind="stable")]


def _held(
    pieces: Iterable[AnyArray], n_rows: int, kind: np.dtype[Any]
) -> list[AnyArray]:
    """Return records in memory, as a single shard."""
    records = np.empty(n_rows, dtype=kind)
    first = 0
    for piece in pieces:
        # A table that has grown is refused at its end.
        records[first : first + len(piece)] = piece[: max(n_rows - first, 0)]
        first += len(piece)
    return [_sorted(records)]


def _no_room() -> str:
    return (
        f"there is no room for temporary files in {tempfile.gettempdir()}: set TMPDIR "
        "to a folder on another disk, or allow more memory"
    )


def _check_room(n_bytes: int) -> None:
    """Refuse, before the work, what a disk has no room for."""
    if n_bytes > shutil.disk_usage(tempfile.gettempdir()).free:
        raise OSError(f"{n_bytes / 1e9:.1f} GB are needed, but {_no_room()}")


class _Spooled:
    """Records on a temporary file, in shards of consecutive groups."""

    def __init__(
        self, pieces: Iterable[AnyArray], sizes: IntArray, kind: np.dtype[Any]
    ) -> None:
        self._type = kind
        ends = np.cumsum(sizes) * kind.itemsize
        # No more than about a thousand shards, so that their pieces are not tiny.
        size = max(_SHARD, int(ends[-1]) // 1000)
        #: The shard of every group: that in which its last byte would be.
        self._shard_of = (ends - 1) // size
        _check_room(int(ends[-1]))
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        #: Where the pieces of each shard are: offsets and numbers of records.
        self._pieces: dict[int, list[tuple[int, int]]] = {}
        for piece in pieces:
            self._write(piece)

    def _write(self, records: AnyArray) -> None:
        shards = self._shard_of[records["group"]]
        if (np.diff(shards) < 0).any():
            order = np.argsort(shards, kind="stable")
            records, shards = records[order], shards[order]
        bounds = [0, *(np.flatnonzero(np.diff(shards)) + 1).tolist(), len(records)]
        for first, end in pairwise(bounds):
            place = (self._file.tell(), end - first)
            self._pieces.setdefault(int(shards[first]), []).append(place)
            try:
                records[first:end].tofile(self._file)
            except OSError as error:
                raise OSError(_no_room()) from error

    def __iter__(self) -> Iterator[AnyArray]:
        """Yield shards of sorted records."""
        for shard in sorted(self._pieces):
            yield self._read(self._pieces[shard])

    def _read(self, pieces: list[tuple[int, int]]) -> AnyArray:
        records = np.empty(sum(count for _, count in pieces), dtype=self._type)
        first = 0
        for offset, count in pieces:
            self._file.seek(offset)
            records[first : first + count] = np.fromfile(self._file, self._type, count)
            first += count
        return _sorted(records)
