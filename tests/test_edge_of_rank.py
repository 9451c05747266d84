"""Kernels at the edge of their rank: all quantities agree on what is possible.

The reference is exact: entries of a matrix of floats are rational numbers, and Python's
fractions have no rounding.
"""

import math
import warnings
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import reference
import variegate as vg
from variegate.decoding import exact
from variegate.decoding.exact import all_subsets
from variegate.linalg.representations import Dense, Factored, Graded
from variegate.sampling import sample_chain

N_KERNELS = 40


def random_kernel(seed):
    """Return an ensemble of up to six items, of any rank, scale and way to make it."""
    rng = np.random.default_rng([seed, 15])
    n = int(rng.integers(1, 7))
    rank = int(rng.integers(1, n + 1))
    B = rng.standard_normal((n, rank))
    for _ in range(int(rng.integers(0, 3)) if n > 1 else 0):
        one, other = rng.choice(n, 2, replace=False)
        distance = rng.choice([0.0, 10.0 ** -rng.integers(1, 9)])
        B[other] = B[one] + distance * rng.standard_normal(rank)
    u = rng.standard_normal(n) * rng.choice([0, 1, 10, 20, 100])
    u = np.clip(u + rng.choice([-20, 0, 20]), -300, 300)
    kind = rng.choice(["matrix", "quality", "rows", "columns"])
    if kind == "matrix":
        B = B * np.exp(np.clip(u, -80, 80))[:, None]
        return vg.LEnsemble(B @ B.T * 10.0 ** rng.integers(-100, 101))
    if kind == "quality":
        return vg.LEnsemble.from_quality(B @ B.T, u)
    if kind == "rows":
        return vg.LEnsemble.from_factor(B * np.exp(u)[:, None])
    columns = 10.0 ** rng.integers(-4, 5, rank)
    return vg.LEnsemble.from_factor(B * columns * 10.0 ** rng.choice([-150, 0, 150]))


def log_probs(ensemble):
    subsets = all_subsets(len(ensemble))
    return subsets, np.array([ensemble.log_prob(subset) for subset in subsets])


@pytest.fixture(params=range(N_KERNELS), scope="module")
def kernel(request):
    ensemble = random_kernel(request.param)
    return (ensemble, *log_probs(ensemble))


def all_possible(samples, log_prob):
    places = samples @ (1 << np.arange(samples.shape[1]))
    return np.isfinite(log_prob[places]).all()


def test_probabilities_sum_to_one_and_give_marginals_and_sizes(kernel):
    ensemble, subsets, log_prob = kernel
    probability = np.exp(log_prob)
    assert probability.sum() == pytest.approx(1.0, abs=1e-6)
    assert ensemble.marginals() == pytest.approx(probability @ subsets, abs=1e-6)
    sizes = np.bincount(subsets.sum(axis=1), probability)
    law = ensemble.size_distribution()
    assert law == pytest.approx(sizes[: len(law)], abs=1e-6)
    assert sizes[len(law) :].sum() == 0.0


@pytest.mark.parametrize("start", range(0, 2000, 500))
def test_probabilities_of_many_kernels_sum_to_one_or_are_refused(start):
    refused = 0
    for seed in range(start, start + 500):
        try:
            ensemble = random_kernel(seed)
        except ValueError:
            refused += 1
            continue
        total = np.exp(log_probs(ensemble)[1]).sum()
        assert total == pytest.approx(1.0, abs=1e-6), seed
    assert refused < 10


def test_samplers_draw_what_is_possible(kernel):
    ensemble, subsets, log_prob = kernel
    assert all_possible(ensemble.sample(20, random_state=0), log_prob)
    rank = int(subsets[np.isfinite(log_prob)].sum(axis=1).max())
    for k in range(rank + 1):
        assert all_possible(ensemble.sample_k(k, 10, random_state=0), log_prob)
    if rank < len(ensemble):
        with pytest.raises(ValueError, match=f"L has rank {rank}"):
            ensemble.sample_k(rank + 1)
    chain = sample_chain(ensemble, 20, burn_in=200, random_state=0)
    assert all_possible(chain.samples, log_prob)
    chain = sample_chain(ensemble, 20, k=rank, burn_in=200, random_state=0)
    assert all_possible(chain.samples, log_prob)


@pytest.mark.parametrize("tabled", [14, 0], ids=["table", "branch and bound"])
def test_no_certificate_is_below_the_optimum(kernel, tabled, monkeypatch):
    ensemble, subsets, log_prob = kernel
    monkeypatch.setattr(exact, "TABLED_ITEMS", tabled)
    if not tabled and ensemble.log_scale.max() > 170.0:
        with pytest.raises(ValueError, match="qualit"):
            ensemble.decode("exact")
        return
    costs = np.random.default_rng(0).uniform(0.5, 2.0, len(ensemble))
    for k in [None, *range(len(ensemble) + 1)]:
        for budget in (None, float(np.sort(costs)[:k].sum()) * 1.2 + 0.1):
            limits = {} if budget is None else {"budget": budget, "costs": costs}
            allowed = np.full(len(subsets), True)
            if k is not None:
                allowed &= subsets.sum(axis=1) == k
            if budget is not None:
                allowed &= subsets @ costs <= budget
            best = log_prob[allowed].max(initial=-np.inf)
            if best == -np.inf:
                with pytest.raises(ValueError, match="no feasible subset"):
                    ensemble.decode("exact", k=k, **limits)
                continue
            found = ensemble.decode("exact", k=k, **limits)
            assert found.log_prob == pytest.approx(best, rel=1e-9, abs=1e-6)
            assert found.upper_bound >= best - 1e-6


