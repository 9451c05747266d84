"""Quality: how good an item is by itself (paper eq. 7), and the coordinates of ``θ``.

Solvers see features centred, and measured in their own units, so that steps and
stopping do not depend on the units in which the features were given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from variegate._typing import BoolArray, FloatArray
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.kernels.domains import Free
from variegate.learning.parameters import ParameterSpace, Scaled

#: Ground sets whose features are put together at a time.
_TOGETHER = 1000

#: A feature that is nowhere farther from its center, as a share of it, is constant:
#: the rest are rounding errors, which must not become the unit of a solver.
_ROUNDING = 16 * np.finfo(np.float64).eps


def log_quality(X: FloatArray, theta: FloatArray, intercept: float) -> FloatArray:
    """Return ``u_i = θᵀ x_i + b`` (..., N), so that ``q_i = exp(u_i)``.

    The library passes ``u`` around and never ``q``: see
    :mod:`variegate.linalg.determinants`.  ``X`` has shape (..., N, d) and ``theta``
    (d,).  The intercept is a constant factor ``exp(2b)`` on ``L``.  The paper has none;
    without it the features alone must set how many items are chosen.
    """
    return X @ theta + intercept


def pull_back(X: FloatArray, gradient: FloatArray) -> tuple[FloatArray, float]:
    """Return ``(∂f/∂θ, ∂f/∂b)`` from ``∂f/∂u`` (..., N), summed over a stack."""
    flat = X.reshape(-1, X.shape[-1])
    return gradient.reshape(-1) @ flat, float(gradient.sum())


def feature_center(ground_sets: Sequence[GroundSet], fit_intercept: bool) -> FloatArray:
    """Return the mean of the features, zeros where there is no intercept."""
    if not fit_intercept:
        return np.zeros(ground_sets[0].n_features)
    return mean_within(np.concatenate([gs.quality for gs in ground_sets]))


def mean_within(rows: FloatArray) -> FloatArray:
    """Return the mean of the rows, clipped: of equal numbers exactly that number."""
    mean: FloatArray = np.clip(rows.mean(axis=0), rows.min(axis=0), rows.max(axis=0))
    return mean


def varies(largest: FloatArray, center: FloatArray) -> BoolArray:
    """Return which features vary, given their largest distances from the center."""
    return np.asarray(largest > _ROUNDING * np.abs(center))


def feature_scale(ground_sets: Sequence[GroundSet], center: FloatArray) -> FloatArray:
    """Return the power of two nearest to the spread of each feature about ``center``.

    A power of two, so that nothing is rounded and standardized features stay as they
    are; one for a feature that is constant.
    """
    largest = np.zeros(len(center))
    for rows in _rows(ground_sets):
        largest = np.maximum(largest, np.abs(rows - center).max(axis=0))
    changes = varies(largest, center)
    unit = np.where(changes, largest, 1.0)
    squares = np.zeros(len(center))
    for rows in _rows(ground_sets):
        squares += (((rows - center) / unit) ** 2).sum(axis=0)
    n_items = sum(len(gs) for gs in ground_sets)
    spread = np.where(changes, unit * np.sqrt(squares / n_items), 1.0)
    exponent = np.clip(np.round(np.log2(spread)), -1000, 1000)
    return np.exp2(exponent)


def center_and_scale(
    ground_sets: Sequence[GroundSet], fit_intercept: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the center of the features, and their scale about it."""
    center = feature_center(ground_sets, fit_intercept)
    return center, feature_scale(ground_sets, center)


def _rows(ground_sets: Sequence[GroundSet]) -> Iterator[FloatArray]:
    """Yield the features of all items, some ground sets at a time."""
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
