"""The loss of small sets on a GPU and its gradient, a set a program, in Triton.

A program holds the matrix of its set in registers and inverts it in place by the method
of Gauss and Jordan.  Formulas are those of :mod:`variegate.torch.dense`.

The number of items is known to the compiler, so that addresses take no registers (at 50
items, 2.8 ms instead of 7): a kernel for each is compiled once, and kept on disk by
Triton.
"""

# Triton's functions have the types of its compiler, not of Python.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad

from variegate.torch.dense import DOUBTFUL, raise_diagonal
from variegate.torch.targets import SMALLEST_ERROR, LossSettings, LossTerms, Targets

#: Most registers of a thread, by the rows of a program: fewer let more programs run.
_REGISTERS = {16: 80}

#: Sets of different sizes are padded to multiples of this, to compile few kernels.
_STEP = 8


def fused_loss_terms(
    X: Tensor,
    log_quality: Tensor | None,
    targets: Targets,
    settings: LossSettings,
    *,
    gradient: bool,
) -> LossTerms:
    """Return losses and, with ``gradient``, gradients: see :func:`evaluate_sets`."""
    n_items = X.shape[1]
    n_more = 0 if targets.mask is None else -n_items % _STEP
    if n_more:
        X = pad(X, (0, n_more, 0, n_more))
        log_quality = None if log_quality is None else pad(log_quality, (0, n_more))
        targets = _add_padding(targets, n_more)
    found = _launch_kernel(X.contiguous(), log_quality, targets, settings, gradient)
    G, slope = found.similarity_gradient, found.quality_gradient
    return found._replace(
        similarity_gradient=None if G is None else G[:, :n_items, :n_items],
        quality_gradient=None if slope is None else slope[:, :n_items],
    )


def _add_padding(targets: Targets, n_more: int) -> Targets:
    """Return targets with ``n_more`` more items, padding, in every tensor of items."""
    wider: dict[str, Any] = {"n_items": targets.n_items + n_more}
    for name in ("subsets", "false_positive", "false_negative", "mask"):
        given = getattr(targets, name)
        is_numbers = name == "subsets" and given.dtype != torch.bool
        is_wide = isinstance(given, Tensor) and given.shape[-1:] == (targets.n_items,)
        if is_wide and not is_numbers:
            wider[name] = pad(given, (0, n_more))
    return replace(targets, **wider)


