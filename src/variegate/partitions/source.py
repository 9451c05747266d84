"""Where examples come from: a list of partitions, and how to read one."""

from __future__ import annotations

from typing import Any, Protocol

from variegate.partitions.partition import Partition
from variegate.streaming import Example

__all__ = ["Reader", "Source", "reader_of"]


class Reader(Protocol):
    """Reads a partition; the part of a source that is sent to workers."""

    def read(self, partition: Partition) -> list[Example]:
        """Return the examples of a partition: see :meth:`Source.read`."""
        ...


class Source(Protocol):
    """Examples that lie in partitions; small, and sent to whoever reads.

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
    """Return what is sent to workers."""
    make: Any = getattr(source, "reader", None)
    reader: Reader = source if make is None else make()
    return reader
