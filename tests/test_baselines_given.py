"""``vg.select`` besides items that are there already."""

import re

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from scipy import sparse

import reference
import variegate as vg
from test_baselines import cosine
from variegate.baselines import METHODS, methods, redundancy
from variegate.linalg import greedy

every_method = pytest.mark.parametrize("method", METHODS)


def draw_items(seed, n_items=9, n_given=3, n_columns=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_items, n_columns))
    return X, rng.standard_normal(n_items), rng.standard_normal((n_given, n_columns))


def weighted_relevance(X, relevance, G, n_competing=40):
    """Relevance in the range of items that are near copies of none; at most 0."""
    competing = []
    for i in sorted(range(len(X)), key=lambda i: -relevance[i]):
        others = [*(X[j] for j in competing), *G]
        if all(cosine(X[i], other) < 0.9 for other in others):
            competing.append(i)
    best, *_, last = competing[:n_competing]
    z = (relevance - relevance[best]) / (relevance[best] - relevance[last])
    return np.minimum(z, 0.0)


def dpp_by_determinants(X, z, G, k, t):
    # det(L_{A + y}) / det(L_A): the quality of the given items A cancels.
    everything = np.r_[G, X]
    quality = np.exp(np.r_[np.ones(len(G)), (1 - t) / t * z])
    S = np.array([[cosine(a, b) for b in everything] for a in everything])
    L = quality[:, None] * S * quality
    before, chosen = list(range(len(G))), []

    def ratio(j):
        members = [*before, *(len(G) + i for i in [*chosen, j])]
        return reference.det_subset(L, members) / reference.det_subset(L, before)

    while len(chosen) < k:
        chosen.append(max((j for j in range(len(X)) if j not in chosen), key=ratio))
    return chosen


def mmr_by_loops(X, z, G, k, t):
    chosen = []

    def score(j):
        earlier = [*G, *(X[i] for i in chosen)]
        return (1 - t) * z[j] - t * max(cosine(X[j], x) for x in earlier)

    while len(chosen) < k:
        chosen.append(max((j for j in range(len(X)) if j not in chosen), key=score))
    return chosen


def facility_location_by_loops(X, z, G, k, t):
    def value(subset):
        centres = [*G, *(X[i] for i in subset)]
        coverage = sum(max(0.0, *(cosine(x, c) for c in centres)) for x in X)
        return (1 - t) * sum(z[i] for i in subset) + t * k / len(X) * coverage

    chosen = []
    while len(chosen) < k:
        others = [j for j in range(len(X)) if j not in chosen]
        chosen.append(max(others, key=lambda j: value([*chosen, j])))
    return chosen


REFERENCES = {
    "dpp": dpp_by_determinants,
    "mmr": mmr_by_loops,
    "facility-location": facility_location_by_loops,
    "max-min": lambda X, z, G, k, _: mmr_by_loops(X, z, G, k, 1.0),
}


@pytest.mark.parametrize("method", REFERENCES)
@pytest.mark.parametrize("is_compiled", [False, True])
@drawn(
    seed=st.integers(0, 10**6),
    n_given=st.integers(1, 3),
    k=st.integers(1, 3),
    diversity=st.sampled_from([0.2, 0.5, 0.8]),
)
def test_equals_the_definition(method, is_compiled, seed, n_given, k, diversity):
    X, relevance, G = draw_items(seed, n_given=n_given)
    z = weighted_relevance(X, relevance, G)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(greedy, "COMPILED_ROWS", 0 if is_compiled else np.inf)
        chosen = vg.select(X, relevance, k, method, diversity=diversity, given=G)
    assert chosen.tolist() == REFERENCES[method](X, z, G, k, diversity)


def test_every_method_has_a_definition():
    # The other three have tests of their own.
    assert set(METHODS) - set(REFERENCES) == {"k-medoids", "top", "random"}


@drawn(seed=st.integers(0, 10**6), diversity=st.sampled_from([0.05, 0.3, 1.0]))
def test_dpp_in_logarithms_is_dpp(seed, diversity):
    X, relevance, G = draw_items(seed, n_items=40, n_columns=9)
    expected = vg.select(X, relevance, 5, diversity=diversity, given=G)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(methods, "_WIDEST_QUALITY", -1.0)
        chosen = vg.select(X, relevance, 5, diversity=diversity, given=G)
    assert chosen.tolist() == expected.tolist()


