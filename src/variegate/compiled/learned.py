"""Similarities whose features are learned, for stacks of small ground sets.

Everything about an item, or a pair of items, stays in the innermost cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit

# Sums may be taken in any order; nothing else of IEEE arithmetic is given up.
_FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_FAST)
def fill_gaussian(placed: Any, S: Any) -> None:
    """Fill ``S`` (B, N, N) with ``exp(-‖z_i - z_j‖² / 2)`` of ``placed`` (B, N, r).

    Near-duplicates decide determinants, so differences are taken directly: an
    expansion into inner products would drown them in rounding.
    """
    for b in range(S.shape[0]):
        for i in range(S.shape[1]):
            S[b, i, i] = 1.0
            for j in range(i):
                squared = 0.0
                for k in range(placed.shape[2]):
                    apart = placed[b, i, k] - placed[b, j, k]
                    squared += apart * apart
                S[b, i, j] = np.exp(-0.5 * squared)
                S[b, j, i] = S[b, i, j]
