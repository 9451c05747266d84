"""Groups that lie in several files, found in bounded memory.

Every file gives a sorted array of 64-bit hashes of the names of its groups.  They are
written to an unnamed temporary file, 8 bytes a group, and compared one range of hashes
after another.  Of what is found twice, the names are read again, as two names may share
a hash (of 10⁸ groups, two do once in 4,000 times).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variegate.partitions import Engine, Partition
from variegate.report.words import count
from variegate.tables.cells import batches
from variegate.tables.folder.parts import Reader, in_file
from variegate.tables.survey import GroupIndex
from variegate.tables.table import TableError

__all__ = ["Hashes", "hash_of", "refuse_straddling"]

#: Bytes of hashes that are sorted at a time.
_BYTES = 64 * 2**20

#: Hashes that are looked at again by name; so many are not equal by chance.
_CHECKED = 1000

#: Groups that a message names.
_NAMED = 3

#: Files that it names of each.
_FILES = 3


def hash_of(name: Any) -> int:
    """Return 64 bits of a value of the group column, the same in all processes."""
    if isinstance(name, float):
        name += 0.0  # there is a zero with a sign, which is equal to the other
    digest = blake2b(repr(name).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class Hashes:
    """Sorted hashes of many files, on a temporary file."""

    def __init__(self, n_bytes: int = _BYTES) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        self._ends = [0]
        self._n_bytes = n_bytes

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Take in the sorted hashes of the next file."""
        hashes.tofile(self._file)
        self._ends.append(self._ends[-1] + len(hashes))

    def repeated(self) -> Iterator[tuple[int, list[int]]]:
        """Yield what hash several files have, and their places, in order of hashes."""
        if self._ends[-1] == 0:
            return
        every = np.memmap(self._file, dtype=np.uint64, mode="r")
        blocks = [every[first:end] for first, end in pairwise(self._ends)]
        n_ranges = -(-24 * len(every) // self._n_bytes)
        bounds = [(k << 64) // n_ranges for k in range(n_ranges)]
        starts = [np.searchsorted(b, np.array(bounds, np.uint64)) for b in blocks]
        for k in range(n_ranges):
            pieces = [
                block[start[k] : start[k + 1] if k + 1 < n_ranges else None]
                for block, start in zip(blocks, starts, strict=True)
            ]
            yield from _repeated(pieces)

    def close(self) -> None:
        """Give back the room."""
        self._file.close()


def _repeated(
    pieces: Sequence[NDArray[np.uint64]],
) -> Iterator[tuple[int, list[int]]]:
    """Yield what several pieces have, and which of them."""
    hashes = np.concatenate(pieces)
    owners = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
    order = np.argsort(hashes, kind="stable")
    hashes, owners = hashes[order], owners[order]
    same = np.concatenate([[False], hashes[1:] == hashes[:-1], [False]])
    for place in np.flatnonzero(same[1:] & ~same[:-1]).tolist():
        end = place + 1
        while same[end]:
            end += 1
        several = np.unique(owners[place:end]).tolist()
        if len(several) > 1:
            yield int(hashes[place]), several


def names_of(
    item: tuple[Partition, frozenset[int]], reader: Reader
) -> dict[int, list[Any]]:
    """Return the names of the groups of a file that have some hashes."""
    partition, wanted = item
    index = GroupIndex()
    with in_file(partition):
        for batch in batches(reader.table(partition), reader.columns.group):
            index.numbers(batch, reader.columns.group, grow=True)
    found: dict[int, list[Any]] = {}
    for name in index.names:
        digest = hash_of(name)
        if digest in wanted:
            found.setdefault(digest, []).append(name)
    return found


def refuse_straddling(
    engine: Engine, reader: Reader, partitions: Sequence[Partition], hashes: Hashes
) -> None:
    """Refuse groups that lie in several files, by name.

    Parameters
    ----------
    hashes : Hashes
        Those of the partitions, in their order.
    """
    suspects: dict[int, list[int]] = {}
    n_suspects = 0
    for digest, owners in hashes.repeated():
        n_suspects += 1
        if len(suspects) < _CHECKED:
            suspects[digest] = owners
    if not suspects:
        return
    found = list(_confirmed(engine, reader, partitions, suspects))
    if not found:
        return
    # What is beyond those that were checked is not there by chance.
    n_found = len(found) + n_suspects - len(suspects)
    words = [_in_words(name, files) for name, files in sorted(found, key=str)[:_NAMED]]
    folder = Path(partitions[0].path).parent
    raise TableError(
        f"{count(n_found, 'group')} of {folder} {'lies' if n_found == 1 else 'lie'} in "
        f"more than one file, {'' if n_found == 1 else 'such as '}{'; '.join(words)}. "
        "Files are worked on one by one, so that a group must lie in a single one: "
        f"'variegate gather {folder} -o OTHER' brings the rows of groups together"
    )


def _confirmed(
    engine: Engine,
    reader: Reader,
    partitions: Sequence[Partition],
    suspects: dict[int, list[int]],
) -> Iterator[tuple[Any, list[str]]]:
    """Yield the names of groups that lie in several files, and these files."""
    by_file: dict[int, set[int]] = {}
    for digest, owners in suspects.items():
        for owner in owners:
            by_file.setdefault(owner, set()).add(digest)
    places = sorted(by_file)
    items = [(partitions[place], frozenset(by_file[place])) for place in places]
    where: dict[tuple[int, str], tuple[Any, list[str]]] = {}
    for (partition, _), names in zip(
        items, engine.map(partial(names_of, reader=reader), items), strict=True
    ):
        for digest, several in names.items():
            for name in several:
                # Equal names have equal hashes, and are written alike.
                _, files = where.setdefault((digest, str(name)), (name, []))
                files.append(Path(partition.path).name)
    return (one for one in where.values() if len(one[1]) > 1)


def _in_words(name: Any, files: Iterable[str]) -> str:
    several = list(files)
    rest = len(several) - _FILES
    more = f" and {count(rest, 'more file')}" if rest > 0 else ""
    return f"{name!r} in {', '.join(several[:_FILES])}{more}"
