"""The loss of many small ground sets and its gradient, one set after the other.

Everything about a set stays in the innermost cache.  Formulas are those of
:mod:`variegate.learning.objective` and of
:class:`variegate.linalg.determinants.Resolvent`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit
from variegate.compiled.spd import invert

#: What a set can fail by.
NOT_DEFINITE, ZERO_PROBABILITY = 1, 2


# Sums may be taken in any order; nothing else of IEEE arithmetic is given up.
_FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_FAST)
def evaluate_sets(
    S: Any,
    u: Any,
    is_wanted: Any,
    cost: Any,
    target_log_det: Any,
    lam: float,
    hinge: bool,
    tolerance: float,
    smallest_error: float,
    value: Any,
    slope: Any,
    G: Any,
) -> tuple[int, int]:
    """Fill ``value`` (B,), ``slope`` (B, N) and, unless it is empty, ``G`` (B, N, N).

    ``target_log_det`` is ``log det S_y`` of every set, or empty where it is to be
    computed.  Returns the place and the kind of the first failure, or (-1, 0).
    """
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
            possible, log_det_target = invert(
                M, len(wanted), tolerance, work, of_target
            )
            if not possible:
                return b, ZERO_PROBABILITY
        total = 0.0
        for i in range(n):
            p[i] = np.exp(min(u[b, i], 0.0))
            c[i] = np.exp(-max(u[b, i], 0.0))
            total += 2.0 * max(u[b, i], 0.0)
            signed[i] = -cost[b, i] if is_wanted[b, i] else cost[b, i]
            if is_wanted[b, i]:
                total -= 2.0 * u[b, i]
        for i in range(n):
            for j in range(i + 1):
                M[i, j] = p[i] * S[b, i, j] * p[j]
            M[i, i] += c[i] * c[i]
        definite, log_det = invert(M, n, tolerance, work, inverse)
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
