"""Greedy choice of rows of a matrix by their residuals.

The squared residual of a row is its squared distance from the span of the chosen rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.linalg.limits import COMPILED_ROWS, NOISE_SHARE, RANK_TOLERANCE

#: Residuals that differ by no more than this share are equal.
_TIE = 1e-10


def choose_rows(
    B: FloatArray,
    squared: FloatArray,
    count: int,
    threshold: float = 0.0,
    leaves_room: Callable[[list[int]], BoolArray] | None = None,
    basis: FloatArray | None = None,
) -> tuple[IntArray, bool]:
    """Choose up to ``count`` rows, each time the one with the largest residual.

    ``B`` (N, D) is of single or double precision, ``squared`` (N,) are the squared
    lengths of its rows.  ``leaves_room``, given the numbers of the chosen rows, returns
    a mask (N,) of the rows that may still be chosen.  Of residuals equal to rounding
    the row with the smallest number is taken.

    With an orthonormal ``basis`` (rank, D), distances are from the span of the basis
    and the chosen rows; a row that leaves it by no more than noise is in it.

    Returns the numbers of the chosen rows in the order of choice, and True if the
    search ended because the largest squared residual left, above rounding, was at most
    ``threshold``; False if ``count`` rows were chosen or no row was left.
    """
    # Zero rows beyond the last: compiled loops take four directions at a time.
    rank = 0 if basis is None else len(basis)
    directions = np.zeros((rank + count + 3, B.shape[1]))
    if basis is not None:
        directions[:rank] = basis
    is_large = B.size * (rank + count) >= COMPILED_ROWS
    residuals = (_LazyResiduals if is_large else _Residuals)(
        B, squared, directions, rank
    )
    chosen = np.empty(count, dtype=np.intp)
    for step in range(count):
        best, item = residuals.find_largest()
        if not best > threshold:
            return chosen[:step], bool(best > -np.inf)
        direction, earlier = B[item].astype(np.float64), directions[: rank + step]
        for _ in range(2):  # once more, to be orthogonal to rounding
            direction -= (earlier @ direction) @ earlier
        directions[rank + step] = direction / np.sqrt(direction @ direction)
        residuals.take_row(item)
        chosen[step] = item
        if leaves_room is not None:
            residuals.exclude_rows(~leaves_room(chosen[: step + 1].tolist()))
    return chosen, False


class _Residuals:
    """Squared residuals (N,) of all rows, -inf of chosen, excluded and dependent ones.

    The first ``rank`` rows of ``directions`` are a basis that residuals are orthogonal
    to.  The caller writes the unit direction of each chosen row into the next row;
    :meth:`find_largest` then subtracts the squared projections on it.
    """

    def __init__(
        self, B: FloatArray, squared: FloatArray, directions: FloatArray, rank: int
    ) -> None:
        self.B, self.directions = np.asarray(B, dtype=np.float64), directions
        self.floor = (NOISE_SHARE if rank else RANK_TOLERANCE) * squared
        self.residual = np.where(squared > 0.0, squared, -np.inf)
        self.n_taken, self.n_subtracted = rank, 0

    def find_largest(self) -> tuple[float, int]:
        """Update the residuals; return the largest, and the first row that has it.

        The residual is -inf where no row is left.
        """
        for direction in self.directions[self.n_subtracted : self.n_taken]:
            self.residual -= (self.B @ direction) ** 2
        self.n_subtracted = self.n_taken
        self.residual[~(self.residual > self.floor)] = -np.inf
        best = float(self.residual.max(initial=-np.inf))
        return best, int(np.argmax(self.residual >= best * (1.0 - _TIE)))

    def take_row(self, item: int) -> None:
        """Mark a row as chosen; the caller has written its direction before."""
        self.residual[item] = -np.inf
        self.n_taken += 1

    def exclude_rows(self, rows: BoolArray) -> None:
        """Exclude the rows that are True in a mask (N,) from further search."""
        self.residual[rows] = -np.inf


class _LazyResiduals(_Residuals):
    """Squared residuals by compiled loops, which update rows only where needed."""

    def __init__(
        self, B: FloatArray, squared: FloatArray, directions: FloatArray, rank: int
    ) -> None:
        from variegate.linalg.compiled import read_only
        from variegate.linalg.compiled.pivoting import BLOCK, find_largest_residual

        super().__init__(np.zeros((0, 0)), squared, directions, rank)
        self.search, rows = find_largest_residual, read_only(B)
        largest = np.maximum.reduceat(self.residual, np.arange(0, len(B), BLOCK))
        seen = np.zeros(len(B), dtype=np.int32)
        self.arrays = rows, directions, self.residual, self.floor, seen, largest
        self.n_looks = 0

    def find_largest(self) -> tuple[float, int]:
        """Do as ``_Residuals``, updating only rows that may have the largest one."""
        found = self.search(*self.arrays, self.n_taken, self.n_looks)
        best, item, self.n_looks = found
        return best, item