def _launch_kernel(
    X: Tensor,
    log_quality: Tensor | None,
    targets: Targets,
    settings: LossSettings,
    gradient: bool,
) -> LossTerms:
    """Run the Triton kernel; return losses and gradients as ``fused_loss_terms``."""
    lam, hinge, _, tolerance = settings
    jitter, doubtful = float(settings.jitter), DOUBTFUL[X.dtype]
    n_sets, n_items = X.shape[:2]
    width = max(16, 1 << (n_items - 1).bit_length())  # rows that a program holds
    has_product = gradient and lam > 0.0
    value, failed = X.new_empty(n_sets), X.new_empty(n_sets, dtype=torch.uint8)
    G = torch.empty_like(X) if gradient else None
    left, right = (torch.empty_like(X) if has_product else X for _ in "LR")
    slope = None if log_quality is None else torch.empty_like(X[:, 0])
    with torch.cuda.device_of(X):
        evaluate_sets[(n_sets,)](
            X,
            X if log_quality is None else log_quality.contiguous(),
            _make_contiguous(targets.subsets),
            _expand_costs(targets.false_positive, X),
            _expand_costs(targets.false_negative, X),
            X if targets.mask is None else _make_contiguous(targets.mask),
            _settings_tensor(lam, 1.0 + jitter, X.device),
            value,
            failed,
            X if slope is None else slope,
            X if G is None else G,
            left,
            right,
            targets.subsets.shape[1],
            N=n_items,
            HAS_QUALITY=log_quality is not None,
            BY_NUMBER=targets.subsets.dtype != torch.bool,
            HAS_MASK=targets.mask is not None,
            HINGE=hinge,
            MARGIN=lam > 0.0,
            GRADIENT=gradient,
            TOLERANCE=doubtful,
            TARGET_TOLERANCE=doubtful if tolerance is None else tolerance,
            SMALLEST_ERROR=SMALLEST_ERROR[X.dtype],
            SIZE=width,
            num_warps=max(width // 32, 1),  # a thread a column
            maxnreg=_REGISTERS.get(width),
        )
    if G is None:
        return LossTerms(value, None, None, failed)
    if has_product:
        G.baddbmm_(left, right)
        raise_diagonal(G, jitter)
    return LossTerms(value, G, slope, failed)


def _make_contiguous(given: Tensor) -> Tensor:
    """Return a contiguous tensor for Triton; booleans are viewed as uint8."""
    given = given.contiguous()
    return given.view(torch.uint8) if given.dtype == torch.bool else given


def _expand_costs(given: Tensor | float, X: Tensor) -> Tensor:
    """Return costs, a number or tensor, as a contiguous (B, N) like ``X``."""
    if not isinstance(given, Tensor):
        return X.new_full(X.shape[:2], given)
    return given.to(X.dtype).expand(X.shape[:2]).contiguous()


@lru_cache(maxsize=256)
def _settings_tensor(lam: float, raised: float, device: torch.device) -> Tensor:
    """Return ``λ`` and ``1 + jitter`` in double: Triton would round arguments."""
    given = torch.empty(2, dtype=torch.float64, device=device)
    for place, number in enumerate((lam, raised)):
        given[place].fill_(number)  # unlike a copy, this is not waited for
    return given


@triton.jit
def _gauss_jordan_step(A, pivots, is_done, j, row, item):
    """Return ``A``, ``pivots``, ``is_done`` after the Gauss-Jordan step at item ``j``.

    ``row`` and ``item`` are item numbers, and ``is_done`` marks the earlier steps.
    Steps at all items make of a symmetric ``A`` its inverse.  With pivot ``d``, a step
    is ``A_ik - (A_ij / d) A_jk``; ``1 - 1/d`` for ``A_jj / d`` and ``1 + d`` for
    ``A_jj`` make this right for the row, the column and the entry of the pivot.  With a
    unit diagonal pivots are at most one, so nothing cancels.  Columns are rows, but for
    the sign of those that are done.
    """
    # Registers have no addresses: a row is the sum of all with the others masked.
    along = tl.sum(tl.where(row == j, A, 0.0), axis=0)
    pivot = tl.sum(tl.where(item == j, along, 0.0), axis=0)
    over = 1.0 / pivot
    down = tl.where(is_done != 0, -along, along) * over
    down = tl.where(item == j, 1.0 - over, down)
    along = tl.where(item == j, 1.0 + pivot, along)
    pivots = tl.where(item == j, pivot, pivots)
    is_done = tl.where(item == j, 1, is_done)
    return A - down[:, None] * along[None, :], pivots, is_done


@triton.jit
def _log_or_zero(x):
    """Return logarithms in double precision, 0 of numbers that are not positive."""
    x = x.to(tl.float64)
    return tl.log(tl.where(x > 0.0, x, 1.0))


@triton.jit
def _all_true(holds):
    """Return whether all flags of a vector hold."""
    return tl.min(holds.to(tl.int32), axis=0) == 1


@triton.jit
def _item_scales(u, x, raised, is_item, HAS_QUALITY: tl.constexpr):
    """Return ``r``, ``c``, ``-log c``, the diagonal of ``M`` and one over its root.

    ``u`` is the log-quality, ``x`` the kernel's diagonal times ``raised``, 1 + jitter.
    """
    if HAS_QUALITY:
        # Not by maximum and minimum, which lose NaN.
        above = tl.where(u < 0.0, 0.0, u)
        r = tl.exp(tl.where(u > 0.0, 0.0, u))
        c = tl.exp(-above)
    else:
        above = 0.5 * tl.log(tl.maximum(x / raised, 1.0))
        c = tl.exp(-above)
        r = c
    r = tl.where(is_item, r, 0.0)
    own = r * r * x + c * c
    return r, c, above, own, 1.0 / tl.sqrt(tl.where(own > 0.0, own, 1.0))


@triton.jit
def _judge_loss(loss, reason, HINGE: tl.constexpr):
    """Return the loss, the reason if it failed, else 0, and whether it has a gradient.

    Failed losses are inf (reason 1, ZERO_PROBABILITY) or NaN; HINGE makes 0 the least.
    """
    reason = tl.where((reason == 0) & (loss == float("inf")), 1, reason)
    is_finite = (loss > float("-inf")) & (loss < float("inf"))
    reason = tl.where((reason == 0) & (is_finite == 0), 2, reason)
    is_active = reason == 0
    if HINGE:
        is_active = is_active & (loss > 0.0)
        loss = tl.maximum(loss, 0.0)
    loss = tl.where(reason == 1, float("inf"), loss)
    return tl.where(reason >= 2, float("nan"), loss), reason, is_active


@triton.jit
def evaluate_sets(
    X,
    log_quality,
    subsets,
    false_positive,
    false_negative,
    mask,
    settings,
    value,
    failed,
    slope,
    of_target,
    left,
    right,
    n_numbers,
    N: tl.constexpr,
    HAS_QUALITY: tl.constexpr,
    BY_NUMBER: tl.constexpr,
    HAS_MASK: tl.constexpr,
    HINGE: tl.constexpr,
    MARGIN: tl.constexpr,
    GRADIENT: tl.constexpr,
    TOLERANCE: tl.constexpr,
    TARGET_TOLERANCE: tl.constexpr,
    SMALLEST_ERROR: tl.constexpr,
    SIZE: tl.constexpr,
):
    """Fill losses ``value``, ``failed`` (0, or the reason), (B,), and the gradients.

    Parameters
    ----------
    X : (B, N, N)
        ``S`` if there is a log-quality, else ``L``.
    log_quality, false_positive, false_negative : (B, N)
    subsets : integer (B, k), or uint8 (B, N) if not ``BY_NUMBER``
    mask : uint8 (B, N)
    settings : double (2,)
        ``λ``, and one plus the jitter.
    slope : (B, N)
        The gradient in the log-quality, if ``GRADIENT``; so are the next ones.
    of_target, left, right : (B, N, N)
        The gradient in ``X``; if ``MARGIN`` (``λ > 0``), add ``left @ right`` to it.
    n_numbers, SIZE : int
        ``k`` of ``subsets``, and the rows that a program holds, a power of two.
    """
    dtype = X.dtype.element_ty
    set_ = tl.program_id(0).to(tl.int64)
    places = set_ * N
    X += places * N
    of_target += places * N
    left += places * N
    right += places * N
    lam = tl.load(settings)
    raised = tl.load(settings + 1).to(dtype)
    item = tl.arange(0, SIZE)
    row, column = item[:, None], item[None, :]
    is_inside = item < N
    is_item = is_inside
    is_filled = (row < N) & (column < N)
    is_cell = is_filled
    if HAS_MASK:
        is_item = is_item & (tl.load(mask + places + item, mask=is_item, other=0) != 0)
        is_cell = is_item[:, None] & is_item[None, :]
    is_diagonal = row == column
    cells = row * N + column

    # Wanted items, and the costs of errors.
    is_wrong = set_ < 0
    if BY_NUMBER:
        times = tl.zeros([SIZE], dtype=tl.int32)
        for place in range(n_numbers):
            number = tl.load(subsets + set_ * n_numbers + place).to(tl.int64)
            is_wrong = is_wrong | (number < -1) | (number >= N)
            times += (item == number).to(tl.int32)
        is_wrong = is_wrong | (tl.max(times, axis=0) > 1)
        wanted = times > 0
    else:
        wanted = tl.load(subsets + places + item, mask=is_inside, other=0) != 0
    is_wrong = is_wrong | (_all_true(is_item | (wanted == 0)) == 0)
    wanted = wanted & is_item
    positive = tl.load(false_positive + places + item, mask=is_item, other=0.0)
    negative = tl.load(false_negative + places + item, mask=is_item, other=0.0)
    costs = tl.where(is_item, tl.where(wanted, negative, positive), 0.0)

    # The wanted items: log det and inverse of X_y, an identity around it.
    x = raised * tl.load(X + item * (N + 1), mask=is_item, other=0.0)
    own = tl.where(wanted, x, 1.0)
    is_possible = _all_true(own > 0.0)
    scale = 1.0 / tl.sqrt(tl.where(own > 0.0, own, 1.0))
    is_target = wanted[:, None] & wanted[None, :]
    A = tl.load(X + cells, mask=is_target, other=0.0)
    A = tl.where(is_diagonal, 1.0, A * (scale[:, None] * scale[None, :]))
    pivots = tl.full([SIZE], 1.0, dtype=dtype)
    is_done = tl.zeros([SIZE], dtype=tl.int32)
    if BY_NUMBER:
        for place in range(n_numbers):
            j = tl.load(subsets + set_ * n_numbers + place).to(tl.int32)
            if (j >= 0) & (j < N):
                A, pivots, is_done = _gauss_jordan_step(
                    A, pivots, is_done, j, row, item
                )
    else:
        for j in range(N):
            if tl.load(subsets + places + j) != 0:
                A, pivots, is_done = _gauss_jordan_step(
                    A, pivots, is_done, j, row, item
                )
    is_possible = is_possible & _all_true(pivots > TARGET_TOLERANCE)
    log_det_target = tl.sum(_log_or_zero(own) + _log_or_zero(pivots), axis=0)
    if GRADIENT:
        A *= scale[:, None] * scale[None, :]
        tl.store(of_target + cells, tl.where(is_target, -A, 0.0), mask=is_filled)

    # All items: M = R X R + C², scaled to a unit diagonal; its log det and its inverse.
    u = x
    log_det = lam * 0.0
    if HAS_QUALITY:
        u = tl.load(log_quality + places + item, mask=is_item, other=0.0)
        log_det = -2.0 * tl.sum(tl.where(wanted, u, 0.0).to(tl.float64), axis=0)
    r, c, above, own, scale = _item_scales(u, x, raised, is_item, HAS_QUALITY)
    A = tl.load(X + cells, mask=is_cell, other=0.0)
    A = tl.where(is_diagonal, 1.0, A * ((scale * r)[:, None] * (scale * r)[None, :]))
    pivots = tl.full([SIZE], 1.0, dtype=dtype)
    is_done = tl.zeros([SIZE], dtype=tl.int32)
    for j in range(N):
        A, pivots, is_done = _gauss_jordan_step(A, pivots, is_done, j, row, item)
    V = A * (scale[:, None] * scale[None, :])
    is_definite = _all_true(x >= 0.0) & _all_true(pivots > TOLERANCE)
    log_terms = _log_or_zero(own) + _log_or_zero(pivots) + 2.0 * above.to(tl.float64)
    log_det += tl.sum(log_terms, axis=0)

    # Marginals, the expected error, and the loss.
    loss = log_det - log_det_target
    factor = lam * 0.0
    if MARGIN or GRADIENT:
        excluded = c * c * tl.sum(tl.where(is_diagonal, V, 0.0), axis=0)
        excluded = tl.minimum(tl.maximum(excluded, 0.0), 1.0)
        A = tl.load(X + cells, mask=is_cell, other=0.0)
        A = tl.where(is_diagonal, raised * A, A)
        included = r * tl.sum(r[:, None] * A * V, axis=0)
        included = tl.minimum(tl.maximum(included, 0.0), 1.0)
    if MARGIN:
        error = costs * tl.where(wanted, excluded, included)
        error = tl.sum(error.to(tl.float64), axis=0)
        error = tl.where(error < SMALLEST_ERROR, SMALLEST_ERROR, error)
        loss += lam * tl.log(error)
        factor = lam / error
    reason = tl.where(is_possible, tl.where(is_definite, 0, 2), 1)
    reason = tl.where(is_wrong, 3, reason)
    loss, reason, is_active = _judge_loss(loss, reason, HINGE)
    tl.store(value + set_, loss.to(dtype))
    tl.store(failed + set_, reason.to(tl.uint8))

    if GRADIENT:
        signs = tl.where(wanted, -costs, costs) * factor.to(dtype)
        d = c * c * signs
        if HAS_QUALITY:
            turn = tl.where(wanted, -excluded, included)
            if MARGIN:
                squares = tl.where(is_diagonal, 0.0, V * V) * d[:, None]
                squares = tl.sum(squares, axis=0)
                turn += signs * included * excluded - c * c * squares
            turn = tl.where(is_active, 2.0 * turn, 0.0)
            tl.store(slope + places + item, turn, mask=is_inside)
        if MARGIN:
            # R (V + V D V) R = R (I + V D) · V R.
            G = V * d[None, :] + tl.where(is_diagonal, 1.0, 0.0).to(dtype)
            G = tl.where(is_active, r[:, None] * G, 0.0)
            V = tl.where(is_active, V * r[None, :], 0.0)
            tl.store(left + cells, G, mask=is_filled)
            tl.store(right + cells, V, mask=is_filled)
            if is_active == 0:
                tl.store(of_target + cells, V * 0.0, mask=is_filled)
        else:
            G = V * (r[:, None] * r[None, :])
            G += tl.load(of_target + cells, mask=is_filled, other=0.0)
            G = tl.where(is_diagonal, raised * G, G)
            tl.store(of_target + cells, tl.where(is_active, G, 0.0), mask=is_filled)
