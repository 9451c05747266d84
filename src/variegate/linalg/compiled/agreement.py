"""Agreement of a set of items with many other sets: matchings, and words in common.

A matching pairs items with members of another set that are alike, each with at most
one.  The *place* of a member is its index in the array ``members``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.linalg.compiled import njit


@njit(cache=True, nogil=True)
def _find_augmenting_place(
    item: int, alike: BoolArray, members: IntArray, owner: IntArray, tried: IntArray
) -> int:
    """Find a path by which ``item`` can be matched as well as all items matched so far.

    Returns the place of the unmatched member at its end, -1 if there is no such path.
    ``alike`` (N, N) tells which items can be matched, ``owner`` (M,) the item that each
    of ``members`` (M,) is matched with, -1 for none; both stay.  ``tried`` (M,), all -1
    at first, is filled with the item from which the search reached each member.
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
    """Fill ``bound`` (N,) with upper bounds of gains in matchings, the largest exact.

    The gain of an item is the sum of the weights ``share`` (T,) of the sets whose
    maximum matching grows with it.  It never grows as others are chosen, so that older
    ``adds`` give bounds, and few are computed again.  The bound of an item that is not
    ``free`` (N,) is -1.

    ``alike`` (N, N) tells which items can be matched.  The first ``sizes[t]`` entries
    of ``members[t]`` are the items of set ``t``, and ``owner`` (T, M) the item that
    each member is matched with, -1 for none.  ``adds`` (N, T) tells whose matching an
    item may still add to, and is updated for the items that are computed again.
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
    """Match ``item`` with a member of every set that it can be matched with, in place.

    Updates ``owner`` and ``adds[item]``; arguments as of :func:`fill_matching_gains`.
    """
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
    """Fill ``values`` (N,): entry ``i`` is a summary's score with sentence ``i`` added.

    The score is the sum over targets of weight times F-score of the units (words, or
    pairs of words) in common.  ``sentences`` is a tuple: ``indptr``, ``indices`` and
    ``data`` of a CSR matrix (N, W) of counts of units, and their sums (N,).
    ``current`` (W,) are the counts in the summary, and ``size`` their sum.
    ``all_targets`` is a tuple: the counts in targets (W, T) and, for each target (T,),
    their sum, its weight, and the number of units that the summary shares with it.
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
