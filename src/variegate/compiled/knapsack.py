"""So many items within a budget with the largest sum of weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit


@njit(cache=True, nogil=True)
def fill_knapsack(
    weights: Any,
    costs: Any,
    price: float,
    budget: float,
    floor: float,
    max_nodes: int,
    chosen: Any,
) -> Any:
    """Search for ``len(chosen)`` items whose weights sum to more than ``floor``.

    Items come in descending order of ``weights - price * costs``.  Whatever the price,
    no choice of ``m`` items from place ``j`` on within a budget of ``b`` has a larger
    sum than ``price * b`` and the reduced weights of the next ``m``: a bound in
    constant time.  Depth first, with an item before without it.

    Returns
    -------
    best : float
        ``floor`` if nothing better was found; else ``chosen`` has the places.
    n_nodes : int
        More than ``max_nodes`` where the search was not finished.
    """
    n, count = len(weights), len(chosen)
    sums = np.empty(n + 1)
    sums[0] = 0.0
    for j in range(n):
        sums[j + 1] = sums[j] + weights[j] - price * costs[j]
    picks = np.empty(count, dtype=np.int64)
    value, spent = np.empty(count + 1), np.empty(count + 1)
    value[0] = spent[0] = 0.0
    best, taken, j, n_nodes = floor, 0, 0, 0
    while n_nodes <= max_nodes:
        n_nodes += 1
        left = count - taken
        if left == 0:
            if value[taken] > best:
                best = value[taken]
                for place in range(count):
                    chosen[place] = picks[place]
        elif n - j >= left:
            bound = value[taken] + price * (budget - spent[taken])
            bound += sums[j + left] - sums[j]
            if bound > best + 1e-13 * abs(best):
                if spent[taken] + costs[j] <= budget:
                    picks[taken] = j
                    value[taken + 1] = value[taken] + weights[j]
                    spent[taken + 1] = spent[taken] + costs[j]
                    taken += 1
                j += 1
                continue
        if taken == 0:
            break
        taken -= 1
        j = picks[taken] + 1
    return best, n_nodes
