import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import reference
from variegate.baselines import METHODS, clustering, select
from variegate.baselines import methods as baselines
from variegate.linalg import cosine as _cosine
from variegate.linalg import greedy

#: Those that weigh relevance against diversity item by item.
WEIGHING = ["dpp", "mmr", "facility-location"]
#: Those that involve no chance.
CERTAIN = sorted(set(METHODS) - {"k-medoids", "random"})

every_method = pytest.mark.parametrize("method", METHODS)


def random_items(seed, n_items=12, n_columns=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_items, n_columns)), rng.normal(size=n_items)


def cosine(a, b):
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


def in_units(X, relevance, n_competing=40):
    """Relevance less the largest, over the range of items that are not near copies."""
    competing = []
    for i in sorted(range(len(X)), key=lambda i: -relevance[i]):
        if all(cosine(X[i], X[j]) < 0.9 for j in competing):
            competing.append(i)
    best, *_, last = competing[:n_competing]
    return (relevance - relevance[best]) / (relevance[best] - relevance[last])


def mmr_by_loops(X, relevance, k, diversity):
    z = in_units(X, relevance)
    chosen = [int(np.argmax(z))]
    while len(chosen) < k:
        best, best_score = None, -np.inf
        for j in range(len(X)):
            if j in chosen:
                continue
            redundancy = max(cosine(X[i], X[j]) for i in chosen)
            score = (1 - diversity) * z[j] - diversity * redundancy
            if score > best_score:
                best, best_score = j, score
        chosen.append(best)
    return chosen


def max_min_by_loops(X, relevance, k):
    unit = [x / np.linalg.norm(x) for x in X]
    chosen = [int(np.argmax(relevance))]
    while len(chosen) < k:
        best, best_distance = None, -np.inf
        for j in range(len(X)):
            if j in chosen:
                continue
            distance = min(np.linalg.norm(unit[i] - unit[j]) for i in chosen)
            if distance > best_distance:
                best, best_distance = j, distance
        chosen.append(best)
    return chosen


def facility_location_by_loops(X, relevance, k, diversity):
    z = in_units(X, relevance)

    def value(subset):
        coverage = sum(
            max([max(cosine(X[i], X[j]), 0.0) for j in subset], default=0.0)
            for i in range(len(X))
        )
        relevant = sum(z[j] for j in subset)
        return (1 - diversity) * relevant + diversity * k / len(X) * coverage

    chosen = []
    while len(chosen) < k:
        others = [j for j in range(len(X)) if j not in chosen]
        chosen.append(max(others, key=lambda j: value([*chosen, j])))
    return chosen


def dpp_by_determinants(X, relevance, k, diversity):
    z = in_units(X, relevance)
    quality = np.exp((1 - diversity) / diversity * z)
    S = np.array([[cosine(a, b) for b in X] for a in X])
    L = quality[:, None] * S * quality
    chosen = []
    while len(chosen) < k:
        others = [j for j in range(len(X)) if j not in chosen]
        chosen.append(max(others, key=lambda j: reference.det_subset(L, [*chosen, j])))
    return chosen


REFERENCES = {
    "mmr": mmr_by_loops,
    "facility-location": facility_location_by_loops,
    "dpp": dpp_by_determinants,
    "max-min": lambda X, relevance, k, _: max_min_by_loops(X, relevance, k),
    "top": lambda X, relevance, k, _: sorted(
        range(len(X)), key=lambda j: -relevance[j]
    )[:k],
}


