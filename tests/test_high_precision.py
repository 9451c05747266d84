"""Probabilities next to those of exact arithmetic.

Kernels of every rank, with copies and near copies, widely different qualities and
scales.  Their numbers have few digits, so that the matrix that is handed over is the
product of its rows without any rounding, and there is one right answer.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import reference
import variegate as vg
from variegate.decoding.exact import _log_det_bounds, all_subsets
from variegate.linalg.determinants import split_scale

N_KERNELS = 240
N_KERNELS_SLOWLY = 2500


def rows_of_few_digits(rng):
    """Return up to six rows of any rank, some equal and some nearly so."""
    n = int(rng.integers(1, 7))
    B = rng.integers(-8, 9, (n, int(rng.integers(1, n + 1)))) / 8.0
    for _ in range(int(rng.integers(0, 3)) if n > 1 else 0):
        one, other = rng.choice(n, 2, replace=False)
        distance = rng.choice([0.0, 2.0 ** -rng.integers(3, 13)])
        B[other] = B[one] + distance * rng.integers(-8, 9, B.shape[1])
    return B


def random_case(seed):
    """Return how to make an ensemble, and its exact rows and log-qualities."""
    rng = np.random.default_rng([seed, 7])
    B = rows_of_few_digits(rng)
    n, n_columns = B.shape
    spread = rng.choice([0, 1, 10, 20, 100])
    u = rng.standard_normal(n) * spread + rng.choice([-20, 0, 20])
    u = np.clip(u, -300.0, 300.0)
    powers = np.rint(np.clip(u, -150, 150) / np.log(2.0))
    scale = 2.0 ** rng.choice([-480, 0, 480])
    kind = rng.choice(["matrix", "quality", "rows", "columns"])
    if kind == "quality":
        return (lambda: vg.LEnsemble.from_quality(B @ B.T, u)), B, u
    if kind == "matrix":
        B = B * 2.0 ** np.clip(powers, -120, 120)[:, None] * np.sqrt(scale)
        return (lambda: vg.LEnsemble(B @ B.T)), B, np.zeros(n)
    if kind == "rows":
        B = B * 2.0 ** powers[:, None]
    else:
        B = B * 2.0 ** rng.integers(-14, 15, n_columns) * scale
    return (lambda: vg.LEnsemble.from_factor(B)), B, np.zeros(n)


def true_probabilities(B, u):
    """Return those of all subsets: minors of fractions, and many digits of e^u."""
    rows = [[Fraction(float(x)) for x in row] for row in B]
    L = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in rows] for x in rows]
    weights = []
    for subset in all_subsets(len(B)):
        members = np.flatnonzero(subset)
        minor = reference.exact_determinant(
            [[L[i][j] for j in members] for i in members]
        )
        log_quality = sum((mpmath.mpf(float(u[i])) for i in members), mpmath.mpf(0))
        ratio = mpmath.mpf(minor.numerator) / mpmath.mpf(minor.denominator)
        weights.append(ratio * mpmath.exp(2 * log_quality))
    total = sum(weights)
    return np.array([float(weight / total) for weight in weights])


def check(seed):
    """Compare one kernel; return whether it was refused."""
    make, B, u = random_case(seed)
    try:
        ensemble = make()
    except ValueError:
        return True
    subsets = all_subsets(len(ensemble))
    with mpmath.workdps(60):
        expected = true_probabilities(B, u)
    found = np.exp([ensemble.log_prob(subset) for subset in subsets])
    assert np.abs(found - expected).sum() < 1e-6
    marginals = expected @ subsets
    assert ensemble.marginals() == pytest.approx(marginals, abs=1e-6)
    sizes = np.bincount(subsets.sum(axis=1), expected, minlength=len(ensemble) + 1)
    law = ensemble.size_distribution()
    assert law == pytest.approx(sizes[: len(law)], abs=1e-6)
    mode = ensemble.decode("exact").indices
    place = int((1 << mode).sum())
    assert expected[place] == pytest.approx(expected.max(), rel=1e-5)
    return False


def test_bounds_of_determinants_contain_those_of_exact_arithmetic():
    n_sure = n_subsets = 0
    for seed in range(N_KERNELS):
        B = rows_of_few_digits(np.random.default_rng([seed, 8]))
        L = [[Fraction(float(x)) for x in row] for row in B @ B.T]
        lower, upper = _log_det_bounds(*split_scale(B @ B.T))
        for place, subset in enumerate(all_subsets(len(B))):
            y = np.flatnonzero(subset)
            minor = reference.exact_determinant([[L[i][j] for j in y] for i in y])
            truth = float(mpmath.log(minor)) if minor else -np.inf
            assert lower[place] <= truth + 1e-12
            assert truth - 1e-12 <= upper[place]
            n_sure += lower[place] > -np.inf
            n_subsets += minor > 0
    # Bounds that say nothing would hold too.
    assert n_sure > 0.9 * n_subsets


def test_probabilities_are_those_of_exact_arithmetic():
    refused = sum(check(seed) for seed in range(N_KERNELS))
    assert refused < 0.05 * N_KERNELS


@pytest.mark.slow
def test_many_probabilities_are_those_of_exact_arithmetic():
    seeds = range(N_KERNELS, N_KERNELS + N_KERNELS_SLOWLY)
    assert sum(check(seed) for seed in seeds) < 0.05 * N_KERNELS_SLOWLY
