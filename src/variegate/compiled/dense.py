"""Passes over the matrices of one large ground set, each entry read once.

Matrices are symmetric; only their lower triangles are read, and where a full matrix is
written, both triangles at once, tile by tile, so that columns stay in the cache.
"""

from __future__ import annotations

from typing import Any

from variegate.compiled.jit import njit

#: Rows and columns of a tile.
_TILE = 32

# Sums may be taken in any order; nothing else of IEEE arithmetic is given up.
_FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_scaled(S: Any, p: Any, diagonal: Any, M: Any) -> None:
    """Fill the lower triangle of ``M = P S P + diag``."""
    for i in range(len(p)):
        for j in range(i + 1):
            M[i, j] = p[i] * S[i, j] * p[j]
        M[i, i] += diagonal[i]


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_sums(
    S: Any, p: Any, inverse: Any, weight: Any, included: Any, squares: Any
) -> None:
    """Fill ``Σ_j [PSP]_ij [M⁻¹]_ij`` and ``Σ_{j≠i} weight_j [M⁻¹]_ij²``."""
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
def fill_spread(inverse: Any, p: Any, scale: Any, X: Any) -> None:
    """Fill ``X = P M⁻¹ diag(scale)``, all of it."""
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
    """Fill ``G = P M⁻¹ P + factor · product``, all of it.

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
