"""Which representation a kernel gets: decided once, before anything is asked of it."""

from __future__ import annotations

import numpy as np

from variegate.linalg.limits import GRADED_ITEMS, RANKED_ITEMS, TAME_TRACE
from variegate.linalg.representations.base import Representation
from variegate.linalg.representations.dense import Dense
from variegate.linalg.representations.factored import Factored
from variegate.linalg.representations.graded import Graded

#: A matrix is at the edge of its rank where a squared pivot, as a share of the
#: diagonal, or one over its condition number is below these: rounding then has a say
#: in determinants.
_EDGE_OF_PIVOTS = 1e-8
_EDGE_OF_CONDITION = 1e-9

#: Rows of a factor that differ in length by more than exp(this) lose digits that
#: matter, and so do singular values with a smaller ratio than that.
_WIDEST_FACTOR = 10.0
_NARROWEST_SPECTRUM = 1e-4

#: Squares of shorter rows underflow.
_SMALLEST_LOG_SCALE = -300.0


def settled(kernel: Representation) -> Representation:
    """Return the kernel, or its :class:`Graded` form where the rank is in doubt."""
    if isinstance(kernel, Dense):
        if len(kernel) > RANKED_ITEMS:
            return kernel
        if (
            kernel.smallest_pivot < _EDGE_OF_PIVOTS
            or kernel.reciprocal_condition < _EDGE_OF_CONDITION
        ):
            return Graded.of_similarity(kernel.S, kernel.log_scale)
    elif isinstance(kernel, Factored):
        return _settled_factor(kernel)
    return kernel


def _settled_factor(kernel: Factored) -> Representation:
    """Keep a factor whose rows and singular values are of one size, or is large."""
    wide = kernel.spread() > _WIDEST_FACTOR
    if len(kernel) > GRADED_ITEMS:
        if wide:
            raise ValueError(
                f"the rows of B differ in length by a factor of exp("
                f"{kernel.spread():.0f}), too much to keep the digits of the "
                "shorter ones: drop the rows that are negligible"
            )
        return kernel
    scales = kernel.log_scale
    log_trace = 2.0 * scales.max(initial=0.0) + np.log(max(len(kernel), 1))
    tiny = scales.min(initial=0.0) < _SMALLEST_LOG_SCALE
    tame = log_trace <= np.log(TAME_TRACE) and not tiny
    if wide or not tame or kernel.narrowness() < _NARROWEST_SPECTRUM:
        return Graded.of_factor(kernel.unit_rows(), kernel.log_scale)
    return kernel
