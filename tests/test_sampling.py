"""The law of the sampler, by chi-square tests on counts.

With fixed seeds a test either always passes or always fails; at the threshold of 1e-4
a correct sampler fails for one seed in ten thousand.
"""

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


def p_value(samples, L):
    """Chi-square of counts over all subsets, rare ones (expected < 5) pooled."""
    probabilities = reference.probabilities(L)
    expected = np.zeros(2**SIZE)
    for y, p in probabilities.items():
        expected[sum(1 << i for i in y)] = max(p, 0.0) * len(samples)
    counts = np.bincount(samples @ (1 << np.arange(SIZE)), minlength=2**SIZE)
    assert not counts[expected < 1e-9].any(), "an impossible subset was drawn"
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
    wrong = sample_spectral(values * 1.1, vectors, DRAWS, np.random.default_rng(0))
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
