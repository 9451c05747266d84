"""Elementary symmetric polynomials in log space, and choosing eigenvectors by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit
from variegate.compiled.random import next_uniform


@njit(cache=True, nogil=True)
def fill_log_polynomials(log_values: Any, table: Any) -> None:
    """Fill ``table[k, m] = log e_k`` of the first ``m`` values.

    ``e_k(m) = e_k(m - 1) + λ_m e_{k-1}(m - 1)`` has no subtraction, so in log space
    no digit is lost whatever the scale of the values; ``table`` is (k + 1, M + 1).
    """
    table[:] = -np.inf
    table[0, :] = 0.0
    for m in range(1, table.shape[1]):
        for k in range(1, min(m, table.shape[0] - 1) + 1):
            without = table[k, m - 1]
            with_it = table[k - 1, m - 1] + log_values[m - 1]
            high, low = max(without, with_it), min(without, with_it)
            if high == -np.inf:
                continue
            table[k, m] = high + np.log1p(np.exp(low - high))


@njit(cache=True, nogil=True)
def choose_eigenvectors(log_values: Any, table: Any, seeds: Any, kept: Any) -> None:
    """Fill ``kept`` (n, k): eigenvectors of a k-DPP, chosen from the last to the first.

    The ``m``-th is kept, ``k`` of the first ``m`` being wanted, with probability
    ``λ_m e_{k-1}(m - 1) / e_k(m)`` (Kulesza and Taskar, 2011).
    """
    k_total = kept.shape[1]
    for s in range(kept.shape[0]):
        state = seeds[s]
        k = k_total
        m = table.shape[1] - 1
        while k > 0:
            log_probability = log_values[m - 1] + table[k - 1, m - 1] - table[k, m]
            state, uniform = next_uniform(state)
            if uniform < np.exp(log_probability):
                kept[s, k - 1] = m - 1
                k -= 1
            m -= 1