@pytest.mark.parametrize("method", ["greedy", "local"])
def test_searches_end_in_a_possible_set(kernel, method):
    ensemble, subsets, log_prob = kernel
    costs = np.linspace(0.5, 1.5, len(ensemble))
    assert ensemble.decode(method).log_prob > -np.inf
    assert ensemble.decode(method, budget=2.0, costs=costs).log_prob > -np.inf
    for k in range(int(subsets[np.isfinite(log_prob)].sum(axis=1).max()) + 1):
        chosen = ensemble.decode(method, k=k)
        assert len(chosen.indices) == k
        assert chosen.log_prob > -np.inf


def test_conditioning_agrees(kernel):
    ensemble, subsets, log_prob = kernel
    given = int(np.argmax(np.where(subsets.sum(axis=1) == 1, log_prob, -np.inf)))
    rest = np.flatnonzero(~subsets[given])
    conditional = ensemble.condition(subsets[given])
    parts, found = log_probs(conditional)
    joint = log_prob[given + parts @ (1 << rest)]
    expected = np.exp(joint - joint.max())
    expected /= expected.sum()
    assert np.exp(found) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("factor", [True, False], ids=["factor", "matrix"])
def test_probabilities_are_those_of_exact_arithmetic(seed, factor):
    rng = np.random.default_rng(seed)
    n, rank = 5, int(rng.integers(1, 5))
    # Few digits, so that products of rows have no rounding either.
    B = rng.integers(-8, 9, (n, rank)) / 8.0
    B[1] = B[0] + rng.integers(-8, 9, rank) * 2.0**-12
    B *= 2.0 ** rng.integers(-4, 30)
    rows = [[Fraction(float(x)) for x in row] for row in B]
    L = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in rows] for x in rows]
    weight = {}
    for size in range(n + 1):
        for y in combinations(range(n), size):
            weight[y] = reference.exact_determinant([[L[i][j] for j in y] for i in y])
    total = sum(weight.values())
    ensemble = vg.LEnsemble.from_factor(B) if factor else vg.LEnsemble(B @ B.T)
    for y, determinant in weight.items():
        expected = float(determinant / total)
        assert np.exp(ensemble.log_prob(list(y))) == pytest.approx(expected, abs=1e-6)
        assert (ensemble.log_prob(list(y)) == -np.inf) == (determinant == 0)


def test_a_set_larger_than_the_rank_is_impossible():
    B = np.array([[1, 0], [1, 2.0**-13], [0.25, 1], [0.5, 0.75], [-0.5, 0.25]])
    ensemble = vg.LEnsemble(B @ B.T * 2.0**58)  # exactly of rank 2
    assert isinstance(ensemble.representation, Graded)
    assert ensemble.log_prob([0, 1, 2]) == -np.inf
    assert len(ensemble.decode("exact").indices) == 2
    assert ensemble.condition([0, 1]).marginals() == pytest.approx(np.zeros(3))


def test_bounds_hold_what_rounding_takes_from_eigenvalues(monkeypatch):
    looser = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((9, 12))
        u = rng.standard_normal(9) * 20.0
        ensemble = vg.LEnsemble.from_quality(X @ X.T, u)
        assert isinstance(ensemble.representation, Dense)
        costs = rng.uniform(0.5, 2.0, 9)
        for k in (3, 5, 7):
            limits = {"budget": 1.2 * float(np.sort(costs)[:k].sum()), "costs": costs}
            monkeypatch.setattr(exact, "TABLED_ITEMS", 14)
            best = ensemble.decode("exact", k=k, **limits).log_prob
            monkeypatch.setattr(exact, "TABLED_ITEMS", 0)
            found = ensemble.decode("exact", k=k, **limits)
            assert found.log_prob == pytest.approx(best, abs=1e-8)
            looser += "after 1 nodes" not in found.stop_reason
    assert looser  # the search had something to prove


def test_a_certificate_holds_where_eigenvalues_were_lost():
    rng = np.random.default_rng(10)
    X = rng.standard_normal((15, 20))
    ensemble = vg.LEnsemble.from_quality(X @ X.T, rng.normal(0.0, 10.0, 15))
    costs = rng.random(15)
    limits = {"k": 13, "budget": 1.2 * float(np.sort(costs)[:13].sum())}
    feasible = [
        list(y)
        for y in combinations(range(15), 13)
        if costs[list(y)].sum() <= limits["budget"]
    ]
    best = max(ensemble.log_prob(y) for y in feasible)
    found = ensemble.decode("exact", costs=costs, **limits)
    assert found.stop_reason.startswith("proved the best")
    assert found.log_prob == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("scale", [1e155, 1e-155, 1e-170])
