"""The files of a folder as partitions: what is known of each, and how one is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from variegate._typing import BoolArray, IntArray
from variegate.partitions import Partition
from variegate.tables.columns import Columns
from variegate.tables.derived import derived
from variegate.tables.encoding import Encoding
from variegate.tables.file_errors import TableFileError
from variegate.tables.folder.files import open_file, unreadable
from variegate.tables.groups import Group, Groups
from variegate.tables.survey import count_groups
from variegate.tables.table import Table, TableError

#: The rows of one file are held in memory by its worker.
_ALL = 2**62


@dataclass(frozen=True)
class FolderPartition(Partition):
    """A scanned file; its groups and rows begin at these numbers of the folder."""

    n_rows: int = 0
    n_groups: int = 0
    first_row: int = 0
    first_group: int = 0
    #: Examples in the files before this one, where groups are examples.
    first_example: int = 0
    #: Which of its groups are wanted, one bit each; None: all of them.
    wanted: bytes | None = None

    @classmethod
    def at(cls, partition: Partition, **known: int) -> Self:
        """Return a file with numbers that a scan found."""
        given: dict[str, Any] = {
            one.name: getattr(partition, one.name) for one in fields(Partition)
        }
        return cls(**given | known)

    def flags(self) -> BoolArray:
        """Return one flag a group: whether it is wanted."""
        if self.wanted is None:
            return np.ones(self.n_groups, dtype=bool)
        bits = np.frombuffer(self.wanted, dtype=np.uint8)
        return np.unpackbits(bits, count=self.n_groups).astype(bool)

    def only(self, numbers: IntArray, first_example: int = 0) -> Self:
        """Return the same file with some groups wanted, by their numbers in all."""
        if len(numbers) == self.n_groups:
            return replace(self, wanted=None, first_example=first_example)
        flags = np.zeros(self.n_groups, dtype=bool)
        flags[numbers - self.first_group] = True
        bits = np.packbits(flags).tobytes()
        return replace(self, wanted=bits, first_example=first_example)


@dataclass(frozen=True)
class FileReader:
    """How a file of a folder is read; small, as it is sent to workers.

    ``columns`` are resolved.  Files are compared with ``schema``, None where that was
    done before.
    """

    schema: pa.Schema | None
    columns: Columns

    def table(self, partition: Partition) -> Table:
        """Open a file, with vectors and ages."""
        return derived(open_file(partition, self.schema), self.columns)

    def groups(self, partition: Partition, encoding: Encoding) -> Groups | None:
        """Return all groups of a file, None where it has no rows."""
        with in_file(partition):
            table = self.table(partition)
            found = count_groups(table, self.columns)
            if found.n_rows == 0:
                return None
            groups = Groups(table, found, encoding, None, _ALL)
        partition.check_unchanged()
        return groups

    def wanted(self, partition: FolderPartition, encoding: Encoding) -> Iterator[Group]:
        """Yield the wanted groups of a file, numbered as in the folder."""
        groups = self.groups(partition, encoding)
        if groups is None:
            return
        flags = partition.flags()
        with in_file(partition):
            for group in groups:
                if flags[group.number]:
                    yield replace(
                        group,
                        number=group.number + partition.first_group,
                        rows=group.rows + partition.first_row,
                    )


@contextmanager
def in_file(partition: Partition) -> Iterator[None]:
    """Name the file in errors; a damaged file is an ``UnreadablePartitionError``."""
    try:
        yield
    except TableFileError as error:
        raise unreadable(partition, error) from error
    except TableError as error:
        if str(error).startswith(f"{partition.path}: "):
            raise
        raise error.within(f"{partition.path}: ") from error
