"""Models learned for several values of omega, and those between them."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from variegate.estimator import LargeMarginDPP

__all__ = ["model_at"]


def model_at(
    omegas: Sequence[float], models: Sequence[LargeMarginDPP], omega: float
) -> LargeMarginDPP:
    """Return the model for ``omega``, within the range of ``omegas``, sorted.

    Between two that were learned, their parameters are mixed in proportion to the
    distance in ``log(omega)``.
    """
    if omega in omegas:
        return models[list(omegas).index(omega)]
    after = int(np.searchsorted(omegas, omega))
    low, high = np.log(omegas[after - 1]), np.log(omegas[after])
    share = (np.log(omega) - low) / (high - low)
    one, other = models[after - 1], models[after]
    mixed = copy.copy(one)
    for name in ("theta_", "intercept_", "kernel_parameters_"):
        value = (1.0 - share) * getattr(one, name) + share * getattr(other, name)
        setattr(mixed, name, value)
    return mixed
