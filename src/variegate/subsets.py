"""Subsets as sorted item numbers (members) or as boolean masks (indicators)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate._typing import AnyArray, BoolArray, IntArray, SubsetLike

__all__ = ["as_indicator", "as_members", "distinct_rows"]

_HINT = ": if 1 marks the chosen items, give it as mask.astype(bool)"


def as_members(subset: SubsetLike | AnyArray, n_items: int) -> IntArray:
    """Return ``subset`` as sorted item numbers; ValueError if it is not one.

    A boolean mask of length ``n_items`` and a list of distinct numbers from
    ``0 .. n_items - 1`` are both accepted.
    """
    if isinstance(subset, list | tuple) and _mixes_flags_and_numbers(subset):
        raise ValueError("a subset holds item numbers or a boolean mask, not both")
    try:
        array = np.asarray(subset)
    except ValueError as error:
        raise ValueError("a subset is a flat list of item numbers or a mask") from error
    if array.dtype == object and array.ndim == 1:
        # Tables hand over flags and numbers as Python objects.
        if _mixes_flags_and_numbers(array):
            raise ValueError("a subset holds item numbers or a boolean mask, not both")
        if all(isinstance(entry, bool | int | np.generic) for entry in array):
            array = np.array(array.tolist())
    if array.size == 0 and array.dtype != bool:
        return np.zeros(0, dtype=np.intp)
    if array.ndim != 1:
        raise ValueError(
            "a subset is a flat list of item numbers or a mask, "
            f"got shape {array.shape}"
        )
    if array.dtype == bool:
        if len(array) != n_items:
            raise ValueError(
                f"the mask has length {len(array)} but there are {n_items} items"
            )
        return np.flatnonzero(array)
    if not np.issubdtype(array.dtype, np.integer):
        is_mask = len(array) == n_items and array.dtype.kind == "f"
        is_mask = is_mask and bool(np.isin(array, (0.0, 1.0)).all())
        raise ValueError(
            f"a subset holds item numbers or a boolean mask, got {array.dtype} values"
            + is_mask * _HINT
        )
    outside = (array < 0) | (array >= n_items)
    if outside.any():
        raise ValueError(
            f"item {array[outside][0]} is out of range: there are {n_items} items, "
            f"numbered 0 to {n_items - 1}"
        )
    members = np.sort(array)
    repeated = members[1:] == members[:-1]
    if repeated.any():
        is_mask = len(array) == n_items and int(members[-1]) <= 1
        raise ValueError(
            f"item {members[1:][repeated][0]} is repeated in the subset"
            + is_mask * _HINT
        )
    return members.astype(np.intp)


def _mixes_flags_and_numbers(subset: Sequence[Any] | AnyArray) -> bool:
    """Tell whether some entries, but not all, are booleans."""
    flags = sum(isinstance(entry, bool | np.bool_) for entry in subset)
    return 0 < flags < len(subset)


def as_indicator(members: IntArray, n_items: int) -> BoolArray:
    """Return the boolean mask (n_items,) of item numbers."""
    indicator = np.zeros(n_items, dtype=bool)
    indicator[members] = True
    return indicator


def distinct_rows(subsets: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """Find the distinct rows of a boolean array (n, N), in lexicographic order.

    Returns
    -------
    first : array of int
        The first position of each distinct row.
    number : array of int, of shape (n,)
        For every row, the number of its distinct row.
    counts : array of int
        How often each distinct row occurs.
    """
    packed = np.packbits(subsets, axis=1)
    width = 8 if packed.shape[1] <= 8 else packed.shape[1]
    keys = np.zeros((len(packed), width), dtype=np.uint8)
    keys[:, : packed.shape[1]] = packed
    # Bytes of up to 64 items are one integer, which sorts faster.
    whole = keys.view(">u8" if width == 8 else f"S{width}")[:, 0]
    _, first, number, counts = np.unique(
        whole.astype(np.uint64) if width == 8 else whole,
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    return first, number, counts
