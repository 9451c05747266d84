"""Exact sampling from the eigendecomposition (Hough et al., 2006).

A determinantal point process is a mixture of elementary ones.  First each eigenvector
``v_m`` is kept with probability ``λ_m / (1 + λ_m)``, which is its eigenvalue in ``K``
(``λ_m`` that in ``L``); for exactly ``k`` items, ``k`` of them are kept with a
probability proportional to the product of their ``λ_m`` (Kulesza and Taskar, 2011).
Then items are drawn from the span of those kept: see
:mod:`variegate.sampling.elementary`, and for many samples of many items
:mod:`variegate.linalg.compiled.elementary`, which draws the same by the same seeds.
"""

from __future__ import annotations

import numpy as np

from variegate._random import splitmix_uniforms
from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.linalg.limits import COMPILED_SAMPLES, COMPILED_SAMPLES_TOGETHER
from variegate.linalg.spectrum import Eigenvectors
from variegate.sampling import elementary


def sample_spectral(
    keep_probability: FloatArray,
    eigenvectors: Eigenvectors,
    n_samples: int,
    generator: np.random.Generator,
    n_together: int = 1,
) -> BoolArray:
    """Draw boolean subsets (n_samples, N) from the mixture of elementary processes.

    ``keep_probability`` (M,) are the eigenvalues of the marginal kernel ``K``, and
    ``eigenvectors`` its M eigenvectors.  ``n_together`` is the number of such processes
    that the caller samples, one after the other: with many, compiling loops pays.
    """
    kept = generator.random((n_samples, len(keep_probability))) < keep_probability
    work = n_samples * eigenvectors.shape[1] * float(keep_probability.sum())
    compiled = _use_compiled(work, n_together)
    return _sample_items(eigenvectors, kept, compiled, generator)


def sample_spectral_k(
    log_eigenvalues: FloatArray,
    eigenvectors: Eigenvectors,
    k: int,
    n_samples: int,
    generator: np.random.Generator,
    n_together: int = 1,
) -> BoolArray:
    """Draw boolean subsets (n_samples, N) of exactly ``k`` items: a k-DPP.

    ``log_eigenvalues`` (M,) are those of ``L`` up to a common constant; the caller sees
    to it that ``k`` are finite.  Others are as of :func:`sample_spectral`.
    """
    table = _log_polynomials(log_eigenvalues, k)
    seeds = _draw_seeds(generator, n_samples)
    kept = np.zeros((n_samples, len(log_eigenvalues)), dtype=bool)
    compiled = _use_compiled(n_samples * eigenvectors.shape[1] * k, n_together)
    if compiled:
        from variegate.linalg.compiled import read_only
        from variegate.linalg.compiled.elementary import choose_eigenvectors

        choose_eigenvectors(read_only(log_eigenvalues), table, seeds, kept)
    else:
        _choose_eigenvectors(log_eigenvalues, table, seeds, kept)
    return _sample_items(eigenvectors, kept, compiled, generator)


def _use_compiled(work: float, n_together: int) -> bool:
    """Tell whether compiled loops are to draw the samples.

    ``work`` is the number of samples times items times the expected size of a sample.
    """
    return work >= COMPILED_SAMPLES or work * n_together >= COMPILED_SAMPLES_TOGETHER


def _log_polynomials(log_values: FloatArray, k: int) -> FloatArray:
    """Return ``log e_j(m)`` at ``[m, j]``, for ``m`` up to M and ``j`` up to ``k``.

    ``e_j(m)`` is the elementary symmetric polynomial of degree ``j`` of the first ``m``
    eigenvalues, whose logarithms are ``log_values`` (M,).  The recursion ``e_j(m) =
    e_j(m - 1) + λ_m e_{j-1}(m - 1)`` has no subtraction, so in log space no digit is
    lost whatever the scale of the values.
    """
    table = np.full((len(log_values) + 1, k + 1), -np.inf)
    table[:, 0] = 0.0
    for m, log_value in enumerate(log_values.tolist()):
        with_it = table[m, :-1] + log_value
        np.logaddexp(table[m, 1:], with_it, out=table[m + 1, 1:])
    return table


def _choose_eigenvectors(
    log_values: FloatArray, table: FloatArray, seeds: IntArray, kept: BoolArray
) -> None:
    """Set ``kept`` (n, M), all False before, to True for ``k`` vectors of each sample.

    ``table`` is that of ``_log_polynomials``, ``seeds`` (n,) are of uint64.  The
    same as :func:`variegate.linalg.compiled.elementary.choose_eigenvectors`.
    """
    n_vectors = len(log_values)
    uniform = splitmix_uniforms(seeds[:, None], np.arange(1, n_vectors + 1))
    wanted = np.full(len(seeds), table.shape[1] - 1)
    for step, m in enumerate(range(n_vectors, 0, -1)):
        samples = np.flatnonzero(wanted)
        k = wanted[samples]
        log_probability = log_values[m - 1] + table[m - 1, k - 1] - table[m, k]
        is_kept = uniform[samples, step] < np.exp(log_probability)
        kept[samples, m - 1] = is_kept
        wanted[samples] -= is_kept


def _sample_items(
    eigenvectors: Eigenvectors,
    kept: BoolArray,
    compiled: bool,
    generator: np.random.Generator,
) -> BoolArray:
    """Draw boolean subsets (n, N) from the span of the vectors that each sample keeps.

    ``kept`` (n, M) is True for the eigenvectors that a sample keeps; ``compiled`` says
    whether compiled loops draw, which draw the same.
    """
    offsets = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    vectors, rows = eigenvectors.select(np.nonzero(kept)[1])
    seeds = _draw_seeds(generator, len(kept))
    if not compiled:
        spanning = np.zeros((len(kept), len(vectors)), dtype=bool)
        spanning[np.repeat(np.arange(len(kept)), np.diff(offsets)), rows] = True
        return elementary.sample_elementary(vectors, spanning, seeds)
    from variegate.linalg.compiled import read_only
    from variegate.linalg.compiled.elementary import sample_elementary

    items = np.empty(len(rows), dtype=np.intp)
    sample_elementary(read_only(vectors), rows, offsets, seeds, items)
    chosen = np.zeros((len(kept), vectors.shape[1]), dtype=bool)
    chosen[np.repeat(np.arange(len(kept)), np.diff(offsets)), items] = True
    return chosen


def _draw_seeds(generator: np.random.Generator, n_samples: int) -> IntArray:
    """Draw one seed for each sample, (n_samples,) of uint64."""
    return generator.integers(2**64, size=n_samples, dtype=np.uint64)
