"""The counts of a table by file and group: rows, rows labelled 1, and given rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from variegate._progress import ignore
from variegate._typing import BoolArray, IntArray
from variegate.application.refusal import Setting
from variegate.files.run_store import arrays_from_bytes, arrays_to_bytes
from variegate.report.wording import count
from variegate.tables.cells import Batch
from variegate.tables.errors import UNREADABLE, TableError, TableFileError
from variegate.tables.rows import GroupIndex, RowReader, Rows
from variegate.tables.shuffle import Deal

#: Files that a message names.
_NAMED = 5


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

    def attempt(role: str, read: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``read(*arguments)``; None if refused, with the problem recorded."""
        try:
            return read(*arguments)
        except TableError as error:
            problems.setdefault(role, error)
            return None

    try:
        for batch in reader.batches([rows], group, label, given, *also):
            n_rows += len(batch)
            told(len(batch))
            numbers = attempt("group", index.numbers, batch, group)
            numbers = np.zeros(len(batch), np.int64) if numbers is None else numbers
            flags = attempt("label", batch.flags, label, labels)
            is_given = attempt("given", given_rows, batch, given, flags)
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
