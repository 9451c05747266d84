"""Gaussians of learned features, and sums of Gaussians on a ladder of bandwidths.

Halving a bandwidth takes a Gaussian to its fourth power, so that a few stored matrices
and two multiplications an entry give all of them; no similarity is stored.  Where
Gaussians are *anchored*, they are held less 1, and ``(1 + x)⁴ - 1`` is their power.

Matrices are packed: the entries below the diagonal, row by row, N (N - 1) / 2 of them.
A *chain* is a stored matrix and its fourth powers, one after the other; its weights lie
beside each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.linalg.compiled import FAST, njit

_TILE = 32


@njit(inline="always", fastmath=FAST)
def _raise_to_fourth(x: Any, n: int, anchored: bool) -> None:
    """Raise ``n`` Gaussians (less 1 if ``anchored``) to the fourth power, in place."""
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
    """Fill ``S`` (B, N, N) with the weighted sum of all rungs of all chains.

    ``packed`` is (B, chains, N (N - 1) / 2), ``diagonal`` (B, chains, N); chain ``a``
    has the weights ``first[a]`` to ``first[a] + length[a]``.  The diagonal of a chain
    of more than one rung is that of a Gaussian, 1, or 0 if less 1.  ``anchors`` (B, N),
    unless it is empty, is taken from both items of a pair.
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
    """Add ``Σ_ij G_ij S^k_ij`` to ``out[k]`` for every rung ``k``, over all sets.

    Without the anchors, whose sums are over single items: see :func:`fill_mixture`.
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
def fill_gaussian(placed: Any, S: Any) -> None:
    """Fill ``S`` (B, N, N) with ``exp(-‖z_i - z_j‖² / 2)`` of ``placed`` (B, N, r).

    By differences, as in :func:`variegate.kernels.gaussian.squared_distances`.
    """
    for b in range(S.shape[0]):
        for i in range(S.shape[1]):
            S[b, i, i] = 1.0
            for j in range(i):
                squared = 0.0
                for k in range(placed.shape[2]):
                    apart = placed[b, i, k] - placed[b, j, k]
                    squared += apart * apart
                S[b, i, j] = np.exp(-0.5 * squared)
                S[b, j, i] = S[b, i, j]
