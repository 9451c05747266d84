"""Choose the eigenvectors of a k-DPP by elementary symmetric polynomials."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit
from variegate.compiled.random import next_uniform


@njit(cache=True, nogil=True)
def choose_eigenvectors(log_values: Any, table: Any, seeds: Any, kept: Any) -> None:
    """Fill ``kept`` (n, M): which eigenvectors of a k-DPP each sample keeps.

    The ``m``-th is kept, ``k`` of the first ``m`` being wanted, with probability
    ``λ_m e_{k-1}(m - 1) / e_k(m)`` (Kulesza and Taskar, 2011), from the last to the
    first.  ``table`` is (M + 1, k + 1), ``kept`` is False before.
    """
    for s in range(kept.shape[0]):
        state = seeds[s]
        k = table.shape[1] - 1
        m = table.shape[0] - 1
        while k > 0:
            log_probability = log_values[m - 1] + table[m - 1, k - 1] - table[m, k]
            state, uniform = next_uniform(state)
            if uniform < np.exp(log_probability):
                kept[s, m - 1] = True
                k -= 1
            m -= 1
