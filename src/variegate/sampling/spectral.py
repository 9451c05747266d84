"""Exact sampling from the eigendecomposition (Hough et al., 2006).

A determinantal point process is a mixture of elementary ones.  First each eigenvector
``v_m`` of ``L`` is kept with probability ``λ_m / (1 + λ_m)``; then items are drawn one
by one from the span ``V`` of those kept, item ``i`` with probability proportional to
the squared length of row ``i`` of ``V`` outside the span of the rows drawn before.
"""

from __future__ import annotations

import numpy as np

from variegate._typing import BoolArray, FloatArray


def sample_spectral(
    eigenvalues: FloatArray,
    eigenvectors: FloatArray,
    n_samples: int,
    generator: np.random.Generator,
) -> BoolArray:
    """Draw subsets from the ensemble with these eigenpairs.

    Parameters
    ----------
    eigenvalues : array of shape (N,)
        Of ``L``, not negative.
    eigenvectors : array of shape (N, N)
        In columns.
    n_samples : int
    generator : numpy.random.Generator

    Returns
    -------
    boolean array of shape (n_samples, N)
    """
    keep_probability = eigenvalues / (1.0 + eigenvalues)
    kept = generator.random((n_samples, len(eigenvalues))) < keep_probability
    chosen = np.zeros((n_samples, eigenvectors.shape[0]), dtype=bool)
    for row, columns in zip(chosen, kept, strict=True):
        row[_sample_elementary(eigenvectors[:, columns], generator)] = True
    return chosen


def _sample_elementary(V: FloatArray, generator: np.random.Generator) -> list[int]:
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
            np.searchsorted(
                cumulative, generator.random() * cumulative[-1], side="right"
            )
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
