"""A search for the set whose matching with other sets is largest, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from variegate._typing import BoolArray, FloatArray, IntArray


@njit(cache=True, nogil=True)
def augments(
    item: int,
    alike: BoolArray,
    members: IntArray,
    owner: IntArray,
    seen: BoolArray,
    commit: bool,
) -> bool:
    """Tell whether one more item can be matched with the members of a set.

    ``owner`` says which item each member is matched with, -1 for none; with
    ``commit`` it is changed along the path that frees a member.
    """
    for place in range(len(members)):
        if seen[place] or not alike[item, members[place]]:
            continue
        seen[place] = True
        if owner[place] < 0 or augments(
            owner[place], alike, members, owner, seen, commit
        ):
            if commit:
                owner[place] = item
            return True
    return False


@njit(cache=True, nogil=True)
def choose_by_matching(
    alike: BoolArray,
    same: BoolArray,
    members: IntArray,
    sizes: IntArray,
    weights: FloatArray,
    limit: int,
    beta: float,
) -> tuple[IntArray, FloatArray]:
    """Choose items greedily for the weighted mean F-score of matching with sets.

    With ``h`` of its ``a`` items matched with a set of ``b``, a choice scores
    ``(1 + β²) h / (a + β² b)``.

    What an item adds to a maximum matching never grows as others are chosen, so that
    the last known gains are bounds, and few are computed again.

    Parameters
    ----------
    alike : array of shape (N, N)
        Which items can be matched.
    same : array of shape (N, N)
        Which items exclude each other: at least each one itself.
    members : array of shape (T, M)
        The items of each set; only the first ``sizes[t]`` count.
    weights : array of shape (T,)
    limit : int
        The most items to choose.
    beta : float
        Of the F-score; above 1 recall counts for more.

    Returns
    -------
    chosen : array in the order of choice
    values : array
        The mean F-score after each.
    """
    n, n_sets = len(alike), len(members)
    owner = np.full(members.shape, -1, dtype=np.int64)
    seen = np.zeros(members.shape[1], dtype=np.bool_)
    adds = np.ones((n, n_sets), dtype=np.bool_)
    hits = np.zeros(n_sets)
    share = np.empty(n_sets)
    bound = np.empty(n)
    is_exact = np.empty(n, dtype=np.bool_)
    free = np.ones(n, dtype=np.bool_)
    chosen = np.empty(min(limit, n), dtype=np.int64)
    values = np.empty(min(limit, n))
    size, value = 0, 0.0
    while size < min(limit, n):
        base = 0.0
        for t in range(n_sets):
            share[t] = (1.0 + beta**2) * weights[t] / (size + 1 + beta**2 * sizes[t])
            base += share[t] * hits[t]
        for i in range(n):
            is_exact[i] = False
            bound[i] = -1.0
            if free[i]:
                bound[i] = 0.0
                for t in range(n_sets):
                    if adds[i, t]:
                        bound[i] += share[t]
        best = int(np.argmax(bound))
        while not is_exact[best]:
            bound[best] = 0.0
            for t in range(n_sets):
                if adds[best, t]:
                    seen[: sizes[t]] = False
                    adds[best, t] = augments(
                        best,
                        alike,
                        members[t, : sizes[t]],
                        owner[t, : sizes[t]],
                        seen,
                        False,
                    )
                    if adds[best, t]:
                        bound[best] += share[t]
            is_exact[best] = True
            best = int(np.argmax(bound))
        if not free[best] or base + bound[best] <= value * (1.0 + 1e-12):
            break
        for t in range(n_sets):
            if adds[best, t]:
                seen[: sizes[t]] = False
                augments(
                    best,
                    alike,
                    members[t, : sizes[t]],
                    owner[t, : sizes[t]],
                    seen,
                    True,
                )
                hits[t] += 1.0
        value = base + bound[best]
        chosen[size], values[size] = best, value
        for i in range(n):
            free[i] = free[i] and not same[best, i]
        size += 1
    return chosen[:size], values[:size]
