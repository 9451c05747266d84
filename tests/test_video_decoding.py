import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variegate as vg
from variegate.decoding import Constraint
from variegate.decoding.agreement import grow_subset
from variegate.video import KeyframePicker
from variegate.video.choosing import GrowingMatching
from variegate.video.evaluation import n_matches


def instance(seed, n, n_sets):
    """Return which items are alike, and sets of them with weights."""
    rng = np.random.default_rng(seed)
    alike = rng.random((n, n)) < 0.3
    alike |= alike.T | np.eye(n, dtype=bool)
    sets = rng.random((n_sets, n)) < rng.uniform(0.1, 0.6)
    sets[np.arange(n_sets), rng.integers(n, size=n_sets)] = True
    weights = rng.dirichlet(np.ones(n_sets))
    return alike, sets, weights


def choose_by_matching(alike, same, sets, weights, limit, beta):
    """Return the choice of a greedy search, in order, and its value after each."""
    constraint = Constraint(None, limit, np.ones(len(alike)))
    chosen, _ = grow_subset(
        GrowingMatching(alike, same, sets, weights, beta), constraint
    )
    state = GrowingMatching(alike, same, sets, weights, beta)
    values = []
    for item in chosen:
        state.add(item)
        values.append(state.value)
    return np.array(chosen), values


def mean_f(chosen, alike, sets, weights, beta):
    """The definition: maximum matchings from scratch."""
    total = 0.0
    for weight, one in zip(weights, sets, strict=True):
        other = np.flatnonzero(one)
        hits = n_matches(alike[np.ix_(chosen, other)]) if len(chosen) else 0
        total += (
            weight * (1 + beta**2) * hits / max(len(chosen) + beta**2 * len(other), 1)
        )
    return total


def plain_greedy(alike, sets, weights, limit, beta):
    """The same search without bounds."""
    chosen, best = [], 0.0
    while len(chosen) < limit:
        left = [i for i in range(len(alike)) if i not in chosen]
        if not left:
            break
        values = [mean_f([*chosen, i], alike, sets, weights, beta) for i in left]
        if max(values) <= best + 1e-12:
            break
        best = max(values)
        chosen.append(left[int(np.argmax(np.array(values) >= best - 1e-12))])
    return chosen, best


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 9),
    st.integers(1, 8),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.integers(1, 9),
)
def test_the_search_is_the_greedy_one(seed, n, n_sets, beta, limit):
    alike, sets, weights = instance(seed, n, n_sets)
    items, values = choose_by_matching(
        alike, np.eye(n, dtype=bool), sets, weights, limit, beta
    )
    expected, best = plain_greedy(alike, sets, weights, limit, beta)
    assert values[-1] == pytest.approx(best)
    assert len(items) == len(expected)
    # Each value is what the choice so far is worth by definition.
    for size, value in enumerate(values, 1):
        so_far = items[:size].tolist()
        assert value == pytest.approx(mean_f(so_far, alike, sets, weights, beta))


def test_a_larger_beta_chooses_more():
    rng = np.random.default_rng(3)
    alike = np.eye(12, dtype=bool)
    sets = rng.random((50, 12)) < np.linspace(0.05, 0.9, 12)
    sets = sets[sets.any(axis=1)]
    weights = np.full(len(sets), 1 / len(sets))
    sizes = [
        len(choose_by_matching(alike, alike, sets, weights, 12, beta)[0])
        for beta in (0.25, 1.0, 4.0)
    ]
    assert sizes[0] < sizes[1] < sizes[2]


def test_no_two_that_are_the_same():
    alike, sets, weights = instance(4, 9, 8)
    same = np.add.outer(np.arange(9), np.arange(9)) % 2 == 0  # one even, one odd
    items, _ = choose_by_matching(alike, same, sets, weights, 9, 3.0)
    assert len(items) == 2
    assert items.sum() % 2 == 1


ALIKE = np.abs(np.subtract.outer(np.arange(10), np.arange(10))) <= 1

N_SAMPLES = 60


def an_ensemble(log_scale=1.0):
    rng = np.random.default_rng(5)
    phi = rng.normal(size=(10, 6))
    S = phi @ phi.T / 6 + 0.1 * np.eye(10)
    return vg.LEnsemble.from_quality(S, np.full(10, log_scale))


def choose(limit=10, log_scale=1.0):
    picker = KeyframePicker(n_samples=N_SAMPLES)
    decode = picker._make_decoder(ALIKE, same=np.eye(10, dtype=bool))
    constraint = Constraint(None, limit, np.ones(10))
    return decode(an_ensemble(log_scale), constraint, np.random.default_rng(0))


def test_choices_keep_to_the_limit_and_to_their_seed():
    for limit in (1, 3, 10):
        selection = choose(limit)
        assert 1 <= len(selection) <= limit
        assert (np.diff(selection.indices) > 0).all()
        expected = an_ensemble().log_prob(selection.indices)
        assert selection.log_prob == pytest.approx(expected)
        assert selection.stop_reason
    one, other = choose(), choose()
    np.testing.assert_array_equal(one.indices, other.indices)


def test_the_search_is_at_least_as_good_as_the_best_sample():
    samples = an_ensemble().sample(N_SAMPLES, random_state=np.random.default_rng(0))
    selection = choose()
    weights = np.full(len(samples), 1.0 / len(samples))
    value = mean_f(selection.indices, ALIKE, samples, weights, 1.0)
    best = max(
        mean_f(np.flatnonzero(one), ALIKE, samples, weights, 1.0) for one in samples
    )
    assert value >= best - 0.02
    assert f"mean F-score of matched frames {value:.3f}" in selection.stop_reason


def test_where_nothing_is_likely_one_frame_is_chosen():
    selection = choose(log_scale=-20.0)
    assert len(selection) == 1
    assert "so the likeliest is taken" in selection.stop_reason
