"""Data to learn from: the paper's synthetic generator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate._random import as_generator
from variegate._typing import BoolArray, FloatArray, IntArray, RandomState
from variegate.ground_set import GroundSet
from variegate.linalg.determinants import log_principal_minors, split_scale

__all__ = ["SyntheticData", "make_synthetic"]

#: The most probable subset is found by computing all 2^N probabilities.
_MAX_ITEMS = 20


@dataclass(frozen=True, eq=False)
class SyntheticData:
    """Ground sets with their most probable subsets, with and without noise.

    Attributes
    ----------
    ground_sets : list of GroundSet
    subsets : list of sorted item numbers
        The noisy subsets to learn from.
    clean_subsets : list of sorted item numbers
        The most probable subsets under the true model.
    theta : array of shape (n_features,)
        The true quality parameters.
    """

    ground_sets: list[GroundSet]
    subsets: list[IntArray]
    clean_subsets: list[IntArray]
    theta: FloatArray


def make_synthetic(
    n_sets: int = 200,
    n_items: int = 10,
    n_features: int = 5,
    noise: float = 0.1,
    theta: FloatArray | None = None,
    random_state: RandomState = None,
) -> SyntheticData:
    """Generate the data of the paper's section 4.1.

    Every item has a feature vector ``x ~ N(0, I)`` that gives both its quality
    ``exp(θᵀx)`` and, by inner products ``S = X Xᵀ``, its similarity to others.  The
    most probable subset is found by exhaustive search; then each item is added to or
    dropped from it with probability ``noise``.

    ``S`` has rank ``n_features``, so a noisy subset with more items than that has
    probability zero under the true model: learners need their ``jitter``.

    Parameters
    ----------
    n_sets : int, default=200
    n_items : int, default=10
        At most 20.
    n_features : int, default=5
    noise : float, default=0.1
    theta : array of shape (n_features,), optional
        Drawn from ``N(0, I)`` if not given.
    random_state : None, int or numpy.random.Generator

    Returns
    -------
    SyntheticData

    Examples
    --------
    >>> import variegate as vg
    >>> data = vg.datasets.make_synthetic(n_sets=3, random_state=0)
    >>> len(data.ground_sets), len(data.ground_sets[0])
    (3, 10)
    """
    if n_sets < 1 or n_features < 1:
        raise ValueError("n_sets and n_features must be at least 1")
    if not 1 <= n_items <= _MAX_ITEMS:
        raise ValueError(f"n_items must be between 1 and {_MAX_ITEMS}, got {n_items}")
    if not 0.0 <= noise <= 1.0:
        raise ValueError(f"noise is a probability, got {noise}")
    rng = as_generator(random_state)
    data = SyntheticData([], [], [], _check_theta(theta, n_features, rng))
    for _ in range(n_sets):
        X = rng.standard_normal((n_items, n_features))
        clean = _most_probable_subset(X, data.theta)
        data.ground_sets.append(GroundSet(quality=X))
        data.subsets.append(np.flatnonzero(clean ^ (rng.random(n_items) < noise)))
        data.clean_subsets.append(np.flatnonzero(clean))
    return data


def _check_theta(theta: Any, n_features: int, rng: np.random.Generator) -> FloatArray:
    """Return ``theta`` (n_features,), drawn from ``N(0, I)`` if None; or ValueError."""
    if theta is None:
        return rng.standard_normal(n_features)
    array = np.asarray(theta, dtype=np.float64)
    if array.shape != (n_features,):
        raise ValueError(f"theta has shape {array.shape}, expected ({n_features},)")
    if not np.isfinite(array).all():
        raise ValueError("theta holds NaN or infinite values")
    return array


def _most_probable_subset(X: FloatArray, theta: FloatArray) -> BoolArray:
    """Return the most probable subset of items ``X`` (N, d) as a mask (N,)."""
    scaled = np.exp(X @ theta)[:, None] * X
    best = int(np.argmax(log_principal_minors(*split_scale(scaled @ scaled.T))))
    return (best >> np.arange(len(X)) & 1).astype(bool)
