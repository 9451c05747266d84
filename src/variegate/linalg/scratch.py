"""Arrays to work in, kept for the next call.

A fresh array of megabytes is given back to the system when it is let go, and faulting
its pages in again costs as much as a pass over it.
"""

from __future__ import annotations

import threading

import numpy as np

from variegate._typing import FloatArray

__all__ = ["scratch"]

#: Numbers of an array that is kept, at most; in larger ones pages hardly count.
_LARGEST = 4_000_000

_kept = threading.local()


def scratch(name: str, shape: tuple[int, ...]) -> FloatArray:
    """Return an array of any content, this thread's own, for use within one call.

    The next call with the same name may return the same memory.
    """
    if np.prod(shape) > _LARGEST:
        return np.empty(shape)
    arrays: dict[str, FloatArray] = _kept.__dict__
    if name not in arrays or arrays[name].shape != shape:
        arrays[name] = np.empty(shape)
    return arrays[name]
