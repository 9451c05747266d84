"""One greedy run, cut, is what greedy decoding chooses at any omega."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variegate as vg
from variegate.studio.choices import GreedyOrder

OMEGAS = st.lists(st.floats(-12.0, 12.0), min_size=1, max_size=8)


def made(seed, n_items, rank):
    """Return a similarity of some rank, and log-qualities."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n_items, rank))
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    return F @ F.T, rng.standard_normal(n_items)


@settings(max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(1, 30),
    st.sampled_from([2, 5, 40]),
    st.sampled_from([None, 1, 2]),
    OMEGAS,
)
def test_a_cut_is_what_is_decoded_at_that_omega(seed, n_items, rank, at_most, logs):
    S, u = made(seed, n_items, rank)
    labels = np.random.default_rng(seed).integers(3, size=n_items)
    limits = {} if at_most is None else {"at_most": at_most, "per": labels}
    order = GreedyOrder(vg.LEnsemble.from_quality(S, u), **limits)
    for log_omega in logs:  # up and down, as a slider goes
        ensemble = vg.LEnsemble.from_quality(S, u + 0.5 * log_omega)
        direct = ensemble.decode("greedy", **limits)
        found = order.choose(float(np.exp(log_omega)))
        assert found.tolist() == direct.indices.tolist()


def test_from_a_factor():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((300, 12))
    order = GreedyOrder(vg.LEnsemble.from_factor(B))
    for omega in (0.01, 0.1, 1.0, 10.0, 1000.0):
        direct = vg.LEnsemble.from_factor(B * np.sqrt(omega)).decode("greedy")
        assert order.choose(omega).tolist() == direct.indices.tolist()


def test_copies_are_taken_once_and_then_it_is_over():
    order = GreedyOrder(vg.LEnsemble.from_quality(np.ones((4, 4)), np.zeros(4)))
    assert order.choose(1e9).tolist() == [0]
    assert order.choose(1e12).tolist() == [0]


@pytest.mark.parametrize(("omega", "count"), [(0.5, 0), (1.0, 0), (1.001, 3)])
def test_a_gain_of_nothing_is_none(omega, count):
    order = GreedyOrder(vg.LEnsemble.from_quality(np.eye(3), np.zeros(3)))
    assert len(order.choose(omega)) == count
