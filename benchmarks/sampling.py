"""Exact sampling against DPPy: set-up, and one sample after it."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.optimize import brentq

from benchmarks.timing import Row, measure_time, optional, row
from variegate._typing import FloatArray
from variegate.ensemble import LEnsemble

_EXPECTED_SIZE = 10.0


def measure(quick: bool = False) -> list[Row]:
    """Compare at several sizes, ten items expected."""
    sizes = (100, 250) if quick else (250, 1000, 2000)
    return [row for n_items in sizes for row in _compare(n_items, quick)]


def _compare(n_items: int, quick: bool) -> list[Row]:
    L = kernel_of_expected_size(n_items, _EXPECTED_SIZE)
    n_samples, repeats = (50, 3) if quick else (200, 5)
    ensemble = LEnsemble(L)
    ours = measure_time(lambda: LEnsemble(L).sample(1, random_state=0), repeats)
    draw = partial(ensemble.sample, n_samples, random_state=1)
    per_sample = measure_time(draw, repeats, n_samples)
    dppy = optional("dppy.finite_dpps")
    theirs = their_sample = None
    if dppy is not None:
        process, state = dppy.FiniteDPP("likelihood", L=L), np.random.RandomState(0)
        theirs = measure_time(
            lambda: dppy.FiniteDPP("likelihood", L=L).sample_exact(random_state=0),
            repeats,
        )
        their_sample = measure_time(
            lambda: [process.sample_exact(random_state=state) for _ in range(20)],
            repeats,
            20,
        )
    return [
        row("set-up and first sample", ours, "DPPy", theirs, n_items),
        row("a further sample", per_sample, "DPPy", their_sample, n_items),
    ]


def kernel_of_expected_size(n_items: int, size: float) -> FloatArray:
    """Return a Gaussian kernel scaled so that ``size`` items are expected."""
    X = np.random.default_rng(0).standard_normal((n_items, 10))
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    L = np.exp(-squared / 10.0)
    values = np.linalg.eigvalsh(L).clip(0.0)

    def excess(log_scale: float) -> float:
        scaled = np.exp(log_scale) * values
        return float((scaled / (1.0 + scaled)).sum()) - size

    return np.asarray(np.exp(brentq(excess, -20.0, 20.0)) * L)
