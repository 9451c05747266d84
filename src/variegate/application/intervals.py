"""Resampling what was judged, to tell how sure a mean is."""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray

#: Numbers that are drawn at a time.
_DRAWN = 2**21


def bootstrap_means(rows: FloatArray, n_bootstrap: int, seed: int) -> FloatArray:
    """Return the means of samples of the rows, drawn with replacement.

    From (n, ...) to (n_bootstrap, ...).
    """
    n = len(rows)
    rng = np.random.default_rng(seed)
    at_a_time = max(1, _DRAWN // n)
    flat = rows.reshape(n, -1)
    means = []
    for first in range(0, n_bootstrap, at_a_time):
        count = min(at_a_time, n_bootstrap - first)
        draws = rng.integers(n, size=(count, n))
        # How often each row was drawn is all that matters, and BLAS does the rest.
        draws += n * np.arange(count)[:, None]
        times = np.bincount(draws.ravel(), minlength=count * n).reshape(count, n)
        means.append(times @ flat / n)
    return np.concatenate(means).reshape(n_bootstrap, *rows.shape[1:])
