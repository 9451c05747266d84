"""Sampling from elementary determinantal processes, many at once.

An elementary process picks ``k`` items from the span of ``k`` orthonormal vectors: the
next item with probability proportional to its squared residual outside the span of the
items picked before.  Instead of updating the residuals of all ``N`` items after every
pick (``O(N k²)`` a sample), items are proposed from the residuals before any pick and
accepted with the share that is left of their residual, which takes ``k H_k`` proposals
on average, each ``O(k²)``: ``O(N k + k³ log k)`` a sample, and exactly the same law.
Each sample has a seed, so that samples do not depend on the threads that draw them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.linalg.compiled import njit

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = (np.uint64(bits) for bits in (30, 27, 31, 11))


@njit(cache=True, nogil=True)
def next_uniform(state: Any) -> Any:
    """Return the next state and a number from [0, 1): SplitMix64 (Steele, 2014)."""
    state = state + _STEP
    z = state
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27)) * _SECOND
    z = z ^ (z >> _31)
    return state, np.float64(z >> _11) * (1.0 / 9007199254740992.0)


@njit(inline="always")
def _first_above(ascending: Any, target: float) -> int:
    """Return the index of the first number above ``target``, their count if none is."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def sample_elementary(
    vectors: Any, kept: Any, offsets: Any, seeds: Any, items: Any
) -> None:
    """Fill ``items`` (T,) with the items of n samples, each in the order of picking.

    ``vectors`` (M, N) has orthonormal rows.  Sample ``s`` is drawn from the span of the
    rows numbered ``kept[offsets[s]:offsets[s + 1]]``, and has as many items, put at
    the same positions of ``items``: ``kept`` is (T,) and ``offsets`` (n + 1,).
    ``seeds`` (n,) are of uint64.
    """
    n_items = vectors.shape[1]
    largest = 0
    for s in range(len(seeds)):
        largest = max(largest, offsets[s + 1] - offsets[s])
    cumulative = np.empty(n_items)
    basis = np.empty((largest, largest))
    row = np.empty(largest)
    direction = np.empty(largest)
    for s in range(len(seeds)):
        begin, k = offsets[s], offsets[s + 1] - offsets[s]
        if k == 0:
            continue
        state = seeds[s]
        for i in range(n_items):
            cumulative[i] = 0.0
        for m in range(k):
            vector = kept[begin + m]
            for i in range(n_items):
                cumulative[i] += vectors[vector, i] * vectors[vector, i]
        for i in range(1, n_items):
            cumulative[i] += cumulative[i - 1]
        count = 0
        while count < k:
            state, uniform = next_uniform(state)
            target = uniform * cumulative[n_items - 1]
            item = _first_above(cumulative, target)
            if item >= n_items:
                continue
            repeated = False
            for j in range(count):
                repeated |= items[begin + j] == item
            if repeated:
                continue
            norm = 0.0
            for m in range(k):
                row[m] = vectors[kept[begin + m], item]
                direction[m] = row[m]
                norm += row[m] * row[m]
            # Twice, so that the basis stays orthogonal to rounding.
            for turn in range(2 * count):
                j = turn if turn < count else turn - count
                inner = 0.0
                for m in range(k):
                    inner += basis[j, m] * direction[m]
                for m in range(k):
                    direction[m] -= inner * basis[j, m]
            residual = 0.0
            for m in range(k):
                residual += direction[m] * direction[m]
            state, uniform = next_uniform(state)
            if uniform * norm >= residual:
                continue
            length = np.sqrt(residual)
            for m in range(k):
                basis[count, m] = direction[m] / length
            items[begin + count] = item
            count += 1


@njit(cache=True, nogil=True)
def choose_eigenvectors(log_values: Any, table: Any, seeds: Any, kept: Any) -> None:
    """Set ``kept`` (n, M), all False before, to True where a sample keeps a vector.

    Each keeps ``k`` eigenvectors of a k-DPP, decided from the last to the first: where
    ``k`` of the first ``m`` are still wanted, the ``m``-th is kept with probability
    ``λ_m e_{k-1}(m - 1) / e_k(m)`` (Kulesza and Taskar, 2011).  ``log_values`` (M,) are
    ``log λ``; ``table`` (M + 1, k + 1) has ``log e_j(m)``, the elementary symmetric
    polynomials of the first ``m`` values, at ``[m, j]``; ``seeds`` (n,) are of uint64.
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