@pytest.mark.parametrize("method", REFERENCES)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 5),
    diversity=st.sampled_from([0.2, 0.5, 0.8]),
)
def test_equals_the_obvious_loops(method, seed, k, diversity):
    X, relevance = random_items(seed)
    chosen = select(X, relevance, k, method, diversity=diversity)
    assert chosen.tolist() == REFERENCES[method](X, relevance, k, diversity)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n_items", "n_columns", "k"), [(12, 5, 5), (300, 20, 20), (2000, 64, 10)]
)
def test_numpy_and_the_compiled_loop_choose_the_same(n_items, n_columns, k, dtype):
    for seed in range(5):
        X, relevance = random_items(seed, n_items, n_columns)
        X[n_items // 2 :] = X[: n_items - n_items // 2]  # copies, of another relevance
        X[3] = 0.0
        chosen = []
        for limit in (np.inf, 0):
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(greedy, "COMPILED_ROWS", limit)
                chosen.append(select(X.astype(dtype), relevance, k).tolist())
                chosen.append(select(X.astype(dtype), None, k).tolist())
        assert chosen[:2] == chosen[2:]


@pytest.mark.parametrize("is_above", [False, True])
def test_rows_columns_and_choices_decide_who_chooses(is_above, monkeypatch):
    X, relevance = random_items(0, 20 + is_above, 50)
    monkeypatch.setattr(greedy, "COMPILED_ROWS", 20 * 50 * 4 + 1)
    used = []

    class Recorded(greedy._LazyResiduals):
        def __init__(self, B, *rest):
            used.append(B.shape)
            super().__init__(B, *rest)

    monkeypatch.setattr(greedy, "_LazyResiduals", Recorded)
    select(X, relevance, 4)
    assert used == ([(21, 50)] if is_above else [])


def test_every_method_without_chance_has_a_reference():
    assert sorted(REFERENCES) == CERTAIN


@every_method
@given(
    n=st.integers(1, 15),
    n_columns=st.integers(0, 6),
    seed=st.integers(0, 10**6),
    diversity=st.sampled_from([0.0, 1e-320, 1e-4, 0.3, 0.5, 1.0]),
    repeat=st.booleans(),
)
def test_k_distinct_items(method, n, n_columns, seed, diversity, repeat):
    rng = np.random.default_rng(seed)
    # Small whole numbers: copies, zero rows and ties are common.
    X = rng.integers(-1, 2, size=(n, n_columns)).astype(float)
    relevance = None if repeat else rng.integers(0, 3, size=n)
    k = int(rng.integers(1, n + 1))
    chosen = select(X, relevance, k, method, diversity=diversity, random_state=seed)
    assert chosen.shape == (k,)
    assert chosen.dtype == np.intp
    assert len(set(chosen.tolist())) == k
    assert 0 <= chosen.min() <= chosen.max() < n


@every_method
def test_the_same_seed_gives_the_same_items(method):
    X, relevance = random_items(0, n_items=200)
    first = select(X, relevance, 10, method, random_state=3)
    assert select(X, relevance, 10, method, random_state=3).tolist() == first.tolist()


@pytest.mark.parametrize("method", CERTAIN)
def test_a_smaller_k_gives_the_beginning(method):
    X, relevance = random_items(1)
    # Facility location scales coverage by k, which makes no difference at 1.
    chosen = select(X, relevance, 5, method, diversity=1.0)
    assert select(X, relevance, 3, method, diversity=1.0).tolist() == list(chosen[:3])


@every_method
def test_inputs_are_not_changed_and_their_scale_does_not_matter(method):
    X, relevance = random_items(2)
    X_before, relevance_before = X.copy(), relevance.copy()
    chosen = select(X, relevance, 4, method, random_state=0)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(relevance, relevance_before)
    lengths = 10.0 ** np.linspace(-200, 200, len(X))[:, None]
    other = select(X * lengths, 1e200 * relevance, 4, method, random_state=0)
    assert other.tolist() == chosen.tolist()
    other = select(X, 7.0 + 3.0 * relevance, 4, method, random_state=0)
    assert other.tolist() == chosen.tolist()


@pytest.mark.parametrize("method", WEIGHING)
@given(seed=st.integers(0, 10**6))
def test_no_diversity_is_top(method, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, size=(10, 3)).astype(float)
    relevance = rng.integers(0, 5, size=10)
    assert (
        select(X, relevance, 6, method, diversity=0.0).tolist()
        == select(X, relevance, 6, "top").tolist()
    )


@pytest.mark.parametrize("method", WEIGHING)
def test_more_diversity_gives_no_more_relevance(method):
    X, relevance = random_items(4, n_items=300)
    sums = [
        relevance[select(X, relevance, 5, method, diversity=t)].sum()
        for t in (0.0, 0.5, 1.0)
    ]
    assert sums[0] >= sums[1] >= sums[2]
    assert sums[0] > sums[2]


@every_method
@pytest.mark.parametrize("constant", [0.0, 0.1, -1e300])
def test_constant_relevance_is_none(method, constant):
    X, _ = random_items(5, n_items=11)
    assert (
        select(X, np.full(11, constant), 4, method, random_state=0).tolist()
        == select(X, None, 4, method, random_state=0).tolist()
    )


@pytest.mark.parametrize("method", CERTAIN)
def test_ties_go_to_the_smaller_number(method):
    # Four directions whose lengths are no round numbers, each three times.
    axes = np.kron(np.eye(4), [[0.1, 0.7]])
    assert select(np.vstack([axes] * 3), None, 4, method).tolist() == [0, 1, 2, 3]


def test_dpp_and_the_rank():
    X = np.array([[0.0, 0], [1, 0], [2, 0], [0, 1], [0, 3], [1, 1]])
    relevance = [9.0, 1, 2, 0, 3, 0]
    # 4 and 2 span the plane; the zero row, though most relevant, comes last.
    assert select(X, relevance, 6).tolist() == [4, 2, 1, 3, 5, 0]
    assert select(np.zeros((3, 2)), [1.0, 3, 2], 2).tolist() == [1, 2]
    assert select(np.zeros((3, 0)), [1.0, 3, 2], 2).tolist() == [1, 2]


@pytest.mark.parametrize("diversity", [0.05, 0.3, 0.6, 1.0])
def test_dpp_in_logarithms_is_dpp(monkeypatch, diversity):
    for seed in range(20):
        X, relevance = random_items(seed, n_items=60)
        X[seed] = 0.0
        expected = select(X, relevance, 8, diversity=diversity)
        with monkeypatch.context() as patched:
            patched.setattr(baselines, "_WIDEST_QUALITY", -1.0)
            chosen = select(X, relevance, 8, diversity=diversity)
        assert chosen.tolist() == expected.tolist()


def test_dpp_with_qualities_too_far_apart_to_be_numbers():
    X = np.array([[1.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    # Next to each other in relevance come 0 and 1, which are copies.
    assert select(X, [4.0, 3, 2, 1], 3, diversity=1e-6).tolist() == [0, 2, 3]


def test_max_min_is_mmr_without_relevance():
    X, relevance = random_items(6, n_items=50)
    assert (
        select(X, relevance, 10, "max-min").tolist()
        == select(X, relevance, 10, "mmr", diversity=1.0).tolist()
    )


def clusters(rng, sizes):
    """Tight bundles around the axes."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return np.eye(len(sizes))[labels] + rng.normal(0, 0.02, (sum(sizes), len(sizes)))


def test_k_medoids_takes_one_of_each_cluster_the_largest_first():
    rng = np.random.default_rng(7)
    sizes = [10, 40, 20, 30]
    X, labels = clusters(rng, sizes), np.repeat(np.arange(4), sizes)
    relevance = rng.normal(size=100)
    for seed in range(10):
        chosen = select(X, relevance, 4, "k-medoids", diversity=0.0, random_state=seed)
        assert labels[chosen].tolist() == [1, 3, 2, 0]
        best = [
            max(np.flatnonzero(labels == c), key=lambda j: relevance[j])
            for c in (1, 3, 2, 0)
        ]
        assert chosen.tolist() == best
        chosen = select(X, relevance, 4, "k-medoids", diversity=1.0, random_state=seed)
        medoids = [
            max(
                np.flatnonzero(labels == c),
                key=lambda j: sum(
                    cosine(X[i], X[j]) for i in np.flatnonzero(labels == c)
                ),
            )
            for c in (1, 3, 2, 0)
        ]
        assert chosen.tolist() == medoids


def test_k_medoids_clusters_as_well_as_scikit_learn():
    from sklearn.cluster import KMeans

    X, _ = random_items(12, n_items=400, n_columns=6)
    F = X / np.linalg.norm(X, axis=1, keepdims=True)

    def similarity_to_centres(labels):
        # The items' similarity to the direction of a sum is the length of the sum.
        return sum(np.linalg.norm(F[labels == c].sum(axis=0)) for c in range(5))

    rng = np.random.default_rng(0)
    runs = [
        clustering.cluster_items(F, clustering.draw_seeds(F, np.zeros(400), 5, rng))
        for _ in range(5)
    ]
    labels, _ = min(runs, key=lambda run: run[1])
    theirs = KMeans(5, n_init=5, random_state=0).fit(F).labels_
    assert similarity_to_centres(labels) >= 0.99 * similarity_to_centres(theirs)


def test_k_medoids_prefers_the_more_relevant_of_copies():
    X = np.repeat(np.eye(2), 3, axis=0)
    chosen = select(X, [0, 2, 1, 0, 1, 2], 2, "k-medoids", diversity=1, random_state=0)
    assert chosen.tolist() == [1, 5]


def test_random_chooses_every_item_equally_often():
    from scipy.stats import chisquare

    rng = np.random.default_rng(8)
    X, relevance = random_items(8, n_items=10)
    draws = [select(X, relevance, 1, "random", random_state=rng) for _ in range(5000)]
    counts = np.bincount(np.concatenate(draws), minlength=10)
    assert chisquare(counts).pvalue > 1e-3


def test_facility_location_with_more_items_than_a_batch():
    X, relevance = random_items(9, n_items=150, n_columns=3)
    chosen = select(X, relevance, 4, "facility-location", diversity=0.7)
    assert chosen.tolist() == facility_location_by_loops(X, relevance, 4, 0.7)


@pytest.mark.parametrize("method", ["dpp", "mmr", "max-min", "top", "random"])
def test_many_items_need_no_matrix_of_pairs(method):
    rng = np.random.default_rng(10)
    n = 200_000  # all pairs would be 320 GB
    X, relevance = rng.normal(size=(n, 4)), rng.normal(size=n)
    assert len(set(select(X, relevance, 4, method, random_state=0).tolist())) == 4


@every_method
def test_of_fewer_items_than_k_all_are_chosen(method):
    chosen = select(*random_items(0), 13, method, random_state=0)
    assert sorted(chosen) == list(range(12))


def test_ten_items_unless_something_else_is_said():
    X, relevance = random_items(0, n_items=30, n_columns=20)
    assert len(select(X, relevance)) == 10
    assert len(select(X, relevance, budget=14, costs=np.ones(30))) == 14


@every_method
@given(seed=st.integers(0, 10**6), k=st.integers(3, 9))
def test_included_items_come_first_and_excluded_never(method, seed, k):
    X, relevance = random_items(seed)
    given_ = {"include": [7, 2], "exclude": np.arange(12) >= 10, "random_state": 0}
    chosen = select(X, relevance, k, method, **given_).tolist()
    assert chosen[:2] == [2, 7]
    assert len(set(chosen)) == k
    assert max(chosen) < 10
    in_order = select(X, relevance, k, method, order="number", **given_)
    assert in_order.tolist() == sorted(chosen)


@pytest.mark.parametrize("method", ["dpp", "mmr", "max-min"])
@given(seed=st.integers(0, 10**6), diversity=st.sampled_from([0.2, 0.5, 0.8, 1.0]))
def test_going_on_from_the_first_choices_is_the_same_choice(method, seed, diversity):
    X, relevance = random_items(seed)
    whole = select(X, relevance, 4, method, diversity=diversity).tolist()
    first = whole[:2]
    rest = select(X, relevance, 4, method, diversity=diversity, include=first)
    assert rest[2:].tolist() == whole[2:]


def test_others_are_unlike_the_included():
    X = np.array([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    for method in ("dpp", "mmr", "facility-location", "max-min"):
        chosen = select(X, [3.0, 2.9, 1.0], 2, method, include=[1], diversity=0.9)
        assert chosen.tolist() == [1, 2]


@pytest.mark.parametrize("method", ["dpp", "mmr", "max-min"])
def test_copies_come_last(method):
    rng = np.random.default_rng(0)
    X = np.vstack(
        [np.tile(rng.standard_normal(8), (5, 1)), rng.standard_normal((5, 8))]
    )
    relevance = [9.0, 9.0, 9.0, 9.0, 9.0, 1.0, 0.9, 0.8, 0.7, 0.6]
    chosen = select(X, relevance, 7, method)
    assert sorted(chosen[:6]) == [0, 5, 6, 7, 8, 9]
    assert select(X, relevance, 5, "mmr", diversity=0.0).tolist() == [0, 1, 2, 3, 4]


@every_method
@given(seed=st.integers(0, 10**6), k=st.sampled_from([None, 3, 20]))
def test_a_budget_is_kept_and_used(method, seed, k):
    X, relevance = random_items(seed)
    costs = np.random.default_rng(seed).integers(1, 9, 12)
    limits = {"budget": 15, "costs": costs, "include": [4], "random_state": 0}
    chosen = select(X, relevance, k, method, **limits)
    assert chosen[0] == 4
    assert costs[chosen].sum() <= 15
    assert len(chosen) <= (k or 12)
    if method in ("dpp", "mmr", "max-min", "top") and len(chosen) != k:
        left = np.setdiff1d(np.arange(12), chosen)
        assert costs[chosen].sum() + costs[left].min() > 15


def test_a_budget_that_is_exactly_met():
    chosen = select(np.eye(3), budget=0.3, costs=[0.1, 0.1, 0.1])
    assert len(chosen) == 3


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"costs": np.ones(12)}, "costs were given without a budget"),
        ({"budget": 3, "costs": np.ones(3)}, "costs has shape (3,), expected (12,)"),
        (
            {"budget": -1, "costs": np.ones(12)},
            "budget must be a finite number > 0, got -1",
        ),
        ({"budget": 250}, "budget=250 needs costs, one for each item"),
        ({"include": [1], "exclude": [1, 2]}, "item 1 is to be included and excluded"),
        ({"include": [12]}, "include: item 12 is out of range"),
        ({"exclude": [0.5]}, "exclude: a subset holds item numbers"),
        ({"k": 1, "include": [1, 2]}, "k is 1, but 2 items are to be included"),
        (
            {"budget": 3, "costs": np.full(12, 2.0), "include": [1, 2]},
            "the included items cost 4, more than the budget 3",
        ),
        ({"order": "rank"}, "order must be 'importance' or 'number', got 'rank'"),
    ],
)
def test_refuses_what_cannot_be(given_, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        select(*random_items(0), **given_)


@pytest.mark.parametrize("k", [0, -1, 2.0, 2.5, "2", True])
def test_refuses_k(k):
    message = f"k must be a whole number of at least 1, got {k!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        select(*random_items(0), k)


@pytest.mark.parametrize("method", ["DPP", "greedy", None, ["dpp"]])
def test_refuses_method(method):
    message = (
        f"unknown method {method!r}; there are dpp, mmr, facility-location, "
        "k-medoids, max-min, top, random"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        select(*random_items(0), 2, method)


@pytest.mark.parametrize("diversity", [-0.1, 1.1, np.nan, "0.5", None, True])
def test_refuses_diversity(diversity):
    message = (
        r"diversity must be a number from 0 \(relevance only\) to 1 "
        rf"\(diversity only\), got {diversity!r}"
    )
    with pytest.raises(ValueError, match=message):
        select(*random_items(0), 2, diversity=diversity)


@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 2, 2)])
def test_refuses_shape_of_embeddings(shape):
    message = f"a matrix with one row an item, got shape {shape}"
    with pytest.raises(ValueError, match=re.escape(message)):
        select(np.ones(shape), k=1)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_refuses_embeddings_that_are_not_finite(monkeypatch, value):
    monkeypatch.setattr(_cosine, "_CHUNK", 4)
    X, _ = random_items(0)
    X[9, 1] = value
    with pytest.raises(
        ValueError,
        match="embeddings holds NaN or infinite values in row 9: drop or fill such",
    ):
        select(X, k=2)


@pytest.mark.parametrize("shape", [(11,), (12, 1)])
def test_refuses_shape_of_relevance(shape):
    message = f"relevance has shape {shape}, expected (12,): one number for each row"
    with pytest.raises(ValueError, match=re.escape(message)):
        select(random_items(0)[0], np.ones(shape), k=2)


def test_refuses_relevance_that_is_not_finite():
    X, relevance = random_items(0)
    relevance[5] = np.nan
    with pytest.raises(
        ValueError, match="relevance of item 5 is nan: give every item a finite number"
    ):
        select(X, relevance, 2)


def test_refuses_what_is_not_numbers():
    for embeddings in ([["a", "b"]], [[1.0, 2.0], [3.0]]):
        with pytest.raises(
            ValueError, match="embeddings must be an array of numbers: "
        ):
            select(embeddings, k=1)
    with pytest.raises(ValueError, match="relevance must be an array of numbers: "):
        select([[1.0, 2.0]], ["high"], k=1)


def test_refuses_random_state():
    with pytest.raises(ValueError, match="random_state must be None, a non-negative"):
        select(*random_items(0), 2, random_state=-1)


def test_facility_location_refuses_many_items():
    with pytest.raises(
        ValueError,
        match="facility-location looks at all pairs and takes at most 20000 items, "
        "got 20001: use 'dpp' or 'mmr', or choose from a sample",
    ):
        select(np.ones((20_001, 1)), k=1, method="facility-location")


# The unit of relevance ----------------------------------------------------------------


def near_copies(n_others=488, seed=0):
    """Three near copies of the best item, eight related ones, and noise."""
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((12 + n_others, 128))
    E /= np.linalg.norm(E, axis=1, keepdims=True)
    for i in range(1, 12):
        E[i] = E[0] + (0.35 if i < 4 else 1.6) * E[i]
        E[i] /= np.linalg.norm(E[i])
    return E, E @ E[0]


@pytest.mark.parametrize("seed", range(5))
def test_near_copies_are_left_out_at_the_default(seed):
    chosen = select(*near_copies(seed=seed), k=6).tolist()
    assert chosen[0] == 0
    assert not {1, 2, 3} & set(chosen)
    assert max(chosen) < 12


@pytest.mark.parametrize("n_more", [1000, 50_000])
def test_a_larger_crowd_makes_no_difference(n_more):
    E, relevance = near_copies()
    crowd = np.random.default_rng(1).standard_normal((n_more, 128))
    crowd /= np.linalg.norm(crowd, axis=1, keepdims=True)
    few = select(E, relevance, 6)
    many = select(np.r_[E, crowd], np.r_[relevance, crowd @ E[0]], 6)
    assert sorted(many) == sorted(few)
    best = np.argsort(-relevance)[:40]
    assert sorted(best[select(E[best], relevance[best], 6)]) == sorted(few)


@pytest.mark.parametrize("method", ["dpp", "mmr"])
@given(seed=st.integers(0, 10**6), k=st.integers(2, 10))
def test_irrelevant_candidates_make_no_difference(method, seed, k):
    rng = np.random.default_rng(seed)
    X, relevance = random_items(seed, n_items=50, n_columns=20)
    below = relevance.min() - 50.0 * np.ptp(relevance) - rng.random(400)
    few = select(X, relevance, k, method)
    everything = np.r_[X, rng.standard_normal((400, 20))]
    many = select(everything, np.r_[relevance, below], k, method)
    assert many.tolist() == few.tolist()


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-6, 0.5, 3.0, 1e6]))
def test_an_affine_change_of_relevance_makes_no_difference(method, seed, scale):
    X, relevance = random_items(seed, n_items=30, n_columns=20)
    settings = {"k": 8, "method": method, "random_state": 0}
    there = select(X, scale * relevance - 7.0 * scale, **settings)
    assert there.tolist() == select(X, relevance, **settings).tolist()


def test_of_enough_equally_relevant_items_all_are_of_those():
    rng = np.random.default_rng(0)
    relevance = np.r_[np.ones(25), np.zeros(25)]
    for method in ("dpp", "mmr"):
        assert select(rng.standard_normal((50, 40)), relevance, 10, method).max() < 25


def test_sparse_embeddings_are_those_of_their_array():
    X = sparse.random_array((40, 3000), density=0.01, rng=np.random.default_rng(0))
    relevance = np.random.default_rng(1).random(40)
    expected = select(X.toarray(), relevance, 5).tolist()
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        assert select(kind(X), relevance, 5).tolist() == expected
    with pytest.raises(ValueError, match="reduce their columns first"):
        select(sparse.eye_array(20_000).tocsr())


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ((None, 0.3), r"k must be .* knob .* is diversity=0\.3"),
        ((None, 2, 0.3), r"method must be a name, got 0\.3: .* diversity=0\.3"),
        ((0.3,), r"relevance is the number 0\.3, .* perhaps you mean diversity=0\.3"),
        ((2,), "relevance is the number 2, expected 4 numbers, .* you mean k=2"),
    ],
)
def test_numbers_in_the_wrong_place_get_a_hint(arguments, hint):
    with pytest.raises(ValueError, match=hint):
        select(np.eye(4), *arguments)
