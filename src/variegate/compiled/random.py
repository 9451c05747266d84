"""Random numbers inside compiled loops.

Each sample owns a stream that starts from its own seed, so that the samples do not
depend on how they are spread over threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.compiled.jit import njit

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
