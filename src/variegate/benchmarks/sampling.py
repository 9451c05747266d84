"""Exact sampling against DPPy: set-up, and one sample after it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from variegate._typing import FloatArray
from variegate.benchmarks.timing import Row, measure_time, optional, row
from variegate.ensemble import LEnsemble

_EXPECTED_SIZE = 10.0


def measure(quick: bool = False) -> list[Row]:
    """Compare at several sizes, ten items expected."""
    dppy = optional("dppy.finite_dpps")
    rows = []
    for n_items in (100, 250) if quick else (250, 1000, 2000):
        L = kernel_of_expected_size(n_items, _EXPECTED_SIZE)
        n_samples, repeats = (50, 3) if quick else (200, 5)

        ensemble = LEnsemble(L)
        ours = measure_time(partial(_set_up, L), repeats)
        draw = partial(ensemble.sample, n_samples, random_state=1)
        per_sample = measure_time(draw, repeats, n_samples)
        theirs = their_sample = None
        if dppy is not None:
            process = dppy.FiniteDPP("likelihood", L=L)
            theirs = measure_time(partial(_their_set_up, dppy, L), repeats)
            their_draw = partial(_their_samples, process, np.random.RandomState(0), 20)
            their_sample = measure_time(their_draw, repeats, 20)
        rows.append(row("set-up and first sample", ours, "DPPy", theirs, n_items))
        rows.append(row("a further sample", per_sample, "DPPy", their_sample, n_items))
    return rows


def _set_up(L: FloatArray) -> None:
    LEnsemble(L).sample(1, random_state=0)


def _their_set_up(dppy: Any, L: FloatArray) -> None:
    dppy.FiniteDPP("likelihood", L=L).sample_exact(random_state=0)


def _their_samples(process: Any, state: np.random.RandomState, count: int) -> None:
    for _ in range(count):
        process.sample_exact(random_state=state)


def kernel_of_expected_size(n_items: int, size: float) -> FloatArray:
    """Return a Gaussian kernel scaled so that ``size`` items are expected."""
    X = np.random.default_rng(0).standard_normal((n_items, 10))
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    L = np.exp(-squared / 10.0)
    values = np.linalg.eigvalsh(L).clip(0.0)
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        scaled = np.exp(middle) * values
        if (scaled / (1.0 + scaled)).sum() < size:
            low = middle
        else:
            high = middle
    return np.asarray(np.exp(low) * L)
