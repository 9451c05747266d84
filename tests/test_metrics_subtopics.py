"""Measures of covered subtopics, against their definitions and an example by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variegate import metrics

MEASURES = [
    metrics.subtopic_recall,
    metrics.alpha_ndcg,
    metrics.intent_aware_precision,
]


@st.composite
def rankings(draw):
    """Return a ranking of some items, and the subtopics of each item as sets."""
    n, t = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    sets = draw(
        st.lists(st.sets(st.integers(0, t - 1)), min_size=n, max_size=n).filter(any)
    )
    order = draw(st.permutations(range(n)))
    return order[: draw(st.integers(1, n))], sets, draw(st.integers(1, 8))


def gains(order, sets, alpha):
    """Return the gain at each rank, term by term as Clarke et al. define it."""
    return [
        sum(
            (1 - alpha) ** sum(topic in sets[before] for before in order[:rank])
            for topic in sets[item]
        )
        for rank, item in enumerate(order)
    ]


def dcg(order, sets, alpha):
    return sum(
        gain / math.log2(rank + 2)
        for rank, gain in enumerate(gains(order, sets, alpha))
    )


def greedy(sets, depth, alpha):
    order = []
    while len(order) < min(depth, len(sets)):
        rest = [item for item in range(len(sets)) if item not in order]
        order.append(max(rest, key=lambda i: gains([*order, i], sets, alpha)[-1]))
    return order


@given(case=rankings(), alpha=st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_measures_equal_their_definitions(case, alpha):
    order, sets, k = case
    names = [[f"topic {t}" for t in sorted(one)] for one in sets]
    first, known = order[:k], set().union(*sets)
    covered = set().union(*(sets[item] for item in first))
    assert metrics.subtopic_recall(order, names, k) == pytest.approx(
        len(covered) / len(known)
    )
    ideal = dcg(greedy(sets, k, alpha), sets, alpha)
    assert metrics.alpha_ndcg(order, names, k, alpha) == pytest.approx(
        dcg(first, sets, alpha) / ideal
    )
    precisions = [sum(t in sets[item] for item in first) / k for t in known]
    assert metrics.intent_aware_precision(order, names, k) == pytest.approx(
        np.mean(precisions)
    )


@given(case=rankings())
def test_matrices_masks_and_labels_are_the_same(case):
    order, sets, k = case
    matrix = np.array([[t in one for t in range(5)] for one in sets])
    for measure in MEASURES:
        expected = measure(order, [list(one) for one in sets], k)
        assert measure(order, matrix, k) == pytest.approx(expected)
        assert measure(np.array(order), matrix.astype(int), k) == pytest.approx(
            expected
        )


def test_an_example_by_hand():
    # Ideal gains are 2, 2, 1, 1/2, 1/2, ...: for the first five ranks, DCG is 2, 2.315,
    # 2.440, 2.440, 3.214, and that of the ideal 2, 3.262, 3.762, 3.977, 4.171.
    nuggets = [[1, 2], [1], [1], [], [3, 4], [3], [5], [3], [], []]
    assert gains(range(10), nuggets, 0.5) == [2, 0.5, 0.25, 0, 2, 0.5, 1, 0.25, 0, 0]
    expected = [1.0, 2.315 / 3.262, 2.440 / 3.762, 2.440 / 3.977, 3.214 / 4.171]
    found = [metrics.alpha_ndcg(range(10), nuggets, k) for k in range(1, 6)]
    assert found == pytest.approx(expected, abs=5e-4)


def test_the_depth_is_the_number_of_chosen_items_unless_given():
    topics = ["a", "b", "c"]
    assert metrics.alpha_ndcg([2], topics) == 1.0
    assert metrics.alpha_ndcg([2], topics, 2) == pytest.approx(
        1.0 / (1.0 + 1.0 / math.log2(3))
    )
    assert metrics.intent_aware_precision([2], topics) == pytest.approx(1 / 3)
    assert metrics.intent_aware_precision([2], topics, 2) == pytest.approx(1 / 6)
    assert metrics.subtopic_recall([2], topics, 2) == pytest.approx(1 / 3)


def test_weights_are_probabilities_of_columns():
    J = np.array([[1, 0, 0], [0, 1, 0]], dtype=bool)
    found = metrics.intent_aware_precision([0], J, weights=[3.0, 1.0, 4.0])
    assert found == pytest.approx(3 / 8)
    for weights in ([1.0, 2.0], [[1.0, 2.0, 3.0]]):
        with pytest.raises(ValueError, match="one for each column of a matrix"):
            metrics.intent_aware_precision([0], J, weights=weights)
    with pytest.raises(ValueError, match="one for each column of a matrix"):
        metrics.intent_aware_precision([0], ["a", "b"], weights=[1.0, 2.0])
    for weights in ([-1.0, 1.0, 1.0], [0.0] * 3, [np.nan, 1.0, 1.0]):
        with pytest.raises(ValueError, match="finite numbers of at least 0, and one"):
            metrics.intent_aware_precision([0], J, weights=weights)


@pytest.mark.parametrize("measure", MEASURES)
def test_empty_choices_and_items_without_subtopics(measure):
    assert measure([], [None, None]) == 1.0
    assert measure([0], [None, float("nan")]) == 0.0
    assert measure([], ["a", None]) == 0.0
    assert measure([], ["a", None], 3) == 0.0


def test_labels_of_any_kind_become_a_matrix():
    expected = [[1, 0, 0], [0, 0, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]]
    labels = ["a", None, ("a", "b"), [], {"c"}]
    assert metrics.subtopic_matrix(labels).tolist() == np.array(expected, bool).tolist()
    assert metrics.subtopic_matrix(np.array([2, 1, 2])).sum(axis=0).tolist() == [2, 1]
    assert metrics.subtopic_matrix([]).shape == (0, 0)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([True, False], ["a", "b"]), "item numbers in the order of their ranks"),
        (([[0]], ["a", "b"]), "item numbers in the order of their ranks"),
        (([0, 0], ["a", "b"]), "chosen holds an item twice"),
        (([0, 2], ["a", "b"]), "numbers from 0 to 1, as subtopics has 2 items; got 0"),
        (([-1], ["a", "b"]), "numbers from 0 to 1"),
        (([0], np.array([[0.5, 1.0]])), "must be boolean, or of 0 and 1"),
        (([0], np.zeros((1, 1, 1))), r"got an array of shape \(1, 1, 1\)"),
        (([0], ["a"], 0), "k must be a whole number of at least 1"),
    ],
)
def test_bad_input_is_refused(measure, arguments, message):
    with pytest.raises(ValueError, match=message):
        measure(*arguments)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_alpha_is_a_share(alpha):
    with pytest.raises(ValueError, match="alpha must be between 0 and 1"):
        metrics.alpha_ndcg([0], ["a"], alpha=alpha)
