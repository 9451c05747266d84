"""The scan of a table: the groups of each file, their sizes and labels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate._typing import BoolArray, IntArray
from variegate.partitions import UnreadablePartitionError
from variegate.report.wording import count
from variegate.tables.cells import Batch
from variegate.tables.errors import TableError
from variegate.tables.rows import GroupIndex, RowReader, Rows

#: Files that a message names.
_NAMED = 5


def hash_of(name: Any) -> int:
    """Return 64 bits of a value of the group column, the same in all processes."""
    if isinstance(name, float):
        name += 0.0  # there is a zero with a sign, which is equal to the other
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


def scan(
    rows: Rows,
    reader: RowReader,
    labels: BoolArray | None = None,
    also: Sequence[str] = (),
) -> Scanned | UnreadablePartitionError:
    """Count the groups of some rows, or return why they cannot be read.

    Other columns are read ``also``, to see that they can be.
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
            try:
                numbers = index.numbers(batch, columns.group)
                sizes = _counted(sizes, numbers, len(index))
            except TableError as error:
                problems.setdefault("group", error)
                numbers = np.zeros(len(batch), dtype=np.int64)
            n_runs += int((np.diff(numbers, prepend=last) != 0).sum())
            last = int(numbers[-1])
            try:
                flags = flags_of(batch, label, labels)
                if flags is not None:
                    chosen = _counted(chosen, numbers[flags], len(index))
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


def _counted(counts: IntArray, numbers: IntArray, n_groups: int) -> IntArray:
    """Return counts by group, of which there may be more now, and these added."""
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
        _refuse_unreadable(unread, bool(found), skip_unreadable)
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
        arrays = {n: value for n, value in self._asdict().items() if value is not None}
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **arrays)
        return content.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Counts:
        """Return the counts that :meth:`to_bytes` wrote."""
        with np.load(io.BytesIO(content), allow_pickle=False) as known:
            return cls(*(known.get(name) for name in cls._fields))


def _refuse_unreadable(
    unread: Sequence[UnreadablePartitionError], is_any: bool, skip_unreadable: bool
) -> None:
    if not unread or (skip_unreadable and is_any):
        return
    first, *rest = unread
    problem = first.problem
    if rest:
        names = ", ".join(error.path for error in rest[: _NAMED - 1])
        more = len(rest) - _NAMED + 1
        problem += f"; {count(len(rest), 'other file')} cannot be read either: {names}"
        problem += f" and {more} more" if more > 0 else ""
    if is_any:
        problem += ". With skip_unreadable such files are left out"
    raise UnreadablePartitionError(first.path, problem)


def flags_of(
    batch: Batch, label: str | None, labels: BoolArray | None
) -> BoolArray | None:
    """Return which rows are labelled 1: as given, or by a column, if there is one."""
    if labels is None:
        return None if label is None else batch[label].flags()
    if batch.numbers is not None:
        return labels[batch.numbers]
    if len(labels) < batch.end:
        raise TableError(f"{len(labels)} labels for a table of more rows")
    return labels[batch.first : batch.end]
