"""From a ground set and what was learned to its determinantal point process."""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray
from variegate.ensemble import LEnsemble
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.learning.dual import low_rank_factors
from variegate.linalg.determinants import with_jitter
from variegate.linalg.representations import Factored
from variegate.linalg.representations.factored import MAX_MATRIX

__all__ = ["learned_ensemble"]

#: Up to so many items, an ensemble holds the similarity as a matrix.
_LARGEST_MATRIX = 2000
#: The trace of ``L`` up to which rounding in a factor is no more than that in ``K``:
#: errors of 1e-16 of the largest eigenvalue are then at most 1e-10 in a probability.
_LARGEST_TAME = 1e6


def learned_ensemble(
    ground_set: GroundSet,
    kernel: Kernel,
    parameters: FloatArray,
    log_quality: FloatArray,
    jitter: float,
) -> LEnsemble:
    """Return the ensemble of a fitted kernel and the log-qualities ``u``.

    Of many items whose similarity has a low rank it is held as a factor, without the
    jitter; where qualities are extreme a matrix is more accurate, and held if it fits.
    """
    if len(ground_set) > _LARGEST_MATRIX:
        ensemble = _factored(ground_set, kernel, parameters, log_quality)
        if ensemble is not None:
            return ensemble
    S = kernel.value(kernel.prepare(ground_set), parameters)
    return LEnsemble.from_quality(with_jitter(S, jitter), log_quality)


def _factored(
    ground_set: GroundSet, kernel: Kernel, parameters: FloatArray, u: FloatArray
) -> LEnsemble | None:
    """Return the ensemble of a factor, or None where a matrix is better."""
    factors = low_rank_factors(kernel, ground_set)
    if factors is None:
        return None
    own = factors.squared @ factors.weights(parameters)
    if float(own @ np.exp(2.0 * np.minimum(u, 300.0))) <= _LARGEST_TAME:
        # Qualities may then spread further than from_factor knows to be safe.
        return LEnsemble._of(Factored(factors.scaled(parameters, u)))
    if len(ground_set) <= MAX_MATRIX:
        return None
    return LEnsemble.from_factor(factors.scaled(parameters, u))
