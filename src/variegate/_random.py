"""One way from a ``random_state`` argument to a ``numpy.random.Generator``."""

from __future__ import annotations

import numpy as np

from variegate._typing import RandomState


def generator(random_state: RandomState) -> np.random.Generator:
    """Return the generator that ``random_state`` stands for.

    A seed gives the same generator each time; a ``Generator`` is used as it is and
    advanced; a legacy ``RandomState`` (which scikit-learn may pass on) is asked for
    one seed, so that it advances too.
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be None, a non-negative integer or a NumPy random "
            f"generator, got {random_state!r}"
        ) from error
