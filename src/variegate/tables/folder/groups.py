"""Groups that stay in their files, read where an engine works, and as examples."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from variegate._progress import StageProgress, ignore
from variegate._typing import AnyArray, BoolArray, FloatArray, IntArray
from variegate.ground_set import GroundSet
from variegate.partitions import Engine, Partition
from variegate.streaming import Example
from variegate.tables.cells import row_texts
from variegate.tables.encoding import ColumnStatistics, Encoding
from variegate.tables.folder.parts import FileReader, FolderPartition, in_file
from variegate.tables.folder.scan import FolderSurvey, split_by_file
from variegate.tables.groups import Group, Groups, field_of
from variegate.tables.model_file import encode_encoding
from variegate.tables.survey import column_statistics, count_groups
from variegate.tables.table import TableError

R = TypeVar("R")


class FolderGroups(Groups):
    """The groups of a folder, of which some are read when they are asked for.

    Nothing is held here but what the scan found.  Groups are read where the engine
    works, and come one file after another.
    """

    survey: FolderSurvey

    def __init__(
        self, survey: FolderSurvey, encoding: Encoding, engine: Engine
    ) -> None:
        self.survey = survey
        self.encoding = encoding
        self.engine = engine
        self._unknown = {}

    def __iter__(self) -> Iterator[Group]:
        return self.only(np.arange(len(self)))

    def only(self, numbers: IntArray) -> Iterator[Group]:
        """Bring the groups with these numbers here, in their order."""
        for groups in self.map(list, numbers):
            yield from groups

    def map(
        self,
        function: Callable[[Iterable[Group]], R],
        numbers: IntArray,
        progress: StageProgress = ignore,
    ) -> Iterator[R]:
        """Yield a function of the groups with these numbers, of one file at a time."""
        parts = split_by_file(self.survey.partitions, np.sort(numbers))
        files = [part for part in parts if part.flags().any()]
        work = partial(
            on_file,
            function=function,
            reader=self.survey.reader,
            encoding=self.encoding,
        )
        return self.engine.map(work, files, progress)

    def texts(self, rows: IntArray, show: Sequence[str]) -> dict[int, tuple[str, ...]]:
        """Return cells of some rows, which are sorted, by the number of the row.

        Without columns to show, their place in the table stands for them.
        """
        if not show:
            return {int(row): (f"row {row + 1}",) for row in rows}
        items = []
        for part in self.survey.partitions:
            ends = part.first_row, part.first_row + part.n_rows
            low, high = np.searchsorted(rows, ends).tolist()
            if high > low:
                items.append((part, rows[low:high]))
        read = partial(read_texts, reader=self.survey.reader, show=tuple(show))
        found: dict[int, tuple[str, ...]] = {}
        for texts in self.engine.map(read, items):
            found |= texts
        return found


def on_file(
    partition: FolderPartition,
    function: Callable[[Iterable[Group]], R],
    reader: FileReader,
    encoding: Encoding,
) -> R:
    """Call a function on the wanted groups of a file."""
    with in_file(partition):
        return function(reader.wanted(partition, encoding))


def read_texts(
    item: tuple[FolderPartition, IntArray], reader: FileReader, show: tuple[str, ...]
) -> dict[int, tuple[str, ...]]:
    """Return cells of a file by the number of the row in the folder."""
    partition, rows = item
    first = partition.first_row
    with in_file(partition):
        found = row_texts(reader.table(partition), rows - first, show)
    return {row + first: texts for row, texts in found.items()}


def encoding_on(engine: Engine, found: FolderSurvey, numbers: IntArray) -> Encoding:
    """Learn how columns become features from some groups, file by file.

    The same, bit by bit, as :func:`variegate.tables.survey.learn_encoding`.
    """
    parts = list(split_by_file(found.partitions, numbers))
    look = partial(file_statistics, reader=found.reader)
    return engine.tree_sum(look, parts, ColumnStatistics.merged).encoding()


def file_statistics(partition: FolderPartition, reader: FileReader) -> ColumnStatistics:
    """Return the column statistics of the wanted groups of a file."""
    with in_file(partition):
        table = reader.table(partition)
        found = count_groups(table, reader.columns)
        statistics = column_statistics(table, found, partition.flags())
    partition.check_unchanged()
    return statistics


# Groups as examples -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ExampleReader:
    """Reads the groups of a file as examples; what workers are sent."""

    reader: FileReader
    encoding: Encoding

    def read(self, partition: Partition) -> list[Example]:
        """Return the groups of a file that are learned from.

        Their positions are those among all that are learned from.
        """
        assert isinstance(partition, FolderPartition)  # no others are made
        groups = self.reader.groups(partition, self.encoding)
        if groups is None:
            return []
        flags, first = partition.flags(), partition.first_example
        found: list[Example] = []
        with in_file(partition):
            if self.reader.columns.item is not None:
                _refuse_repeated(groups)
            for records in groups.shards():
                found += _examples(records, self.encoding, flags, first + len(found))
        return found


def _refuse_repeated(groups: Groups) -> None:
    """Refuse two rows of a group with the same item."""
    for records in groups.shards():
        order = np.lexsort((records["item"], records["group"]))
        items, numbers = records["item"][order], records["group"][order]
        if ((np.diff(items) == 0) & (np.diff(numbers) == 0)).any():
            for _ in groups:  # which says where
                pass


def _examples(
    records: AnyArray, encoding: Encoding, flags: BoolArray, position: int
) -> list[Example]:
    """Return records, sorted by group, as examples of the groups that are meant.

    All features are checked and copied at once: the time a group takes is that of a
    few slices.
    """
    numbers = records["group"]
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    ends = np.append(firsts[1:], len(records))
    is_meant = flags[numbers]
    quality = _features(records, "quality", is_meant)
    blocks = {
        name: _features(records, field_of(name), is_meant) for name in encoding.blocks
    }
    if len(blocks) == 1:  # goes without a name
        blocks = {"": next(iter(blocks.values()))}
    chosen = np.flatnonzero(records["label"])
    bounds = np.searchsorted(chosen, [firsts, ends])
    wanted = np.flatnonzero(is_meant[firsts]).tolist()
    places = np.array([firsts, ends, *bounds]).T.tolist()
    found = []
    for place, group in enumerate(wanted, position):
        first, end, low, high = places[group]
        ground_set = GroundSet.of_checked(
            quality[first:end],
            {name: block[first:end] for name, block in blocks.items()} or None,
        )
        members = chosen[low:high] - first
        found.append(Example(place, ground_set, members, 1.0, 1.0))
    return found


def _features(records: AnyArray, name: str, is_meant: BoolArray) -> FloatArray:
    """Return features of all rows as a read-only matrix."""
    matrix = np.array(records[name], dtype=np.float64, order="C")
    bad = ~np.isfinite(matrix).all(axis=1) & is_meant
    if bad.any():
        row = records["row"][int(np.argmax(bad))] + 1
        raise TableError(
            f"row {row} has a {name.split()[0]} feature that is no finite number: its "
            "cells are too far from those that features were learned from"
        )
    matrix.flags.writeable = False
    return matrix


@dataclass(frozen=True, eq=False)
class FolderSource:
    """Examples in the files of a folder, a :class:`variegate.partitions.Source`.

    Parameters
    ----------
    partitions : tuple of FolderPartition
        Each with the groups of it that are learned from.
    examples : ExampleReader
    """

    partitions: tuple[FolderPartition, ...]
    examples: ExampleReader

    @cached_property
    def key(self) -> str:
        """A hash of the files as they were listed, of groups and of features."""
        encoding = self.examples.encoding
        columns = asdict(self.examples.reader.columns)
        said = [columns, encode_encoding(encoding), encoding.missing]
        digest = hashlib.sha256(json.dumps(said).encode())
        for partition in self.partitions:
            digest.update(repr(partition).encode())
        return digest.hexdigest()

    def reader(self) -> ExampleReader:
        """Return the reader, which is sent to workers."""
        return self.examples

    def read(self, partition: Partition) -> list[Example]:
        """Return the groups of a file that are learned from."""
        return self.examples.read(partition)
