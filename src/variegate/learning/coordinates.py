"""The coordinates that solvers see: features centred, and measured in their own units.

Steps and stopping then do not depend on the units that somebody chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from variegate._typing import FloatArray
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.kernels.domains import Free
from variegate.learning.parameters import ParameterSpace, Scaled

#: Ground sets whose features are looked at together.
_TOGETHER = 1000


def feature_center(ground_sets: Sequence[GroundSet], fit_intercept: bool) -> FloatArray:
    """Return the mean of the features, zeros where there is no intercept."""
    if not fit_intercept:
        return np.zeros(ground_sets[0].n_features)
    mean: FloatArray = np.concatenate([gs.quality for gs in ground_sets]).mean(axis=0)
    return mean


def feature_scale(ground_sets: Sequence[GroundSet], center: FloatArray) -> FloatArray:
    """Return the power of two nearest to the spread of each feature about ``center``.

    A power of two, so that nothing is rounded and standardized features stay as they
    are; one for a feature that is constant.
    """
    largest = np.zeros(len(center))
    for rows in _rows(ground_sets):
        largest = np.maximum(largest, np.abs(rows - center).max(axis=0))
    unit = np.where(largest > 0.0, largest, 1.0)
    squares = np.zeros(len(center))
    for rows in _rows(ground_sets):
        squares += (((rows - center) / unit) ** 2).sum(axis=0)
    n_items = sum(len(gs) for gs in ground_sets)
    spread = np.where(largest > 0.0, unit * np.sqrt(squares / n_items), 1.0)
    exponent = np.clip(np.round(np.log2(spread)), -1000, 1000)
    return np.exp2(exponent)


def _rows(ground_sets: Sequence[GroundSet]) -> Iterator[FloatArray]:
    """Yield the features of all items, those of some ground sets at a time."""
    for start in range(0, len(ground_sets), _TOGETHER):
        some = ground_sets[start : start + _TOGETHER]
        yield np.concatenate([ground_set.quality for ground_set in some])


def parameter_space(
    scale: FloatArray, fit_intercept: bool, kernel: Kernel
) -> ParameterSpace:
    """Return the space of ``θ``, an intercept perhaps, and the kernel's parameters."""
    return ParameterSpace(
        {
            "theta": Scaled(len(scale), scale),
            "intercept": Free(int(fit_intercept)),
            "kernel": kernel.domain,
        },
        groups=[["theta", "intercept"], ["kernel"]],
    )
