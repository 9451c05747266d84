"""Gaussians of learned features, and sums of Gaussians at bandwidths halved in turn.

Halving a bandwidth takes a Gaussian to its fourth power, so that a few stored matrices
and two multiplications an entry give all of them; no similarity is stored.  Where
Gaussians are *anchored*, they are held less 1, and ``(1 + x)⁴ - 1`` is their power.

Matrices are packed: the entries below the diagonal, row by row, N (N - 1) / 2 of them.
A *chain* is a stored matrix followed by its fourth power, the fourth power of that, and
so on; each of these matrices is a *rung* and has a weight.  Of C chains with K rungs
altogether, chain ``a`` has the weights ``first[a]`` to ``first[a] + length[a] - 1``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.linalg.compiled import FAST, njit

_TILE = 32


@njit(inline="always", fastmath=FAST)
def _raise_to_fourth(x: Any, n: int, anchored: bool) -> None:
    """Raise the first ``n`` Gaussians in ``x`` to the fourth power, in place.

    If ``anchored``, entries are Gaussians less 1, before and after.
    """
    if anchored:
        for j in range(n):
            x[j] *= 4.0 + x[j] * (6.0 + x[j] * (4.0 + x[j]))
    else:
        for j in range(n):
            square = x[j] * x[j]
            x[j] = square * square


@njit(cache=True, nogil=True, fastmath=FAST)
def fill_mixture(
    packed: Any,
    diagonal: Any,
    first: Any,
    length: Any,
    weights: Any,
    anchors: Any,
    S: Any,
) -> None:
    """Fill ``S`` (B, N, N) with the sum of all rungs of all chains, times ``weights``.

    ``packed`` (B, C, N (N - 1) / 2) and ``diagonal`` (B, C, N) are the first rungs;
    ``first``, ``length`` (C,) and ``weights`` (K,) are those of the module docstring.
    The diagonal is that of all rungs of a chain.  Unless ``anchors`` (B, N) is empty,
    Gaussians are anchored, and ``anchors_i + anchors_j`` is taken from entry ``ij``.
    """
    n = S.shape[1]
    anchored = len(anchors) > 0
    x = np.empty(n)
    total = np.empty(n)
    for b in range(S.shape[0]):
        place = 0
        for i in range(n):
            own = 0.0
            for j in range(i):
                total[j] = 0.0
            if anchored:
                own = -2.0 * anchors[b, i]
                for j in range(i):
                    total[j] = -anchors[b, i] - anchors[b, j]
            for a in range(len(first)):
                for j in range(i):
                    x[j] = packed[b, a, place + j]
                for r in range(length[a]):
                    w = weights[first[a] + r]
                    own += w * diagonal[b, a, i]
                    if r > 0:
                        _raise_to_fourth(x, i, anchored)
                    for j in range(i):
                        total[j] += w * x[j]
            for j in range(i):
                S[b, i, j] = total[j]
            S[b, i, i] = own
            place += i
        for top in range(0, n, _TILE):
            bottom = min(top + _TILE, n)
            for left in range(0, top + 1, _TILE):
                for j in range(left, min(left + _TILE, n)):
                    for i in range(max(top, j + 1), bottom):
                        S[b, j, i] = S[b, i, j]


@njit(cache=True, nogil=True, fastmath=FAST)
def add_inner_products(
    packed: Any,
    diagonal: Any,
    first: Any,
    length: Any,
    anchored: bool,
    G: Any,
    out: Any,
) -> None:
    """Add ``Σ_ij G_ij S^k_ij``, summed over B sets, to ``out[k]`` for every rung ``k``.

    ``S^k`` is the matrix of rung ``k``, of Gaussians less 1 if ``anchored``; ``G`` (B,
    N, N) is symmetric, ``out`` is (K,), others are as of :func:`fill_mixture`.
    """
    n = G.shape[1]
    x = np.empty(n)
    for b in range(G.shape[0]):
        place = 0
        for i in range(n):
            for a in range(len(first)):
                for j in range(i):
                    x[j] = packed[b, a, place + j]
                own = G[b, i, i] * diagonal[b, a, i]
                for r in range(length[a]):
                    if r > 0:
                        _raise_to_fourth(x, i, anchored)
                    inner = 0.0
                    for j in range(i):
                        inner += G[b, i, j] * x[j]
                    out[first[a] + r] += 2.0 * inner + own
            place += i


@njit(cache=True, nogil=True, fastmath=FAST)
def fill_gaussian(points: Any, S: Any) -> None:
    """Fill ``S`` (B, N, N) with ``exp(-‖z_i - z_j‖² / 2)`` of ``points`` (B, N, r).

    Distances are taken by differences, so that near points keep their digits.
    """
    for b in range(S.shape[0]):
        for i in range(S.shape[1]):
            S[b, i, i] = 1.0
            for j in range(i):
                squared = 0.0
                for k in range(points.shape[2]):
                    apart = points[b, i, k] - points[b, j, k]
                    squared += apart * apart
                S[b, i, j] = np.exp(-0.5 * squared)
                S[b, j, i] = S[b, i, j]
