"""Groups that stay in their files, on an engine: some can be brought here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from variegate._typing import IntArray
from variegate.partitions import Engine
from variegate.tables.encoding import Encoding, Surveyor
from variegate.tables.folder.parts import FolderPartition, Reader, in_file
from variegate.tables.folder.scan import FolderSurvey, split_by_file
from variegate.tables.groups import Group, Groups
from variegate.tables.row_texts import row_texts
from variegate.tables.survey import count_groups, look_at

__all__ = ["FolderGroups", "encoding_on", "files_with"]


class FolderGroups(Groups):
    """The groups of a folder, for those who look at some of them.

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
        read = partial(read_groups, reader=self.survey.reader, encoding=self.encoding)
        for groups in self.engine.map(read, files_with(self.survey, numbers)):
            yield from groups

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
                items.append(_Cells(part, rows[low:high], tuple(show)))
        read = partial(read_texts, reader=self.survey.reader)
        found: dict[int, tuple[str, ...]] = {}
        for texts in self.engine.map(read, items):
            found |= texts
        return found


def files_with(found: FolderSurvey, numbers: IntArray) -> list[FolderPartition]:
    """Return the files that have any of some groups, with those that they have."""
    parts = split_by_file(found.partitions, np.sort(numbers))
    return [part for part in parts if part.flags().any()]


def read_groups(
    partition: FolderPartition, reader: Reader, encoding: Encoding
) -> list[Group]:
    """Return the groups of a file that are meant."""
    return list(reader.wanted(partition, encoding))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Some rows and columns of a file."""

    partition: FolderPartition
    rows: IntArray
    show: tuple[str, ...]


def read_texts(item: _Cells, reader: Reader) -> dict[int, tuple[str, ...]]:
    """Return cells of a file by the number of the row in the folder."""
    first = item.partition.first_row
    with in_file(item.partition):
        table = reader.table(item.partition)
        found = row_texts(table, item.rows - first, item.show)
    return {row + first: texts for row, texts in found.items()}


def encoding_on(engine: Engine, found: FolderSurvey, numbers: IntArray) -> Encoding:
    """Learn how columns become features from some groups, file by file.

    The same, bit by bit, as :func:`variegate.tables.survey.learn_encoding`.
    """
    parts = list(split_by_file(found.partitions, numbers))
    look = partial(look_at_file, reader=found.reader)
    return engine.tree_sum(look, parts, Surveyor.merged).encoding()


def look_at_file(partition: FolderPartition, reader: Reader) -> Surveyor:
    """Return what has looked at the groups of a file that are meant."""
    with in_file(partition):
        table = reader.table(partition)
        found = count_groups(table, reader.columns)
        surveyor = look_at(table, found, partition.flags())
    partition.check_unchanged()
    return surveyor
