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


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Return rows scaled to unit length; rows of zeros stay."""
    # By the largest entry first, so that no square overflows or underflows.
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    vectors = vectors / np.where(largest > 0.0, largest, 1.0)[:, None]
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.asarray(vectors / np.where(lengths > 0.0, lengths, 1.0)[:, None])


def rounded(similarity: FloatArray) -> FloatArray:
    """Return similarities without last digits: a tie on paper is one here too."""
    return np.round(similarity, 12)
