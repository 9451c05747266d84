"""Learning from data in many files, on any engine.

The objective of learning is a sum over ground sets, computed partition by partition:

- A :class:`Partition` says where a part of the data lies, and how the file looked when
  it was listed.  Data never travels, and a file that changes is refused.
- An :class:`Engine` has two methods, ``map`` and ``tree_sum``: :class:`Serial`, or
  :class:`Threads`.  Sums follow a fixed tree, so that results have the same bits with
  any engine and any number of workers.
- Finished steps are kept in a run store (:mod:`variegate.files.run_store`), from which
  a run that was killed resumes with the same bits.

A :class:`Source` reads partitions, such as :class:`PairPartitions`;
``LargeMarginDPP.fit`` takes :class:`PartitionedExamples`.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
