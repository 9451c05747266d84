r"""The loss of one large ground set and its gradient, close to what LAPACK needs.

One Cholesky factorisation, one inverse, and for the gradient in ``S`` one symmetric
product: with ``X = P M⁻¹ C |W|^{1/2}``,

.. math:: P M^{-1} C W C M^{-1} P = X X^T - 2 X_y X_y^T,

because ``W`` is negative at the wanted items ``y`` alone.  All else are single passes
over a triangle.  Formulas are those of :mod:`variegate.learning.objective`.
"""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.linalg import lapack
from variegate.linalg.determinants import NotPositiveDefiniteError
from variegate.linalg.scratch import scratch

__all__ = ["large_set_loss"]


def large_set_loss(
    S: FloatArray,
    log_quality: FloatArray,
    members: IntArray,
    cost: FloatArray,
    target: tuple[float, FloatArray | None],
    lam: float,
    hinge: bool,
    smallest_error: float,
    G: FloatArray | None,
) -> tuple[float, FloatArray]:
    """Return the loss and its gradient in ``u``.

    Parameters
    ----------
    S : array of shape (N, N)
    log_quality : array of shape (N,)
    members : the wanted items
    cost : array of shape (N,)
        Of an error at each item.
    target : (``log det S_y``, ``S_y⁻¹``)
    G : array of shape (N, N) or None
        Filled with the gradient in ``S``, if it is wanted.
    """
    from variegate.compiled import dense

    n = len(S)
    S = np.ascontiguousarray(S)
    p = np.exp(np.minimum(log_quality, 0.0))
    c = np.exp(-np.maximum(log_quality, 0.0))
    is_wanted = np.zeros(n, dtype=bool)
    is_wanted[members] = True
    signed = np.where(is_wanted, -cost, cost)

    inverse = scratch("inverse", (n, n))
    dense.fill_scaled(S, p, c**2, inverse)
    if not lapack.cholesky(inverse):
        raise NotPositiveDefiniteError(0)
    log_det = 2.0 * float(np.log(np.diagonal(inverse)).sum())
    lapack.inverse_from_cholesky(inverse)

    included, squares = np.empty(n), np.empty(n)
    dense.fill_sums(S, p, inverse, c**2 * signed, included, squares)
    included = included.clip(0.0, 1.0)
    excluded = (c**2 * np.diagonal(inverse)).clip(0.0, 1.0)

    log_det_target, inverse_target = target
    value = log_det + 2.0 * float(np.maximum(log_quality, 0.0).sum())
    value -= log_det_target + 2.0 * float(log_quality[members].sum())
    slope = 2.0 * np.where(is_wanted, -excluded, included)
    factor = 0.0
    if lam > 0.0:
        error = float(cost @ np.where(is_wanted, excluded, included))
        margin = max(error, smallest_error)
        value += lam * float(np.log(margin))
        factor = lam / margin
        slope += 2.0 * factor * (signed * included * excluded - c**2 * squares)
    if hinge and not value > 0.0:
        if G is not None:
            G[:] = 0.0
        return 0.0, np.zeros(n)
    if G is None:
        return value, slope

    if lam > 0.0:
        X = scratch("spread", (n, n))
        dense.fill_spread(inverse, p, c * np.sqrt(cost), X)
        lapack.add_product(G, X, 1.0, 0.0)
        lapack.add_product(G, np.ascontiguousarray(X[:, members]), -2.0, 1.0)
        dense.fill_gradient(inverse, p, G, factor, G)
    else:
        dense.fill_gradient(inverse, p, inverse, 0.0, G)
    if inverse_target is not None:
        G[np.ix_(members, members)] -= inverse_target
    return value, slope
