"""Baselines for summaries: small clusters whose right answer is worked out by hand."""

from itertools import permutations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from paper.documents.baselines import BASELINES, CoverageAndDiversity, choose_within
from paper.documents.decoders import PairwiseAgreement
from variegate.text.budget import Budget
from variegate.text.cluster_view import ClusterView
from variegate.text.documents import Cluster, Document

pytestmark = pytest.mark.paper

NAMES = list(BASELINES)
BY_CHANCE = ("lin-bilmes", "k-means", "random")


def sentence(words):
    return words.capitalize() + "."


def view_of(*documents):
    """A cluster from lists of sentences, each a string of words."""
    view = ClusterView.from_cluster(
        Cluster([Document(" ".join(map(sentence, lines))) for lines in documents])
    )
    assert view.texts == [sentence(line) for lines in documents for line in lines]
    return view


def choose(name, view, budget, seed=0):
    chosen = BASELINES[name](view, Budget.parse(budget), np.random.default_rng(seed))
    return chosen.tolist()


def orders(words, n):
    """The same words in n orders: their vectors are the same."""
    return [" ".join(order) for order in list(permutations(words.split()))[:n]]


def test_names():
    assert NAMES == [
        "lead",
        "lead round-robin",
        "centroid",
        "lexrank",
        "mmr",
        "lin-bilmes",
        "k-means",
        "random",
    ]


class TestLead:
    view = view_of(
        ["one two three four five", "a b c d e f g h i", "six seven eight nine"],
        ["red green blue brown", "oak elm ash fir yew"],
    )

    @pytest.mark.parametrize(
        ("name", "budget", "expected"),
        [
            ("lead", "4s", [0, 1, 2, 3]),
            ("lead", "9w", [0, 2]),  # 5 words; 9 no longer fit; 4 do
            ("lead", "17w", [0, 1]),
            ("lead round-robin", "1s", [0]),
            ("lead round-robin", "2s", [0, 3]),
            ("lead round-robin", "4s", [0, 1, 3, 4]),
            ("lead round-robin", "14w", [0, 3, 4]),  # 5 + 4, not 9, then 5
        ],
    )
    def test_by_hand(self, name, budget, expected):
        assert choose(name, self.view, budget) == expected


class TestCentrality:
    """A hub shares a word with each of four others, which share none."""

    spokes = (
        "apple apple elder olive",
        "banana banana grape honey",
        "cherry cherry iris jasmine",
        "damson damson kale lemon",
    )
    hub = "apple banana cherry damson"
    again = "damson cherry banana apple"

    @pytest.mark.parametrize("name", ["centroid", "lexrank", "mmr"])
    def test_hub_first_then_the_smallest_number(self, name):
        view = view_of(self.spokes[:2], [self.hub, *self.spokes[2:]])
        assert choose(name, view, "1s") == [2]
        assert choose(name, view, "2s") == [0, 2]
        assert choose(name, view, "3s") == [0, 1, 2]

    @pytest.mark.parametrize("name", ["centroid", "lexrank", "mmr"])
    def test_the_same_words_again_are_passed_over(self, name):
        view = view_of(self.spokes[:2], [self.hub, self.again, *self.spokes[2:]])
        assert choose(name, view, "1s") == [2]
        assert choose(name, view, "2s") == [0, 2]
        assert choose(name, view, "5s") == [0, 1, 2, 4, 5]

    @pytest.mark.parametrize("name", ["centroid", "lexrank"])
    @pytest.mark.parametrize(("n_shared", "expected"), [(9, [0, 1]), (10, [0, 2])])
    def test_threshold(self, name, n_shared, expected):
        # Of four sentences, k shared words weigh log 2 each and one word of its own
        # log 4 = 2 log 2, so the similarity is k / (k + 4): 9/13 < 0.7 < 10/14.
        shared = [f"word{number}" for number in range(n_shared)]
        view = view_of(
            [" ".join([*shared, "apple"]), " ".join([*shared, "banana"])],
            ["oak elm ash yew", "red green blue brown"],
        )
        assert choose(name, view, "2s") == expected

    def test_only_mmr_takes_repetitions_where_there_is_room(self):
        view = view_of([self.hub, self.again], ["elder olive grape honey"])
        assert choose("mmr", view, "3s") == [0, 1, 2]
        assert choose("centroid", view, "3s") == [0, 2]
        assert choose("lexrank", view, "3s") == [0, 2]

    def test_mmr_weighs_repetition_below_the_threshold(self):
        # Shared words weigh log 1.5, others log 3: w_01 = 0.29 and 2 is like nothing.
        # Relevance: 0.68, 0.68, 0.53; after 0, mmr is half of 0.39 for 1, 0.53 for 2.
        view = view_of(
            ["apple banana cherry damson", "apple banana cherry elder"],
            ["olive grape honey iris"],
        )
        assert choose("centroid", view, "2s") == [0, 1]
        assert choose("mmr", view, "2s") == [0, 2]

    def test_what_does_not_fit_is_skipped(self):
        long = self.hub + " apple banana cherry damson"
        view = view_of([long, *self.spokes])
        for name in ("centroid", "lexrank", "mmr"):
            assert choose(name, view, "7w") == [1]
            assert choose(name, view, "8w") == [0]


