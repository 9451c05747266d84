"""A search for the set whose matching with other sets is largest, compiled."""

from __future__ import annotations

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.compiled.jit import njit


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
def matched_shares(
    alike: BoolArray,
    members: IntArray,
    sizes: IntArray,
    owner: IntArray,
    adds: BoolArray,
    share: FloatArray,
    free: BoolArray,
    bound: FloatArray,
) -> None:
    """Fill ``bound`` with the shares of the sets that an item can be matched with too.

    What an item adds to a maximum matching never grows as others are chosen, so that
    the last known ``adds`` give bounds, and few are computed again: the largest is
    exact, the others are at most so large, and -1 where an item is not free.

    Parameters
    ----------
    alike : array of shape (N, N)
        Which items can be matched.
    members : array of shape (T, M)
        The items of each set; only the first ``sizes[t]`` count.
    owner : array of shape (T, M)
        The item each member is matched with, -1 for none.
    adds : array of shape (N, T)
        Which sets each item may still be matched with; changed where it cannot.
    share : array of shape (T,)
    free : array of shape (N,)
    bound : array of shape (N,), filled
    """
    n, n_sets = adds.shape
    seen = np.zeros(members.shape[1], dtype=np.bool_)
    is_exact = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        bound[i] = -1.0
        if free[i]:
            bound[i] = 0.0
            for t in range(n_sets):
                if adds[i, t]:
                    bound[i] += share[t]
    best = int(np.argmax(bound))
    while not is_exact[best]:
        if free[best]:
            bound[best] = 0.0
            for t in range(n_sets):
                if adds[best, t]:
                    size = sizes[t]
                    seen[:size] = False
                    adds[best, t] = augments(
                        best, alike, members[t, :size], owner[t, :size], seen, False
                    )
                    if adds[best, t]:
                        bound[best] += share[t]
        is_exact[best] = True
        best = int(np.argmax(bound))


@njit(cache=True, nogil=True)
def match(
    item: int,
    alike: BoolArray,
    members: IntArray,
    sizes: IntArray,
    owner: IntArray,
    adds: BoolArray,
) -> None:
    """Match an item with every set that it adds to, which ``adds`` then names."""
    seen = np.zeros(members.shape[1], dtype=np.bool_)
    for t in range(len(members)):
        if adds[item, t]:
            size = sizes[t]
            seen[:size] = False
            adds[item, t] = augments(
                item, alike, members[t, :size], owner[t, :size], seen, True
            )
