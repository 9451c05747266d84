"""Which items are looked at where there are too many to compare all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from variegate.estimator import DPPEstimator

__all__ = ["best_by_quality"]


def best_by_quality(
    model: DPPEstimator,
    features: FloatArray,
    most: int,
    allowed: BoolArray | None = None,
) -> IntArray:
    """Return the rows of the highest quality in a model, at most so many, sorted.

    Rows that are not allowed leave their places to others.
    """
    if len(features) <= most:
        return np.arange(len(features))
    u = model.log_quality(features)
    if allowed is not None:
        u = np.where(allowed, u, -np.inf)
    return np.sort(np.argsort(-u, kind="stable")[:most])
