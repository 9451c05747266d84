"""Rivals whose relevance scikit-learn learns, and the order in which methods choose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import variegate as vg
from variegate.baselines import learned
from variegate.baselines.learned import (
    DIVERSITIES,
    Ordering,
    embeddings_of,
    learned_rivals,
)
from variegate.decoding import Constraint
from variegate.ground_set import GroundSetError
from variegate.metrics import f_score

ONE_BY_ONE = ("dpp", "mmr", "max-min", "top")

CLASSIFIERS = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "boosting": HistGradientBoostingClassifier(random_state=0),
}


def make_examples(n_sets=5, n_items=30, noise=1.0, seed=0):
    """Return ground sets and what is wanted: where the first feature is large."""
    rng = np.random.default_rng(seed)
    ground_sets, subsets = [], []
    for _ in range(n_sets):
        X = rng.normal([0.0, 5.0, 0.0], 1.0, (n_items, 3))
        score = X[:, 0] + noise * rng.standard_normal(n_items)
        costs = rng.uniform(0.5, 2.0, n_items)
        similarity = rng.standard_normal((n_items, 4))
        ground_sets.append(vg.GroundSet(X, similarity, costs))
        subsets.append(np.flatnonzero(score > 0.8))
    return ground_sets, subsets


# In order -------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(ONE_BY_ONE), st.integers(0, 10**6), st.integers(1, 12))
def test_fewer_are_the_first_of_more(method, seed, k):
    rng = np.random.default_rng(seed)
    F, z, costs = rng.standard_normal((12, 3)), rng.random(12), rng.uniform(1, 4, 12)
    order = Ordering(method)
    assert order(F, z, k).tolist() == order(F, z)[:k].tolist()
    limit = Constraint(None, 8.0, costs)
    within = order(F, z, None, limit)
    assert order(F, z, k, limit).tolist() == within[:k].tolist()
    # By hand: in the order of the method over what could be paid for at all.
    items = np.flatnonzero(costs <= 8.0)
    taken, spent = [], 0.0
    for item in items[vg.select(F[items], z[items], len(items), method)]:
        if spent + costs[item] <= 8.0:
            taken.append(item)
            spent += costs[item]
    assert within.tolist() == taken


def test_nothing_to_choose():
    order = Ordering("mmr")
    assert order(np.ones((2, 1)), None, 0).tolist() == []
    assert (
        order(
            np.ones((2, 1)), None, None, Constraint(None, 1.0, np.full(2, 5.0))
        ).tolist()
        == []
    )


# How many -------------------------------------------------------------------------


def best_by_hand(relevances, ground_sets, subsets, method, largest, limits=None):
    """Return k and the trade-off with the best mean F, each k chosen by itself."""
    best = (-1.0, 0, 0.0)
    for diversity in DIVERSITIES[:1] if method == "top" else DIVERSITIES:
        for k in range(1, largest + 1):
            scores = []
            for i, (ground_set, wanted) in enumerate(
                zip(ground_sets, subsets, strict=True)
            ):
                if limits is None:
                    chosen = vg.select(
                        ground_set.blocks[""], relevances[i],
                        min(k, len(ground_set)), method, diversity=diversity,
                    )  # fmt: skip
                else:
                    chosen = Ordering(method, diversity)(
                        ground_set.blocks[""], relevances[i], k, limits[i]
                    )
                scores.append(f_score(chosen, wanted))
            # The first of equals, whatever the last digit of a mean.
            if np.mean(scores) > best[0] + 1e-12:
                best = (np.mean(scores), k, diversity)
    return best


def predicted(name, ground_sets, subsets):
    """Return relevance out of fold, by scikit-learn itself."""
    X = np.concatenate([one.quality for one in ground_sets])
    y = np.concatenate(
        [
            np.isin(np.arange(len(g)), s)
            for g, s in zip(ground_sets, subsets, strict=True)
        ]
    )
    sizes = [len(one) for one in ground_sets]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    with threadpool_limits(1):
        z = cross_val_predict(
            CLASSIFIERS[name], X, y, groups=groups, cv=LeaveOneGroupOut(),
            method="decision_function",
        )  # fmt: skip
        own = CLASSIFIERS[name].fit(X, y).decision_function(X)
    cuts = np.cumsum(sizes)[:-1]
    return np.split(z, cuts), np.split(own, cuts)


@pytest.mark.parametrize("budget", [None, 6.0])
def test_size_and_diversity_are_the_best_out_of_fold(budget):
    # Five ground sets in five parts: each is predicted by the other four.
    ground_sets, subsets = make_examples()
    limits = None
    if budget is not None:
        limits = [Constraint(None, budget, one.costs) for one in ground_sets]
    rivals = learned_rivals(ground_sets, subsets, budget=budget)
    assert list(rivals) == [
        f"{name} + {method}"
        for name in ("logistic", "boosting")
        for method in ("top", "mmr", "dpp")
    ]
    largest = max(map(len, subsets)) + 5
    for name in CLASSIFIERS:
        relevances, own = predicted(name, ground_sets, subsets)
        for method in ("top", "mmr", "dpp"):
            rival = rivals[f"{name} + {method}"]
            _, k, diversity = best_by_hand(
                relevances, ground_sets, subsets, method, largest, limits
            )
            assert (rival.k, rival.diversity) == (k, diversity)
            for ground_set, z in zip(ground_sets, own, strict=True):
                np.testing.assert_allclose(rival.relevance(ground_set.quality), z)
                expected = vg.select(
                    ground_set.blocks[""], z, k, method, diversity=diversity
                )
                assert rival(ground_set).tolist() == expected.tolist()


def test_what_was_learned_by_heart_does_not_count():
    """On noise, trees know their own ground sets, and no others."""
    ground_sets, subsets = make_examples(noise=20.0, n_items=40, seed=1)
    _, own = predicted("boosting", ground_sets, subsets)
    f, k, _ = best_by_hand(own, ground_sets, subsets, "top", 45)
    rival = learned_rivals(ground_sets, subsets)["boosting + top"]
    assert f > 0.8
    assert rival.k > k


class Memory:
    """A classifier that knows the rows it has seen."""

    def fit(self, X, y):
        self.seen = {row.tobytes() for row in X}
        return self

    def decision_function(self, X):
        return np.array([float(row.tobytes() in self.seen) for row in X])


@pytest.mark.parametrize("n_sets", [2, 3, 13])
def test_no_ground_set_is_predicted_by_what_has_seen_it(n_sets):
    ground_sets, subsets = make_examples(n_sets)
    examples = learned._check_examples(ground_sets, subsets, None)
    for relevance, ground_set in zip(
        learned._predict_out_of_fold(lambda seed: Memory(), examples, 0),
        ground_sets,
        strict=True,
    ):
        assert relevance.tolist() == [0.0] * len(ground_set)
    settled = learned._learn_relevance(lambda seed: Memory(), examples, 0)
    assert all(settled(one.quality).all() for one in ground_sets)


# Whatever comes -------------------------------------------------------------------


def test_a_relevance_that_tells_gives_the_size_that_is_wanted():
    ground_sets, _ = make_examples(30)
    subsets = [np.argsort(-one.quality[:, 0])[:4] for one in ground_sets]
    rivals = learned_rivals(ground_sets, subsets)
    for name in ("logistic + top", "boosting + top"):
        assert rivals[name].k == 4
    chosen = rivals["logistic + top"](ground_sets[0])
    assert sorted(chosen.tolist()) == sorted(subsets[0].tolist())


@pytest.mark.parametrize("wanted", ["all", "none"])
def test_labels_that_are_all_equal(wanted):
    ground_sets, _ = make_examples(3, n_items=4)
    subsets = [np.arange(4) if wanted == "all" else [] for _ in ground_sets]
    for rival in learned_rivals(ground_sets, subsets).values():
        assert rival.relevance(ground_sets[0].quality).tolist() == [0.0] * 4
        assert rival.k == (4 if wanted == "all" else 1)


def test_one_label_in_all_but_one_part():
    ground_sets, _ = make_examples(2, n_items=5)
    rivals = learned_rivals(ground_sets, [[0, 1], []])
    assert {len(rival(ground_sets[1])) for rival in rivals.values()} <= {1, 2, 3, 4, 5}


def test_a_single_ground_set():
    ground_sets, subsets = make_examples(1, noise=0.0)
    rivals = learned_rivals(ground_sets, subsets)
    # The classes are apart: in its own eyes the logistic regression is right.
    assert rivals["logistic + top"].k == len(subsets[0])


def test_ground_sets_of_one_item_and_one_feature():
    rng = np.random.default_rng(0)
    ground_sets = [vg.GroundSet(rng.standard_normal((1, 1))) for _ in range(12)]
    subsets = [[0] if one.quality[0, 0] > 0 else [] for one in ground_sets]
    for rival in learned_rivals(ground_sets, subsets).values():
        assert rival.k == 1
        assert rival(ground_sets[0]).tolist() == [0]


def test_sparse_similarity_is_like_dense():
    ground_sets, subsets = make_examples(4, n_items=8)
    thin = [
        vg.GroundSet(one.quality, sparse.csr_array(one.blocks[""]))
        for one in ground_sets
    ]
    dense, found = (learned_rivals(sets, subsets) for sets in (ground_sets, thin))
    for name, rival in dense.items():
        assert (rival.k, rival.diversity) == (found[name].k, found[name].diversity)
        for one, other in zip(ground_sets, thin, strict=True):
            assert rival(one).tolist() == found[name](other).tolist()


def test_blocks_stand_side_by_side():
    a, b = np.eye(3), np.ones((3, 2))
    ground_set = vg.GroundSet(a, {"a": a, "b": sparse.csr_array(b)})
    np.testing.assert_array_equal(embeddings_of(ground_set), np.hstack([a, b]))


def test_the_same_seed_gives_the_same():
    ground_sets, subsets = make_examples(12)
    one, other = (learned_rivals(ground_sets, subsets, 3) for _ in range(2))
    for name, rival in one.items():
        assert (rival.k, rival.diversity) == (other[name].k, other[name].diversity)


def test_what_cannot_be_learned_from():
    ground_sets, subsets = make_examples(3)
    with pytest.raises(ValueError, match="the list of ground sets is empty"):
        learned_rivals([], [])
    with pytest.raises(ValueError, match="2 subsets for 3 ground sets"):
        learned_rivals(ground_sets, subsets[:2])
    other = vg.GroundSet(np.ones((2, 1)))
    with pytest.raises(GroundSetError, match="it has 1 quality features but the first"):
        learned_rivals([*ground_sets, other], [*subsets, [0]])
    bare = [vg.GroundSet(one.quality) for one in ground_sets]
    with pytest.raises(GroundSetError, match="a budget needs the costs of the items"):
        learned_rivals(bare, subsets, budget=1.0)
    with pytest.raises(ValueError, match="budget must be a finite number > 0"):
        learned_rivals(ground_sets, subsets, budget=0.0)
