"""Mean and spread of the numbers of columns, from batches of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate._typing import FloatArray, IntArray


@dataclass
class Moments:
    """Mean and spread of numbers that come in pieces (Chan, Golub and LeVeque).

    ``mean``, and ``squares``, the sum of squared differences from it, are of numbers
    divided by ``2**exponent``, the power of two above the largest so far, so that no
    sum or square overflows or underflows.
    """

    count: FloatArray | float = 0.0
    mean: FloatArray | float = 0.0
    squares: FloatArray | float = 0.0
    exponent: IntArray | int = -1074

    @classmethod
    def of(cls, values: FloatArray) -> Moments:
        """Return moments of numbers (N,), or by column of (N, d); NaN is left out."""
        present = ~np.isnan(values)
        count = present.sum(axis=0)
        if not count.any():
            return cls()
        largest = np.where(present, np.abs(values), 0.0).max(axis=0)
        exponent = np.maximum(-1074, np.frexp(largest)[1])
        # In two steps, as the whole power may not be a number.
        half = exponent // 2
        values = np.ldexp(np.ldexp(values, -half), half - exponent)
        mean = np.where(present, values, 0.0).sum(axis=0) / np.maximum(count, 1)
        squares = (np.where(present, values - mean, 0.0) ** 2).sum(axis=0)
        return cls(count, mean, squares, exponent)

    def merged(self, other: Moments) -> Moments:
        """Return the moments of the numbers of both; neither changes."""
        exponent = np.maximum(self.exponent, other.exponent)
        mean, more = (np.ldexp(m.mean, m.exponent - exponent) for m in (self, other))
        squares, others = (
            np.ldexp(m.squares, 2 * (m.exponent - exponent)) for m in (self, other)
        )
        total = self.count + other.count
        shift = more - mean
        share = other.count / np.maximum(total, 1)
        return Moments(
            total,
            mean + shift * share,
            squares + others + shift**2 * self.count * share,
            exponent,
        )

    def mean_and_scale(self) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations (d,), the latter 1 where constant."""
        spread = np.sqrt(self.squares / np.maximum(self.count, 1))
        # A constant column says nothing, however its mean was rounded.
        is_constant = spread <= 1e-12 * np.abs(self.mean)
        mean = np.ldexp(self.mean, self.exponent)
        scale = np.ldexp(spread, self.exponent)
        return np.atleast_1d(mean), np.atleast_1d(np.where(is_constant, 1.0, scale))
