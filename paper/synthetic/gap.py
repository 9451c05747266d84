"""What separates learned similarities from the true one in figure 1c.

The truth is ``S = X Xᵀ``, the model a mixture of Gaussians.  A wide Gaussian is
``1 - ‖x - y‖²/σ² + ...``: up to factors of single items a constant plus
``2 xᵀy / σ²``.  The constant is the difference.  It makes every item similar to every
other and puts diversity relative to the other items in place of diversity relative to
the origin: the items ``x`` and ``-x`` are the same to ``X Xᵀ`` and opposites to a
Gaussian, and its diagonal knows nothing of ``‖x‖``.

The variants change one thing at a time.  The last two take the constant away and
leave everything else (solver, bandwidths, number of weights) as it is.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from paper.alternating import AlternatingSubgradient
from paper.synthetic.settings import Case, Data, Settings
from variegate._typing import FloatArray
from variegate.datasets import SyntheticData
from variegate.ground_set import GroundSet
from variegate.kernels import (
    FixedKernel,
    Gaussian,
    Kernel,
    Linear,
    Mixture,
    MultipleKernel,
)


class CentredGaussian(FixedKernel):
    """A Gaussian less its mean over the items: ``H S H`` with ``H = I - 11ᵀ/N``.

    For the study only: how alike two items are then depends on all the others.
    """

    semidefinite = True

    def __init__(self, bandwidth: float) -> None:
        self.bandwidth = bandwidth

    def matrix(self, ground_set: GroundSet) -> FloatArray:
        """Return the centred similarity."""
        S = Gaussian(self.bandwidth).matrix(ground_set)
        S = S - S.mean(axis=0)
        S = S - S.mean(axis=1, keepdims=True)
        return np.asarray((S + S.T) / 2.0)


def _finer_ladder(settings: Settings) -> Kernel:
    low, high = np.log2(min(settings.bandwidths)), np.log2(max(settings.bandwidths))
    ladder = 2.0 ** np.arange(low - 1.0, high + 1.5, 0.5)
    return MultipleKernel([float(sigma) for sigma in ladder], linear=False)


def _with_log_norm(data: Data) -> Data:
    """Add ``log ‖x‖`` to the quality features: the diagonal of the true ``S``."""

    def extend(pairs: SyntheticData) -> SyntheticData:
        ground_sets = []
        for ground_set in pairs.ground_sets:
            X = ground_set.quality
            log_norm = np.log(np.linalg.norm(X, axis=1, keepdims=True))
            ground_sets.append(GroundSet(np.hstack([X, log_norm]), X))
        return replace(pairs, ground_sets=ground_sets)

    return Data(extend(data.holdout), extend(data.test), extend(data.train))


_PLAIN = {"fit_intercept": False}
_ALTERNATING = {"n_starts": 1, "solver": AlternatingSubgradient(max_iter=300)}


def variants(settings: Settings) -> list[Case]:
    """Return ways to learn the similarity, by what they change in words."""
    sigmas = settings.bandwidths
    gaussians = MultipleKernel(list(sigmas), linear=False)
    centred = Mixture([CentredGaussian(sigma) for sigma in sigmas])
    anchored = MultipleKernel(list(sigmas), linear=False, anchored=True)
    case = partial(Case, n_train=settings.bandwidth_train_size, kernel=gaussians)
    return [
        case("true similarity", kernel=Linear(), options=_PLAIN),
        case("Gaussians, no intercept (the paper's model)", options=_PLAIN),
        case("Gaussians and an intercept"),
        case("... a single start", options={"n_starts": 1}),
        case("... alternating as in the paper", options=_ALTERNATING),
        case(
            "... a finer and wider ladder of bandwidths",
            kernel=_finer_ladder(settings),
        ),
        case("... log-norm as a quality feature", transform=_with_log_norm),
        case("... centred on the ground set", kernel=centred),
        case("... anchored at the origin", kernel=anchored),
    ]
