"""The first reading of a folder on an engine: rows, groups and labels of every file.

The driver holds two numbers of 4 bytes a group, how many rows it has and how many of
them are chosen, for a moment some 30 bytes more to compare groups of files, and no
names: one that is needed for a message is read from its file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from variegate._progress import Progress, ignore
from variegate._typing import IntArray
from variegate.application.refusal import Setting
from variegate.partitions import Engine, Partition, UnreadablePartitionError
from variegate.report.wording import count
from variegate.tables.columns import Columns
from variegate.tables.folder.files import FolderTable
from variegate.tables.folder.parts import FileReader, FolderPartition, in_file
from variegate.tables.folder.repeated_groups import hash_of, refuse_repeated_groups
from variegate.tables.survey import GroupIndex, Survey, count_groups
from variegate.tables.table import TableError

#: Files that a message names.
_NAMED = 5


class Scanned(NamedTuple):
    """Counts of a file: its rows, and the size, choices and hash of every group."""

    n_rows: int
    sizes: NDArray[np.int32]
    n_chosen: NDArray[np.int32] | None
    #: Sorted, and so not in the order of the groups.
    hashes: NDArray[np.uint64]


def scan_file(
    partition: Partition, reader: FileReader, also: tuple[str, ...] = ()
) -> Scanned | UnreadablePartitionError:
    """Count the groups of a file, or return why it cannot be read."""
    try:
        with in_file(partition):
            table = reader.table(partition)
            found = count_groups(table, reader.columns, also=also)
        partition.check_unchanged()
    except UnreadablePartitionError as error:
        return error
    hashes = np.array([hash_of(name) for name in found.index.names], dtype=np.uint64)
    hashes.sort()
    n_chosen = None if found.n_chosen is None else found.n_chosen.astype(np.int32)
    sizes = found.index.sizes.astype(np.int32)
    return Scanned(found.n_rows, sizes, n_chosen, hashes)


@dataclass(frozen=True, eq=False)
class FolderSurvey(Survey):
    """The survey of a folder.

    ``partitions`` are the files that can be read; ``unreadable`` names the others, if
    it was asked that they be left out.
    """

    reader: FileReader = field(kw_only=True)
    partitions: tuple[FolderPartition, ...] = field(kw_only=True)
    unreadable: tuple[str, ...] = field(kw_only=True)

    def to_bytes(self) -> bytes:
        """Return the counts, for a run store."""
        arrays = {
            "sizes": self.index.sizes,
            "files": np.array([(p.n_rows, p.n_groups) for p in self.partitions]),
            "paths": np.array([p.path for p in self.partitions]),
            "unreadable": np.array(self.unreadable, dtype=np.str_),
        }
        if self.n_chosen is not None:
            arrays["n_chosen"] = self.n_chosen
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **arrays)
        return content.getvalue()

    @classmethod
    def from_bytes(
        cls, content: bytes, folder: FolderTable, reader: FileReader
    ) -> FolderSurvey:
        """Return the survey of the same folder that :meth:`to_bytes` wrote."""
        with np.load(io.BytesIO(content), allow_pickle=False) as known:
            listed = {partition.path: partition for partition in folder.partitions}
            counted = zip(known["paths"].tolist(), known["files"].tolist(), strict=True)
            return _survey(
                folder,
                reader,
                [(listed[path], *numbers) for path, numbers in counted],
                known["sizes"],
                known.get("n_chosen"),
                known["unreadable"].tolist(),
            )


def scan(
    folder: FolderTable,
    reader: FileReader,
    engine: Engine,
    skip_unreadable: bool = False,
    progress: Progress = ignore,
) -> FolderSurvey:
    """Count the groups of a folder, and refuse those that lie in several files.

    If ``skip_unreadable``, files that cannot be read are left out and named in the
    result; to find them all, every column that is used is read, not those of groups and
    labels alone.

    Raises
    ------
    TableError
        If groups lie in several files, with their names.
    UnreadablePartitionError
        If files cannot be read, the first of them with its problem.
    """
    columns = reader.columns
    used = (columns.item, columns.cost, columns.relevance, *columns.features())
    also = tuple(name for name in used if name is not None) if skip_unreadable else ()
    found: list[tuple[Partition, Scanned]] = []
    unread: list[UnreadablePartitionError] = []
    files, told = folder.partitions, partial(progress, "reading")
    work = partial(scan_file, reader=reader, also=also)
    for file, one in zip(files, engine.map(work, files, told), strict=True):
        if isinstance(one, UnreadablePartitionError):
            unread.append(one)
        else:
            found.append((file, one))
    _refuse_unreadable(unread, found, skip_unreadable)
    _refuse_one_group(reader, found)
    refuse_repeated_groups(
        engine, reader, [part for part, _ in found], [one.hashes for _, one in found]
    )
    chosen = [one.n_chosen for _, one in found if one.n_chosen is not None]
    return _survey(
        folder,
        reader,
        [(part, one.n_rows, len(one.sizes)) for part, one in found],
        np.concatenate([one.sizes for _, one in found]),
        np.concatenate(chosen) if chosen else None,
        [error.path for error in unread],
    )


def _refuse_unreadable(
    unread: Sequence[UnreadablePartitionError],
    found: Sequence[Any],
    skip_unreadable: bool,
) -> None:
    if not unread or (skip_unreadable and found):
        return
    first, *rest = unread
    problem = first.problem
    if rest:
        names = ", ".join(error.path for error in rest[: _NAMED - 1])
        more = len(rest) - _NAMED + 1
        problem += f"; {count(len(rest), 'other file')} cannot be read either: {names}"
        problem += f" and {more} more" if more > 0 else ""
    if found:
        problem += ". With skip_unreadable such files are left out"
    raise UnreadablePartitionError(first.path, problem)


def _refuse_one_group(
    reader: FileReader, found: Sequence[tuple[Partition, Scanned]]
) -> None:
    """Refuse all rows as one group, unless they are in one file."""
    n_files = sum(one.n_rows > 0 for _, one in found)
    if reader.columns.group is None and n_files > 1:
        raise TableError(
            f"without a column of groups all rows are one group, which lies in "
            f"{n_files} files: name the column with ",
            Setting("group"),
        )


def _survey(
    folder: FolderTable,
    reader: FileReader,
    counted: Sequence[tuple[Partition, int, int]],
    sizes: IntArray,
    n_chosen: IntArray | None,
    unreadable: Sequence[str],
) -> FolderSurvey:
    """Put together files with their rows and groups, and counts of all groups."""
    reader = replace(reader, schema=None)  # all files have the same
    partitions = []
    first_row = first_group = 0
    for partition, n_rows, n_groups in counted:
        known = {"n_rows": n_rows, "n_groups": n_groups}
        known |= {"first_row": first_row, "first_group": first_group}
        partitions.append(FolderPartition.at(partition, **known))
        first_row, first_group = first_row + n_rows, first_group + n_groups
    if first_row == 0:
        raise TableError(f"{folder.name} has no rows")
    return FolderSurvey(
        reader.columns,
        FolderIndex(sizes, tuple(partitions), reader),
        first_row,
        n_chosen,
        reader=reader,
        partitions=tuple(partitions),
        unreadable=tuple(unreadable),
    )


class FolderIndex(GroupIndex):
    """The groups of a folder: their sizes, and names that are read when asked for."""

    def __init__(
        self,
        sizes: IntArray,
        partitions: tuple[FolderPartition, ...],
        reader: FileReader,
    ) -> None:
        super().__init__()
        self.sizes = sizes
        self.names = _Names(partitions, reader)


class _Names(Sequence[Any]):
    """Names of groups, read from their file when they are asked for."""

    def __init__(
        self, partitions: tuple[FolderPartition, ...], reader: FileReader
    ) -> None:
        self._partitions = partitions
        self._reader = reader

    def __len__(self) -> int:
        last = self._partitions[-1]
        return last.first_group + last.n_groups

    def __getitem__(self, number: Any) -> Any:
        starts = [partition.first_group for partition in self._partitions]
        # Files without groups begin where the next one does.
        place = int(np.searchsorted(starts, number, side="right")) - 1
        partition, group = self._partitions[place], self._reader.columns.group
        with in_file(partition):
            table = self._reader.table(partition)
            index = count_groups(table, Columns(group=group)).index
        return index.names[int(number) - partition.first_group]


def split_by_file(
    partitions: Sequence[FolderPartition], numbers: IntArray
) -> Iterator[FolderPartition]:
    """Yield every file with those of some groups, sorted by number, that it has."""
    starts = np.array([partition.first_group for partition in partitions])
    ends = starts + [partition.n_groups for partition in partitions]
    bounds = np.searchsorted(numbers, [starts, ends])
    for partition, first, end in zip(partitions, *bounds.tolist(), strict=True):
        yield partition.only(numbers[first:end], first)
