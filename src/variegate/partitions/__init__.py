"""Learning from data in many files, on any engine.

The objective of learning is a sum over ground sets, so it may be computed file by file
wherever there is room, and added up.  Four ideas:

- A :class:`Partition` says where a part of the data lies, and how the file looked when
  it was listed.  Data never travels, and a file that changes is refused.
- An :class:`Engine` has two verbs, ``map`` and ``tree_sum``.  :class:`Serial` is the
  plain one; another needs nothing else.
- Sums follow a fixed tree (:mod:`variegate.partitions.tree`), so that results have the
  same bits whatever the engine and the number of its workers.
- A :class:`Source` says how a partition is read.
"""

from variegate.partitions.engine import Engine, Serial
from variegate.partitions.partition import (
    Partition,
    PartitionChangedError,
    PartitionError,
    UnreadablePartitionError,
)
from variegate.partitions.source import Source

__all__ = [
    "Engine",
    "Partition",
    "PartitionChangedError",
    "PartitionError",
    "Serial",
    "Source",
    "UnreadablePartitionError",
]
