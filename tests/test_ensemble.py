import numpy as np
import pytest

import reference
import variegate as vg
from instances import random_kernel_matrix
from variegate.decoding import all_subsets
from variegate.linalg.determinants import log_principal_minors, split_scale

#: Factors B of the kernels L = B Bᵀ that every test here runs on.
FACTORS = {
    "one item": lambda rng: rng.standard_normal((1, 1)),
    "full rank": lambda rng: rng.standard_normal((7, 7)),
    "more columns than items": lambda rng: rng.standard_normal((5, 9)),
    "rank 3 of 7": lambda rng: rng.standard_normal((7, 3)),
    "diagonal": lambda rng: np.diag(np.sqrt(rng.exponential(size=6))),
    "with a zero item": lambda rng: np.diag([1.0, 0.0, 1.5]),
    "twins": lambda rng: np.hstack([np.ones((4, 1)), np.diag([0.0, 0.0, 1.0, 1.0])]),
    "widely scaled": lambda rng: (
        rng.standard_normal((6, 6)) * np.logspace(-3, 3, 6)[:, None]
    ),
}
REPRESENTATIONS = {
    "dense": lambda B: vg.LEnsemble(B @ B.T),
    "factored": vg.LEnsemble.from_factor,
}


@pytest.fixture(params=FACTORS.values(), ids=FACTORS)
def B(request):
    return request.param(np.random.default_rng(0))


@pytest.fixture
def L(B):
    return B @ B.T


@pytest.fixture(params=REPRESENTATIONS.values(), ids=REPRESENTATIONS)
def ensemble(request, B):
    return request.param(B)


def test_probabilities_sum_to_one(L, ensemble):
    total = sum(np.exp(ensemble.log_prob(y)) for y in reference.all_subsets(len(L)))
    assert total == pytest.approx(1.0, abs=1e-12)


def test_log_prob_equals_brute_force(L, ensemble):
    for y, p in reference.probabilities(L).items():
        assert np.exp(ensemble.log_prob(y)) == pytest.approx(p, rel=1e-9, abs=1e-12)


def test_marginals_equal_brute_force(L, ensemble):
    expected = reference.marginals(L)
    np.testing.assert_allclose(ensemble.marginals(), expected, atol=1e-10)
    assert ensemble.expected_size() == pytest.approx(expected.sum(), abs=1e-10)


def test_marginal_kernel_gives_inclusion_probabilities(L, ensemble):
    K = ensemble.marginal_kernel()
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


def test_size_distribution_equals_brute_force(L, ensemble):
    law = ensemble.size_distribution()
    expected = np.zeros(len(L) + 1)
    for y, p in reference.probabilities(L).items():
        expected[len(y)] += p
    np.testing.assert_allclose(law, expected[: len(law)], atol=1e-10)
    assert expected[len(law) :].sum() == pytest.approx(0.0, abs=1e-10)


def conditioned_by_brute_force(L, include, exclude):
    """Probabilities of what else is chosen, by counting the subsets that comply."""
    compliant = {
        tuple(i for i in y if i not in include): p
        for y, p in reference.probabilities(L).items()
        if set(include) <= set(y) and not set(exclude) & set(y)
    }
    total = sum(compliant.values())
    return {y: p / total for y, p in compliant.items()}


def test_conditioning_equals_brute_force(L, ensemble):
    n = len(L)
    for include, exclude in (([], []), ([0], []), ([], [0]), ([0, n - 1], [1])):
        include = sorted(set(include))
        if set(include) & set(exclude) or max([*include, *exclude], default=0) >= n:
            continue
        if reference.det_subset(L, include) < 1e-10:
            continue
        conditional = ensemble.condition(include, exclude)
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
        ensemble.representation.S[0, 0] = 2.0


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


@pytest.mark.parametrize("method", ["greedy", "exact", "mbr", "expected-f"])
def test_decoding_does_not_depend_on_the_representation(B, method):
    dense, factored = (make(B) for make in REPRESENTATIONS.values())
    first = dense.decode(method, random_state=0)
    second = factored.decode(method, random_state=0)
    if method != "mbr":  # samples differ, since eigenvectors are not unique
        assert first.indices.tolist() == second.indices.tolist()
    assert second.log_prob == pytest.approx(factored.log_prob(second.indices))


def test_many_items_in_a_factor():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((50_000, 8)) * 0.03
    ensemble = vg.LEnsemble.from_factor(B)
    gram = B.T @ B
    K_trace = np.trace(gram @ np.linalg.inv(gram + np.eye(8)))
    assert ensemble.expected_size() == pytest.approx(K_trace, rel=1e-10)
    assert ensemble.log_normalizer == pytest.approx(
        np.linalg.slogdet(gram + np.eye(8))[1], rel=1e-10
    )
    samples = ensemble.sample(20, random_state=0)
    assert samples.sum(axis=1).max() <= 8
    assert len(ensemble.decode("greedy", k=5)) == 5
    for refused in (ensemble.marginal_kernel, lambda: ensemble.L):
        with pytest.raises(ValueError, match="50000 items would take 20 GB"):
            refused()


def test_a_factor_of_single_precision_is_held_as_it_is():
    B = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    single = vg.LEnsemble.from_factor(B)
    held = single.representation.B
    assert held.dtype == np.float32
    assert np.shares_memory(held, B)
    exact = vg.LEnsemble.from_factor(B.astype(np.float64))
    assert single.marginals() == pytest.approx(exact.marginals(), abs=1e-14)
    assert single.log_prob([0, 3]) == pytest.approx(exact.log_prob([0, 3]), abs=1e-12)
    assert single.condition(include=[1]).marginals() == pytest.approx(
        exact.condition(include=[1]).marginals(), abs=1e-12
    )
    assert (single.sample(5, 0) == exact.sample(5, 0)).all()


def test_a_factor_with_rows_of_any_length():
    B = np.array([[1e40, 0.0], [1.0, 1.0], [0.0, 1e-40]])
    ensemble = vg.LEnsemble.from_factor(B)
    # Item 0 is certain; item 1 is left with its part outside, of length one.
    np.testing.assert_allclose(ensemble.marginals(), [1.0, 0.5, 5e-81], rtol=1e-9)
    wide = np.ones((3000, 1))
    wide[0] = 1e-30
    with pytest.raises(ValueError, match="rows of B differ in length by a factor"):
        vg.LEnsemble.from_factor(wide)


@pytest.mark.parametrize(
    ("B", "message"),
    [
        ([1.0, 2.0], "B must be a matrix with one row an item"),
        ([[1.0], [np.nan]], "B holds NaN or infinite values"),
        ([[1.0], [-np.inf]], "B holds NaN or infinite values"),
    ],
)
def test_bad_factors(B, message):
    with pytest.raises(ValueError, match=message):
        vg.LEnsemble.from_factor(B)
