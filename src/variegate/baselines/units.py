"""The unit of relevance: the range of the items that compete to be chosen."""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray, IntArray

__all__ = ["in_units", "n_competing"]

#: The least number of items that compete.
_LEAST_COMPETING = 40

#: Items are near copies of each other from this cosine on.
_NEAR_COPY = 0.9

#: Items that are searched for near copies at a time.
_BLOCK = 256

#: Units of relevance that no diversity makes up for.
_IRRELEVANT = 1e6


def n_competing(k: int) -> int:
    """Return how many items compete for ``k`` places: 40, doubled until at least 2k.

    In steps of doubling, so that most neighbouring ``k`` have the same unit.
    """
    doublings = ((2 * k - 1) // _LEAST_COMPETING).bit_length()
    return int(_LEAST_COMPETING * 2**doublings)


def in_units(
    relevance: FloatArray, F: FloatArray, places: IntArray, most: int
) -> FloatArray:
    """Return relevance (n,) less the largest, divided by the range of competing items.

    ``relevance`` (n,) is that of the rows ``places`` of ``F``, the unit embeddings.
    The ``most`` most relevant of them that are not near copies of a more relevant one
    compete.  Zeros if all are equal; if all competitors are, -1e6 for items below them.
    """
    if len(relevance) == 0 or relevance.min() == relevance.max():
        return np.zeros(len(relevance))
    relevance = relevance / np.abs(relevance).max()
    relevance = relevance - relevance.max()
    order = np.argsort(-relevance, kind="stable")
    competing: list[int] = []
    for block in np.split(order, range(_BLOCK, len(order), _BLOCK)):
        rows = F[places[block]]
        nearest = (rows @ F[places[competing]].T).max(axis=1, initial=-1.0)
        is_new = nearest < _NEAR_COPY
        while is_new.any() and len(competing) < most:
            first = int(np.argmax(is_new))
            competing.append(int(block[first]))
            is_new &= rows @ rows[first] < _NEAR_COPY
            is_new[first] = False
        if len(competing) == most:
            break
    unit = -float(relevance[competing[-1]])
    if unit == 0.0:
        # Enough items are as relevant as the best one.
        return np.where(relevance < 0.0, -_IRRELEVANT, 0.0)
    return np.asarray(relevance / unit)
