"""Items in the order in which each adds most to those before it."""

from __future__ import annotations

import numpy as np

from variegate._typing import IntArray
from variegate.decoding.base import Ensemble


def ranked(ensemble: Ensemble, members: IntArray, most: int | None = None) -> IntArray:
    """Return members in the order in which each adds most to those before it.

    These are the pivots of a Cholesky factorisation of ``L`` on the members; ``most``
    is how many are asked for, by default all.
    """
    most = len(members) if most is None else min(most, len(members))
    if len(members) < 2:
        return members[:most]
    kernel = ensemble.representation
    u = kernel.log_scale[members]
    S = kernel.submatrix(members)
    left, factor = np.diag(S).copy(), np.zeros((len(members), most))
    # What is left of a unit after so many subtractions is rounding below this.
    floor = len(members) * np.finfo(np.float64).eps
    is_left = np.ones(len(members), dtype=bool)
    order: list[int] = []
    for step in range(most):
        # In logarithms, as qualities differ by more than a number can hold.
        gains = 2.0 * u + np.log(np.maximum(left, floor))
        pivot = int(np.argmax(np.where(is_left, gains, -np.inf)))
        order.append(pivot)
        is_left[pivot] = False
        if left[pivot] > floor:
            column = S[:, pivot] - factor[:, :step] @ factor[pivot, :step]
            factor[:, step] = column / np.sqrt(left[pivot])
            left -= factor[:, step] ** 2
    return np.asarray(members[order])