@pytest.mark.parametrize("method", ["dpp", "mmr", "max-min"])
@pytest.mark.parametrize("n_given", [3, 100])
def test_given_items_are_included_ones_that_do_not_count(method, n_given):
    X, relevance, G = draw_items(0, n_items=300, n_given=n_given, n_columns=150)
    chosen = vg.select(X, relevance, 6, method, given=G)
    # The given are irrelevant, so the same items compete.
    everything = np.r_[X, G], np.r_[relevance, np.full(len(G), -100.0)]
    included = np.arange(300, 300 + n_given)
    k = 6 + n_given
    both = vg.select(*everything, k, method, include=included)
    if n_given == 3:  # with 100, more items compete for the places
        assert chosen.tolist() == both[n_given:].tolist()
    mixed = vg.select(
        *(one[: 300 + n_given - 1] for one in everything),
        k - 1,
        method,
        include=included[:-1],
        given=G[-1],
    )
    assert mixed[n_given - 1 :].tolist() == both[n_given:].tolist()


@pytest.mark.parametrize("n_given", [1, 70, 300, 1000])
@pytest.mark.parametrize("is_relevant", [False, True])
def test_mmr_skips_only_comparisons_that_cannot_matter(n_given, is_relevant):
    X, relevance, G = draw_items(n_given, n_items=500, n_given=n_given, n_columns=20)
    if not is_relevant:
        relevance = np.zeros(500)
    z = weighted_relevance(X, relevance, G) if is_relevant else relevance
    unit = [rows / np.linalg.norm(rows, axis=1)[:, None] for rows in (X, G)]
    nearest, chosen = (unit[0] @ unit[1].T).max(axis=1), []
    for _ in range(8):
        score = 0.5 * z - 0.5 * nearest
        score[chosen] = -np.inf
        chosen.append(int(np.argmax(score)))
        nearest = np.maximum(nearest, unit[0] @ unit[0][chosen[-1]])
    assert vg.select(X, relevance, 8, "mmr", given=G).tolist() == chosen


def test_k_medoids_leaves_clusters_to_given_items():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(5), [10, 40, 20, 30, 15])
    X = np.eye(5)[labels] + rng.normal(0, 0.02, (115, 5))
    given = np.eye(5)[[1, 3]]
    for seed in range(10):
        chosen = vg.select(X, None, 3, "k-medoids", random_state=seed, given=given)
        assert labels[chosen].tolist() == [2, 4, 0]


@pytest.mark.parametrize("seed", range(5))
def test_k_medoids_finds_the_best_centres_besides_given_items(seed):
    # One new centre: the best split into items of the new and of given centres.
    X, _, G = draw_items(seed, n_items=8, n_given=2, n_columns=2)
    F = X / np.linalg.norm(X, axis=1, keepdims=True)
    fixed = np.array([max(cosine(x, g) for g in G) for x in X])
    best = 0.0
    for number in range(1, 2**8):
        members = np.array([number >> i & 1 for i in range(8)], dtype=bool)
        centre = F[members].sum(axis=0)
        centre = centre / np.linalg.norm(centre)
        total = (F[members] @ centre).sum() + fixed[~members].sum()
        if total > best:
            best, cluster = total, members
    chosen = vg.select(X, None, 1, "k-medoids", random_state=0, given=G)
    assert cluster[chosen[0]]


@every_method
def test_top_and_random_are_as_without_given_items_and_others_differ(method):
    X, relevance, _ = draw_items(1, n_items=40, n_columns=20)
    plain = vg.select(X, relevance, 5, method, random_state=0)
    near = X[plain[0]] + 0.1 * np.ones(20)
    options = {"random_state": 0, "given": near}
    chosen = vg.select(X, relevance, 5, method, **options)
    if method in ("top", "random"):
        assert chosen.tolist() == plain.tolist()
    elif method != "k-medoids":
        assert plain[0] not in chosen


@every_method
@drawn(seed=st.integers(0, 10**6), diversity=st.sampled_from([0.0, 0.5, 1.0]))
def test_copies_of_given_items_are_as_if_they_were_not_there(method, seed, diversity):
    X, relevance, G = draw_items(seed, n_items=12)
    X[[2, 5, 11]] = np.array([[2.0], [0.1], [1e5]]) * G
    relevance[[2, 5, 11]] += 10.0
    options = {"diversity": diversity, "random_state": 0, "given": G}
    chosen = vg.select(X, relevance, 4, method, **options)
    rest = np.setdiff1d(np.arange(12), [2, 5, 11])
    alone = vg.select(X[rest], relevance[rest], 4, method, **options)
    assert chosen.tolist() == rest[alone].tolist()
    everything = vg.select(X, relevance, 12, method, **options)
    assert sorted(everything) == rest.tolist()
    assert 5 in vg.select(X, relevance, 4, method, include=[5], **options)


