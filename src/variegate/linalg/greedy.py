"""Choose rows greedily by what is left of them outside the span of those chosen."""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.linalg.limits import COMPILED_ROWS
from variegate.linalg.tolerances import RANK_TOLERANCE

__all__ = ["choose_rows"]

#: Residuals that differ by no more than this share are equal.
_TIE = 1e-10


def choose_rows(
    B: FloatArray, squared: FloatArray, count: int, threshold: float = 0.0
) -> tuple[IntArray, bool]:
    """Choose up to ``count`` rows, each time the one with the largest residual.

    Ties go to the row with the smallest number.  For many rows,
    :mod:`variegate.compiled.lazy_greedy` chooses the same.

    Parameters
    ----------
    B : array of shape (N, D), of single or double precision
    squared : array of shape (N,)
        Squared lengths of the rows.
    count : int
    threshold : float
        Stop at a squared residual of no more than this.

    Returns
    -------
    chosen : array of int
        In the order of choice.
    reached : bool
        Whether the threshold ended it, rather than ``count`` or the rank.
    """
    chosen = np.empty(count, dtype=np.int64)
    if B.size * count >= COMPILED_ROWS:
        from variegate.compiled.lazy_greedy import lazy_greedy

        taken, reached = lazy_greedy(
            B, squared.copy(), RANK_TOLERANCE, threshold, chosen
        )
        return chosen[:taken].astype(np.intp), reached
    B = np.asarray(B, dtype=np.float64)
    directions = np.empty((count, B.shape[1]))
    floor, residual = RANK_TOLERANCE * squared, squared.copy()
    for step in range(count):
        residual[~(residual > floor)] = -np.inf
        best = residual.max(initial=-np.inf)
        if not best > threshold:
            return chosen[:step].astype(np.intp), bool(best > -np.inf)
        item = int(np.argmax(residual >= best * (1.0 - _TIE)))
        direction, earlier = B[item].copy(), directions[:step]
        for _ in range(2):  # once more, to be orthogonal to rounding
            direction -= (earlier @ direction) @ earlier
        directions[step] = direction / np.sqrt(direction @ direction)
        residual -= (B @ directions[step]) ** 2
        residual[item] = -np.inf
        chosen[step] = item
    return chosen.astype(np.intp), False
