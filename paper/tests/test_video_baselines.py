import numpy as np
import pytest

from paper.video.baselines import (
    kmeans_keyframes,
    random_keyframes,
    uniform_keyframes,
    vsumm,
)
from paper.video.features import PairwiseMatching

pytestmark = pytest.mark.paper

RED, GREEN, BLUE = np.eye(3)


def noisy(colour, count, seed=0):
    rng = np.random.default_rng(seed)
    frames = 0.98 * colour + 0.02 * rng.dirichlet(np.ones(3), count)
    return frames / frames.sum(axis=1, keepdims=True)


SCENES = np.vstack([noisy(RED, 10), noisy(GREEN, 2), noisy(BLUE, 12)])


def test_uniform():
    assert uniform_keyframes(10, 2).tolist() == [2, 7]  # 2.5 and 7.5
    assert uniform_keyframes(3, 9).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        uniform_keyframes(10, 0)


def test_random():
    chosen = random_keyframes(20, 5, np.random.default_rng(0))
    assert len(set(chosen.tolist())) == 5
    assert chosen.tolist() == sorted(chosen.tolist())
    assert len(random_keyframes(3, 9, np.random.default_rng(0))) == 3


def scene(frame):
    return "red" if frame < 10 else "green" if frame < 12 else "blue"


def test_one_frame_from_each_scene():
    # Two changes, so three clusters.
    assert [scene(frame) for frame in vsumm(SCENES)] == ["red", "green", "blue"]
    assert [scene(f) for f in kmeans_keyframes(SCENES, 3)] == ["red", "green", "blue"]


def test_key_clusters_are_large():
    # The mean size is 8; two green frames are fewer than half of that.
    assert [scene(f) for f in vsumm(SCENES, key_clusters=True)] == ["red", "blue"]


def test_a_scene_that_comes_again_is_told_once():
    again = np.vstack([noisy(RED, 6), noisy(BLUE, 6), noisy(RED, 6, seed=1)])
    chosen = vsumm(again)
    assert len(chosen) == 2
    colours = {int(np.argmax(again[frame])) for frame in chosen}
    assert colours == {0, 2}


def test_one_frame_and_equal_frames():
    assert vsumm([RED]).tolist() == [0]
    assert len(vsumm([RED] * 5)) == 1
    assert len(kmeans_keyframes([RED] * 5, 3)) == 1


def test_pairs_of_subsets():
    alike = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
    A = np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    B = np.array([[1, 0, 0], [1, 1, 1]], dtype=bool)
    # {0, 1} with {0}: one pair of 2 + 1; with {0, 1, 2}: two of 2 + 3.
    expected = [[2 / 3, 4 / 5], [0.0, 2 / 4], [0.0, 0.0]]
    np.testing.assert_allclose(
        PairwiseMatching(alike, 1.0, alike).gains(A, B), expected
    )
    # With β = 2: 5 h / (a + 4 b).
    expected = [[5 / 6, 10 / 14], [0.0, 5 / 13], [0.0, 0.0]]
    np.testing.assert_allclose(
        PairwiseMatching(alike, 2.0, alike).gains(A, B), expected
    )
