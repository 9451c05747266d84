import numpy as np
import pytest

import reference
from variegate.datasets import make_synthetic


def test_clean_subsets_are_the_most_probable_ones():
    data = make_synthetic(n_sets=100, n_items=6, n_features=3, random_state=0)
    for ground_set, clean in zip(data.ground_sets, data.clean_subsets, strict=True):
        X = ground_set.quality
        q = np.exp(X @ data.theta)
        L = q[:, None] * (X @ X.T) * q
        best = max(reference.all_subsets(6), key=lambda y: reference.det_subset(L, y))
        assert clean.tolist() == list(best)


def test_noise_flips_each_item_with_the_given_probability():
    data = make_synthetic(n_sets=500, noise=0.1, random_state=0)
    flips = sum(
        len(set(a.tolist()) ^ set(b.tolist()))
        for a, b in zip(data.subsets, data.clean_subsets, strict=True)
    )
    # 5000 coins: five standard deviations are 106.
    assert abs(flips - 500) < 106


def test_no_noise():
    data = make_synthetic(n_sets=20, noise=0.0, random_state=0)
    for a, b in zip(data.subsets, data.clean_subsets, strict=True):
        assert a.tolist() == b.tolist()


def test_clean_subsets_never_exceed_the_rank():
    data = make_synthetic(n_sets=200, random_state=0)
    assert max(len(subset) for subset in data.clean_subsets) <= 5
    assert max(len(subset) for subset in data.subsets) > 5


def test_same_seed_same_data():
    first, second = (make_synthetic(n_sets=3, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(first.theta, second.theta)
    for a, b in zip(first.ground_sets, second.ground_sets, strict=True):
        np.testing.assert_array_equal(a.quality, b.quality)


def test_given_theta():
    theta = np.array([1.0, 2.0])
    data = make_synthetic(n_sets=1, n_features=2, theta=theta, random_state=0)
    np.testing.assert_array_equal(data.theta, theta)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_sets": 0}, "n_sets and n_features must be at least 1"),
        ({"n_items": 21}, "n_items must be between 1 and 20, got 21"),
        ({"noise": 1.5}, "noise is a probability"),
        ({"theta": [np.nan] * 5}, "theta holds NaN"),
        ({"theta": [1.0]}, r"theta has shape \(1,\), expected \(5,\)"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_synthetic(**arguments)
