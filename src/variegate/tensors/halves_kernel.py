"""Sets whose matrices are too large for the registers of one program, in Triton.

:func:`prepare_sets` writes ``M`` with a unit diagonal.  :func:`invert_blocks` inverts
the block of its first items, and then what they leave of the others, which products of
matrices join (:mod:`variegate.tensors.halves`).  :func:`finish_sets` makes loss and
gradient of the inverse, some rows at a time.  Formulas are those of
:mod:`variegate.tensors.dense`.
"""

# Triton's functions have the types of its compiler, not of Python.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import triton
import triton.language as tl

from variegate.tensors.fused_kernel import _all, _judged, _log, _scales, _sweep

__all__ = ["finish_sets", "invert_blocks", "prepare_sets"]


@triton.jit
def _items(
    X,
    log_quality,
    mask,
    settings,
    places,
    item,
    N: tl.constexpr,
    HAS_QUALITY: tl.constexpr,
    HAS_MASK: tl.constexpr,
):
    """Return ``u``, the diagonal of ``X``, and what ``_scales`` returns."""
    is_item = item < N
    if HAS_MASK:
        is_item = is_item & (tl.load(mask + places + item, mask=is_item, other=0) != 0)
    raised = tl.load(settings + 1).to(X.dtype.element_ty)
    x = tl.load(X + places * N + item * (N + 1), mask=is_item, other=0.0) * raised
    u = x
    if HAS_QUALITY:
        u = tl.load(log_quality + places + item, mask=is_item, other=0.0)
    r, c, above, own, scale = _scales(u, x, raised, is_item, HAS_QUALITY)
    return u, x, r, c, above, own, scale


