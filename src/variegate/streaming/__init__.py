"""Learning from more pairs than memory holds.

A stream is any object that yields ``(ground set, subset)`` pairs each time it is
iterated over: a list, a class with ``__iter__`` that reads a data base, a
:class:`PairFolder` on disk.  ``LargeMarginDPP().fit(stream)`` learns from one; see
:class:`~variegate.solvers.MiniBatch`.

A folder of pairs holds numbered shards, each of a few plain ``.npy`` files, and an
index that is written last::

    pairs.json              format, number of pairs and their shards, blocks
    quality-00000.npy       (items, d)  rows of all ground sets, one after another
    similarity-00000-0.npy  (items, p)  one file a block; none if quality serves both
    chosen-00000.npy        (items,)    which items are in the subset
    offsets-00000.npy       (pairs + 1,) where each ground set begins

Ground sets may differ in size.  Costs and items are not stored.
"""

from variegate.streaming.examples import (
    Example,
    Examples,
    ListedExamples,
    as_examples,
    check_stream,
)
from variegate.streaming.folder import PairFolder, write_pairs

__all__ = [
    "Example",
    "Examples",
    "ListedExamples",
    "PairFolder",
    "as_examples",
    "check_stream",
    "write_pairs",
]
