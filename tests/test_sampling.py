"""The law of the sampler, by chi-square tests on counts.

With fixed seeds a test either always passes or always fails; at the threshold of 1e-4
a correct sampler fails for one seed in ten thousand.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

import reference
import variegate as vg
from instances import random_kernel_matrix
from variegate.sampling import sample_spectral

DRAWS = 20_000
P_VALUE = 1e-4
SIZE = 6


def exact_probabilities(L):
    """Brute force with exact rational numbers, since ``L`` may be widely graded."""
    F = [[Fraction(float(entry)) for entry in row] for row in L]

    def det(rows):
        A = [[F[i][j] for j in rows] for i in rows]
        value = Fraction(1)
        for k in range(len(A)):
            if A[k][k] <= 0:
                return Fraction(0)  # positive semidefinite: the whole row is zero
            value *= A[k][k]
            for i in range(k + 1, len(A)):
                ratio = A[i][k] / A[k][k]
                A[i] = [a - ratio * b for a, b in zip(A[i], A[k], strict=True)]
        return value

    weights = {y: det(y) for y in reference.all_subsets(len(F))}
    total = sum(weights.values())
    return {y: float(weight / total) for y, weight in weights.items()}


def p_value(samples, L):
    """Chi-square of counts over all subsets, rare ones (expected < 5) pooled."""
    probabilities = exact_probabilities(L)
    expected = np.zeros(2**SIZE)
    for y, p in probabilities.items():
        expected[sum(1 << i for i in y)] = max(p, 0.0) * len(samples)
    counts = np.bincount(samples @ (1 << np.arange(SIZE)), minlength=2**SIZE)
    assert not counts[expected < 1e-6].any(), "an impossible subset was drawn"
    rare = expected < 5
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 5:
        counts, expected = counts[:-1], expected[:-1]
        expected = expected * counts.sum() / expected.sum()
    return chisquare(counts, expected).pvalue


KERNELS = {
    "full rank": random_kernel_matrix(np.random.default_rng(0), SIZE) / 3,
    "rank 3": random_kernel_matrix(np.random.default_rng(1), SIZE, rank=3),
    # Next to these large entries the small eigenvalues of L are lost to rounding.
    "graded": np.outer(*2 * [np.exp([0.0, 0.3, 18.0, -0.5, 25.0, 0.2])])
    * np.exp(-0.3 * np.abs(np.subtract.outer(np.arange(6), np.arange(6)))),
    "twins": np.kron(np.ones((2, 2)), np.eye(3)) * 1.5,
}


@pytest.mark.parametrize("L", KERNELS.values(), ids=KERNELS)
def test_law(L):
    samples = vg.LEnsemble(L).sample(DRAWS, random_state=0)
    assert samples.shape == (DRAWS, SIZE)
    assert p_value(samples, L) > P_VALUE


@pytest.mark.parametrize("L", KERNELS.values(), ids=KERNELS)
def test_the_test_rejects_a_wrong_sampler(L):
    # Independent coins with the right marginals: the classic mistake.
    rng = np.random.default_rng(0)
    wrong = rng.random((DRAWS, SIZE)) < vg.LEnsemble(L).marginals()
    try:
        assert p_value(wrong, L) < P_VALUE
    except AssertionError as error:
        assert "impossible" in str(error)  # noqa: PT017 - drawing one is a rejection


def test_the_test_rejects_a_slightly_wrong_sampler():
    L = KERNELS["full rank"]
    values, vectors = np.linalg.eigh(L)
    keep = 1.1 * values / (1.0 + 1.1 * values)
    wrong = sample_spectral(keep, vectors, DRAWS, np.random.default_rng(0))
    assert p_value(wrong, L) < P_VALUE


def test_same_seed_same_samples():
    ensemble = vg.LEnsemble(KERNELS["full rank"])
    first = ensemble.sample(50, random_state=3)
    np.testing.assert_array_equal(first, ensemble.sample(50, random_state=3))
    assert (first != ensemble.sample(50, random_state=4)).any()


def test_a_generator_is_advanced():
    ensemble = vg.LEnsemble(KERNELS["full rank"])
    rng = np.random.default_rng(3)
    assert (ensemble.sample(50, rng) != ensemble.sample(50, rng)).any()


def test_bad_random_state():
    with pytest.raises(ValueError, match="random_state must be None"):
        vg.LEnsemble(np.eye(2)).sample(1, random_state="seed")


def test_a_legacy_random_state_is_advanced():
    ensemble = vg.LEnsemble(KERNELS["full rank"])
    legacy = np.random.RandomState(0)
    first, second = (ensemble.sample(50, legacy) for _ in range(2))
    assert (first != second).any()
    again = ensemble.sample(50, np.random.RandomState(0))
    np.testing.assert_array_equal(first, again)
