"""Cuts of films whose cuts are known, and what is looked at in each shot."""

from itertools import pairwise

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from films import write_film
from variegate.video.candidates import read_candidates
from variegate.video.shots import Reel, Shot, shot_at

HEIGHT, WIDTH = 48, 64
BLACK = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)


def canvas(seed):
    """Return a wide picture of coarse patches, to film parts of."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(20, 256, (6, 20, 3), dtype=np.uint8)
    return cv2.resize(coarse, (20 * 8, HEIGHT), interpolation=cv2.INTER_NEAREST)


def filmed(seed, n_frames, speed=1):
    """Return the frames of a camera that moves to the right."""
    wide = canvas(seed)
    return [wide[:, k * speed : k * speed + WIDTH] for k in range(n_frames)]


def write(path, frames, rate=25.0):
    return write_film(path, frames, rate)


def read(path, every=0.5):
    reel = Reel(path, every)
    return [frame.number for frame in reel], reel


@given(
    lengths=st.lists(st.integers(6, 30), min_size=1, max_size=5), seed=st.integers(0)
)
@settings(max_examples=15, deadline=None)
def test_every_cut_is_found_and_no_other(tmp_path_factory, lengths, seed):
    path = tmp_path_factory.mktemp("films") / "film.avi"
    seeds = np.random.default_rng(seed).permutation(1000)
    write(path, [f for s, n in zip(seeds, lengths, strict=False) for f in filmed(s, n)])
    numbers, reel = read(path)
    starts = np.cumsum([0, *lengths])
    assert reel.cuts == pytest.approx(starts[1:-1] / 25.0, abs=1e-3)
    assert reel.duration == pytest.approx(starts[-1] / 25.0, abs=1e-3)
    # every shot is looked at, and every half second
    assert all(any(a <= n < b for n in numbers) for a, b in pairwise(starts))
    assert {0, 13, 25, 38} & set(range(starts[-1])) <= set(numbers)
    assert numbers == sorted(set(numbers))


def test_a_fast_camera_is_no_cut(tmp_path):
    path = write(tmp_path / "fast.avi", filmed(1, 24, speed=4))
    assert read(path)[1].cuts == []


def test_light_that_changes_is_no_cut(tmp_path):
    wide = filmed(2, 1)[0]
    steps = [(wide * share).astype(np.uint8) for share in (1.0, 0.6, 1.0)]
    path = write(tmp_path / "light.avi", [s for s in steps for _ in range(12)])
    assert read(path)[1].cuts == []


def test_a_flash_is_no_shot(tmp_path):
    white = np.full_like(BLACK, 255)
    frames = filmed(3, 40)
    path = write(tmp_path / "flash.avi", [*frames[:20], white, white, *frames[20:]])
    assert read(path)[1].cuts == []


def test_two_cuts_in_a_row_are_one(tmp_path):
    frames = [*filmed(4, 20), *filmed(5, 3), *filmed(6, 20)]
    path = write(tmp_path / "quick.avi", frames)
    assert read(path)[1].cuts == pytest.approx([23 / 25.0], abs=1e-3)


@pytest.mark.parametrize("n_last", [2, 8])
def test_the_last_frames(tmp_path, n_last):
    """A shot of 0.08 s is none; one of 0.32 s is looked at, between two steps."""
    path = write(tmp_path / "end.avi", [*filmed(7, 40), *filmed(8, n_last)])
    numbers, reel = read(path)
    assert len(reel.shots) == (2 if n_last == 8 else 1)
    assert any(n >= 40 for n in numbers) == (n_last == 8)
    assert reel.shots[-1].end == reel.duration


def test_black_parts_shots_and_is_none(tmp_path):
    picture = filmed(9, 1)[0]
    fade = [(picture * share).astype(np.uint8) for share in np.linspace(1, 0, 15)]
    path = write(tmp_path / "fade.avi", [*fade, *[BLACK] * 25, *fade[::-1], picture])
    video = read_candidates(path)
    assert len(video.shots) == 2
    assert set(video.view.shots) == {0, 1}
    assert {d.reason for d in video.decisions if not d.kept} >= {"dark"}


def test_a_short_shot_beside_a_detailed_one_has_a_candidate(tmp_path):
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    calm = np.full_like(BLACK, 200)
    calm[:, : WIDTH // 2] = 40
    path = write(tmp_path / "short.avi", [noise] * 50 + [calm] * 12 + [noise] * 50)
    assert set(read_candidates(path).view.shots) == {0, 1, 2}


def test_no_stretch_goes_beyond_a_cut(tmp_path):
    """Two shots of the same colours, which the look alone takes for one."""
    wide = canvas(10)
    flipped = wide[:, ::-1]
    frames = [wide[:, :WIDTH]] * 30 + [flipped[:, -WIDTH:]] * 30
    video = read_candidates(write(tmp_path / "same.avi", frames))
    assert len(video.shots) == 2
    for place, (start, end) in enumerate(video.spans):
        shot = video.shots[video.view.shots[place]]
        assert shot.start <= start <= end < shot.end
        start, end = video.span_around(place)
        assert shot.start <= start < end <= shot.end


def test_windows_of_candidates_do_not_overlap(tmp_path):
    frames = [f for s in range(4) for f in filmed(20 + s, 60)]
    video = read_candidates(write(tmp_path / "film.avi", frames))
    windows = [video.span_around(place) for place in range(len(video.view))]
    for place, (start, end) in enumerate(windows):
        assert start <= video.view.descriptions[place].time < end
        assert place == 0 or windows[place - 1][1] <= start


def test_one_frame(tmp_path):
    numbers, reel = read(write(tmp_path / "one.avi", filmed(1, 1)))
    assert (numbers, reel.cuts) == ([0], [])
    assert reel.duration == pytest.approx(0.04)


def test_which_shot_a_time_is_in():
    shots = [Shot(1.0, 2.0), Shot(2.0, 5.0)]
    assert [shot_at(shots, t) for t in (0.0, 1.5, 2.0, 9.0)] == [0, 0, 1, 1]


def test_bad_steps(tmp_path):
    with pytest.raises(ValueError, match=r"every is the seconds between frames"):
        Reel(write(tmp_path / "one.avi", filmed(1, 1)), 0.0)
