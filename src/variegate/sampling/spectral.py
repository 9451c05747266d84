"""Exact sampling from the eigendecomposition (Hough et al., 2006).

A determinantal point process is a mixture of elementary ones.  First each eigenvector
``v_m`` is kept with probability ``λ_m / (1 + λ_m)``, which is its eigenvalue in ``K``
(``λ_m`` that in ``L``); then items are drawn one
by one from the span ``V`` of those kept, item ``i`` with probability proportional to
the squared length of row ``i`` of ``V`` outside the span of the rows drawn before.
"""

from __future__ import annotations

import numpy as np

from variegate._typing import BoolArray, FloatArray


def sample_spectral(
    keep_probability: FloatArray,
    eigenvectors: FloatArray,
    n_samples: int,
    generator: np.random.Generator,
) -> BoolArray:
    """Draw subsets from the mixture of elementary processes.

    Parameters
    ----------
    keep_probability : array of shape (N,)
        Eigenvalues of the marginal kernel ``K``, between 0 and 1.
    eigenvectors : array of shape (N, N)
        In columns.
    n_samples : int
    generator : numpy.random.Generator

    Returns
    -------
    boolean array of shape (n_samples, N)
    """
    shape = (n_samples, len(keep_probability))
    kept = generator.random(shape) < keep_probability
    uniforms = generator.random(shape)
    chosen = np.zeros(shape, dtype=bool)
    for row, columns, numbers in zip(chosen, kept, uniforms, strict=True):
        row[_sample_elementary(eigenvectors[:, columns], numbers)] = True
    return chosen


def _sample_elementary(V: FloatArray, uniforms: FloatArray) -> list[int]:
    """Draw from the elementary process of orthonormal columns ``V``.

    Keeps, instead of a shrinking orthonormal basis, the orthonormalised rows drawn so
    far and the squared residual of every row outside their span: ``O(N k)`` an item.
    """
    n_items, size = V.shape
    residual = np.einsum("ik,ik->i", V, V)
    basis = np.zeros((size, size))
    chosen: list[int] = []
    for count in range(size):
        cumulative = np.cumsum(np.maximum(residual, 0.0))
        item = int(
            np.searchsorted(cumulative, uniforms[count] * cumulative[-1], side="right")
        )
        item = min(item, n_items - 1)
        direction = V[item] - basis[:count].T @ (basis[:count] @ V[item])
        # A second pass keeps the basis orthogonal to rounding.
        direction -= basis[:count].T @ (basis[:count] @ direction)
        direction /= np.linalg.norm(direction)
        basis[count] = direction
        residual -= (V @ direction) ** 2
        residual[item] = 0.0
        chosen.append(item)
    return chosen
