"""The unit of relevance: the range of the items that compete to be chosen."""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.baselines.redundancy import NEAR_COPY

__all__ = ["in_units", "n_competing"]

#: The least number of items that compete.
_LEAST_COMPETING = 40

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
    relevance: FloatArray,
    F: FloatArray,
    places: IntArray,
    most: int,
    given: FloatArray | None = None,
) -> FloatArray:
    """Return relevance (n,) less the largest, divided by the range of competing items.

    ``relevance`` (n,) is that of the rows ``places`` of ``F``, the unit embeddings.
    The ``most`` most relevant of them that are not near copies of a more relevant one
    compete.  Zeros if all are equal; if all competitors are, -1e6 for items below them.

    Near copies of the rows ``given`` (M, D) do not compete either, if other items are
    there; those more relevant than all competitors have a positive number.
    """
    if len(relevance) == 0 or relevance.min() == relevance.max():
        return np.zeros(len(relevance))
    relevance = relevance / np.abs(relevance).max()
    relevance = relevance - relevance.max()
    competing = _competing_items(relevance, F, places, most, given)
    if not competing:
        return in_units(relevance, F, places, most)
    relevance = relevance - relevance[competing[0]]
    unit = -float(relevance[competing[-1]])
    if unit == 0.0:
        # Enough items are as relevant as the best one.
        return np.where(relevance < 0.0, -_IRRELEVANT, relevance)
    return np.asarray(relevance / unit)


def _competing_items(
    relevance: FloatArray,
    F: FloatArray,
    places: IntArray,
    most: int,
    given: FloatArray | None,
) -> list[int]:
    """Return the numbers of competing items, for arguments of :func:`in_units`."""
    order = np.argsort(-relevance, kind="stable")
    competing: list[int] = []
    for block in np.split(order, range(_BLOCK, len(order), _BLOCK)):
        rows = F[places[block]]
        nearest = (rows @ F[places[competing]].T).max(axis=1, initial=-1.0)
        if given is not None and len(given):
            np.maximum(nearest, (rows @ given.T).max(axis=1), out=nearest)
        is_new = nearest < NEAR_COPY
        while is_new.any() and len(competing) < most:
            first = int(np.argmax(is_new))
            competing.append(int(block[first]))
            is_new &= rows @ rows[first] < NEAR_COPY
            is_new[first] = False
        if len(competing) == most:
            break
    return competing
