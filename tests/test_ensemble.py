import numpy as np
import pytest

import reference
import variegate as vg
from instances import random_kernel_matrix
from variegate.decoding import all_subsets
from variegate.linalg import log_principal_minors, split_scale

KERNELS = {
    "one item": lambda rng: random_kernel_matrix(rng, 1),
    "full rank": lambda rng: random_kernel_matrix(rng, 7),
    "rank 3 of 7": lambda rng: random_kernel_matrix(rng, 7, rank=3),
    "diagonal": lambda rng: np.diag(rng.exponential(size=6)),
    "with a zero item": lambda rng: np.diag([1.0, 0.0, 2.0]),
    "twins": lambda rng: np.ones((4, 4)) + np.diag([0.0, 0.0, 1.0, 1.0]),
    "widely scaled": lambda rng: (
        random_kernel_matrix(rng, 6)
        * np.logspace(-3, 3, 6)
        * np.logspace(-3, 3, 6)[:, None]
    ),
}


@pytest.fixture(params=KERNELS.values(), ids=KERNELS)
def L(request):
    return request.param(np.random.default_rng(0))


def test_probabilities_sum_to_one(L):
    ensemble = vg.LEnsemble(L)
    total = sum(np.exp(ensemble.log_prob(y)) for y in reference.all_subsets(len(L)))
    assert total == pytest.approx(1.0, abs=1e-12)


def test_log_prob_equals_brute_force(L):
    ensemble = vg.LEnsemble(L)
    for y, p in reference.probabilities(L).items():
        assert np.exp(ensemble.log_prob(y)) == pytest.approx(p, rel=1e-9, abs=1e-12)


def test_marginals_equal_brute_force(L):
    ensemble = vg.LEnsemble(L)
    expected = reference.marginals(L)
    np.testing.assert_allclose(ensemble.marginals(), expected, atol=1e-10)
    assert ensemble.expected_size() == pytest.approx(expected.sum(), abs=1e-10)


def test_marginal_kernel_gives_inclusion_probabilities(L):
    K = vg.LEnsemble(L).marginal_kernel()
    np.testing.assert_allclose(K, L @ np.linalg.inv(L + np.eye(len(L))), atol=1e-9)
    pair = [0, len(L) - 1] if len(L) > 1 else [0]
    expected = sum(
        p for y, p in reference.probabilities(L).items() if set(pair) <= set(y)
    )
    assert reference.det_subset(K, pair) == pytest.approx(expected, abs=1e-10)


def test_log_principal_minors_equal_brute_force(L):
    log_dets = log_principal_minors(*split_scale(L))
    masks = all_subsets(len(L))
    assert len(log_dets) == 2 ** len(L)
    for mask, log_det in zip(masks, log_dets, strict=True):
        expected = reference.det_subset(L, np.flatnonzero(mask))
        scale = np.prod(np.diagonal(L)[mask])
        assert np.exp(log_det) == pytest.approx(expected, rel=1e-8, abs=1e-10 * scale)


def test_size_distribution_equals_brute_force(L):
    law = vg.LEnsemble(L).size_distribution()
    expected = np.zeros(len(L) + 1)
    for y, p in reference.probabilities(L).items():
        expected[len(y)] += p
    np.testing.assert_allclose(law, expected, atol=1e-10)


def conditioned_by_brute_force(L, include, exclude):
    """Probabilities of what else is chosen, by counting the subsets that comply."""
    compliant = {
        tuple(i for i in y if i not in include): p
        for y, p in reference.probabilities(L).items()
        if set(include) <= set(y) and not set(exclude) & set(y)
    }
    total = sum(compliant.values())
    return {y: p / total for y, p in compliant.items()}


def test_conditioning_equals_brute_force(L):
    n = len(L)
    for include, exclude in (([], []), ([0], []), ([], [0]), ([0, n - 1], [1])):
        include = sorted(set(include))
        if set(include) & set(exclude) or max([*include, *exclude], default=0) >= n:
            continue
        if reference.det_subset(L, include) < 1e-10:
            continue
        conditional = vg.LEnsemble(L).condition(include, exclude)
        for y, p in conditioned_by_brute_force(L, include, exclude).items():
            local = np.searchsorted(conditional.items, y)
            assert np.exp(conditional.log_prob(local)) == pytest.approx(p, abs=1e-10)