def test_a_factor_neither_overflows_nor_underflows(scale):
    B = np.random.default_rng(0).standard_normal((4, 2))
    plain = vg.LEnsemble.from_factor(B)
    ensemble = vg.LEnsemble.from_factor(B * scale)
    shift = 4.0 * np.log(scale)
    ratio = ensemble.log_prob([0, 1]) - ensemble.log_prob([2, 3])
    assert ratio == pytest.approx(plain.log_prob([0, 1]) - plain.log_prob([2, 3]))
    log_det = plain.representation.log_det(np.array([0, 1]))
    found = ensemble.representation.log_det(np.array([0, 1]))
    assert found == pytest.approx(log_det + shift, rel=1e-12)
    expected = 2.0 if scale > 1.0 else 0.0
    assert ensemble.expected_size() == pytest.approx(expected)
    assert len(ensemble.decode("greedy", k=2).indices) == 2


def test_many_rows_neither_overflow_nor_underflow():
    B = np.random.default_rng(0).standard_normal((2500, 3))
    for scale, size in ((1e155, 3), (1e-160, 0)):
        ensemble = vg.LEnsemble.from_factor(B * scale)
        assert isinstance(ensemble.representation, Factored)
        assert ensemble.expected_size() == pytest.approx(size)
        assert len(ensemble.decode("greedy").indices) == size
        assert len(ensemble.decode("greedy", k=3).indices) == 3


def test_rows_whose_dependence_cannot_be_decided_are_refused():
    B = np.array([[1.0, 0.0], [1.0, 1e-12]]) * 1e13
    with pytest.raises(ValueError, match=r"row . of B depends on others but for 1e-12"):
        vg.LEnsemble.from_factor(B)
    # Where it makes no difference, nothing is refused.
    assert vg.LEnsemble.from_factor(B * 1e-13).log_prob([0, 1]) < -50.0


@pytest.mark.parametrize("n_copies", [1, 14], ids=["small", "large"])
def test_the_loss_of_a_singular_kernel_is_right_or_refused(n_copies):
    refused = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, rank = 5, int(rng.integers(1, 6))
        B = rng.integers(-8, 9, (n, rank)) / 8.0
        B[1] = B[0] + rng.integers(-8, 9, rank) * 2.0 ** -int(rng.integers(1, 13))
        power = int(rng.integers(0, 25))
        rows = [[Fraction(float(x)) for x in row] for row in B]
        L = [
            [2**power * sum(a * b for a, b in zip(x, y, strict=True)) for y in rows]
            for x in rows
        ]
        one = reference.exact_determinant(
            [[L[i][j] + (i == j) for j in range(n)] for i in range(n)]
        )
        y = [0, 2]
        determinant = reference.exact_determinant([[L[i][j] for j in y] for i in y])
        # Independent copies: losses add up, and the larger ones take another path.
        kernel = np.kron(np.eye(n_copies), B @ B.T * 2.0**power)
        subset = [n * copy + i for copy in range(n_copies) for i in y]
        try:
            value, _ = vg.large_margin_loss(kernel, subset, lam=0.0)
        except ValueError:
            refused += 1
            continue
        expected = n_copies * (log_of(one) - log_of(determinant))
        assert value == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert 0 < refused < 60


def log_of(fraction):
    """Return the logarithm of a fraction whose parts may be too large for a float."""
    return math.log(fraction.numerator) - math.log(fraction.denominator)


def test_the_loss_of_a_large_singular_kernel_is_refused():
    v = np.array([[6.0, 5.0], [4.0, 2.0], [3.0, 1.0]])
    with pytest.raises(ValueError, match="singular to rounding"):
        vg.large_margin_loss(v @ v.T * 1e16, [0], lam=0.0)
    value, _ = vg.large_margin_loss(v @ v.T, [0], lam=0.0)
    assert value == pytest.approx(-vg.LEnsemble(v @ v.T).log_prob([0]))


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_fits_without_jitter_end_where_the_objective_is_that_of_the_ensembles(lam):
    rng = np.random.default_rng(3)
    ground_sets, subsets = [], []
    for _ in range(6):
        features = rng.standard_normal((6, 3))
        features[1] = features[0] + 1e-5 * rng.standard_normal(3)
        ground_sets.append(vg.GroundSet(10.0 * rng.standard_normal((6, 2)), features))
        subsets.append([0, 3])
    model = vg.LargeMarginDPP(kernel=vg.Linear(), jitter=0.0, lam=lam)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(ground_sets, subsets)
    loss = [
        -model.ensemble(ground_set).log_prob(subset)
        for ground_set, subset in zip(ground_sets, subsets, strict=True)
    ]
    assert np.isfinite(loss).all()
    if lam == 0.0:
        assert model.solver_result_.objective == pytest.approx(np.mean(loss), rel=1e-6)
