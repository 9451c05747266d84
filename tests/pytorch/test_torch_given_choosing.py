"""Choices and samples beside given items, against the conditional ensemble."""

import numpy as np
import pytest
import torch
from given_cases import forms, log_probabilities, near_copies, random_given
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_cases import leaves

import variegate as vg
import variegate.torch as vt
from laws import P_VALUE, p_value

DRAWS = 20_000


def conditional(F, u, is_given):
    """The ensemble of the candidates by the library, and their numbers."""
    u = np.where(is_given, 0.0, u)
    ensemble = vg.LEnsemble.from_quality(F @ F.T, u)
    return ensemble.condition(include=np.flatnonzero(is_given))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n_items=st.integers(1, 9))
def test_greedy_choice_as_by_the_conditional_ensemble(device, seed, n_items):
    rng = np.random.default_rng(seed)
    F = near_copies(rng, 4, n_items, min(n_items, 2), step=0.3)
    u, is_given = rng.normal(0.5, 1.0, (4, n_items)), random_given(rng, 4, n_items)
    flags = torch.tensor(is_given, device=device)
    costs = torch.tensor(rng.uniform(0.5, 2.0, (4, n_items)), device=device)
    for kernel, options in forms(F, u, device):
        ensembles = vt.LEnsembles(kernel, given=flags, **options)
        for k in (None, 1, 2):
            chosen = ensembles.greedy(k) if k is None or k <= n_items else None
            for s in range(4 if chosen else 0):
                beside = conditional(F[s], u[s], is_given[s])
                size = None if k is None else min(k, len(beside))
                expected = beside.items[beside.decode("greedy", k=size).indices]
                found = chosen.items[s][chosen.items[s] >= 0]
                assert sorted(found.tolist()) == expected.tolist()
        chosen = ensembles.greedy(budget=2.5, costs=costs)
        for s in range(4):
            beside = conditional(F[s], u[s], is_given[s])
            own = costs[s].cpu().numpy()[beside.items]
            expected = beside.decode("greedy", budget=2.5, costs=own).indices
            found = chosen.items[s][chosen.items[s] >= 0]
            assert sorted(found.tolist()) == beside.items[expected].tolist()


def test_given_items_cost_nothing(device):
    L = torch.eye(3, device=device) * 4.0
    flags = torch.tensor([False, True, False], device=device)
    costs = torch.tensor([1.0, -5.0, 1.0], device=device)
    chosen = vt.LEnsembles(L, given=flags).greedy(2, budget=2.0, costs=costs)
    assert chosen.items.tolist() == [0, 2]


def test_given_copies_add_nothing(device):
    F = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], device=device)
    flags = torch.tensor([True, True, False, False], device=device)
    for kernel in (F @ F.mT, vt.LowRank(F)):
        twice = vt.LEnsembles(kernel, given=flags)
        assert twice.greedy(2).items.tolist() == [3, -1]


def schur_complement(L, is_given):
    """The kernel of the candidates, by an inverse."""
    A, rest = np.flatnonzero(is_given), np.flatnonzero(~is_given)
    explained = L[np.ix_(rest, A)] @ np.linalg.inv(L[np.ix_(A, A)])
    return L[np.ix_(rest, rest)] - explained @ L[np.ix_(A, rest)]


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("n_each", [4, DRAWS], ids=["few of each", "many of each"])
def test_the_law_of_samples(device, k, n_each):
    rng = np.random.default_rng(6)
    F, u = near_copies(rng, 1, 6, 3, step=0.5), rng.normal(0.3, 1.0, (1, 6))
    is_given = np.array([True, False, False, True, False, False])
    flags = torch.tensor(is_given, device=device)
    n_sets, q = DRAWS // n_each, np.exp(u[0])
    L = q[:, None] * (F[0] @ F[0].T) * q
    for kernel, options in forms(F, u, device):
        one = kernel.features[0] if isinstance(kernel, vt.LowRank) else kernel[0]
        one = vt.LowRank(one) if isinstance(kernel, vt.LowRank) else one
        more = {name: each.expand(n_sets, -1) for name, each in options.items()}
        ensembles = vt.LEnsembles(one, given=flags.expand(n_sets, -1), **more)
        samples = ensembles.sample(n_each, k, generator=0)
        chosen = samples.indicator(6).reshape(DRAWS, 6).cpu().numpy()
        assert not chosen[:, is_given].any()
        drawn = chosen[:, ~is_given]
        assert p_value(drawn, schur_complement(L, is_given), k) > P_VALUE
        # The law without the given items is another.
        assert p_value(drawn, L[np.ix_(~is_given, ~is_given)], k) < P_VALUE


@pytest.mark.parametrize("low_rank", [False, True])
def test_samples_of_sets_with_different_given_items(device, low_rank):
    rng = np.random.default_rng(7)
    F, u = near_copies(rng, 40, 7, 2), rng.normal(size=(40, 7))
    is_given = random_given(rng, 40, 7)
    features, log_quality = leaves(device, F, u)
    kernel = vt.LowRank(features) if low_rank else features @ features.mT
    flags = torch.tensor(is_given, device=device)
    ensembles = vt.LEnsembles(kernel, log_quality=log_quality, given=flags)
    chosen = ensembles.sample(2000, generator=1).indicator(7).cpu().numpy()
    assert not (chosen & is_given[:, None]).any()
    for s in range(40):
        subsets, log_p = log_probabilities(F[s] @ F[s].T, u[s], is_given[s])
        expected = np.exp(log_p) @ subsets
        # Five standard deviations of the mean of 2000 draws, for 280 marginals.
        assert (np.abs(chosen[s].mean(axis=0) - expected) < 5.0 * 0.5 / 2000**0.5).all()
