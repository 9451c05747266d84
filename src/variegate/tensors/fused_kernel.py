"""The loss of small sets and its gradient, a set a program, written in Triton.

A program holds the matrix of its set in registers, reads it once or twice, and inverts
it in place by the method of Gauss and Jordan.  Registers have no addresses: a row is
read out of the matrix by summing over all rows with the others masked.  Formulas are
those of :mod:`variegate.tensors.dense`.
"""

# Triton's functions have the types of its compiler, not of Python.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["evaluate_sets"]


@triton.jit
def _inverse(A, n, row, item):
    """Return the inverse of a symmetric ``A`` with a unit diagonal, and its pivots.

    With pivot ``d`` at ``j``, one step takes ``A_ik - (A_ij / d) A_jk`` for all, and
    ``1 - 1/d`` in place of ``A_jj / d`` and ``1 + d`` in place of ``A_jj`` make the
    same formula right for the row, the column and the place of the pivot.  Pivots are
    at most one, so nothing cancels.  Rows before the pivot have the other sign.
    """
    pivots = tl.sum(tl.where(row == item[None, :], A, 0.0), axis=0)
    for j in range(n):
        along = tl.sum(tl.where(row == j, A, 0.0), axis=0)
        pivot = tl.sum(tl.where(item == j, along, 0.0), axis=0)
        over = 1.0 / pivot
        down = tl.where(item < j, -along, along) * over
        down = tl.where(item == j, 1.0 - over, down)
        along = tl.where(item == j, 1.0 + pivot, along)
        pivots = tl.where(item == j, pivot, pivots)
        A -= down[:, None] * along[None, :]
    return A, pivots


@triton.jit
def _logs(pivots):
    """Return logarithms in double precision; of what is no pivot, nothing."""
    pivots = pivots.to(tl.float64)
    return tl.log(tl.where(pivots > 0.0, pivots, 1.0))


@triton.jit
def _all_above(pivots, least):
    return tl.min((pivots > least).to(tl.int32), axis=0) == 1  # NaN is not


