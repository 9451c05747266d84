"""Choices where the odds of all items are multiplied: nested, within any limit."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variegate as vg
from variegate.decoding import DECODERS, Constraint
from variegate.decoding.odds import scale_odds
from variegate.decoding.residuals import rank_members

ODDS = [1e-9, 1 / 64, 1 / 4, 0.9, 1.0, 1.1, 4.0, 64.0, 1e9]


def made(seed, n, rank, shift=0.0):
    """Return the similarity and the log-quality of an ensemble."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, rank))
    return F @ F.T / rank, rng.normal(shift, 1.0, n)


def free(n):
    return Constraint.of(n, None, None, None)


def limited(rng, n, use_budget, use_labels):
    budget, costs = None, None
    if use_budget:
        costs = rng.uniform(0.5, 2.0, n)
        budget = float(rng.uniform(0.5, n))
    labels = (2, rng.integers(0, 3, n)) if use_labels else (None, None)
    return Constraint.of(n, None, budget, costs, *labels)


@pytest.mark.parametrize("decoder", sorted(DECODERS))
@given(
    st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 12),
    st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_larger_odds_keep_what_smaller_ones_choose(
    decoder, seed, n, rank, use_k, use_budget, use_labels
):
    rng = np.random.default_rng(seed)
    ensemble = vg.LEnsemble.from_quality(*made(seed, n, rank, rng.normal()))
    constraint = limited(rng, n, use_budget, use_labels)
    k = min(2, constraint.largest_size(), rank) if use_k else None
    chosen = ensemble.decode(
        DECODERS[decoder](),
        k,
        constraint.budget,
        constraint.costs if use_budget else None,
        0,
        at_most=2 if use_labels else None,
        per=constraint.at_most.labels[0] if use_labels else None,
    )
    order = rank_members(ensemble, chosen.indices)
    choices = [scale_odds(ensemble, order, odds, constraint).tolist() for odds in ODDS]
    assert choices[ODDS.index(1.0)] == order.tolist()
    for smaller, larger in itertools.pairwise(choices):
        assert larger[: len(smaller)] == smaller  # in the same order
    for choice in choices:
        assert len(set(choice)) == len(choice)
        if len(choice) > len(order):
            assert constraint.allows(np.isin(np.arange(n), choice)[None]).all()


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(2, 15), st.floats(-8, 8))
def test_after_greedy_search_it_is_greedy_search(seed, n, rank, log_odds):
    S, u = made(seed, n, rank)
    order = vg.LEnsemble.from_quality(S, u).decode("greedy").indices
    ensemble = vg.LEnsemble.from_quality(S, u)
    order = rank_members(ensemble, order)
    found = scale_odds(ensemble, order, float(np.exp(log_odds)), free(n))
    direct = vg.LEnsemble.from_quality(S, u + 0.5 * log_odds).decode("greedy")
    assert sorted(found.tolist()) == direct.indices.tolist()


def test_the_level_of_a_choice_of_a_given_size():
    # Unlike items of log-odds 4, 3, 2 and 1, of which two were chosen: the level is
    # 2.5, so that odds of exp(0.4) change nothing, and exp(0.6) does.
    u = np.array([4.0, 3.0, 2.0, 1.0]) / 2.0
    ensemble = vg.LEnsemble.from_quality(np.eye(4), u)
    for log_odds, size in [(-1.6, 0), (-0.6, 1), (-0.4, 2), (0.4, 2), (0.6, 3), (9, 4)]:
        found = scale_odds(ensemble, np.array([0, 1]), np.exp(log_odds), free(4))
        assert found.tolist() == [0, 1, 2, 3][:size]


def test_from_nothing_and_from_all():
    ensemble = vg.LEnsemble.from_quality(np.eye(3), np.array([0.2, 0.1, 0.3]))
    nothing = np.zeros(0, dtype=np.intp)
    assert scale_odds(ensemble, nothing, 0.5, free(3)).tolist() == []
    assert scale_odds(ensemble, nothing, 1.01, free(3)).tolist() == [2]
    every = np.array([2, 0, 1])
    assert scale_odds(ensemble, every, 9.0, free(3)).tolist() == [2, 0, 1]
    assert scale_odds(ensemble, every, 0.9, free(3)).tolist() == [2, 0, 1]
    assert scale_odds(ensemble, every, 1e-9, free(3)).tolist() == []


def test_an_impossible_item_goes_with_the_one_before_it():
    # Items 0 and 1 are copies: both at once have no probability.
    S = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    ensemble = vg.LEnsemble.from_quality(S, np.array([1.0, 1.0, -1.0]))
    order = np.array([0, 1])
    assert scale_odds(ensemble, order, 4.0, free(3)).tolist() == [0, 1]
    assert scale_odds(ensemble, order, 9.0, free(3)).tolist() == [0, 1, 2]
    assert scale_odds(ensemble, order, 1e-3, free(3)).tolist() == []


@given(st.integers(0, 10**6), st.integers(0, 8), st.booleans(), st.integers(0, 3))
def test_the_largest_size_within_limits(seed, n, use_budget, n_limits):
    rng = np.random.default_rng(seed)
    costs = rng.uniform(0.5, 2.0, n) if use_budget else None
    budget = float(rng.uniform(0.5, 6.0)) if use_budget else None
    at_most, per = None, None
    if n_limits:
        at_most = rng.integers(1, 3, n_limits).tolist()
        per = [rng.integers(0, 3, n) for _ in range(n_limits)]
    constraint = Constraint.of(n, None, budget, costs, at_most, per)
    every = np.array(list(np.ndindex(*[2] * n)), dtype=bool).reshape(2**n, n)
    feasible = every[constraint.allows(every)]
    assert constraint.largest_size() == feasible.sum(axis=1).max()
