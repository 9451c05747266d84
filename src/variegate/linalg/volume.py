"""Volumes spanned by rows that are dependent, or nearly so.

Rows have unit length, or are zero.  A residual, a row less its part in the span of
others, is found by projecting twice: unlike differences of entries of ``F Fᵀ`` it is
right to rounding in the row itself, down to squared residuals of about 1e-28.
"""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray, IntArray

#: Rounding in a unit row, squared.
_ROUNDING = (16.0 * 2.0**-52) ** 2


def _squared_lengths(rows: FloatArray) -> FloatArray:
    """Return the squared lengths (...) of rows (..., D)."""
    return np.asarray(np.einsum("...d,...d->...", rows, rows))


def _subtract_projection(rows: FloatArray, direction: FloatArray) -> FloatArray:
    """Subtract from rows (..., k, D), in place, their projections on a unit direction.

    ``direction`` is (..., D).  Return the inner products (..., k) of rows with it.
    """
    share = np.einsum("...id,...d->...i", rows, direction)
    rows -= share[..., None] * direction[..., None, :]
    return np.asarray(share)


def log_volume(rows: FloatArray, floor: FloatArray) -> float:
    """Return ``log det F Fᵀ`` of rows (k, D), floors (k,): see :func:`log_volumes`."""
    return float(log_volumes(rows[None], floor[None])[0])


def log_volumes(rows: FloatArray, floor: FloatArray) -> FloatArray:
    """Return ``log det F Fᵀ`` (B,), -inf where a pivoted residual is within ``floor``.

    ``rows`` (B, k, D) are ``F`` of each set, and squared residuals up to ``floor``
    (B, k) count as zero.  Pivoting makes the rank of a set independent of the order of
    its items.  :func:`variegate.linalg.compiled.chain.log_volume` does the same.
    """
    left, floor, total = rows.copy(), floor.copy(), np.zeros(len(rows))
    sets = np.arange(len(rows))
    for end in range(rows.shape[1], 0, -1):
        squared = _squared_lengths(left[:, :end])
        pivot = squared.argmax(axis=1)
        best = squared[sets, pivot]
        is_possible = best > floor[sets, pivot]
        best[~is_possible] = 1.0
        total += np.where(is_possible, np.log(best), -np.inf)
        direction = left[sets, pivot] / np.sqrt(best)[:, None]
        left[sets, pivot], floor[sets, pivot] = left[:, end - 1], floor[:, end - 1]
        for _ in range(2):
            _subtract_projection(left[:, : end - 1], direction)
    return total


def pivoted_rows(
    rows: FloatArray, log_scale: FloatArray, floor: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return ``F`` (N, rank) with the same Gram matrix ``F Fᵀ`` as ``rows`` (N, D).

    By Cholesky's method with pivots: the next one is the item ``i`` with the largest
    ``exp(2 log_scale_i)`` times its squared residual.  A squared residual of at most
    ``floor`` (N,) is set to zero.  The second result (N,) has, for each item, the
    squared residual that was set to zero, 0 if none was.
    """
    n_items, most = len(rows), min(rows.shape)
    factor, lost = np.zeros((n_items, most)), np.zeros(n_items)
    squared = _squared_lengths(rows)
    items = np.flatnonzero(squared > 0.0)
    left, squared = rows[items], squared[items]
    for rank in range(most):
        if len(items) == 0:
            return factor[:, :rank], lost
        pivot = int(np.argmax(np.log(squared) + 2.0 * log_scale[items]))
        direction = left[pivot] / np.sqrt(squared[pivot])
        for _ in range(2):
            factor[items, rank] += _subtract_projection(left, direction)
        squared = _squared_lengths(left)
        squared[pivot] = 0.0
        is_open = squared > floor[items]
        lost[items[~is_open]] = squared[~is_open]
        items, left, squared = items[is_open], left[is_open], squared[is_open]
    return factor, lost


def residual_rows(
    rows: FloatArray, included: IntArray, rest: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the residuals of the rows ``rest`` outside the span of rows ``included``.

    Both are arrays of row numbers.  The results, (len(rest), D) and (len(rest),), are
    the residuals and the squared rounding error of each.  Included rows are pivots in
    decreasing order of their residuals.  A direction from a short residual has a large
    relative error, which every row with a component in that direction inherits.
    """
    given, left = rows[included], rows[rest]
    noise = np.full(len(rest), _ROUNDING)
    for end in range(len(included), 0, -1):
        squared = _squared_lengths(given[:end])
        pivot = int(np.argmax(squared))
        noise = np.maximum(noise, _ROUNDING * _squared_lengths(left) / squared[pivot])
        direction = given[pivot] / np.sqrt(squared[pivot])
        given[pivot] = given[end - 1]
        for _ in range(2):
            _subtract_projection(given[: end - 1], direction)
            _subtract_projection(left, direction)
    return left, noise
