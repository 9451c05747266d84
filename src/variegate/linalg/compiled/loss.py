"""The loss of small and of large ground sets, and its gradient.

One loop takes small sets one after the other, all of a set in the innermost cache: a
call of LAPACK for a ten by ten matrix costs more than the arithmetic.  Others make the
passes over the matrices of a large set that LAPACK does not, reading lower triangles
once and writing full matrices tile by tile, so that columns stay in the cache.  The
formulas are in :mod:`variegate.learning.objective` and
:class:`variegate.linalg.determinants.Resolvent`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.linalg.compiled import FAST, njit


@njit(cache=True, nogil=True, fastmath=FAST)
def invert_with_log_det(
    M: Any, n: int, tolerance: float, work: Any, inverse: Any
) -> tuple[bool, float]:
    """Invert a symmetric matrix; return whether that succeeds, and ``log det M``.

    Reads the lower triangle of ``M`` (n, n), fills ``inverse`` (n, n) and overwrites
    ``work`` (n, n); larger arrays are used in their first rows and columns.  Fails
    where a squared pivot is at most ``tolerance`` times its diagonal entry.
    """
    log_det = 0.0
    for j in range(n):
        pivot = M[j, j]
        for k in range(j):
            pivot -= work[j, k] * work[j, k]
        if not pivot > tolerance * M[j, j]:
            return False, 0.0
        root = np.sqrt(pivot)
        work[j, j] = root
        log_det += 2.0 * np.log(root)
        for i in range(j + 1, n):
            entry = M[i, j]
            for k in range(j):
                entry -= work[i, k] * work[j, k]
            work[i, j] = entry / root
    # Innermost loops go along rows, which the compiler takes several entries at a time.
    for i in range(n):  # the factor becomes its inverse
        for j in range(i):
            inverse[0, j] = 0.0
        for k in range(i):
            for j in range(k + 1):
                inverse[0, j] -= work[i, k] * work[k, j]
        work[i, i] = 1.0 / work[i, i]
        for j in range(i):
            work[i, j] = inverse[0, j] * work[i, i]
    for i in range(n):
        for j in range(i + 1):
            inverse[i, j] = 0.0
    for k in range(n):
        for i in range(k + 1):
            for j in range(i + 1):
                inverse[i, j] += work[k, i] * work[k, j]
    for i in range(n):
        for j in range(i):
            inverse[j, i] = inverse[i, j]
    return True, log_det


#: Kinds of failure: ``L + I``, or the matrix ``S_y`` of the wanted items, is singular.
NOT_DEFINITE, ZERO_PROBABILITY = 1, 2


@njit(cache=True, nogil=True, fastmath=FAST)
def evaluate_sets(
    S: Any, u: Any, targets: Any, loss_of: Any, value: Any, slope: Any, G: Any
) -> tuple[int, int]:
    """Evaluate the losses of B ground sets and their gradients, in place.

    Fill ``value`` (B,) with the losses at ``S`` (B, N, N) and log-qualities ``u``
    (B, N), ``slope`` (B, N) with the gradients in ``u`` and, unless it is empty, ``G``
    (B, N, N) with those in ``S``.  ``u`` is infinite at given items.  ``targets`` is a
    tuple: whether each item is wanted or given (B, N), the cost of an error in each
    (B, N), and ``log det S_y`` (B,) of these items, or empty to compute it.
    ``loss_of`` is a tuple: ``λ``, whether losses below zero count as zero, the
    tolerance of :func:`invert_with_log_det`, and the smallest expected error.  Returns
    the number of the first set that failed, at which the evaluation stops, and
    ZERO_PROBABILITY or NOT_DEFINITE; (-1, 0) if none did.
    """
    is_wanted, cost, target_log_det = targets
    lam, hinge, tolerance, smallest_error = loss_of
    n_sets, n = u.shape
    with_gradient = G.shape[0] > 0
    M = np.empty((n, n))
    work = np.empty((n, n))
    inverse = np.empty((n, n))
    of_target = np.empty((n, n))
    p = np.empty(n)
    c = np.empty(n)
    signed = np.empty(n)
    members = np.empty(n, dtype=np.int64)
    for b in range(n_sets):
        size = 0
        for i in range(n):
            if is_wanted[b, i]:
                members[size] = i
                size += 1
        # Not the count: its first value is a constant, for which callees would be
        # compiled a second time.
        wanted = members[:size]
        if len(target_log_det):
            log_det_target = target_log_det[b]
        else:
            for i in range(len(wanted)):
                for j in range(i + 1):
                    M[i, j] = S[b, wanted[i], wanted[j]]
            possible, log_det_target = invert_with_log_det(
                M, len(wanted), tolerance, work, of_target
            )
            if not possible:
                return b, ZERO_PROBABILITY
        total = 0.0
        for i in range(n):
            p[i] = np.exp(min(u[b, i], 0.0))
            c[i] = np.exp(-max(u[b, i], 0.0))
            signed[i] = -cost[b, i] if is_wanted[b, i] else cost[b, i]
            if u[b, i] == np.inf:  # a given item, whose quality cancels
                continue
            total += 2.0 * max(u[b, i], 0.0)
            if is_wanted[b, i]:
                total -= 2.0 * u[b, i]
        for i in range(n):
            for j in range(i + 1):
                M[i, j] = p[i] * S[b, i, j] * p[j]
            M[i, i] += c[i] * c[i]
        definite, log_det = invert_with_log_det(M, n, tolerance, work, inverse)
        if not definite:
            return b, NOT_DEFINITE
        loss = log_det + total - log_det_target
        margin = 0.0
        for i in range(n):
            excluded = min(max(c[i] * c[i] * inverse[i, i], 0.0), 1.0)
            included = 0.0
            for j in range(n):
                included += p[i] * S[b, i, j] * p[j] * inverse[i, j]
            included = min(max(included, 0.0), 1.0)
            slope[b, i] = -2.0 * excluded if is_wanted[b, i] else 2.0 * included
            margin += cost[b, i] * (excluded if is_wanted[b, i] else included)
            work[i, 0] = signed[i] * included * excluded
        factor = 0.0
        if lam > 0.0:
            margin = max(margin, smallest_error)
            loss += lam * np.log(margin)
            factor = lam / margin
            for i in range(n):
                others = 0.0
                for j in range(n):
                    if j != i:
                        others += c[j] * c[j] * signed[j] * inverse[i, j] ** 2
                slope[b, i] += 2.0 * factor * (work[i, 0] - c[i] * c[i] * others)
        if hinge and not loss > 0.0:
            value[b] = 0.0
            for i in range(n):
                slope[b, i] = 0.0
            if with_gradient:
                for i in range(n):
                    for j in range(n):
                        G[b, i, j] = 0.0
            continue
        value[b] = loss
        if not with_gradient:
            continue
        for i in range(n):
            for k in range(n):
                work[i, k] = factor * c[k] * c[k] * signed[k] * inverse[i, k]
        for i in range(n):
            for j in range(i + 1):
                entry = inverse[i, j]
                if lam > 0.0:
                    for k in range(n):
                        entry += work[i, k] * inverse[j, k]
                entry *= p[i] * p[j]
                G[b, i, j] = entry
                G[b, j, i] = entry
        for i in range(len(wanted)):
            for j in range(len(wanted)):
                G[b, wanted[i], wanted[j]] -= of_target[i, j]
    return -1, 0


#: Rows and columns of a tile.
_TILE = 32


@njit(cache=True, nogil=True, fastmath=FAST)
def fill_scaled_similarity(S: Any, p: Any, diagonal: Any, M: Any) -> None:
    """Fill the lower triangle of ``M = P S P + diag(diagonal)``, ``P = diag(p)``."""
    for i in range(len(p)):
        for j in range(i + 1):
            M[i, j] = p[i] * S[i, j] * p[j]
        M[i, i] += diagonal[i]


@njit(cache=True, nogil=True, fastmath=FAST)
def fill_marginal_sums(
    S: Any, p: Any, inverse: Any, weight: Any, included: Any, squares: Any
) -> None:
    """Fill ``included`` and ``squares``, (N,), from the lower triangle of ``M⁻¹``.

    ``included_i = Σ_j [PSP]_ij [M⁻¹]_ij = K_ii`` with ``P = diag(p)``, and
    ``squares_i = Σ_{j≠i} weight_j [M⁻¹]_ij²``; ``p`` and ``weight`` are (N,).
    """
    n = len(p)
    for i in range(n):
        included[i] = 0.0
        squares[i] = 0.0
    for i in range(n):
        own = 0.0
        square = 0.0
        for j in range(i):
            m = inverse[i, j]
            part = p[i] * S[i, j] * p[j] * m
            own += part
            included[j] += part
            m *= m
            square += weight[j] * m
            squares[j] += weight[i] * m
        included[i] += own + p[i] * S[i, i] * p[i] * inverse[i, i]
        squares[i] += square


@njit(cache=True, nogil=True)
def fill_scaled_inverse(inverse: Any, p: Any, scale: Any, X: Any) -> None:
    """Fill ``X = P M⁻¹ diag(scale)`` (N, N) from the lower triangle of ``M⁻¹``."""
    n = len(p)
    for top in range(0, n, _TILE):
        bottom = min(top + _TILE, n)
        for left in range(0, top + 1, _TILE):
            for i in range(top, bottom):
                for j in range(left, min(left + _TILE, i + 1)):
                    X[i, j] = p[i] * inverse[i, j] * scale[j]
            for j in range(left, min(left + _TILE, n)):
                for i in range(max(top, j + 1), bottom):
                    X[j, i] = p[j] * inverse[i, j] * scale[i]


@njit(cache=True, nogil=True)
def fill_gradient(inverse: Any, p: Any, product: Any, factor: float, G: Any) -> None:
    """Fill ``G = P M⁻¹ P + factor · product`` (N, N) from lower triangles.

    ``G`` may be ``product`` itself.
    """
    n = len(p)
    for top in range(0, n, _TILE):
        bottom = min(top + _TILE, n)
        for left in range(0, top + 1, _TILE):
            for i in range(top, bottom):
                for j in range(left, min(left + _TILE, i + 1)):
                    G[i, j] = p[i] * inverse[i, j] * p[j] + factor * product[i, j]
            for j in range(left, min(left + _TILE, n)):
                for i in range(max(top, j + 1), bottom):
                    G[j, i] = G[i, j]
