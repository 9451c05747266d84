"""NumPy generators from ``random_state`` arguments, and streams by seed."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray, RandomState


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return the generator that ``random_state`` stands for.

    A seed gives the same generator each time; a ``Generator`` is used as it is and
    advanced; a legacy ``RandomState`` (which scikit-learn may pass on) is asked for
    numbers to seed one with, so that it advances too.
    """
    check_random_state(random_state)
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


def check_random_state(random_state: Any) -> None:
    """Raise ValueError for a value that :func:`as_generator` cannot take."""
    known = np.random.Generator | np.random.RandomState | Integral | None
    is_negative = isinstance(random_state, Integral) and random_state < 0
    if not isinstance(random_state, known) or is_negative:
        raise ValueError(
            "random_state must be None, a non-negative integer or a NumPy random "
            f"generator, got {random_state!r}"
        )


def splitmix_uniforms(seeds: IntArray, steps: IntArray) -> FloatArray:
    """Return numbers from [0, 1): at ``steps`` of the SplitMix64 stream of each seed.

    The same streams as :func:`variegate.linalg.compiled.elementary.next_uniform`.

    Parameters
    ----------
    seeds : array of uint64
    steps : array of int, of a shape that broadcasts with ``seeds``
        1 for the first number of a stream.
    """
    z = seeds + steps.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return np.asarray((z >> np.uint64(11)) * 2.0**-53)
