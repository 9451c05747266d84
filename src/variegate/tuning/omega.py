"""Models learned for several values of omega, and those between them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate.estimator import LargeMarginDPP

__all__ = ["as_omegas", "model_at", "resolve_omega"]


def as_omegas(omega: Any) -> tuple[float, ...]:
    """Return one or several values of omega, checked and sorted."""
    omegas = np.atleast_1d(omega)
    if (
        omegas.dtype.kind not in "iuf"
        or omegas.ndim > 1
        or omegas.size == 0
        or not (np.isfinite(omegas) & (omegas > 0.0)).all()
    ):
        raise ValueError(f"omega must be one or more positive numbers, got {omega!r}")
    return tuple(sorted({float(value) for value in omegas}))


def resolve_omega(
    omegas: Sequence[float], omega: float | None, default: float = 1.0
) -> float:
    """Return ``omega`` if it is within the range of ``omegas``, sorted.

    ``None`` is the default, or the nearest to it.
    """
    if omega is None:
        return float(np.clip(default, omegas[0], omegas[-1]))
    if not omegas[0] <= omega <= omegas[-1]:
        known = f"{omegas[0]:g} to {omegas[-1]:g}"
        if len(omegas) == 1:
            known = f"{omegas[0]:g} only; learn several to choose between"
        raise ValueError(f"omega={omega:g}, but this model was learned for {known}")
    return float(omega)


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