class TestKMeans:
    def test_one_of_each_group(self):
        view = view_of(
            orders("apple banana cherry damson", 3),
            orders("elder olive grape honey", 2),
            ["iris jasmine kale lemon"],
        )
        for seed in range(5):
            assert choose("k-means", view, "3s", seed) == [0, 3, 5]

    def test_nearest_to_the_centre(self):
        # One cluster.  The hub is the nearest to the mean, as the most similar to it.
        spokes = TestCentrality.spokes
        view = view_of([*spokes[:3], TestCentrality.hub, spokes[3]])
        assert choose("k-means", view, "1s") == [3]

    def test_largest_cluster_first(self):
        # Costs 10, 8, 8, 8: two of the average fit 17, but not 10 and 8.
        alone = "one two three four five six seven eight nine ten"
        group = orders("apple banana cherry damson elder olive grape honey", 3)
        view = view_of([alone], group)
        assert choose("k-means", view, "17w") == [1]
        assert choose("k-means", view, "18w") == [0, 1]


class TestLinBilmes:
    def test_one_of_each_group(self):
        # Similarities are 1 within and 0 between.  After 0, one of the same group gains
        # 5 + 6 (1 - sqrt 0.5), one of the other 5 + 6 sqrt 0.5.
        view = view_of(
            orders("apple banana cherry damson", 5),
            orders("elder olive grape honey", 5),
        )
        for seed in range(5):
            assert choose("lin-bilmes", view, "2s", seed) == [0, 5]

    def test_single_sentence_where_it_is_better(self):
        # f({0}) = 1 + 6 sqrt(1/3) = 4.5 at a cost of 1 leaves no room for 1, with
        # f({1}) = 1.9 + 6 sqrt(1.9/3) = 6.7 at a cost of 10; with room, both.
        W = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.9], [0.0, 0.9, 1.0]])
        costs = np.array([1.0, 10.0, 12.0])
        labels = np.zeros(3, dtype=np.intp)
        assert choose_within(CoverageAndDiversity(W, labels), costs, 10.0, 1.0) == [1]
        assert choose_within(CoverageAndDiversity(W, labels), costs, 11.0, 1.0) == [
            0,
            1,
        ]
        assert choose_within(CoverageAndDiversity(W, labels), costs, 0.5, 1.0) == []


def slow_objective(S, W, labels, a=5.0, weight=6.0):
    """Write out L(S) + λ R(S) of Lin and Bilmes (2011), section 4, sum by sum."""
    N = len(W)
    alpha = a / N
    L = 0.0
    for i in range(N):
        L += min(sum(W[i][j] for j in S), alpha * sum(W[i][k] for k in range(N)))
    R = 0.0
    for k in set(labels):
        inside = [j for j in S if labels[j] == k]
        R += sqrt(sum(sum(W[i][j] for i in range(N)) / N for j in inside))
    return L + weight * R


def slow_greedy(W, labels, costs, limit):
    """Write out Algorithm 1 of Lin and Bilmes (2010) with r = 1."""

    def f(S):
        return slow_objective(S, W, labels)

    G, U = [], list(range(len(W)))
    while U:
        k = max(U, key=lambda item: (f([*G, item]) - f(G)) / costs[item])
        if sum(costs[i] for i in G) + costs[k] <= limit and f([*G, k]) - f(G) >= 0:
            G.append(k)
        U.remove(k)
    alone = [i for i in range(len(W)) if costs[i] <= limit]
    best = max(alone, key=lambda item: f([item]), default=None)
    return G if best is None or f(G) >= f([best]) else [best]


