"""Longest common subsequences of a sentence with each of many others."""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.linalg.compiled import njit


@njit(cache=True, nogil=True)
def mark_common(
    sentence: Any, others: Any, starts: Any, weights: Any, marked: Any
) -> None:
    """Mark the words of a sentence that are in its subsequences with the others.

    The twin of ``paper.rouge.sequences.common_positions``: the same additions
    in the same order, but one bit a pair of words is kept for going back.

    Parameters
    ----------
    sentence : (n,)
        Numbers of its words.
    others : (m,)
        Numbers of the words of all other sentences.
    starts : (k + 1,)
        Where each of them begins in ``others``, and the end of the last.
    weights : array
        Of runs of 0, 1, 2, ... words.
    marked : (n,) of bool
        Set, where it is not yet.
    """
    n, longest = len(sentence), 0
    for k in range(len(starts) - 1):
        longest = max(longest, starts[k + 1] - starts[k])
    row, above = np.empty(longest + 1), np.empty(longest + 1)
    runs = np.empty(longest + 1, dtype=np.int64)
    runs_above = np.empty(longest + 1, dtype=np.int64)
    goes_up = np.empty((n, longest // 8 + 1), dtype=np.uint8)
    for k in range(len(starts) - 1):
        other = others[starts[k] : starts[k + 1]]
        for j in range(len(other) + 1):
            row[j] = 0.0
            runs[j] = runs_above[j] = 0
        for i in range(n):
            above, row = row, above
            runs_above, runs = runs, runs_above
            bits, row[0] = 0, 0.0
            for j in range(len(other)):
                if sentence[i] == other[j]:
                    run = runs_above[j]
                    row[j + 1] = above[j] + weights[run + 1] - weights[run]
                    runs[j + 1] = run + 1
                else:
                    up = above[j + 1] >= row[j]
                    row[j + 1] = above[j + 1] if up else row[j]
                    runs[j + 1] = 0
                    bits |= up << (j & 7)
                if j & 7 == 7 or j + 1 == len(other):
                    goes_up[i, j >> 3] = bits
                    bits = 0
        i, j = n - 1, len(other) - 1
        while i >= 0 and j >= 0:
            if sentence[i] == other[j]:
                marked[i] = True
                i, j = i - 1, j - 1
            elif goes_up[i, j >> 3] >> (j & 7) & 1:
                i -= 1
            else:
                j -= 1
