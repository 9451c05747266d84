"""Groups that lie in several files, found by 64-bit hashes of their names.

Of hashes that several files have, the names are read again, as two names may share a
hash (of 10⁸ groups, two do once in 4,000 times).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from variegate.partitions import Engine, Partition
from variegate.report.wording import count
from variegate.tables.columns import Columns
from variegate.tables.folder.parts import FileReader, in_file
from variegate.tables.survey import count_groups
from variegate.tables.table import TableError

#: Hashes that are looked at again by name; more are not equal by chance.
_CHECKED = 1000

#: Groups that a message names, and files that it names of each.
_NAMED = _FILES = 3


def hash_of(name: Any) -> int:
    """Return 64 bits of a value of the group column, the same in all processes."""
    if isinstance(name, float):
        name += 0.0  # there is a zero with a sign, which is equal to the other
    digest = blake2b(repr(name).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def repeated(files: Sequence[NDArray[np.uint64]]) -> Iterator[tuple[int, list[int]]]:
    """Yield hashes that several files have, in order, and the places of these files."""
    hashes = np.concatenate(files)
    owners = np.repeat(np.arange(len(files), dtype=np.int32), list(map(len, files)))
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
    item: tuple[Partition, frozenset[int]], reader: FileReader
) -> dict[int, list[Any]]:
    """Return the names of the groups of a file that have some hashes."""
    partition, wanted = item
    with in_file(partition):
        columns = Columns(group=reader.columns.group)
        index = count_groups(reader.table(partition), columns).index
    found: dict[int, list[Any]] = {}
    for name in index.names:
        digest = hash_of(name)
        if digest in wanted:
            found.setdefault(digest, []).append(name)
    return found


def refuse_repeated_groups(
    engine: Engine,
    reader: FileReader,
    partitions: Sequence[Partition],
    hashes: Sequence[NDArray[np.uint64]],
) -> None:
    """Refuse groups that lie in several files, by name, given hashes of each file."""
    suspects: dict[int, list[int]] = {}
    n_suspects = 0
    for digest, owners in repeated(hashes):
        n_suspects += 1
        if len(suspects) < _CHECKED:
            suspects[digest] = owners
    found = list(_confirmed(engine, reader, partitions, suspects)) if suspects else []
    if not found:
        return
    # Those beyond the ones that were checked are not there by chance.
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
    reader: FileReader,
    partitions: Sequence[Partition],
    suspects: dict[int, list[int]],
) -> Iterator[tuple[Any, list[str]]]:
    """Yield the names of groups that lie in several files, and these files."""
    by_file: dict[int, set[int]] = {}
    for digest, owners in suspects.items():
        for owner in owners:
            by_file.setdefault(owner, set()).add(digest)
    items = [(partitions[at], frozenset(by_file[at])) for at in sorted(by_file)]
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


def _in_words(name: Any, files: Sequence[str]) -> str:
    rest = len(files) - _FILES
    more = f" and {count(rest, 'more file')}" if rest > 0 else ""
    return f"{name!r} in {', '.join(files[:_FILES])}{more}"
