"""The loss of a stack of ground sets and its gradient, by NumPy.

The twin of :mod:`variegate.linalg.compiled.loss` for problems too small to compile for.
Formulas are those of :mod:`variegate.learning.objective`.
"""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray
from variegate.learning.objective import SMALLEST_ERROR, LargeMarginLoss, Targets
from variegate.linalg.determinants import Resolvent
from variegate.linalg.limits import DOUBTFUL_PIVOT

__all__ = ["stacked_loss"]


def stacked_loss(
    S: FloatArray,
    log_quality: FloatArray,
    targets: Targets,
    target: tuple[FloatArray, FloatArray | float],
    loss: LargeMarginLoss,
    G: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Return the losses (B,) and their gradients in ``u`` (B, N).

    Parameters
    ----------
    S : array of shape (B, N, N)
    log_quality : array of shape (B, N)
    targets : Targets
    target : (``log det S_y``, ``⟨S_y⁻¹⟩``)
    G : array of shape (B, N, N) or None
        Filled with the gradient in ``S``, if it is wanted.
    """
    resolvent = Resolvent.of(S, log_quality, DOUBTFUL_PIVOT)
    wanted, cost = targets.indicator, targets.error_cost
    signed = np.where(wanted, -cost, cost)
    included, excluded = resolvent.included, resolvent.excluded
    inverse, p, c_squared = resolvent.inverse, resolvent.p, resolvent.c**2
    value = resolvent.log_det - target[0]
    value -= 2.0 * np.where(wanted, log_quality, 0.0).sum(axis=-1)
    slope = 2.0 * np.where(wanted, -excluded, included)
    if G is not None:
        G[:] = inverse
    if loss.lam > 0.0:
        errors = np.where(wanted, excluded, included)
        margin = np.maximum((cost * errors).sum(axis=-1), SMALLEST_ERROR)
        value += loss.lam * np.log(margin)
        factor = (loss.lam / margin)[:, None]
        squares = inverse**2
        np.einsum("bii->bi", squares)[:] = 0.0
        others = np.einsum("bij,bj->bi", squares, c_squared * signed)
        slope += 2.0 * factor * (signed * included * excluded - c_squared * others)
        if G is not None:
            G += (inverse * (factor * c_squared * signed)[:, None, :]) @ inverse
    if G is not None:
        G *= p[:, :, None]
        G *= p[:, None, :]
        G -= target[1]
    if loss.hinge:
        is_met = ~(value > 0.0)
        value[is_met], slope[is_met] = 0.0, 0.0
        if G is not None:
            G[is_met] = 0.0
    return value, slope
