"""Hashes of texts that are the same in every process and on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.linalg.compiled import njit

# FNV-1a, of 64 bits.
_START = np.uint64(0xCBF29CE484222325)
_FACTOR = np.uint64(0x100000001B3)


@njit(cache=True, nogil=True)
def text_hashes(data: Any, offsets: Any) -> Any:
    """Return the hash of every text; text i is ``data[offsets[i]:offsets[i + 1]]``."""
    n_texts = len(offsets) - 1
    hashes = np.empty(n_texts, dtype=np.uint64)
    for i in range(n_texts):
        value = _START
        for place in range(offsets[i], offsets[i + 1]):
            value = (value ^ np.uint64(data[place])) * _FACTOR
        hashes[i] = value
    return hashes
