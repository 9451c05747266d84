"""Where examples come from: a list of partitions, and how to read one."""

from __future__ import annotations

from typing import Protocol

from variegate.partitions.partition import Partition
from variegate.streaming import Example

__all__ = ["Source"]


class Source(Protocol):
    """Examples that lie in partitions; small, and sent to whoever reads."""

    @property
    def key(self) -> str:
        """What tells this source from all others: a hash of settings and partitions.

        Two sources of one key give the same examples.
        """
        ...

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """The partitions, in the order of their examples."""
        ...

    def read(self, partition: Partition) -> list[Example]:
        """Return the examples of a partition, perhaps none.

        An example's ``position`` is its place among those of all partitions.

        Raises
        ------
        PartitionChangedError
            If the file is not what was listed, which is looked at after reading too.
        UnreadablePartitionError
            If the file cannot be read; what is wrong with it follows its name.
        """
        ...