def test_conditioning_twice_equals_once():
    ensemble = vg.LEnsemble(random_kernel_matrix(np.random.default_rng(0), 6))
    once = ensemble.condition(include=[1, 4], exclude=[0])
    first = ensemble.condition(include=[1])
    assert first.items.tolist() == [0, 2, 3, 4, 5]
    twice = first.condition(include=[3], exclude=[0])
    assert twice.items.tolist() == once.items.tolist() == [2, 3, 5]
    np.testing.assert_allclose(twice.marginals(), once.marginals(), atol=1e-12)


def test_bad_conditions():
    ensemble = vg.LEnsemble(random_kernel_matrix(np.random.default_rng(0), 5, rank=2))
    with pytest.raises(ValueError, match="item 1 is both included and excluded"):
        ensemble.condition([0, 1], [1, 2])
    with pytest.raises(ValueError, match="the included items have probability zero"):
        ensemble.condition([0, 1, 2])
    with pytest.raises(ValueError, match="item 7 is out of range"):
        ensemble.condition([7])


def test_a_subset_beyond_the_rank_is_impossible():
    L = random_kernel_matrix(np.random.default_rng(0), 7, rank=3)
    ensemble = vg.LEnsemble(L)
    assert np.isfinite(ensemble.log_prob([0, 1, 2]))
    assert ensemble.log_prob([0, 1, 2, 3]) == -np.inf


def test_mask_and_numbers_are_the_same_subset():
    ensemble = vg.LEnsemble(random_kernel_matrix(np.random.default_rng(0), 4))
    mask = np.array([True, False, False, True])
    assert ensemble.log_prob(mask) == ensemble.log_prob([3, 0])


def test_the_callers_matrix_is_copied():
    L = np.eye(3)
    ensemble = vg.LEnsemble(L)
    L[0, 0] = 5.0
    assert ensemble.L[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        ensemble.S[0, 0] = 2.0


def test_log_prob_survives_extreme_scales():
    # det(cL_y)/det(cL + I): with c huge the full set is certain, with c tiny the
    # empty one.
    L = random_kernel_matrix(np.random.default_rng(0), 5)
    assert vg.LEnsemble(L * 1e250).log_prob(range(5)) == pytest.approx(0.0, abs=1e-9)
    assert vg.LEnsemble(L * 1e-250).log_prob([]) == pytest.approx(0.0, abs=1e-12)


def test_from_quality_equals_the_product():
    rng = np.random.default_rng(0)
    S, u = random_kernel_matrix(rng, 5), rng.standard_normal(5)
    q = np.exp(u)
    direct = vg.LEnsemble(q[:, None] * S * q)
    factored = vg.LEnsemble.from_quality(S, u)
    np.testing.assert_allclose(factored.L, direct.L, rtol=1e-12)
    np.testing.assert_allclose(factored.marginals(), direct.marginals(), rtol=1e-12)


def test_from_quality_beyond_any_number():
    ensemble = vg.LEnsemble.from_quality(np.eye(3), [1000.0, 0.0, -1000.0])
    np.testing.assert_allclose(ensemble.marginals(), [1.0, 0.5, 0.0])
    assert ensemble.log_prob([0]) == pytest.approx(-np.log(2))
    assert ensemble.decode("greedy").indices.tolist() == [0]
    assert ensemble.sample(5, random_state=0)[:, 0].all()
    assert ensemble.L[0, 0] == np.inf
    assert ensemble.L[0, 1] == 0.0
    with pytest.raises(ValueError, match="log_quality must hold 3 finite numbers"):
        vg.LEnsemble.from_quality(np.eye(3), [0.0, np.inf, 0.0])


@pytest.mark.parametrize(
    ("L", "message"),
    [
        (np.ones((2, 3)), r"square matrix, got shape \(2, 3\)"),
        ([[1.0, np.nan], [np.nan, 1.0]], "NaN or infinite"),
        (
            [[1.0, 0.5], [0.2, 1.0]],
            "L is not symmetric: it differs from its transpose by 0.3",
        ),
        ([[1.0, 0.0], [0.0, -2.0]], r"not positive semidefinite: L\[1, 1\] is -2"),
        ([[1.0, 2.0], [2.0, 1.0]], "not positive semidefinite.*eigenvalue is -1"),
    ],
)
def test_bad_kernels(L, message):
    with pytest.raises(ValueError, match=message):
        vg.LEnsemble(L)


def test_an_ensemble_of_nothing():
    nothing = vg.LEnsemble(np.zeros((0, 0)))
    assert nothing.decode("greedy").indices.tolist() == []
    assert nothing.log_prob([]) == 0.0
