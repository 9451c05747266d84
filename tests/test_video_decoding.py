import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variegate as vg
from variegate.compiled.matching import choose_by_matching
from variegate.video.decoding import VIDEO_DECODERS, Task, pairwise_matching_f
from variegate.video.matching import n_matches


def instance(seed, n, n_sets):
    """Return which items are alike, and sets of them with weights."""
    rng = np.random.default_rng(seed)
    alike = rng.random((n, n)) < 0.3
    alike |= alike.T | np.eye(n, dtype=bool)
    sets = rng.random((n_sets, n)) < rng.uniform(0.1, 0.6)
    sets[np.arange(n_sets), rng.integers(n, size=n_sets)] = True
    weights = rng.dirichlet(np.ones(n_sets))
    return alike, sets, weights


def packed(sets):
    sizes = sets.sum(axis=1)
    members = np.zeros((len(sets), sizes.max()), dtype=np.int64)
    for row, chosen in enumerate(sets):
        members[row, : sizes[row]] = np.flatnonzero(chosen)
    return members, sizes


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
        alike, np.eye(n, dtype=bool), *packed(sets), weights, limit, beta
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
        len(choose_by_matching(alike, alike, *packed(sets), weights, 12, beta)[0])
        for beta in (0.25, 1.0, 4.0)
    ]
    assert sizes[0] < sizes[1] < sizes[2]


def test_no_two_that_are_the_same():
    alike, sets, weights = instance(4, 9, 8)
    same = np.add.outer(np.arange(9), np.arange(9)) % 2 == 0  # one even, one odd
    items, _ = choose_by_matching(alike, same, *packed(sets), weights, 9, 3.0)
    assert len(items) == 2
    assert items.sum() % 2 == 1


def test_pairs_of_subsets():
    alike = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
    A = np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    B = np.array([[1, 0, 0], [1, 1, 1]], dtype=bool)
    # {0, 1} with {0}: one pair of 2 + 1; with {0, 1, 2}: two of 2 + 3.
    expected = [[2 / 3, 4 / 5], [0.0, 2 / 4], [0.0, 0.0]]
    np.testing.assert_allclose(pairwise_matching_f(A, B, alike), expected)


def task(limit=10, beta=1.0, seed=0, log_scale=1.0):
    rng = np.random.default_rng(5)
    phi = rng.normal(size=(10, 6))
    S = phi @ phi.T / 6 + 0.1 * np.eye(10)
    ensemble = vg.LEnsemble.from_quality(S, np.full(10, log_scale))
    alike = np.abs(np.subtract.outer(np.arange(10), np.arange(10))) <= 1
    same = np.eye(10, dtype=bool)
    return Task(ensemble, alike, same, limit, 200, beta, np.random.default_rng(seed))


@pytest.mark.parametrize("name", VIDEO_DECODERS)
def test_decoders_keep_to_the_limit_and_to_their_seed(name):
    for limit in (1, 3, 10):
        chosen = VIDEO_DECODERS[name](task(limit))
        assert 1 <= len(chosen) <= limit
        assert (np.diff(chosen) > 0).all()
    one, other = VIDEO_DECODERS[name](task()), VIDEO_DECODERS[name](task())
    np.testing.assert_array_equal(one, other)


def test_the_search_is_at_least_as_good_as_the_best_sample():
    samples = task().ensemble.sample(200, random_state=np.random.default_rng(0))
    searched = VIDEO_DECODERS["mbr"](task())
    rows = np.zeros((1, 10), dtype=bool)
    rows[0, searched] = True
    voters = samples[samples.any(axis=1)]
    alike = task().alike
    value = pairwise_matching_f(rows, voters, alike).mean()
    best = pairwise_matching_f(voters, voters, alike).mean(axis=1).max()
    assert value >= best - 0.02


def test_where_nothing_is_likely_one_frame_is_chosen():
    assert len(VIDEO_DECODERS["mbr"](task(log_scale=-20.0))) == 1
