"""Cosine similarities of many items, a part at a time and rounded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from variegate._typing import FloatArray

#: Rows that are worked on at a time.
_CHUNK = 16_384


def chunks(n_items: int) -> Iterator[slice]:
    """Yield slices that together cover all items."""
    for start in range(0, n_items, _CHUNK):
        yield slice(start, min(start + _CHUNK, n_items))


def rounded(similarity: FloatArray) -> FloatArray:
    """Return similarities without last digits: a tie on paper is one here too."""
    return np.round(similarity, 12)
