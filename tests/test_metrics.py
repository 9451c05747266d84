import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from variegate import metrics

subsets = st.lists(st.integers(0, 6), unique=True)


@given(chosen=subsets, wanted=subsets)
def test_f_score_is_the_harmonic_mean(chosen, wanted):
    assert metrics.f_score(chosen, wanted) == pytest.approx(
        reference.f_score(chosen, wanted)
    )
    p, r = metrics.precision(chosen, wanted), metrics.recall(chosen, wanted)
    if p + r > 0:
        assert metrics.f_score(chosen, wanted) == pytest.approx(2 * p * r / (p + r))


@given(
    first=st.lists(subsets, min_size=1),
    second=st.lists(st.tuples(subsets, st.integers(1, 5)), min_size=1),
)
def test_mean_f_score_is_the_mean_of_pairs(first, second):
    masks = [
        np.array([[i in row for i in range(7)] for row in rows])
        for rows in (first, [row for row, _ in second])
    ]
    counts = np.array([count for _, count in second])
    expected = [
        sum(n * reference.f_score(a, b) for b, n in second) / counts.sum()
        for a in first
    ]
    assert metrics.mean_f_score(*masks, counts) == pytest.approx(expected)


@given(chosen=subsets, wanted=subsets, omega=st.floats(0, 10))
def test_weighted_hamming(chosen, wanted, omega):
    expected = reference.hamming(wanted, chosen, np.ones(7), np.full(7, omega))
    assert metrics.weighted_hamming(chosen, wanted, omega) == pytest.approx(expected)


def test_by_hand():
    assert metrics.precision([0, 1, 2, 3], [2, 3, 4]) == 0.5
    assert metrics.recall([0, 1, 2, 3], [2, 3, 4]) == pytest.approx(2 / 3)
    assert metrics.f_score([True, False, True], [0, 2]) == 1.0
    assert metrics.weighted_hamming([0, 1], [1, 2, 3], omega=4.0) == 9.0


@pytest.mark.parametrize(
    ("chosen", "wanted", "p", "r"),
    [([], [], 1.0, 1.0), ([], [1], 0.0, 0.0), ([1], [], 0.0, 0.0)],
)
def test_empty_sets(chosen, wanted, p, r):
    assert metrics.precision(chosen, wanted) == p
    assert metrics.recall(chosen, wanted) == r


def test_mean_scores_needs_pairs():
    with pytest.raises(ValueError, match="1 chosen subsets but 2 wanted"):
        metrics.mean_scores([[0]], [[0], [1]])
    with pytest.raises(ValueError, match="no subsets"):
        metrics.mean_scores([], [])
