"""What the evaluation is timed on: one large ground set, or many small ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform

from variegate._typing import FloatArray, IntArray
from variegate.ground_set import GroundSet
from variegate.kernels import Gaussian, Kernel, MultipleKernel
from variegate.learning.examples import check_examples
from variegate.learning.objective import LargeMarginLoss
from variegate.learning.problem import TrainingProblem

#: The value and the gradient at the point of an instance.
Evaluation = Callable[[], tuple[float, FloatArray]]

#: Items of a small ground set.
MANY_ITEMS = 10

#: Bandwidths in multiples of the median distance.
FINE_LADDER = tuple(2.0 ** np.arange(-6.0, 7.0))
COARSE_LADDER = (0.5, 1.0, 2.0)

_JITTER = 1e-6


@dataclass(frozen=True, eq=False)
class Instance:
    """Ground sets with wanted subsets, a kernel, and a point to evaluate at.

    The kernel is one fixed Gaussian, or Gaussians and a linear part with ``weights``.
    """

    ground_sets: list[GroundSet]
    subsets: list[IntArray]
    bandwidths: list[float]
    theta: FloatArray
    intercept: float
    weights: FloatArray

    @property
    def point(self) -> FloatArray:
        """The point as the vector that a problem takes."""
        return np.concatenate([self.theta, [self.intercept], self.weights])

    @property
    def learned(self) -> bool:
        """Whether the kernel has weights."""
        return len(self.weights) > 0

    def problem(self, kernel: Kernel | None = None, **options: Any) -> TrainingProblem:
        """Return the problem, the paper's costs at ω = 1 and λ = 1."""
        if kernel is None:
            gaussians = MultipleKernel(bandwidths=self.bandwidths, linear=True)
            kernel = gaussians if self.learned else Gaussian(self.bandwidths[0])
        return TrainingProblem(
            check_examples(self.ground_sets, self.subsets, 1.0),
            kernel,
            LargeMarginLoss(1.0),
            jitter=_JITTER,
            **options,
        )

    def evaluation(
        self, kernel: Kernel | None = None, **options: Any
    ) -> tuple[Evaluation, float]:
        """Return the evaluation at the point, and the seconds to get ready for it."""
        start = time.perf_counter()
        problem = self.problem(kernel, **options)
        seconds = time.perf_counter() - start
        return partial(problem.value_and_gradient, self.point), seconds

    def centred_qualities(self) -> list[FloatArray]:
        """Return ``X`` of every ground set less the mean over all items."""
        center = np.concatenate([gs.quality for gs in self.ground_sets]).mean(axis=0)
        return [gs.quality - center for gs in self.ground_sets]

    def base_kernels(self) -> list[FloatArray]:
        """Return ``(K, N, N)`` of every ground set, jitter and all."""
        return [self._base_kernels(gs.features()) for gs in self.ground_sets]

    def _base_kernels(self, features: FloatArray) -> FloatArray:
        distances = squareform(pdist(features, "sqeuclidean"))
        matrices = [np.exp(-distances / sigma**2) for sigma in self.bandwidths]
        if self.learned:
            matrices.append(features @ features.T)
        bases = np.stack(matrices)
        items = np.arange(len(features))
        bases[:, items, items] *= 1.0 + _JITTER
        return bases


def make_instance(
    n_sets: int, n_items: int, sizes: tuple[int, int], ladder: Sequence[float] | None
) -> Instance:
    """Return random ground sets with 20 similarity and 5 quality features.

    Wanted subsets have from the first to the second of ``sizes``.  The ladder gives
    bandwidths as multiples of the median distance, beside a linear part, with weights
    to learn; None is one Gaussian at that distance.
    """
    rng = np.random.default_rng(0)
    ground_sets = [
        GroundSet(
            rng.standard_normal((n_items, 5)),
            rng.standard_normal((n_items, 20)) / np.sqrt(20.0),
        )
        for _ in range(n_sets)
    ]
    drawn = rng.integers(sizes[0], sizes[1] + 1, n_sets)
    subsets = [np.sort(rng.permutation(n_items)[:size]) for size in drawn]
    median = float(np.median(pdist(ground_sets[0].features())))
    weights = rng.uniform(0.5, 1.5, 0 if ladder is None else len(ladder) + 1)
    return Instance(
        ground_sets,
        subsets,
        [median * factor for factor in ((1.0,) if ladder is None else ladder)],
        0.3 * rng.standard_normal(5),
        -1.0,
        weights / weights.sum(),
    )


def one_large(n_items: int, learned: bool) -> Instance:
    """Return one ground set; 13 Gaussians and a linear part if ``learned``."""
    size = max(1, n_items // 20)
    return make_instance(1, n_items, (size, size), FINE_LADDER if learned else None)


def many_small(n_sets: int, learned: bool) -> Instance:
    """Return ground sets of ten; 3 Gaussians and a linear part if ``learned``."""
    return make_instance(n_sets, MANY_ITEMS, (2, 4), COARSE_LADDER if learned else None)
