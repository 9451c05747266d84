r"""The loss of ground sets and its gradient by compiled loops, small and large sets.

Symbols and formulas are those of :mod:`variegate.learning.objective`, with ``p``,
``c`` and ``M`` of :class:`variegate.linalg.determinants.Resolvent`.  For a large set,
most of the time goes to LAPACK: one Cholesky factorisation, one inverse, and for the
gradient in ``S`` one symmetric product: with ``X = P M⁻¹ C |W|^{1/2}``,

.. math:: P M^{-1} C W C M^{-1} P = X X^T - 2 X_y X_y^T,

because ``W`` is negative at the wanted items ``y`` alone.
"""

from __future__ import annotations

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.learning.objective import (
    SMALLEST_ERROR,
    LargeMarginLoss,
    Targets,
    ZeroProbabilityError,
)
from variegate.linalg import lapack
from variegate.linalg.compiled import loss as loops
from variegate.linalg.compiled import read_only
from variegate.linalg.determinants import (
    NotPositiveDefiniteError,
    finite_part,
    log_det_and_inverse,
)
from variegate.linalg.lapack import scratch_array
from variegate.linalg.limits import DOUBTFUL_PIVOT


def small_set_losses(
    loss: LargeMarginLoss,
    S: FloatArray,
    log_quality: FloatArray,
    targets: Targets,
    target_log_det: FloatArray | None,
    G: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Return the losses (B,) of small sets and gradients in ``log_quality`` (B, N).

    ``S`` is (B, N, N).  ``target_log_det`` (B,) is ``log det S_y`` of the wanted items,
    computed if None; ``G`` (B, N, N), unless None, is filled with the gradients in
    ``S``.  The first set that fails raises ZeroProbabilityError (``S_y`` is singular)
    or NotPositiveDefiniteError (``L + I`` is), with its index in the stack.
    """
    n_sets, n_items = log_quality.shape
    value, slope = np.empty(n_sets), np.empty((n_sets, n_items))
    failed, reason = loops.evaluate_sets(
        read_only(S),
        read_only(log_quality),
        (
            read_only(targets.indicator),
            read_only(targets.error_cost),
            read_only(np.empty(0) if target_log_det is None else target_log_det),
        ),
        (float(loss.lam), bool(loss.hinge), DOUBTFUL_PIVOT, SMALLEST_ERROR),
        value,
        slope,
        np.empty((0, n_items, n_items)) if G is None else G,
    )
    if reason == loops.ZERO_PROBABILITY:
        raise ZeroProbabilityError(failed)
    if reason:
        raise NotPositiveDefiniteError(failed)
    return value, slope


def large_set_losses(
    loss: LargeMarginLoss,
    S: FloatArray,
    log_quality: FloatArray,
    targets: Targets,
    target_log_det: FloatArray | None,
    G: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Return the losses (B,) of large sets and gradients in ``log_quality`` (B, N).

    As :func:`small_set_losses`, but each set is factored by LAPACK.
    """
    value, slope = np.empty(len(S)), np.empty_like(log_quality)
    for index in range(len(S)):
        try:
            value[index], slope[index] = _large_set_loss(
                loss,
                S[index],
                log_quality[index],
                targets.indicator[index],
                targets.error_cost[index],
                None if target_log_det is None else float(target_log_det[index]),
                None if G is None else G[index],
            )
        except NotPositiveDefiniteError as error:
            raise type(error)(index) from None
    return value, slope


def _large_set_loss(
    loss: LargeMarginLoss,
    S: FloatArray,
    log_quality: FloatArray,
    is_wanted: BoolArray,
    cost: FloatArray,
    log_det_target: float | None,
    G: FloatArray | None,
) -> tuple[float, FloatArray]:
    """Return the loss of one set and its gradient in ``log_quality`` (N,).

    ``is_wanted`` (N,) is a mask, ``cost`` (N,) that of an error at each item, and
    ``log_det_target`` is ``log det S_y``, computed if None.  ``G`` (N, N), unless None,
    is filled with the gradient in ``S`` (N, N).
    """
    members, inverse_target = np.flatnonzero(is_wanted), None
    if log_det_target is None:
        log_det_target, inverse_target = _target_log_det_and_inverse(S, members)
    S = read_only(S)
    p = np.exp(np.minimum(log_quality, 0.0))
    c = np.exp(-np.maximum(log_quality, 0.0))
    signed = np.where(is_wanted, -cost, cost)
    log_det, inverse = _log_det_and_inverse(S, p, c)
    included, squares = np.empty(len(S)), np.empty(len(S))
    loops.fill_marginal_sums(S, p, inverse, c**2 * signed, included, squares)
    included = included.clip(0.0, 1.0)
    excluded = (c**2 * np.diagonal(inverse)).clip(0.0, 1.0)

    u = finite_part(log_quality)
    value = log_det + 2.0 * float(np.maximum(u, 0.0).sum())
    value -= log_det_target + 2.0 * float(u[members].sum())
    slope = 2.0 * np.where(is_wanted, -excluded, included)
    margin, factor = loss.margin_terms(
        float(cost @ np.where(is_wanted, excluded, included))
    )
    value += margin
    if factor > 0.0:
        slope += 2.0 * factor * (signed * included * excluded - c**2 * squares)
    if loss.hinge and not value > 0.0:
        if G is not None:
            G[:] = 0.0
        return 0.0, np.zeros(len(S))
    if G is not None:
        wanted = members[c[members] > 0.0]  # the others are given
        _fill_gradient(inverse, p, c * np.sqrt(cost), wanted, factor, G)
        if inverse_target is not None:
            G[np.ix_(members, members)] -= inverse_target
    return value, slope


def _target_log_det_and_inverse(
    S: FloatArray, members: IntArray
) -> tuple[float, FloatArray]:
    """Return ``log det S_y`` and ``S_y⁻¹`` of the wanted items ``members``.

    ZeroProbabilityError if ``S_y`` is singular to rounding.
    """
    S_y = S[np.ix_(members, members)]
    try:
        log_det, inverse = log_det_and_inverse(S_y, DOUBTFUL_PIVOT)
    except NotPositiveDefiniteError:
        raise ZeroProbabilityError(0) from None
    return float(log_det), inverse


def _log_det_and_inverse(
    S: FloatArray, p: FloatArray, c: FloatArray
) -> tuple[float, FloatArray]:
    """Return ``log det M`` and the lower triangle of ``M⁻¹``, ``M = P S P + C²``.

    The triangle is in a scratch array of the thread, which the next call overwrites.
    NotPositiveDefiniteError if ``M`` is singular to rounding.
    """
    inverse = scratch_array("inverse", S.shape)
    loops.fill_scaled_similarity(S, p, c**2, inverse)
    smallest = DOUBTFUL_PIVOT * (p**2 * np.diagonal(S) + c**2)
    if not lapack.cholesky(inverse) or (np.diagonal(inverse) ** 2 <= smallest).any():
        raise NotPositiveDefiniteError(0)
    log_det = 2.0 * float(np.log(np.diagonal(inverse)).sum())
    lapack.inverse_from_cholesky(inverse)
    return log_det, inverse


def _fill_gradient(
    inverse: FloatArray,
    p: FloatArray,
    spread: FloatArray,
    members: IntArray,
    factor: float,
    G: FloatArray,
) -> None:
    """Fill ``G`` (N, N) with ``P (M⁻¹ + factor M⁻¹ C W C M⁻¹) P``.

    ``inverse`` has the lower triangle of ``M⁻¹``; ``spread`` (N,) is ``C |W|^{1/2}``,
    and ``W`` is negative at the wanted items ``members``.
    """
    if factor == 0.0:
        loops.fill_gradient(inverse, p, inverse, 0.0, G)
        return
    X = scratch_array("spread", inverse.shape)
    loops.fill_scaled_inverse(inverse, p, spread, X)
    lapack.symmetric_rank_k_update(G, X, 1.0, 0.0)
    lapack.symmetric_rank_k_update(G, np.ascontiguousarray(X[:, members]), -2.0, 1.0)
    loops.fill_gradient(inverse, p, G, factor, G)