def test_only_copies_leave_nothing_to_choose():
    X, relevance, _ = draw_items(0)
    for method in METHODS:
        assert len(vg.select(X, relevance, 4, method, given=X)) == 0
    chosen = vg.select(X, relevance, given=X, budget=9, costs=np.ones(9), include=[1])
    assert chosen.tolist() == [1]


@pytest.mark.parametrize("pairs", [1, 10, 10**6])
@drawn(seed=st.integers(0, 10**6))
def test_copies_are_found(pairs, seed):
    rng = np.random.default_rng(seed)
    F = rng.integers(-1, 2, (60, 4)).astype(float)
    F /= np.maximum(np.linalg.norm(F, axis=1, keepdims=True), 1.0)
    G = F[rng.integers(0, 60, 8)]
    G = G[G.any(axis=1)] + rng.normal(0, 1e-7, (G.any(axis=1).sum(), 4))
    G /= np.linalg.norm(G, axis=1, keepdims=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(redundancy, "_PAIRS", pairs)
        found = redundancy.find_copies(F, G)
    assert found.tolist() == ((F @ G.T).max(axis=1, initial=0.0) > 0.999).tolist()


@every_method
@pytest.mark.parametrize("none", [None, [], np.zeros((0, 6)), [[]], np.zeros((2, 6))])
def test_no_given_items_change_nothing(method, none):
    X, relevance, _ = draw_items(2, n_items=30)
    for options in ({"k": 5}, {"k": 5, "include": [3]}, {"diversity": 0.0}):
        options |= {"method": method, "random_state": 0}
        chosen = vg.select(X, relevance, given=none, **options)
        assert chosen.tolist() == vg.select(X, relevance, **options).tolist()


@every_method
def test_a_single_vector_is_one_item_and_inputs_are_not_changed(method):
    X, relevance, G = draw_items(3, n_items=30)
    before = X.copy(), relevance.copy(), G.copy()
    one = vg.select(X, relevance, 5, method, random_state=0, given=G[0])
    same = vg.select(X, relevance, 5, method, random_state=0, given=7.0 * G[:1])
    assert one.tolist() == same.tolist()
    for array, copy in zip((X, relevance, G), before, strict=True):
        np.testing.assert_array_equal(array, copy)


@every_method
@drawn(seed=st.integers(0, 10**6), n_given=st.integers(0, 4))
def test_given_items_count_in_no_limit(method, seed, n_given):
    X, relevance, G = draw_items(seed, n_items=12, n_given=n_given)
    labels = np.arange(12) % 4
    options = {"random_state": 0, "given": G, "include": [6], "exclude": [0]}
    limits = {"at_most": 2, "per": labels}
    chosen = vg.select(X, relevance, 7, method, **limits, **options)
    assert len(set(chosen.tolist())) == 7
    assert chosen[0] == 6
    assert 0 not in chosen
    assert np.bincount(labels[chosen]).max() <= 2
    costs = np.random.default_rng(seed).uniform(0.5, 1.5, 12)
    chosen = vg.select(
        X, relevance, None, method, budget=4.0, costs=costs, **limits, **options
    )
    assert costs[chosen].sum() <= 4.0
    if method in ("dpp", "mmr", "max-min", "top"):
        for item in set(range(1, 12)) - set(chosen.tolist()):
            is_full = (labels[chosen] == labels[item]).sum() == 2
            assert is_full or costs[chosen].sum() + costs[item] > 4.0


# Many given items ---------------------------------------------------------------------


def second_page(seed, n_columns=64, n_items=2000, n_given=1000):
    """Candidates, of which the most relevant are copies of given items or nearly so."""
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((n_given, n_columns))
    X = rng.standard_normal((n_items, n_columns))
    X[:50] = G[:50] + 0.1 * rng.standard_normal((50, n_columns))
    X[50:60] = G[50:60]
    relevance = rng.random(n_items)
    relevance[:60] += 1.0
    return X, relevance, G


@pytest.mark.parametrize("method", ["dpp", "mmr"])
@pytest.mark.parametrize("n_given", [60, 63, 64, 65, 1000])
@pytest.mark.parametrize("noise", [0.0, 1e-7])
def test_the_second_page_is_relevant_and_new(method, n_given, noise):
    rng = np.random.default_rng(n_given)
    for seed in range(5):
        X, relevance, G = second_page(seed, n_given=n_given)
        # Duplicates among the given, perhaps with the noise of single precision.
        G = np.r_[G, G * (1.0 + noise * rng.standard_normal(G.shape))]
        chosen = vg.select(X, relevance, 10, method, given=G)
        assert chosen.min() >= 60
        nearest = [max(cosine(X[i], g) for g in G) for i in chosen]
        assert max(nearest) < 0.9
        # In the upper tenth of relevance, on average, where the mean is 0.5.
        assert relevance[chosen].mean() > 0.9


@pytest.mark.parametrize("noise", [0.0, 1e-7])
def test_noise_of_given_items_is_no_direction(noise):
    # 1,000 given span 8 of 64 dimensions.
    rng = np.random.default_rng(0)
    plane = np.linalg.qr(rng.standard_normal((64, 8)))[0].T
    G = rng.standard_normal((1000, 8)) @ plane
    X, relevance, _ = draw_items(0, n_items=400, n_columns=64)
    expected = vg.select(X, relevance, 12, given=plane)
    chosen = vg.select(X, relevance, 12, given=G + noise * rng.standard_normal(G.shape))
    assert chosen.tolist() == expected.tolist()


def test_past_the_rank_mmr_chooses_near_copies_and_zeros_last():
    G = np.eye(3)
    # The cosines with the nearest given item are 0.95, 0.71, 0.8 and 0.
    X = [[3.0, 1.0, 0.0], [0.0, 1.0, 1.0], [4.0, 3.0, 0.0], [0.0, 0.0, 0.0]]
    chosen = vg.select(X, [9.0, 1.0, 2.0, 9.0], 4, given=G)
    assert chosen.tolist() == [2, 1, 0, 3]


def test_relevant_near_copies_leave_the_unit_of_relevance_alone():
    X, relevance, G = second_page(0, n_given=60)
    chosen = vg.select(X, relevance, 10, given=G)
    relevance[:50] += 1e6
    assert vg.select(X, relevance, 10, given=G).tolist() == chosen.tolist()


def test_only_near_copies_are_ranked_by_relevance():
    G = np.eye(2)
    X = G[[0, 1, 0]] + [[0.01, 0.1], [0.2, 0.0], [0.0, -0.3]]
    for method in ("mmr", "top"):
        chosen = vg.select(X, [1.0, 3.0, 2.0], 3, method, diversity=0.01, given=G)
        assert chosen.tolist() == [1, 2, 0]


@pytest.mark.parametrize("kinds", [(1, 0), (0, 1), (1, 1)])
def test_sparse_items_are_those_of_their_arrays(kinds):
    rng = np.random.default_rng(0)
    X = sparse.random_array((40, 3000), density=0.01, rng=rng)
    G = sparse.random_array((5, 3000), density=0.01, rng=rng)
    relevance = rng.random(40)
    expected = vg.select(X.toarray(), relevance, 5, given=G.toarray())
    ours, theirs = (
        array.tocsr() if is_sparse else array.toarray()
        for array, is_sparse in zip((X, G), kinds, strict=True)
    )
    assert vg.select(ours, relevance, 5, given=theirs).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            np.ones((2, 5)),
            "given has shape (2, 5), expected (M, 6): embeddings of items",
        ),
        ([1, 2], "given has shape (1, 2), expected (M, 6): embeddings of items that"),
        (np.ones((1, 2, 6)), "given has shape (1, 2, 6), expected (M, 6)"),
        (
            [[0.0] * 6, [np.nan] * 6],
            "given holds NaN or infinite values in row 1: drop",
        ),
        ([["a"] * 6], "given must be an array of numbers"),
        (sparse.eye_array(3).tocsr(), "given has shape (3, 3), expected (M, 6)"),
    ],
)
def test_refuses_bad_given_items(given, message):
    X, relevance, _ = draw_items(0)
    for embeddings in (X, sparse.csr_array(X)):
        with pytest.raises(ValueError, match=re.escape(message)):
            vg.select(embeddings, relevance, 3, given=given)
