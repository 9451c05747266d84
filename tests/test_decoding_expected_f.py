"""Expected F against sums over all subsets, and against its own obvious twins."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
import variegate as vg
from instances import random_kernel_matrix
from variegate.decoding import Constraint, ExpectedF, expected_f_score
from variegate.decoding import expected_f as expected_f_module
from variegate.decoding import size_search as search_module
from variegate.decoding.size_search import (
    SizedWeights,
    SizeSearch,
    indices_of_largest,
    minimize_lagrangian_bound,
)
from variegate.linalg.coins import (
    count_distribution,
    leave_one_out_distributions,
    likely_range,
)

BETAS = [0.5, 1.0, 2.0]


def f_beta(chosen, wanted, beta):
    """Two empty sets agree, as in ``variegate.metrics``."""
    if not chosen and not wanted:
        return 1.0
    common = len(set(chosen) & set(wanted))
    return (1 + beta**2) * common / (beta**2 * len(wanted) + len(chosen))


def expected_scores(law, n, beta):
    """Every subset with its expected F-score, from the probability of every subset."""
    subsets = reference.all_subsets(n)
    return {
        A: sum(p * f_beta(A, y, beta) for y, p in law.items() if p > 0) for A in subsets
    }


def feasible(scores, k=None, budget=None, costs=None):
    return {
        A: value
        for A, value in scores.items()
        if (k is None or len(A) == k)
        and (budget is None or np.sum(costs[list(A)]) <= budget * (1 + 1e-9))
    }


def assert_best(selection, scores):
    """The value to 1e-10, and the set wherever no other comes as near."""
    ranked = sorted(scores.values(), reverse=True)
    chosen = tuple(selection.indices.tolist())
    assert scores[chosen] == pytest.approx(ranked[0], abs=1e-10)
    if len(ranked) > 1 and ranked[1] < ranked[0] - 1e-9:
        assert chosen == max(scores, key=scores.get)
    assert f"expected F {ranked[0]:.3g}, the largest of all" in selection.stop_reason


def test_the_score_is_that_of_the_metrics():
    for A, y in itertools.product(reference.all_subsets(4), repeat=2):
        assert f_beta(A, y, 1.0) == vg.metrics.f_score(list(A), list(y))


@given(
    n=st.integers(1, 8),
    rank=st.integers(1, 8),
    beta=st.sampled_from(BETAS),
    seed=st.integers(0, 10**6),
)
def test_best_of_all_subsets(n, rank, beta, seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((n, min(n, rank))) * np.exp(rng.uniform(-2, 1))
    scores = expected_scores(reference.probabilities(B @ B.T), n, beta)
    for ensemble in (vg.LEnsemble(B @ B.T), vg.LEnsemble.from_factor(B)):
        selection = ensemble.decode(ExpectedF(beta))
        assert_best(selection, scores)
        for A in list(scores)[:: max(1, len(scores) // 10)]:
            value = expected_f_score(ensemble, list(A), beta)
            assert value == pytest.approx(scores[A], abs=1e-10)


@pytest.mark.parametrize("beta", BETAS)
def test_best_of_all_subsets_of_ten(beta):
    rng = np.random.default_rng(1)
    L = 0.3 * random_kernel_matrix(rng, 10, rank=7)
    scores = expected_scores(reference.probabilities(L), 10, beta)
    assert_best(vg.LEnsemble(L).decode(ExpectedF(beta)), scores)
    for k in range(11):
        selection = vg.LEnsemble(L).decode(ExpectedF(beta), k=k)
        assert_best(selection, feasible(scores, k))


@given(
    n=st.integers(1, 7),
    rank=st.integers(1, 7),
    beta=st.sampled_from(BETAS),
    seed=st.integers(0, 10**6),
    use_k=st.booleans(),
    equal=st.booleans(),
)
def test_best_within_a_budget(n, rank, beta, seed, use_k, equal):
    rng = np.random.default_rng(seed)
    B = 0.7 * rng.standard_normal((n, min(n, rank)))
    costs = np.full(n, 0.7) if equal else rng.uniform(0.2, 3.0, n)
    k = int(rng.integers(0, n + 1)) if use_k else None
    budget = float(np.sort(costs)[: k or 1].sum() + rng.uniform(0.0, 2.0))
    scores = expected_scores(reference.probabilities(B @ B.T), n, beta)
    scores = feasible(scores, k, budget, costs)
    for ensemble in (vg.LEnsemble(B @ B.T), vg.LEnsemble.from_factor(B)):
        selection = ensemble.decode(ExpectedF(beta), k=k, budget=budget, costs=costs)
        assert_best(selection, scores)


def independent(log_quality):
    """The law of items that are independent of each other, without determinants."""
    p = 1.0 / (1.0 + np.exp(-2.0 * np.asarray(log_quality)))
    q = 1.0 / (1.0 + np.exp(2.0 * np.asarray(log_quality)))
    n = len(p)
    return {
        y: np.prod([p[i] if i in y else q[i] for i in range(n)])
        for y in reference.all_subsets(n)
    }


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("seed", range(5))
def test_log_qualities_far_apart(beta, seed):
    u = np.random.default_rng(seed).uniform(-20, 20, 7)
    scores = expected_scores(independent(u), 7, beta)
    ensemble = vg.LEnsemble.from_quality(np.eye(7), u)
    assert_best(ensemble.decode(ExpectedF(beta)), scores)
    assert_best(ensemble.decode(ExpectedF(beta), k=4), feasible(scores, 4))


@pytest.mark.parametrize("level", [-20.0, 20.0])
@pytest.mark.parametrize("seed", range(3))
def test_log_qualities_far_from_zero(level, seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((6, 6))
    L = B @ B.T
    scale = np.sqrt(np.diagonal(L))
    S = L / scale[:, None] / scale
    # Determinants in the logarithm, since 2^6 of them span hundreds of digits.
    logs = {
        y: np.linalg.slogdet(S[np.ix_(y, y)])[1] + 2 * level * len(y) if y else 0.0
        for y in reference.all_subsets(6)
    }
    top = max(logs.values())
    total = sum(np.exp(value - top) for value in logs.values())
    law = {y: np.exp(value - top) / total for y, value in logs.items()}
    ensemble = vg.LEnsemble.from_quality(S, np.full(6, level))
    for beta in BETAS:
        scores = expected_scores(law, 6, beta)
        assert_best(ensemble.decode(ExpectedF(beta)), scores)
        for k in (1, 3):
            chosen = tuple(ensemble.decode(ExpectedF(beta), k=k).indices.tolist())
            best = max(feasible(scores, k).values())
            # Relative: at -20 all scores of other sets than the empty one are tiny.
            assert scores[chosen] == pytest.approx(best, rel=1e-8)


def test_identical_items_are_a_hedge_and_ties_go_to_the_first():
    # One of three copies is nearly always wanted, and nothing else.
    ensemble = vg.LEnsemble(1e6 * np.ones((3, 3)))
    scores = expected_scores({(0,): 1 / 3, (1,): 1 / 3, (2,): 1 / 3}, 3, 1.0)
    assert scores[(0,)] == pytest.approx(1 / 3)
    selection = ensemble.decode(ExpectedF())
    assert selection.indices.tolist() == [0, 1, 2]  # 2 · 1 / (1 + 3)
    assert selection.log_prob == -np.inf
    assert not selection.is_optimal
    for k in (1, 2):
        assert ensemble.decode(ExpectedF(), k=k).indices.tolist() == list(range(k))
    one = ensemble.decode(ExpectedF(repetition=1.0))
    assert one.indices.tolist() == [0]


def test_empty_sets():
    assert vg.LEnsemble(np.zeros((0, 0))).decode("expected-f").indices.tolist() == []
    nothing = vg.LEnsemble(np.zeros((3, 3))).decode("expected-f")
    assert nothing.indices.tolist() == []
    assert nothing.stop_reason == "expected F 1, the largest of all subsets"
    rare = vg.LEnsemble(0.01 * np.eye(3))
    for repetition in (0.0, 1.0):
        decoder = ExpectedF(repetition=repetition)
        assert rare.decode(decoder).indices.tolist() == []
        assert rare.decode(decoder, k=0).indices.tolist() == []
        assert len(rare.decode(decoder, k=2)) == 2
        sure = vg.LEnsemble(1e6 * np.eye(3))
        dear = sure.decode(decoder, budget=1.0, costs=[2.0, 3.0, 4.0])
        assert dear.indices.tolist() == []
    # As probable as one item: the smaller of two equal sets.
    assert vg.LEnsemble([[1.0]]).decode("expected-f").indices.tolist() == []
    assert expected_f_score(rare, []) == pytest.approx(1.01**-3)


def test_more_items_than_the_rank():
    B = np.random.default_rng(0).standard_normal((6, 2))
    for ensemble in (vg.LEnsemble(B @ B.T), vg.LEnsemble.from_factor(B)):
        for repetition in (0.0, 1.0):
            selection = ensemble.decode(ExpectedF(repetition=repetition), k=5)
            assert len(selection) == 5
            assert selection.log_prob == -np.inf


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("constraint", ["none", "k", "budget", "both"])
@pytest.mark.parametrize("repetition", [0.0, 1.0])
def test_the_representation_makes_no_difference(n, constraint, repetition):
    rng = np.random.default_rng(n)
    B = rng.standard_normal((n, 12)) * rng.uniform(0.05, 0.8, n)[:, None]
    dense, factored = vg.LEnsemble(B @ B.T), vg.LEnsemble.from_factor(B)
    options = {}
    if constraint in ("k", "both"):
        options |= {"k": 7}
    if constraint in ("budget", "both"):
        options |= {"budget": 6.0, "costs": rng.uniform(0.5, 2.0, n)}
    decoder = ExpectedF(repetition=repetition)
    first, second = (
        dense.decode(decoder, **options),
        factored.decode(decoder, **options),
    )
    assert first.indices.tolist() == second.indices.tolist()
    assert first.stop_reason == second.stop_reason
    if first.log_prob > -20:  # else only rounding makes it possible at all
        assert first.log_prob == pytest.approx(second.log_prob, abs=1e-6)


# The pieces ----------------------------------------------------------------------


@given(m=st.integers(0, 9), seed=st.integers(0, 10**6))
def test_laws_of_coins(m, seed):
    rng = np.random.default_rng(seed)
    p = rng.choice([0.0, 1.0, 0.5, 1e-12, 1 - 1e-12, rng.random()], m)
    by_hand = np.zeros(m + 1)
    without = np.zeros((m, m + 1))
    for heads in itertools.product([0, 1], repeat=m):
        each = [p[i] if h else 1 - p[i] for i, h in enumerate(heads)]
        by_hand[sum(heads)] += np.prod(each)
        for i in range(m):
            if not heads[i]:
                without[i, sum(heads)] += np.prod(each[:i] + each[i + 1 :])
    law = count_distribution(p)
    np.testing.assert_allclose(law, by_hand, atol=1e-14)
    first, last = likely_range(law, 1e-15)
    assert law[:first].sum() + law[last + 1 :].sum() <= 1e-15
    first = max(first - 1, 0)
    laws = leave_one_out_distributions(p, law, first, last)
    np.testing.assert_allclose(laws, without[:, first : last + 1], atol=1e-13)


def test_laws_of_many_coins_sum_to_one():
    rng = np.random.default_rng(0)
    for p in (rng.random(2000), np.full(2000, 0.5), rng.beta(0.05, 0.05, 2000)):
        law = count_distribution(p)
        first, last = likely_range(law, 1e-15)
        laws = leave_one_out_distributions(p, law, max(first - 1, 0), last)
        np.testing.assert_allclose(laws.sum(axis=1), 1.0, atol=1e-11)
        # And each, with its coin put back, is the law of all.
        sizes = np.arange(max(first - 1, 0), last + 1)
        again = (1 - p)[:, None] * laws[:, 1:] + p[:, None] * laws[:, :-1]
        np.testing.assert_allclose(
            again, np.tile(law[sizes[1:]], (2000, 1)), atol=1e-12
        )


@pytest.mark.parametrize("scale", [0.02, 0.3, 3.0])
@pytest.mark.parametrize("beta", [0.1, 1.0, 10.0])
def test_bounds_between_sizes_lose_nothing(scale, beta, monkeypatch):
    rng = np.random.default_rng(5)
    B = scale * rng.standard_normal((200, 20)) * rng.uniform(0.01, 1, 200)[:, None]
    weights = SizedWeights(vg.LEnsemble.from_factor(B).representation, beta)
    sizes = np.arange(1, 201)
    table = weights.weights_at(sizes)
    values = [np.sort(row)[::-1][: a + 1].sum() for a, row in enumerate(table)]
    looked_at = []
    monkeypatch.setattr(search_module, "_MOST_WEIGHTS", 1)  # four sizes at a time
    whole = weights.weights_at

    def weights_at(some, items=None):
        looked_at.extend(some.tolist())
        return whole(some, items)

    monkeypatch.setattr(weights, "weights_at", weights_at)
    best = SizeSearch(weights, Constraint.of(200, None, None, None)).find_best_set()
    assert best.value == pytest.approx(max(*values, weights.empty), abs=1e-12)
    assert best.bound == best.value
    assert len(set(looked_at)) == len(looked_at) < 60
    # What the search relies on, for every item.
    assert (
        table[40] <= table[20] * weights.bound_weight_ratios(sizes[[20]], sizes[[40]])
    ).all()
    assert (
        table[20] <= table[40] * weights.bound_weight_ratios(sizes[[40]], sizes[[20]])
    ).all()


@given(n=st.integers(2, 9), seed=st.integers(0, 10**6))
def test_a_price_on_costs_bounds_the_best(n, seed):
    rng = np.random.default_rng(seed)
    w, costs = rng.random(n), rng.uniform(0.1, 2.0, n)
    size = int(rng.integers(1, n + 1))
    budget = float(np.sort(costs)[:size].sum() + rng.uniform(0, 1))
    best = max(
        w[list(A)].sum()
        for A in itertools.combinations(range(n), size)
        if costs[list(A)].sum() <= budget
    )
    found = minimize_lagrangian_bound(w, costs, size, budget)
    assert found.value <= best + 1e-12 <= found.bound + 2e-12
    assert found.value == pytest.approx(w[found.members].sum())
    assert costs[found.members].sum() <= budget
    prices = np.linspace(0, 4, 4001)
    bounds = [
        price * budget + np.sort(w - price * costs)[::-1][:size].sum()
        for price in prices
    ]
    assert found.bound <= min(bounds) + 1e-9


def test_a_search_that_is_cut_short_says_so(monkeypatch):
    rng = np.random.default_rng(0)
    ensemble = vg.LEnsemble(random_kernel_matrix(rng, 40, rank=10) / 20)
    costs = rng.uniform(0.5, 2.0, 40)
    options = {"budget": 4.0, "costs": costs}
    whole = ensemble.decode("expected-f", **options)
    assert "the largest of all subsets within the budget" in whole.stop_reason
    monkeypatch.setattr(search_module, "_MAX_NODES", 1)
    short = ensemble.decode("expected-f", **options)
    assert "the search was cut short, and no subset within the" in short.stop_reason
    assert costs[short.indices].sum() <= 4.0
    bound = float(short.stop_reason.split()[-1])
    assert expected_f_score(ensemble, short.indices) <= expected_f_score(
        ensemble, whole.indices
    )
    assert expected_f_score(ensemble, whole.indices) <= bound + 5e-4


def test_the_largest_of_equal_values_are_the_first():
    values = np.array([0.5, 0.7, 0.5 + 1e-15, 0.5, 0.1])
    assert indices_of_largest(values, 2).tolist() == [0, 1]
    assert indices_of_largest(values, 3).tolist() == [0, 1, 2]
    assert indices_of_largest(values, 0).tolist() == []
    assert indices_of_largest(values, 5).tolist() == [0, 1, 2, 3, 4]


# Repetition ----------------------------------------------------------------------


def less_repetition(weights, S, members, rho):
    """The objective of the docstring, item by item."""
    total = 0.0
    for i in members:
        better = [
            S[i, j] ** 8
            for j in members
            if j != i and (weights[j], -j) > (weights[i], -i)
        ]
        total += weights[i] * (1.0 - rho * max(better, default=0.0))
    return total


@pytest.mark.parametrize("rho", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("constraint", ["none", "k", "budget", "both"])
def test_repetition_against_all_subsets(rho, constraint):
    found_best = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        B = rng.standard_normal((8, 3 + seed % 3)) * rng.uniform(0.5, 2.0, (8, 1))
        B[4:6] = B[:2] * 0.9 + 0.05 * rng.standard_normal(B[:2].shape)
        ensemble = vg.LEnsemble(B @ B.T)
        k = 4 if constraint in ("k", "both") else None
        costs = rng.uniform(0.5, 2.0, 8)
        budget = 5.0 if constraint in ("budget", "both") else None
        if k is not None and budget is not None:
            budget = float(np.sort(costs)[:4].sum() + 0.5)
        weights = SizedWeights(ensemble.representation, 1.0)
        table, S = weights.weights_at(np.arange(1, 9)), ensemble.S
        scores = {
            A: less_repetition(table[len(A) - 1], S, A, rho) if A else weights.empty
            for A in reference.all_subsets(8)
        }
        scores = feasible(scores, k, budget, costs)
        selection = ensemble.decode(
            ExpectedF(repetition=rho), k, budget, None if budget is None else costs
        )
        value = scores[tuple(selection.indices.tolist())]
        best = max(scores.values())
        assert value >= 0.95 * best
        assert f"less repetition {value:.3g}, which no" in selection.stop_reason
        expected = expected_f_score(ensemble, selection.indices)
        assert f"expected F {expected:.3g}, less" in selection.stop_reason
        found_best += value >= best - 1e-10
    # When this was written, 19 or 20 of each.
    assert found_best >= 17


def test_near_copies_fall_with_repetition():
    copies, scores = [], []
    for rho in (0.0, 0.5, 1.0, 2.0):
        share, score = [], []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            X = np.repeat(rng.standard_normal((12, 6)), 3, axis=0)
            X += 0.1 * rng.standard_normal(X.shape)
            X /= np.linalg.norm(X, axis=1)[:, None]
            u = np.repeat(rng.normal(0.0, 1.0, 12), 3)
            ensemble = vg.LEnsemble.from_quality(X @ X.T, u)
            chosen = ensemble.decode(ExpectedF(repetition=rho)).indices
            alike = (X @ X.T)[np.ix_(chosen, chosen)] - np.eye(len(chosen))
            share.append((alike.max(axis=1) > 0.9).mean())
            score.append(expected_f_score(ensemble, chosen))
        copies.append(np.mean(share))
        scores.append(np.mean(score))
    assert copies[0] > 0.5
    assert copies[2] < 0.1
    assert copies[0] > copies[1] > copies[2] >= copies[3]
    assert scores == sorted(scores, reverse=True)


def test_repetition_of_none_changes_nothing():
    L = random_kernel_matrix(np.random.default_rng(3), 9)
    plain = vg.LEnsemble(L).decode("expected-f")
    almost = vg.LEnsemble(L).decode(ExpectedF(repetition=1e-9))
    assert plain.indices.tolist() == almost.indices.tolist()


def test_repetition_among_the_best_of_many(monkeypatch):
    monkeypatch.setattr(expected_f_module, "REPEATED_ITEMS", 10)
    rng = np.random.default_rng(0)
    B = rng.standard_normal((60, 20)) * rng.uniform(0.1, 1.5, (60, 1))
    ensemble = vg.LEnsemble.from_factor(B)
    chosen = ensemble.decode(ExpectedF(repetition=1.0), k=6).indices
    weights = SizedWeights(ensemble.representation, 1.0).weights_at(np.array([6]))[0]
    assert set(chosen) <= set(np.argsort(-weights)[:10])
    with pytest.raises(ValueError, match=r"at most 10 items are chosen.* has 11: give"):
        ensemble.decode(ExpectedF(repetition=1.0), k=11)


# Arguments -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (ExpectedF(beta=0.0), "beta must be a finite number > 0, got 0.0"),
        (ExpectedF(beta=np.nan), "beta must be a finite number > 0, got nan"),
        (ExpectedF(beta="1"), "beta must be a finite number > 0, got '1'"),
        (ExpectedF(repetition=-0.5), "repetition must be a finite number >= 0, got -0"),
        (ExpectedF(repetition=True), "repetition must be a finite number >= 0"),
    ],
)
def test_bad_arguments(decoder, message):
    with pytest.raises(ValueError, match=message):
        vg.LEnsemble(np.eye(3)).decode(decoder)


def test_bad_subsets_and_betas_of_the_score():
    ensemble = vg.LEnsemble(np.eye(3))
    with pytest.raises(ValueError, match="beta must be a finite number > 0, got -1"):
        expected_f_score(ensemble, [0], beta=-1)
    with pytest.raises(ValueError, match="3"):
        expected_f_score(ensemble, [3])


@pytest.mark.parametrize("beta", [1e-8, 1e8, 1e200])
def test_extreme_betas(beta):
    L = random_kernel_matrix(np.random.default_rng(0), 6)
    chosen = vg.LEnsemble(L).decode(ExpectedF(beta)).indices
    marginals = vg.LEnsemble(L).marginals()
    # Precision alone wants the surest item, recall alone all of them.
    expected = [int(marginals.argmax())] if beta < 1 else list(range(6))
    assert chosen.tolist() == expected


def test_objects_are_values_and_go_into_model_files(tmp_path):
    assert ExpectedF() == ExpectedF(beta=1.0, repetition=0.0)
    rng = np.random.default_rng(0)
    sets = [vg.GroundSet(rng.standard_normal((6, 2)), rng.standard_normal((6, 3)))] * 3
    model = vg.LargeMarginDPP(
        kernel=vg.Linear(normalize=True), decoder=ExpectedF(2.0, repetition=0.5)
    ).fit(sets, [[0, 1], [1, 2], [0, 3]])
    model.save(tmp_path / "model.json")
    loaded = vg.load(tmp_path / "model.json")
    assert loaded.decoder == ExpectedF(2.0, repetition=0.5)
    for before, after in zip(model.predict(sets), loaded.predict(sets), strict=True):
        assert np.array_equal(before, after)
