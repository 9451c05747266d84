import json
from functools import cache
from itertools import combinations, permutations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outside_data import outside_data
from variegate.video import evaluate_keyframes, hue_histogram
from variegate.video.evaluation import (
    frame_distances,
    n_matches,
    oracle_keyframes,
    score_against_user,
    with_lost,
)
from variegate.video.picture import hue_of_pixels


def pixel(*colour):
    return np.array([[colour]], dtype=np.uint8)


@pytest.mark.parametrize(
    ("colour", "degrees"),
    [
        ((255, 0, 0), 0),
        ((255, 255, 0), 60),
        ((0, 255, 0), 120),
        ((0, 255, 255), 180),
        ((0, 0, 255), 240),
        ((255, 0, 255), 300),  # -60, moved up
        ((90, 90, 90), 0),  # grey
        ((255, 1, 0), 0),  # 0.24 degrees, cut
        ((255, 0, 1), 0),  # -0.24 degrees, cut towards zero
        ((255, 0, 30), 353),  # -7.06 degrees, cut to -7
    ],
)
def test_hue(colour, degrees):
    assert hue_of_pixels(pixel(*colour)).item() == 255 * degrees // 360


def test_histogram():
    image = np.array([[(255, 0, 0), (0, 0, 255)], [(255, 0, 0), (255, 0, 0)]], np.uint8)
    histogram = hue_histogram(image)
    # Red has hue 0, bin 0; blue 255 · 240 // 360 = 170, bin 10.
    assert histogram[0] == 0.75
    assert histogram[10] == 0.25
    assert histogram.sum() == 1.0
    with pytest.raises(ValueError, match="rows, columns and three colours"):
        hue_histogram(np.zeros((4, 4)))


def test_distances():
    assert frame_distances([[1.0, 0.0]], [[0.0, 1.0], [0.5, 0.5]]).tolist() == [
        [2.0, 1.0]
    ]


def most_pairs(alike):
    """Try every order of the system's frames."""
    n_user, n_system = alike.shape
    size = max(n_user, n_system)
    padded = np.zeros((size, size), dtype=bool)
    padded[:n_user, :n_system] = alike
    return max(padded[range(size), order].sum() for order in permutations(range(size)))


@given(n_user=st.integers(1, 5), n_system=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_maximum_matching(n_user, n_system, seed):
    alike = np.random.default_rng(seed).random((n_user, n_system)) < 0.4
    largest = n_matches(alike)
    assert largest == most_pairs(alike)
    assert n_matches(alike, "vsumm") <= largest


def test_the_evaluator_takes_the_first_that_is_free():
    # The first user frame takes what the second needs; matched the other way, both are.
    alike = np.array([[1, 1], [1, 0]], dtype=bool)
    assert n_matches(alike, "vsumm") == 1
    assert n_matches(alike, "maximum") == 2
    with pytest.raises(ValueError, match="unknown matching 'best'; there are maximum"):
        n_matches(alike, "best")


def test_scores_by_hand():
    red, green, blue = np.eye(3)
    score = score_against_user([red, green], [red, blue, blue])
    assert score.precision == pytest.approx(1 / 3)
    assert score.recall == score.cus_a == pytest.approx(1 / 2)
    assert score.f == pytest.approx(2 / 5)
    assert score.cus_e == pytest.approx(2 / 2)
    lost = score_against_user(with_lost([red, green], 2), [red, blue, blue])
    assert lost.recall == pytest.approx(1 / 4)
    lost = score_against_user(with_lost([red], 1), with_lost([red, blue], 2))
    assert (lost.precision, lost.recall) == (1 / 4, 1 / 2)
    # A distance of exactly the threshold is no match.
    assert score_against_user([red], [0.75 * red + 0.25 * green]).recall == 0.0
    assert score_against_user([red], np.zeros((0, 3))).f == 0.0


def test_the_mean_over_users():
    red, green = np.eye(2)
    score = evaluate_keyframes([[red], [green], [red, green]], [red])
    assert score.precision == pytest.approx(2 / 3)
    assert score.recall == pytest.approx((1 + 0 + 1 / 2) / 3)
    with pytest.raises(ValueError, match="no users' key frames to compare with"):
        evaluate_keyframes([], [red])


def test_the_evaluators_own_numbers():
    folder = outside_data("video")

    @cache
    def histogram(video, frame):
        path = folder / "ovp" / "frames" / video / f"{frame:05d}.jpg"
        return hue_histogram(cv2.imread(str(path))[:, :, ::-1])

    cases = json.loads((folder / "vsumm_evaluator_scores.json").read_text())
    for case in cases:
        user = [histogram(case["video"], frame) for frame in case["user"]]
        system = [histogram(case["video"], frame) for frame in case["system"]]
        theirs = score_against_user(user, system, case["threshold"], "vsumm")
        # They are printed with two decimals.
        assert theirs.cus_a == pytest.approx(case["CUSa"], abs=0.005 + 1e-9)
        assert theirs.cus_e == pytest.approx(case["CUSe"], abs=0.005 + 1e-9)
        largest = score_against_user(user, system, case["threshold"], "maximum")
        assert largest.recall >= theirs.recall


# The oracle ------------------------------------------------------------------------


def test_what_all_users_chose():
    red, green, blue, grey = np.eye(4)
    frames = [grey, red, green, blue]
    assert oracle_keyframes(frames, [[red, green], [red, green]]).tolist() == [1, 2]
    # One user in three wants blue: F with it is (1 + 2/3 + 2/3) / 3, without 8/9.
    users = [[red, blue], [red], [red]]
    assert oracle_keyframes(frames, users).tolist() == [1]


def test_no_frame_agrees():
    red, green = np.eye(2)
    assert oracle_keyframes([red], [[green]]).tolist() == []
    assert oracle_keyframes(np.zeros((0, 2)), [[green]]).tolist() == []


@given(seed=st.integers(0, 10**6), n=st.integers(1, 5))
def test_no_single_frame_is_better_and_none_more_helps(seed, n):
    rng = np.random.default_rng(seed)
    frames = rng.dirichlet(np.ones(3), n)
    users = [rng.dirichlet(np.ones(3), rng.integers(1, 4)) for _ in range(2)]
    chosen = oracle_keyframes(frames, users)

    def f(members):
        return evaluate_keyframes(users, frames[list(members)]).f

    best_single = max(f(one) for one in combinations(range(n), 1))
    assert f(chosen) >= best_single - 1e-12
    for i in set(range(n)) - set(chosen.tolist()):
        assert f([*chosen, i]) <= f(chosen) + 1e-12
