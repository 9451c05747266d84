"""The settings of the synthetic experiments (paper, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from paper import experiment
from variegate.datasets import SyntheticData, make_synthetic
from variegate.kernels import Kernel


@dataclass(frozen=True)
class Settings(experiment.Settings):
    """What the paper fixes, and the few things that it leaves open."""

    version_name: ClassVar[str] = "variegate"

    #: How many times ``θ`` and all the data are drawn anew.
    n_draws: int = 20
    train_sizes: tuple[int, ...] = (20, 50, 100, 200, 400, 800)
    n_holdout: int = 100
    n_test: int = 100
    #: Probability of flipping each item of a most diverse subset.
    noise: float = 0.1
    #: ``10 · 2^q`` for ``q = -4 .. 2``.
    bandwidths: tuple[float, ...] = tuple(10.0 * 2.0**q for q in range(-4, 3))
    #: Training pairs in figure 1b, and in the study of the gap.
    bandwidth_train_size: int = 200
    #: ``λ`` is chosen from these by the F-score on the holdout pairs.
    lambdas: tuple[float, ...] = (0.0, *(2.0**q for q in range(-1, 8)))
    #: Starts of the solver where a kernel is learned.
    n_starts: int = 3
    #: Whether to study what closes the gap of figure 1c, half of the time of a run.
    with_gap: bool = True
    seed: int = 0

    @classmethod
    def quick(cls) -> Settings:
        """Return the minute-long version."""
        return cls(
            n_draws=8,
            train_sizes=(50, 200),
            lambdas=(0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 128.0),
            with_gap=False,
        )

    def data(self, draw: int, noise: float | None = None) -> Data:
        """Return holdout, test and training pairs of one draw of ``θ``."""
        rng = np.random.default_rng([self.seed, draw])
        theta = rng.standard_normal(5)
        n_train = max(*self.train_sizes, self.bandwidth_train_size)
        pairs = make_synthetic(
            n_sets=self.n_holdout + self.n_test + n_train,
            noise=self.noise if noise is None else noise,
            theta=theta,
            random_state=rng,
        )
        held = self.n_holdout
        return Data(
            holdout=_part(pairs, slice(held)),
            test=_part(pairs, slice(held, held + self.n_test)),
            train=_part(pairs, slice(held + self.n_test, None)),
        )


@dataclass(frozen=True)
class Data:
    """The three parts of one draw; smaller training sets are prefixes of ``train``."""

    holdout: SyntheticData
    test: SyntheticData
    train: SyntheticData


@dataclass(frozen=True)
class Case:
    """What is learned at one value of a figure's axis.

    ``options`` are further parameters of the estimator.
    """

    value: Any
    n_train: int
    kernel: Kernel
    options: dict[str, Any] = field(default_factory=dict)
    transform: Callable[[Data], Data] = lambda data: data


def _part(pairs: SyntheticData, part: slice) -> SyntheticData:
    return SyntheticData(
        pairs.ground_sets[part],
        pairs.subsets[part],
        pairs.clean_subsets[part],
        pairs.theta,
    )
