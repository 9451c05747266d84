"""Learning from data in many files, on any engine.

The objective of learning is a sum over ground sets, so it may be computed file by file
wherever there is room, and added up.  Four ideas:

- A :class:`Partition` says where a part of the data lies, and how the file looked when
  it was listed.  Data never travels, and a file that changes is refused.
- An :class:`Engine` has two verbs, ``map`` and ``tree_sum``.  :class:`Serial` is the
  plain one; another needs nothing else.
- Sums follow a fixed tree (:mod:`variegate.partitions.tree`), so that results have the
  same bits whatever the engine and the number of its workers.
- Answers are written down in a :class:`Journal`, so that a run that was killed goes on
  where it was, with the same bits.

A :class:`Source` says how partitions are read, such as :class:`PairShards`, and
:class:`PartitionedExamples` is what ``LargeMarginDPP.fit`` takes.
"""

from variegate.partitions.cache import Limits
from variegate.partitions.engine import Engine, Serial
from variegate.partitions.examples import PartitionedExamples
from variegate.partitions.journal import Journal
from variegate.partitions.partition import (
    Partition,
    PartitionChangedError,
    PartitionError,
    UnreadablePartitionError,
)
from variegate.partitions.shards import PairShards
from variegate.partitions.source import Reader, Source

__all__ = [
    "Engine",
    "Journal",
    "Limits",
    "PairShards",
    "Partition",
    "PartitionChangedError",
    "PartitionError",
    "PartitionedExamples",
    "Reader",
    "Serial",
    "Source",
    "UnreadablePartitionError",
]
