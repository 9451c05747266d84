"""Learning from data in many files, on any engine.

The objective of learning is a sum over ground sets, so it may be computed file by file
wherever there is room, and added up.  Four ideas:

- A :class:`Partition` says where a part of the data lies, and how the file looked when
  it was listed.  Data never travels, and a file that changes is refused.
- An :class:`Engine` has two verbs, ``map`` and ``tree_sum``.  :class:`Serial` is the
  plain one, :class:`Threads` works on several items at a time; another needs nothing
  else.
- Sums follow a fixed tree (:mod:`variegate.partitions.tree`), so that results have the
  same bits whatever the engine and the number of its workers.
- Answers are kept in a run store (:mod:`variegate.files.run_store`), so that a run that
  was killed resumes where it was, with the same bits.

A :class:`Source` says how partitions are read, such as :class:`PairPartitions`, and
:class:`PartitionedExamples` is what ``LargeMarginDPP.fit`` takes.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
