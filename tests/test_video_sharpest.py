"""Of several frames the one without blur."""

import cv2
import numpy as np
import pytest

from films import write_film
from variegate.video.reading import frames_within, read_frames
from variegate.video.sharpest import sharpest_frames

HEIGHT, WIDTH = 96, 128


def scene(seed=0):
    rng = np.random.default_rng(seed)
    coarse = rng.integers(20, 236, (12, 16, 3), dtype=np.uint8)
    return cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_NEAREST)


def write(path, frames, rate=10.0):
    return write_film(path, frames, rate)


def blurred(picture, width):
    return cv2.blur(picture, (width, 1)) if width else picture


def test_the_sharpest_of_each_span(tmp_path):
    widths = [9, 5, 0, 5, 9, 9, 9, 3, 9, 9]
    path = write(tmp_path / "film.avi", [blurred(scene(), w) for w in widths])
    spans = [(0.0, 0.5), (0.5, 1.0)]
    assert [f.number for f in sharpest_frames(path, spans)] == [2, 7]
    # what is outside does not count, and the end of a span is outside
    assert [f.number for f in sharpest_frames(path, [(0.3, 0.7)])] == [3]
    assert list(sharpest_frames(path, [])) == []


def test_a_frame_that_fades_is_not_the_sharpest(tmp_path):
    shares = [0.2, 0.5, 0.8, 1.0, 0.8]
    frames = [(scene() * share).astype(np.uint8) for share in shares]
    path = write(tmp_path / "fade.avi", frames)
    assert [f.number for f in sharpest_frames(path, [(0.0, 1.0)])] == [3]


def test_of_frames_as_sharp_a_still_one(tmp_path):
    """A small thing runs over a sharp ground, blurred, until it stands."""
    frames = []
    for left in (0, 24, 48, 72, 96, 96, 96):
        frame = scene().copy()
        frame[40:56, left : left + 16] = 240
        frames.append(frame)
    path = write(tmp_path / "run.avi", frames)
    (found,) = sharpest_frames(path, [(0.0, 1.0)])
    assert found.number >= 5


def test_frames_within_spans(tmp_path):
    path = write(tmp_path / "film.avi", [scene(k) for k in range(10)])
    found = [(p, f.number) for p, f in frames_within(path, [(0.15, 0.4), (0.4, 0.55)])]
    assert found == [(0, 2), (0, 3), (1, 4), (1, 5)]
    every = list(read_frames(path, 0.001))
    for number, (_, frame) in enumerate(frames_within(path, [(0.0, 9.0)])):
        assert (frame.number, frame.time) == (number, pytest.approx(number / 10))
        np.testing.assert_array_equal(frame.image, every[number].image)