def random_instance(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    F = rng.random((n, 4)) * (rng.random((n, 4)) < 0.6)
    W = F @ F.T
    return W, rng.integers(0, 3, size=n), rng.uniform(1.0, 5.0, size=n), rng


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("a", [0.5, 1.5, 5.0])
def test_objective_is_that_of_the_paper(seed, a):
    W, labels, _, rng = random_instance(seed)
    objective = CoverageAndDiversity(W, labels, saturation=a, weight=2.0)
    assert objective.value == 0.0
    S = []
    for item in rng.permutation(len(W)):
        before = slow_objective(S, W, labels, a, 2.0)
        others = np.setdiff1d(np.arange(len(W)), S)
        gains = [slow_objective([*S, j], W, labels, a, 2.0) - before for j in others]
        np.testing.assert_allclose(objective.gains(others), gains, atol=1e-12)
        objective.add(item)
        S.append(item)
        expected = slow_objective(S, W, labels, a, 2.0)
        assert objective.value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_greedy_is_that_of_the_paper(seed):
    W, labels, costs, rng = random_instance(seed)
    W = W + np.eye(len(W))  # no sentence without words: no gain is zero, no ties
    limit = float(rng.uniform(0.5, 12.0))
    found = choose_within(CoverageAndDiversity(W, labels), costs, limit, 1.0)
    assert found == slow_greedy(W, labels, costs, limit)


def counts_of(name):
    """How often each of three sentences is chosen in 300 summaries of one."""
    view = view_of(["red green blue brown", "oak elm ash yew"], ["one two three four"])
    rng, budget = np.random.default_rng(0), Budget(1, "sentences")
    chosen = [int(BASELINES[name](view, budget, rng)[0]) for _ in range(300)]
    return np.bincount(chosen, minlength=3)


def test_random_takes_each_equally_often():
    assert stats.chisquare(counts_of("random")).pvalue > 1e-3
    assert stats.chisquare(counts_of("lead")).pvalue < 1e-3  # the test can fail


WORDS = ["apple", "banana", "cherry", "damson", "elder"]
LINES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join),
    min_size=1,
    max_size=6,
)
BUDGETS = st.builds(
    Budget,
    st.integers(1, 60),
    st.sampled_from(["characters", "words", "sentences", "bytes"]),
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(st.lists(LINES, min_size=1, max_size=3), BUDGETS, st.integers(0, 99))
def test_budget_is_kept_and_seed_decides(name, documents, budget, seed):
    view = ClusterView.from_cluster(
        Cluster([Document(" ".join(map(sentence, lines))) for lines in documents])
    )
    chosen = BASELINES[name](view, budget, np.random.default_rng(seed))
    assert chosen.dtype == np.intp
    assert (np.diff(chosen) > 0).all()
    assert np.isin(chosen, np.arange(len(view))).all()
    costs = budget.costs(view.texts)
    assert costs[chosen].sum() <= budget.limit
    again = BASELINES[name](view, budget, np.random.default_rng(seed))
    assert again.tolist() == chosen.tolist()
    if name not in BY_CHANCE:
        other = BASELINES[name](view, budget, np.random.default_rng(seed + 1))
        assert other.tolist() == chosen.tolist()
    if name != "k-means" and (costs <= budget.limit).any():
        assert len(chosen) > 0


@pytest.mark.parametrize("name", NAMES)
def test_one_sentence(name):
    view = view_of(["apple banana cherry damson"])
    assert choose(name, view, "1s") == [0]
    assert choose(name, view, "3w") == []


@pytest.mark.parametrize("name", NAMES)
def test_identical_sentences(name):
    # Every word is in all sentences: all vectors are zero, nothing is like anything.
    view = view_of(orders("apple banana cherry damson", 6))
    chosen = choose(name, view, "3s")
    if name == "k-means":
        assert chosen == [0]
    elif name == "random":
        assert len(chosen) == 3
    else:
        assert chosen == [0, 1, 2]


def test_agreement_of_pairs():
    counts = sparse.csr_array(np.array([[2, 1, 0], [0, 1, 1], [1, 0, 0]]))
    candidates = np.array([[1, 0, 0], [0, 1, 1]], dtype=bool)  # aab; bca
    voters = np.array([[1, 1, 0], [0, 0, 0]], dtype=bool)  # aabbc; nothing
    found = PairwiseAgreement([counts, counts]).gains(candidates, voters)
    np.testing.assert_allclose(found, [[2 * 6 / 8, 0.0], [2 * 6 / 8, 0.0]])
