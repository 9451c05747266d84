"""Exact sampling from the eigendecomposition (Hough et al., 2006).

A determinantal point process is a mixture of elementary ones.  First each eigenvector
``v_m`` is kept with probability ``λ_m / (1 + λ_m)``, which is its eigenvalue in ``K``
(``λ_m`` that in ``L``); for exactly ``k`` items, ``k`` of them are kept with a
probability proportional to the product of their ``λ_m`` (Kulesza and Taskar, 2011).
Then items are drawn from the span of those kept: see
:mod:`variegate.compiled.elementary`.

Every sample has a seed of its own, drawn before any sample is made.
"""

from __future__ import annotations

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.linalg.spectrum import Eigenvectors


def sample_spectral(
    keep_probability: FloatArray,
    eigenvectors: Eigenvectors,
    n_samples: int,
    generator: np.random.Generator,
) -> BoolArray:
    """Draw subsets from the mixture of elementary processes.

    Parameters
    ----------
    keep_probability : array of shape (M,)
        Eigenvalues of the marginal kernel ``K``, between 0 and 1.
    eigenvectors : Eigenvectors of shape (M, N)
    n_samples : int
    generator : numpy.random.Generator

    Returns
    -------
    boolean array of shape (n_samples, N)
    """
    kept = generator.random((n_samples, len(keep_probability))) < keep_probability
    offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return _sample_items(eigenvectors, np.nonzero(kept)[1], offsets, generator)


def sample_spectral_k(
    log_eigenvalues: FloatArray,
    eigenvectors: Eigenvectors,
    k: int,
    n_samples: int,
    generator: np.random.Generator,
) -> BoolArray:
    """Draw subsets of exactly ``k`` items: a k-DPP.

    Parameters
    ----------
    log_eigenvalues : array of shape (M,)
        Logarithms of the eigenvalues of ``L``, up to a common constant; at least ``k``
        of them finite.
    eigenvectors : Eigenvectors of shape (M, N)
    k, n_samples : int
    generator : numpy.random.Generator

    Returns
    -------
    boolean array of shape (n_samples, N)
    """
    from variegate.compiled.symmetric import choose_eigenvectors, fill_log_polynomials

    table = np.empty((k + 1, len(log_eigenvalues) + 1))
    fill_log_polynomials(log_eigenvalues, table)
    kept = np.empty((n_samples, k), dtype=np.intp)
    choose_eigenvectors(log_eigenvalues, table, _seeds(generator, n_samples), kept)
    offsets = np.arange(n_samples + 1) * k
    return _sample_items(eigenvectors, kept.ravel(), offsets, generator)


def _sample_items(
    eigenvectors: Eigenvectors,
    kept: IntArray,
    offsets: IntArray,
    generator: np.random.Generator,
) -> BoolArray:
    from variegate.compiled.elementary import sample_elementary

    n_samples = len(offsets) - 1
    vectors, kept = eigenvectors.select(kept)
    items = np.empty(len(kept), dtype=np.intp)
    sample_elementary(vectors, kept, offsets, _seeds(generator, n_samples), items)
    chosen = np.zeros((n_samples, vectors.shape[1]), dtype=bool)
    chosen[np.repeat(np.arange(n_samples), np.diff(offsets)), items] = True
    return chosen


def _seeds(generator: np.random.Generator, n_samples: int) -> np.ndarray:
    return generator.integers(2**64, size=n_samples, dtype=np.uint64)
