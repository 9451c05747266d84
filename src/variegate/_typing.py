"""The array types that signatures use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]

#: A subset of a ground set: item numbers, or a boolean mask over the items.
SubsetLike: TypeAlias = Sequence[int] | Sequence[bool] | IntArray | BoolArray

#: ``None`` (fresh entropy), a seed, or a generator that is advanced.
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
