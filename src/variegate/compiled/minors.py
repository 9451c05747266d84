"""All principal minors of one matrix, by a walk over the tree of choices."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit


@njit(cache=True, nogil=True)
def fill_log_minors(S: Any, log_scale: Any, tolerance: float, out: Any) -> None:
    """Fill ``out`` (2^N,) with ``log det L_y``, ``L = diag(e^u) S diag(e^u)``.

    Bit ``i`` of a position says whether item ``i`` is in ``y``.  ``levels[c]`` holds
    the Schur complement after ``c`` items were taken; leaving an item out needs no new
    matrix, so a walk that takes first and leaves out second needs only ``N + 1``.
    """
    n = S.shape[0]
    levels = np.empty((n + 1, n, n))
    levels[0] = S
    out[:] = -np.inf
    # A node: the next item to decide on, how many were taken, the mask, the value.
    depth_stack = np.zeros(2 * n + 2, dtype=np.int64)
    count_stack = np.zeros(2 * n + 2, dtype=np.int64)
    mask_stack = np.zeros(2 * n + 2, dtype=np.int64)
    value_stack = np.zeros(2 * n + 2)
    top = 1
    while top > 0:
        top -= 1
        item, count = depth_stack[top], count_stack[top]
        mask, value = mask_stack[top], value_stack[top]
        if item == n:
            out[mask] = value
            continue
        # Without the item: visited after everything with it.
        depth_stack[top], count_stack[top] = item + 1, count
        mask_stack[top], value_stack[top] = mask, value
        top += 1
        current = levels[count]
        pivot = current[item, item]
        if pivot <= tolerance:
            continue  # every subset with this item is impossible
        complement = levels[count + 1]
        for i in range(item + 1, n):
            ratio = current[i, item] / pivot
            for j in range(item + 1, i + 1):
                complement[i, j] = current[i, j] - ratio * current[j, item]
        depth_stack[top], count_stack[top] = item + 1, count + 1
        mask_stack[top] = mask | (1 << item)
        value_stack[top] = value + np.log(pivot) + 2.0 * log_scale[item]
        top += 1
