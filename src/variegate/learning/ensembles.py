"""From a ground set and what was learned to its determinantal point process."""

from __future__ import annotations

import numpy as np

from variegate._typing import FloatArray
from variegate.ensemble import LEnsemble
from variegate.ground_set import GroundSet
from variegate.kernels import Kernel
from variegate.learning.factors import Factors, low_rank_factors, prepared_embedding
from variegate.linalg.determinants import with_jitter
from variegate.linalg.limits import MATRIX_ITEMS, TAME_TRACE
from variegate.linalg.representations import Factored
from variegate.linalg.representations.graded import Graded

__all__ = ["learned_ensemble"]


def learned_ensemble(
    ground_set: GroundSet,
    kernel: Kernel,
    parameters: FloatArray,
    log_quality: FloatArray,
    jitter: float,
) -> LEnsemble:
    """Return the ensemble of a fitted kernel and the log-qualities ``u``.

    Of many items whose similarity has a low rank it is held as a factor, without the
    jitter; where qualities are extreme, as the rows of the factor and the qualities by
    themselves, which keep the digits of both.
    """
    if len(ground_set) > MATRIX_ITEMS:
        factors, weights = _factors(ground_set, kernel, parameters)
        if factors is not None:
            return _factored(factors, weights, log_quality)
    S = kernel.value(kernel.prepare(ground_set), parameters)
    return LEnsemble.from_quality(with_jitter(S, jitter), log_quality)


def _factors(
    ground_set: GroundSet, kernel: Kernel, parameters: FloatArray
) -> tuple[Factors | None, FloatArray]:
    """Return a similarity of low rank, and the weights of its factors."""
    prepared = prepared_embedding(kernel, ground_set)
    if prepared is None:
        return low_rank_factors(kernel, ground_set), parameters
    factors, weights, _ = kernel.embedding(prepared, parameters)
    return Factors.of(factors), weights


def _factored(factors: Factors, weights: FloatArray, u: FloatArray) -> LEnsemble:
    """Return the ensemble of a factor."""
    own = factors.squared @ factors.weights(weights)
    if float(own @ np.exp(2.0 * np.minimum(u, 300.0))) <= TAME_TRACE:
        # Qualities may then spread further than from_factor knows to be safe.
        return LEnsemble._of(Factored(factors.scaled(weights, u)))
    length = np.sqrt(np.where(own > 0.0, own, 1.0))
    rows = factors.scaled(weights, -np.log(length))
    return LEnsemble._of(Graded.with_rows(rows, u + np.log(length)))
