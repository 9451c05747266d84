"""Unit rows and rounded cosine similarities, by chunks of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from variegate._typing import FloatArray

#: Rows that are worked on at a time.
_CHUNK = 16_384


def chunks(n_items: int) -> Iterator[slice]:
    """Yield slices, of up to 16,384 consecutive items each, that cover all items."""
    for start in range(0, n_items, _CHUNK):
        yield slice(start, min(start + _CHUNK, n_items))


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Return the rows of a matrix (N, D) scaled to unit length; rows of zeros stay."""
    # By the largest entry first, so that no square overflows or underflows.
    largest = np.abs(vectors).max(axis=1, initial=0.0)
    vectors = vectors / np.where(largest > 0.0, largest, 1.0)[:, None]
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.asarray(vectors / np.where(lengths > 0.0, lengths, 1.0)[:, None])


def round_off(values: FloatArray) -> FloatArray:
    """Return values rounded to 12 decimals, so that equal similarities tie exactly."""
    return np.round(values, 12)
