"""Arrays of one type for compiled loops, whatever a caller holds."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["read_only"]

Scalar = TypeVar("Scalar", bound=np.generic)


def read_only(array: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Return a view of an array that is contiguous and cannot be written to.

    Numba compiles a function once more for an array that may be written to than for
    one that may not, and once more for one with gaps.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