@triton.jit
def evaluate_sets(
    X,
    log_quality,
    members,
    n_wanted,
    indicator,
    cost,
    mask,
    settings,
    value,
    failed,
    slope,
    of_target,
    left,
    right,
    n_items,
    n_members,
    HAS_QUALITY: tl.constexpr,
    HAS_MASK: tl.constexpr,
    HINGE: tl.constexpr,
    MARGIN: tl.constexpr,
    GRADIENT: tl.constexpr,
    WHOLE: tl.constexpr,
    TOLERANCE: tl.constexpr,
    TARGET_TOLERANCE: tl.constexpr,
    SMALLEST_ERROR: tl.constexpr,
    SIZE: tl.constexpr,
    TARGET_SIZE: tl.constexpr,
):
    """Fill ``value`` and ``failed`` (B,), and what gradients are made of.

    Parameters
    ----------
    X : (B, N, N)
        ``S`` if there is a log-quality, else ``L``.
    log_quality : (B, N)
    members : (B, k)
        The wanted items, -1 where there is none.
    n_wanted : (B,)
        The number of places in ``members`` to look at.
    indicator, mask : uint8 (B, N)
    cost : (B, N)
    settings : double (2,)
        ``λ``, and one plus the jitter.
    slope : (B, N)
        The gradient in the log-quality.
    of_target : (B, k, k)
        ``X_y⁻¹``, where not ``WHOLE``.
    left, right : (B, N, N)
        The gradient in ``X`` is ``left``, where ``WHOLE``; else the product of both
        less ``of_target`` in its places, but for the jitter.
    """
    dtype = X.dtype.element_ty
    set_ = tl.program_id(0).to(tl.int64)
    X += set_ * n_items * n_items
    places = set_ * n_items
    lam, raised = tl.load(settings), tl.load(settings + 1).to(dtype)

    # The wanted items: log det and inverse of X_y.
    place = tl.arange(0, TARGET_SIZE)
    place_row = place[:, None]
    n_places = tl.load(n_wanted + set_)
    member = tl.load(
        members + set_ * n_members + place, mask=place < n_places, other=-1
    )
    is_member = member >= 0
    is_target = is_member[:, None] & is_member[None, :]
    target_cells = member[:, None] * n_items + member[None, :]
    own = raised * tl.load(X + member * (n_items + 1), mask=is_member, other=1.0)
    own = tl.where(is_member, own, 1.0)
    is_possible = tl.min(own, axis=0) > 0.0
    own = tl.where(own > 0.0, own, 1.0)
    scale = 1.0 / tl.sqrt(own)
    T = tl.load(X + target_cells, mask=is_target, other=0.0)
    T *= scale[:, None] * scale[None, :]
    T = tl.where(place_row == place[None, :], 1.0, T)
    T, pivots = _inverse(T, n_places, place_row, place)
    is_possible = is_possible & _all_above(pivots, TARGET_TOLERANCE)
    T *= scale[:, None] * scale[None, :]
    log_det_target = tl.sum(tl.log(own.to(tl.float64)) + _logs(pivots), axis=0)

    # All items: M = R X R + C², scaled to a unit diagonal; its log det and its inverse.
    item = tl.arange(0, SIZE)
    row, column = item[:, None], item[None, :]
    is_item = item < n_items
    if HAS_MASK:
        is_item = is_item & (tl.load(mask + places + item, mask=is_item, other=0) != 0)
    is_cell = is_item[:, None] & is_item[None, :]
    cells = row * n_items + column
    diagonal = tl.load(X + item * (n_items + 1), mask=is_item, other=0.0)
    is_definite = tl.min(diagonal, axis=0) >= 0.0
    wanted = tl.load(indicator + places + item, mask=is_item, other=0) != 0
    costs = tl.load(cost + places + item, mask=is_item, other=0.0)
    if HAS_QUALITY:
        u = tl.load(log_quality + places + item, mask=is_item, other=0.0)
        above = tl.maximum(u, 0.0)
        r = tl.exp(tl.minimum(u, 0.0))
        c = tl.exp(-above)
        log_det = -2.0 * tl.sum(tl.where(wanted, u, 0.0).to(tl.float64), axis=0)
    else:
        above = 0.5 * tl.log(tl.maximum(diagonal, 1.0))
        c = tl.exp(-above)
        r = c
        log_det = lam * 0.0
    r = tl.where(is_item, r, 0.0)
    own = r * r * raised * diagonal + c * c
    own = tl.where(own > 0.0, own, 1.0)
    scale = 1.0 / tl.sqrt(own)
    V = tl.load(X + cells, mask=is_cell, other=0.0)
    V *= (scale * r)[:, None] * (scale * r)[None, :]
    V = tl.where(row == column, 1.0, V)
    V, pivots = _inverse(V, n_items, row, item)
    is_definite = is_definite & _all_above(pivots, TOLERANCE)
    V *= scale[:, None] * scale[None, :]
    log_terms = tl.log(own.to(tl.float64)) + _logs(pivots)
    log_det += tl.sum(log_terms + 2.0 * above.to(tl.float64), axis=0)

    # Marginals, the expected error, and the loss.
    loss = log_det - log_det_target
    factor = lam * 0.0
    if MARGIN or GRADIENT:
        excluded = c * c * tl.sum(tl.where(row == column, V, 0.0), axis=0)
        excluded = tl.minimum(tl.maximum(excluded, 0.0), 1.0)
        A = tl.load(X + cells, mask=is_cell, other=0.0)
        A = tl.where(row == column, raised * A, A)
        included = r * tl.sum(r[:, None] * A * V, axis=0)
        included = tl.minimum(tl.maximum(included, 0.0), 1.0)
    if MARGIN:
        error = costs * tl.where(wanted, excluded, included)
        error = tl.maximum(tl.sum(error.to(tl.float64), axis=0), SMALLEST_ERROR)
        loss += lam * tl.log(error)
        factor = lam / error
    reason = tl.where(is_possible, tl.where(is_definite, 0, 2), 1)
    reason = tl.where((reason == 0) & (loss == float("inf")), 1, reason)
    is_finite = (loss > float("-inf")) & (loss < float("inf"))
    reason = tl.where((reason == 0) & (is_finite == 0), 2, reason)
    is_active = reason == 0
    if HINGE:
        is_active = is_active & (loss > 0.0)
        loss = tl.maximum(loss, 0.0)
    loss = tl.where(reason == 1, float("inf"), loss)
    loss = tl.where(reason == 2, float("nan"), loss)
    tl.store(value + set_, loss.to(dtype))
    tl.store(failed + set_, reason.to(tl.uint8))

    if GRADIENT:
        is_inside = (row < n_items) & (column < n_items)
        left += set_ * n_items * n_items
        # W C² of the module docstring of dense, with λ / m.
        d = tl.where(wanted, -costs, costs) * c * c * factor.to(dtype)
        if HAS_QUALITY:
            turn = tl.where(wanted, -excluded, included)
            if MARGIN:
                squares = tl.where(row == column, 0.0, V * V) * d[:, None]
                squares = tl.sum(squares, axis=0)
                signs = tl.where(wanted, -costs, costs) * factor.to(dtype)
                turn += signs * included * excluded - c * c * squares
            turn = tl.where(is_active, 2.0 * turn, 0.0)
            tl.store(slope + places + item, turn, mask=item < n_items)
        if WHOLE:
            G = V
            if MARGIN:
                # V D V = Σ_k d_k v_k v_kᵀ; rows by way of memory, where none waits.
                tl.store(left + cells, V, mask=is_inside)
                tl.debug_barrier()
                for k in range(n_items):
                    along = tl.load(left + k * n_items + item, mask=is_item, other=0.0)
                    at_k = tl.sum(tl.where(item == k, d, 0.0), axis=0)
                    G += (at_k * along)[:, None] * along[None, :]
                tl.debug_barrier()
            G = tl.where(is_active, r[:, None] * G * r[None, :], 0.0)
            G = tl.where(row == column, raised * G, G)
            tl.store(left + cells, G, mask=is_inside)
            tl.debug_barrier()
            G = tl.load(left + target_cells, mask=is_target, other=0.0)
            T = tl.where(place_row == place[None, :], raised * T, T)
            G = tl.where(is_active, G - T, 0.0)
            tl.store(left + target_cells, G, mask=is_target)
        else:
            right += set_ * n_items * n_items
            # R (V + V D V) R = R (I + V D) · V R.
            G = V * d[None, :] + tl.where(row == column, 1.0, 0.0).to(dtype)
            G = tl.where(is_active, r[:, None] * G, 0.0)
            V = tl.where(is_active, V * r[None, :], 0.0)
            tl.store(left + cells, G, mask=is_inside)
            tl.store(right + cells, V, mask=is_inside)
            T = tl.where(is_active & is_target, T, 0.0)
            inside = (place_row < n_members) & (place[None, :] < n_members)
            of_target += set_ * n_members * n_members
            cells = place_row * n_members + place[None, :]
            tl.store(of_target + cells, T, mask=inside)
