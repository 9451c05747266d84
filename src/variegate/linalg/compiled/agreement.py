"""Agreement of a set of items with many other sets: matchings, and words in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.linalg.compiled import njit


@njit(cache=True, nogil=True)
def _find_augmenting_place(
    item: int, alike: BoolArray, members: IntArray, owner: IntArray, tried: IntArray
) -> int:
    """Return the place of the member freed for ``item`` by changing partners, or -1.

    ``alike`` (N, N) says which items can be matched; ``owner`` is the item that each of
    ``members`` is matched with, -1 for none; ``tried``, -1 before, becomes the item
    that tried each member.
    """
    for place in range(len(members)):
        if tried[place] >= 0 or not alike[item, members[place]]:
            continue
        tried[place] = item
        if owner[place] < 0:
            return place
        free = _find_augmenting_place(owner[place], alike, members, owner, tried)
        if free >= 0:
            return free
    return -1


@njit(cache=True, nogil=True)
def fill_matching_gains(
    alike: BoolArray,
    members: IntArray,
    sizes: IntArray,
    owner: IntArray,
    adds: BoolArray,
    share: FloatArray,
    free: BoolArray,
    bound: FloatArray,
) -> None:
    """Fill ``bound`` (N,) with each item's gain: the shares of the sets it adds to.

    The gain of an item in a maximum matching never grows as others are chosen, so that
    the last known ``adds`` give bounds, and few are computed again.  The largest bound
    is exact; that of an item that is not ``free`` (N,) is -1.

    ``alike`` (N, N) says which items can be matched.  The first ``sizes[t]`` of
    ``members[t]`` are the items of set ``t``, ``share[t]`` its weight, and ``owner``
    (T, M) the item that each is matched with, -1 for none.  ``adds`` (N, T), the sets
    that each item may still be matched with, is brought up to date.
    """
    n, n_sets = adds.shape
    tried = np.empty(members.shape[1], dtype=np.int64)
    is_exact = np.empty(n, dtype=np.bool_)
    for i in range(n):
        is_exact[i] = False
        bound[i] = -1.0
        if free[i]:
            bound[i] = 0.0
            for t in range(n_sets):
                if adds[i, t]:
                    bound[i] += share[t]
    while n > 0:
        best = 0
        for i in range(1, n):
            if bound[i] > bound[best]:
                best = i
        if is_exact[best]:
            return
        is_exact[best] = True
        if not free[best]:
            continue
        bound[best] = 0.0
        for t in range(n_sets):
            if adds[best, t]:
                size = sizes[t]
                for place in range(size):
                    tried[place] = -1
                adds[best, t] = (
                    _find_augmenting_place(
                        best, alike, members[t, :size], owner[t], tried
                    )
                    >= 0
                )
                if adds[best, t]:
                    bound[best] += share[t]


@njit(cache=True, nogil=True)
def augment_matchings(
    item: int,
    alike: BoolArray,
    members: IntArray,
    sizes: IntArray,
    owner: IntArray,
    adds: BoolArray,
) -> None:
    """Match ``item`` with a member of every set it adds to; update ``adds[item]``."""
    tried = np.empty(members.shape[1], dtype=np.int64)
    for t in range(len(members)):
        if not adds[item, t]:
            continue
        size = sizes[t]
        for place in range(size):
            tried[place] = -1
        free = _find_augmenting_place(item, alike, members[t, :size], owner[t], tried)
        adds[item, t] = free >= 0
        while free >= 0:
            # The item that tried the free member takes it, and leaves its old one.
            taker, left = tried[free], -1
            for place in range(size):
                if owner[t, place] == taker:
                    left = place
            owner[t, free] = taker
            free = left


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def fill_mean_f_scores(
    sentences: Any, current: Any, size: float, all_targets: Any, values: Any
) -> None:
    """Fill ``values`` (N,) with the mean F-score of a summary and each sentence added.

    ``sentences`` are the counts of units in sentences as a CSR matrix, its starts,
    units and amounts, and the number of units of each sentence (N,).  The summary has
    ``size`` units, counted by ``current`` (W,).  ``all_targets`` are the counts of
    units in targets (W, T), and of each target (T,) the number of its units, its weight
    in the mean, and the number of units that the summary has in common with it.
    """
    starts, units, amounts, sizes = sentences
    targets, target_sizes, weights, hits = all_targets
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
