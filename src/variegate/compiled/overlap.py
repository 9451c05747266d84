"""How much bags of words have in common, for many sentences and many targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def mean_f_with_each(
    starts: Any,
    units: Any,
    amounts: Any,
    sizes: Any,
    current: Any,
    size: float,
    targets: Any,
    target_sizes: Any,
    weights: Any,
    hits: Any,
    values: Any,
) -> None:
    """Fill ``values`` with the mean F-score of a summary and each sentence added.

    Parameters
    ----------
    starts, units, amounts : rows of a CSR matrix
        How often each unit is in each sentence.
    sizes : (N,)
        Units in each sentence.
    current : (W,)
        How often each unit is in the summary.
    size : float
        Units in the summary.
    targets : (W, T)
    target_sizes : (T,)
    weights : (T,)
        Of the mean.
    hits : (T,)
        Units that the summary has in common with each target.
    values : (N,), filled
    """
    n_targets = targets.shape[1]
    added = np.empty(n_targets, dtype=np.float32)
    for item in range(len(values)):
        for t in range(n_targets):
            added[t] = 0.0
        for k in range(starts[item], starts[item + 1]):
            before = current[units[k]]
            after = before + amounts[k]
            wanted = targets[units[k]]
            for t in range(n_targets):
                added[t] += min(after, wanted[t]) - min(before, wanted[t])
        total = 0.0
        length = size + sizes[item]
        for t in range(n_targets):
            both = length + target_sizes[t]
            if both > 0.0:
                total += weights[t] * 2.0 * (hits[t] + added[t]) / both
        values[item] = total
