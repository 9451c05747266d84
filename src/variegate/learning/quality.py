"""Quality: how good an item is by itself (paper eq. 7), and the coordinates of ``θ``.

Solvers see features centred, in their own units and without correlation, so that steps
and stopping do not depend on the units in which the features were given.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from variegate._typing import FloatArray
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.kernels.domains import Free
from variegate.learning.parameters import ParameterSpace, Scaled
from variegate.linalg.lapack import limit_blas_to_one_thread

#: Ground sets whose features are put together at a time.
_TOGETHER = 1000

#: A feature that is nowhere farther from its center, as a share of it, is constant:
#: the rest are rounding errors, which must not become the unit of a solver.
_ROUNDING = 16 * np.finfo(np.float64).eps

#: Features of which all pairs are looked at, at most.
MAX_CORRELATED = 256

#: Added to the variances of features in their units: directions that hardly vary are
#: stretched a hundredfold at most.
_RIDGE = 1e-4


def log_quality(X: FloatArray, theta: FloatArray, intercept: float) -> FloatArray:
    """Return ``u_i = θᵀ x_i + b`` (..., N), so that ``q_i = exp(u_i)``.

    The library passes ``u`` around and never ``q``: see
    :mod:`variegate.linalg.determinants`.  ``X`` has shape (..., N, d) and ``theta``
    (d,).  The intercept is a constant factor ``exp(2b)`` on ``L``.  The paper has none;
    without it the features alone must set how many items are chosen.
    """
    return X @ theta + intercept


def pull_back(X: FloatArray, gradient: FloatArray) -> tuple[FloatArray, float]:
    """Return ``∂f/∂θ`` (d,) and ``∂f/∂b``, summed over a stack, from ``∂f/∂u``.

    ``X`` is (..., N, d) and ``gradient``, which is ``∂f/∂u``, (..., N).
    """
    flat = X.reshape(-1, X.shape[-1])
    return gradient.reshape(-1) @ flat, float(gradient.sum())


@dataclass(frozen=True, eq=False)
class FeatureCoordinates:
    r"""The coordinates in which solvers see ``θ``: :math:`\varphi = R \, (s \circ θ)`.

    Features are centred, measured in units ``s``, and made uncorrelated: with
    :math:`R^T R` their covariance in those units, plus a ridge, a unit step changes the
    log-qualities as much in every direction.  L-BFGS then needs a fraction of the
    iterations where features are correlated.

    Attributes
    ----------
    center : array of shape (d,)
    scale : array of shape (d,)
        Powers of two, so that no division rounds; one for a constant feature.
    root : upper triangular array of shape (d, d), or None
        ``R``; None stands for the identity, for more than ``MAX_CORRELATED`` features.
    """

    center: FloatArray
    scale: FloatArray
    root: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Moments of the quality features of a set of items.

    The sum of two is that of both sets of items together.  Nothing is squared in the
    unit of a feature, so that features of 1e200 do not overflow.

    Attributes
    ----------
    n_items : int
    mean, spread, low, high : arrays of shape (d,)
        Mean, standard deviation, smallest and largest value of each feature.
    correlation : array of shape (d, d)
        Mean products about ``mean`` in units of ``spread``; of shape (0, 0) for more
        than ``MAX_CORRELATED`` features.
    """

    n_items: int
    mean: FloatArray
    spread: FloatArray
    low: FloatArray
    high: FloatArray
    correlation: FloatArray

    @classmethod
    def from_ground_sets(cls, ground_sets: Sequence[GroundSet]) -> FeatureMoments:
        """Return the moments of all candidates of one or more ground sets together."""
        parts = [
            cls._from_rows(np.concatenate([gs.candidate_quality for gs in part]))
            for part in _ground_set_chunks(ground_sets)
        ]
        return reduce(operator.add, parts)

    @classmethod
    def _from_rows(cls, rows: FloatArray) -> FeatureMoments:
        """Return the moments of items (n, d), an array that is overwritten."""
        low, high = rows.min(axis=0), rows.max(axis=0)
        # Without care, the mean of equal numbers differs from them by rounding.
        mean = np.clip(rows.mean(axis=0), low, high)
        rows -= mean
        unit = _replace_zeros(np.maximum(high - mean, mean - low))
        rows /= unit
        spread = np.sqrt(np.einsum("ij,ij->j", rows, rows) / len(rows))
        correlation = np.zeros((0, 0))
        if rows.shape[1] <= MAX_CORRELATED:
            rows /= _replace_zeros(spread)
            # BLAS rounds differently on other numbers of threads.
            with limit_blas_to_one_thread():
                correlation = rows.T @ rows / len(rows)
        return cls(len(rows), mean, unit * spread, low, high, correlation)

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        """Return the moments of the items of both sets together."""
        n_items = self.n_items + other.n_items
        n, m = self.n_items / n_items, other.n_items / n_items
        shift = other.mean - self.mean
        within = np.hypot(np.sqrt(n) * self.spread, np.sqrt(m) * other.spread)
        spread = np.hypot(within, np.sqrt(n * m) * shift)
        correlation = self.correlation
        if len(correlation):
            unit = _replace_zeros(spread)
            one, two, by = self.spread / unit, other.spread / unit, shift / unit
            correlation = (
                n * correlation * np.outer(one, one)
                + m * other.correlation * np.outer(two, two)
                + n * m * np.outer(by, by)
            )
        return FeatureMoments(
            n_items,
            self.mean + m * shift,
            spread,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            correlation,
        )

    def coordinates(self, fit_intercept: bool) -> FeatureCoordinates:
        """Return the coordinates that solvers use, of center 0 without an intercept."""
        center = self.mean if fit_intercept else np.zeros_like(self.mean)
        with np.errstate(over="ignore"):
            largest = np.maximum(self.high - center, center - self.low)
        shift = self.mean - center
        spread = np.hypot(self.spread, shift)
        varies = (largest > _ROUNDING * np.abs(center)) & (spread > 0.0)
        spread = np.where(varies, spread, 1.0)
        scale = np.exp2(np.clip(np.round(np.log2(spread)), -1000, 1000))
        if not len(self.correlation):
            return FeatureCoordinates(center, scale)
        one, by = (np.where(varies, each / scale, 0.0) for each in (self.spread, shift))
        covariance = self.correlation * np.outer(one, one) + np.outer(by, by)
        ridge = np.where(varies, _RIDGE, 1.0)
        root = np.linalg.cholesky(covariance + np.diag(ridge)).T
        return FeatureCoordinates(center, scale, root)


def _ground_set_chunks(
    ground_sets: Sequence[GroundSet],
) -> Iterator[Sequence[GroundSet]]:
    """Yield slices of at most ``_TOGETHER`` ground sets."""
    for start in range(0, len(ground_sets), _TOGETHER):
        yield ground_sets[start : start + _TOGETHER]


def _replace_zeros(values: FloatArray) -> FloatArray:
    """Return the values with ones in place of zeros."""
    return np.where(values > 0.0, values, 1.0)


def parameter_space(
    coordinates: FeatureCoordinates, fit_intercept: bool, kernel: Kernel
) -> ParameterSpace:
    """Return the space of ``theta``, ``intercept`` (perhaps empty) and ``kernel``."""
    scale = coordinates.scale
    return ParameterSpace(
        {
            "theta": Scaled(len(scale), scale, coordinates.root),
            "intercept": Free(int(fit_intercept)),
            "kernel": kernel.domain,
        }
    )