@triton.jit
def prepare_sets(
    X,
    log_quality,
    mask,
    settings,
    M,
    N: tl.constexpr,
    HAS_QUALITY: tl.constexpr,
    HAS_MASK: tl.constexpr,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Fill ``M`` (B, N, N), ``ROWS`` of a set a program."""
    places = tl.program_id(0).to(tl.int64) * N
    column = tl.arange(0, SIZE)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    _, _, r, _, _, _, scale = _items(
        X, log_quality, mask, settings, places, column, N, HAS_QUALITY, HAS_MASK
    )
    along = r * scale
    _, _, r, _, _, _, scale = _items(
        X, log_quality, mask, settings, places, row, N, HAS_QUALITY, HAS_MASK
    )
    down = r * scale
    cells = row[:, None] * N + column[None, :]
    # Padding is zero, whatever stands there.
    is_cell = (down != 0.0)[:, None] & (along != 0.0)[None, :]
    A = tl.load(X + places * N + cells, mask=is_cell, other=0.0)
    A = A * (down[:, None] * along[None, :])
    A = tl.where(row[:, None] == column[None, :], 1.0, A)
    is_filled = (row < N)[:, None] & (column < N)[None, :]
    tl.store(M + places * N + cells, A, mask=is_filled)


@triton.jit
def invert_blocks(
    M,
    V,
    pivots,
    START: tl.constexpr,
    END: tl.constexpr,
    N: tl.constexpr,
    SIZE: tl.constexpr,
):
    """Put the inverse of a block on the diagonal of ``M`` (B, N, N) into ``V``.

    Its squared pivots go into ``pivots`` (B, N).
    """
    places = tl.program_id(0).to(tl.int64) * N
    item = tl.arange(0, SIZE)
    row, column = item[:, None], item[None, :]
    n_items: tl.constexpr = END - START
    is_filled = (row < n_items) & (column < n_items)
    cells = places * N + (row + START) * N + column + START
    A = tl.load(M + cells, mask=is_filled, other=0.0)
    A = tl.where((row == column) & (row >= n_items), 1.0, A)
    found = tl.full([SIZE], 1.0, dtype=M.dtype.element_ty)
    is_done = tl.zeros([SIZE], dtype=tl.int32)
    for j in range(n_items):
        A, found, is_done = _sweep(A, found, is_done, j, row, item)
    tl.store(V + cells, A, mask=is_filled)
    tl.store(pivots + places + START + item, found, mask=item < n_items)


@triton.jit
def _rows_of(V, row, column, N: tl.constexpr, HALF: tl.constexpr):
    """Return rows of a symmetric matrix whose upper block beside the diagonal is empty.

    It is the transpose of the lower one.
    """
    row, column = row[:, None], column[None, :]
    is_mirrored = (row < HALF) & (column >= HALF)
    cells = tl.where(is_mirrored, column * N + row, row * N + column)
    return tl.load(V + cells, mask=(row < N) & (column < N), other=0.0)


@triton.jit
def finish_sets(
    X,
    log_quality,
    wanted,
    costs,
    mask,
    settings,
    inverse,
    pivots,
    target_log_det,
    target_failed,
    value,
    failed,
    slope,
    left,
    right,
    N: tl.constexpr,
    HALF: tl.constexpr,
    HAS_QUALITY: tl.constexpr,
    HAS_MASK: tl.constexpr,
    HINGE: tl.constexpr,
    MARGIN: tl.constexpr,
    GRADIENT: tl.constexpr,
    TOLERANCE: tl.constexpr,
    SMALLEST_ERROR: tl.constexpr,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Fill ``value`` and ``failed`` (B,), and what gradients are made of.

    Parameters
    ----------
    X, log_quality, mask, settings : as for ``evaluate_sets``
    wanted : uint8 (B, N)
    costs : (B, N)
        Of an error at each item, zero at padding.
    inverse : (B, N, N)
        ``M⁻¹`` for a unit diagonal of ``M``, its block above the diagonal left out.
    pivots : (B, N)
        The squared pivots that it was found by.
    target_log_det : double (B,)
    target_failed : uint8 (B,)
        What the set has failed by so far.
    slope : (B, N)
        The gradient in the log-quality.
    left, right : (B, N, N)
        Their product is the gradient in ``X``, but for the wanted items' own matrix
        and the jitter.
    """
    dtype = X.dtype.element_ty
    set_ = tl.program_id(0).to(tl.int64)
    places = set_ * N
    lam = tl.load(settings)
    raised = tl.load(settings + 1).to(dtype)
    column = tl.arange(0, SIZE)
    is_inside = column < N
    u, x, r, c, above, own, scale = _items(
        X, log_quality, mask, settings, places, column, N, HAS_QUALITY, HAS_MASK
    )
    is_wanted = tl.load(wanted + places + column, mask=is_inside, other=0) != 0
    cost = tl.load(costs + places + column, mask=is_inside, other=0.0)
    pivot = tl.load(pivots + places + column, mask=is_inside, other=1.0)
    is_definite = _all(x >= 0.0) & _all(pivot > TOLERANCE)
    log_terms = _log(own) + _log(pivot) + 2.0 * above.to(tl.float64)
    loss = tl.sum(log_terms, axis=0) - tl.load(target_log_det + set_)
    if HAS_QUALITY:
        loss -= 2.0 * tl.sum(tl.where(is_wanted, u, 0.0).to(tl.float64), axis=0)

    # Marginals and the expected error; those of wanted items are kept in the slope.
    factor = lam * 0.0
    if MARGIN or GRADIENT:
        error = lam * 0.0
        for start in range(0, N, ROWS):
            row = start + tl.arange(0, ROWS)
            _, _, r_row, c_row, _, _, scale_row = _items(
                X, log_quality, mask, settings, places, row, N, HAS_QUALITY, HAS_MASK
            )
            is_diagonal = row[:, None] == column[None, :]
            V = _rows_of(inverse + places * N, row, column, N, HALF)
            V *= scale_row[:, None] * scale[None, :]
            cells = row[:, None] * N + column[None, :]
            is_cell = (r_row != 0.0)[:, None] & (r != 0.0)[None, :]
            A = tl.load(X + places * N + cells, mask=is_cell, other=0.0)
            A = tl.where(is_diagonal, raised * A, A)
            excluded = c_row * c_row * tl.sum(tl.where(is_diagonal, V, 0.0), axis=1)
            excluded = tl.minimum(tl.maximum(excluded, 0.0), 1.0)
            included = r_row * tl.sum(r[None, :] * A * V, axis=1)
            included = tl.minimum(tl.maximum(included, 0.0), 1.0)
            chosen = tl.load(wanted + places + row, mask=row < N, other=0) != 0
            price = tl.load(costs + places + row, mask=row < N, other=0.0)
            wrong = price * tl.where(chosen, excluded, included)
            error += tl.sum(wrong.to(tl.float64), axis=0)
            if GRADIENT and HAS_QUALITY:
                tl.store(slope + places + row, included, mask=row < N)
        if MARGIN:
            error = tl.where(error < SMALLEST_ERROR, SMALLEST_ERROR, error)
            loss += lam * tl.log(error)
            factor = lam / error
    reason = tl.load(target_failed + set_).to(tl.int32)
    reason = tl.where((reason == 0) & (is_definite == 0), 2, reason)
    loss, reason, is_active = _judged(loss, reason, HINGE)
    tl.store(value + set_, loss.to(dtype))
    tl.store(failed + set_, reason.to(tl.uint8))

    if GRADIENT:
        tl.debug_barrier()
        d = c * c * tl.where(is_wanted, -cost, cost) * factor.to(dtype)
        for start in range(0, N, ROWS):
            row = start + tl.arange(0, ROWS)
            _, _, r_row, c_row, _, _, scale_row = _items(
                X, log_quality, mask, settings, places, row, N, HAS_QUALITY, HAS_MASK
            )
            is_diagonal = row[:, None] == column[None, :]
            V = _rows_of(inverse + places * N, row, column, N, HALF)
            V *= scale_row[:, None] * scale[None, :]
            if HAS_QUALITY:
                own_V = tl.sum(tl.where(is_diagonal, V, 0.0), axis=1)
                excluded = tl.minimum(tl.maximum(c_row * c_row * own_V, 0.0), 1.0)
                included = tl.load(slope + places + row, mask=row < N, other=0.0)
                chosen = tl.load(wanted + places + row, mask=row < N, other=0) != 0
                price = tl.load(costs + places + row, mask=row < N, other=0.0)
                turn = tl.where(chosen, -excluded, included)
                if MARGIN:
                    sign = tl.where(chosen, -price, price) * factor.to(dtype)
                    squares = tl.where(is_diagonal, 0.0, V * V) * d[None, :]
                    turn += sign * included * excluded
                    turn -= c_row * c_row * tl.sum(squares, axis=1)
                turn = tl.where(is_active, 2.0 * turn, 0.0)
                tl.store(slope + places + row, turn, mask=row < N)
            # R (V + V D V) R = R (I + V D) · V R.
            G = V * d[None, :] + tl.where(is_diagonal, 1.0, 0.0).to(dtype)
            G = tl.where(is_active, r_row[:, None] * G, 0.0)
            V = tl.where(is_active, V * r[None, :], 0.0)
            cells = places * N + row[:, None] * N + column[None, :]
            is_filled = (row < N)[:, None] & (column < N)[None, :]
            tl.store(left + cells, G, mask=is_filled)
            tl.store(right + cells, V, mask=is_filled)
