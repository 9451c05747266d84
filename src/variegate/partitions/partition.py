"""Partitions: where a part of the data lies, never the data itself, and its readers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from variegate.learning.examples import Example


class PartitionError(Exception):
    """Something is wrong with a partition.

    Parameters
    ----------
    path : str
        The file.
    problem : str
        What is wrong, in words that follow the name of the file.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)  # both, so that it can be pickled
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path} {self.problem}"


class PartitionChangedError(PartitionError):
    """A file is not what it was when the work began."""


class UnreadablePartitionError(PartitionError):
    """A file cannot be read."""


@dataclass(frozen=True)
class Partition:
    """A file of the data as it was when listed.

    Small, so that it may be sent anywhere, and equal to another that says the same.

    Parameters
    ----------
    path : str
        The file, as every worker can open it.
    n_bytes, modified_ns : int
        Size and time of the last change when the file was listed.
    """

    path: str
    n_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, path: str | Path) -> Self:
        """Describe a file as it is now."""
        found = _stat(str(path))
        return cls(str(path), found.st_size, found.st_mtime_ns)

    def check_unchanged(self) -> None:
        """Refuse a file that is gone, or is not what was listed.

        Raises
        ------
        PartitionChangedError
            If size or time of the last change are others.
        UnreadablePartitionError
            If the system cannot even say that.
        """
        found = _stat(self.path)
        if (found.st_size, found.st_mtime_ns) != (self.n_bytes, self.modified_ns):
            raise PartitionChangedError(
                self.path,
                "has changed since the work began: it had "
                f"{self.n_bytes:,} bytes and has {found.st_size:,}, or was written to "
                "later. Nothing was learned from what it holds now; begin again with "
                "files that stay as they are",
            )


def _stat(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except OSError as error:
        raise UnreadablePartitionError(
            path, f"cannot be read: {error.strerror or error}"
        ) from error


class Reader(Protocol):
    """Reads a partition; the part of a source that is sent to workers."""

    def read(self, partition: Partition) -> list[Example]:
        """Return the examples of a partition: see :meth:`Source.read`."""
        ...


class Source(Protocol):
    """Examples that lie in partitions; small, and sent to the workers that read.

    A source of many partitions should also have a method ``reader()`` that returns a
    :class:`Reader`, which is sent in its place: all that reading one needs, without the
    list of the others.
    """

    @property
    def key(self) -> str:
        """A hash of settings and partitions, which tells this source from all others.

        Two sources of one key give the same examples.
        """
        ...

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """The partitions, in the order of their examples."""
        ...

    def read(self, partition: Partition) -> list[Example]:
        """Return the examples of a partition, perhaps none.

        An example's ``position`` is what it is called in errors, such as its place
        among those of all partitions.  Its costs are those for ``omega=1``: what
        missing an item costs is multiplied by the model's ``omega``.

        Raises
        ------
        PartitionChangedError
            If the file is not what was listed, which is looked at after reading too.
        UnreadablePartitionError
            If the file cannot be read; what is wrong with it follows its name.
        """
        ...


def reader_of(source: Source) -> Reader:
    """Return the reader of a source, which is sent to workers."""
    make: Any = getattr(source, "reader", None)
    reader: Reader = source if make is None else make()
    return reader
