import re
import sys
from itertools import combinations, pairwise

import numpy as np
import pytest
from sample_video import Scene, write_sample_video

from variegate._install import install_command
from variegate.video import hue_histogram
from variegate.video.reading import read_frames
from variegate.video.screening import screen

SMALL = {"duration": 40.0, "size": (96, 64), "rate": 10.0, "n_scenes": 6}


def every_frame(path):
    return list(read_frames(path, every=0.001))


def images_of(scene, frames, rate=10.0):
    first, last = round(scene.start * rate), round(scene.end * rate)
    return [frame.image for frame in frames[first:last]]


def distance(one, other):
    return np.abs(one - other).sum()


@pytest.fixture(scope="module", params=["video.mp4", "video.avi"])
def sample(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("sample") / request.param
    scenes = write_sample_video(path, **SMALL)
    return scenes, every_frame(path)


@pytest.fixture(scope="module")
def histograms(sample):
    """Every fifth frame's, by the number of the scene."""
    scenes, frames = sample
    by_scene = {}
    for scene in scenes:
        if scene.kind == "scene":
            images = images_of(scene, frames)[::5]
            by_scene.setdefault(scene.scene, []).extend(map(hue_histogram, images))
    return by_scene


def test_frames(sample):
    _, frames = sample
    assert len(frames) == 400
    assert frames[0].image.shape == (64, 96, 3)
    assert frames[-1].time == pytest.approx(39.9, abs=1e-3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("duration", "n_scenes", "rate"),
    [(18.0, 2, 1.0), (40.0, 6, 10.0), (69.0, 12, 1.0), (130.3, 20, 2.5)],
)
def test_timetable(tmp_path, duration, n_scenes, rate, seed):
    path = tmp_path / "video.avi"
    scenes = write_sample_video(path, duration, (32, 32), rate, n_scenes, seed)
    assert scenes[0].start == 0.0
    assert scenes[-1].end == pytest.approx(duration, abs=0.5 / rate + 1e-9)
    assert len(every_frame(path)) == round(scenes[-1].end * rate)
    for before, after in pairwise(scenes):
        assert before.end == after.start
    for scene in scenes:
        assert scene.end - scene.start > 0.5 / rate
        assert scene.start * rate == pytest.approx(round(scene.start * rate))

    gaps = [scene for scene in scenes if scene.kind == "black"]
    assert len(gaps) >= 3
    assert gaps[0] is scenes[0]
    assert all(gap.scene is None for gap in gaps)
    # Gaps are of one second, but end with a frame.
    assert all(abs(gap.end - gap.start - 1.0) <= 1.0 / rate for gap in gaps)

    shown = [scene.scene for scene in scenes if scene.kind == "scene"]
    assert sorted(set(shown)) == list(range(n_scenes))
    assert len(shown) == n_scenes + 1
    assert all(one != other for one, other in pairwise(shown))


def test_lengths_vary(tmp_path):
    scenes = write_sample_video(tmp_path / "video.avi", rate=2.0, size=(32, 32))
    lengths = [scene.end - scene.start for scene in scenes if scene.kind == "scene"]
    assert 2.5 < min(lengths) < 4.0
    assert 25.0 < max(lengths) < 35.0


def test_black_is_black(sample):
    scenes, frames = sample
    for scene in scenes:
        images = images_of(scene, frames)
        if scene.kind == "black":
            assert max(image.max() for image in images) < 16
        else:
            assert min(image.mean() for image in images) > 50


def test_scenes_differ(histograms):
    assert sorted(histograms) == list(range(6))
    for one, other in combinations(histograms.values(), 2):
        assert min(distance(a, b) for a in one for b in other) > 0.5


def test_frames_of_a_scene_agree(histograms):
    # A scene that returns is among them, with the frames of both times.
    distances = [
        distance(a, b)
        for frames in histograms.values()
        for a, b in combinations(frames, 2)
    ]
    assert np.mean(np.array(distances) < 0.5) > 0.95


def test_pictures_move_and_are_not_flat(sample):
    scenes, frames = sample
    for scene in scenes:
        if scene.kind == "scene":
            first, *_, last = images_of(scene, frames)
            assert first.std() > 20
            assert np.abs(first.astype(int) - last).mean() > 3


def test_screening_keeps_the_scenes_and_drops_black(sample):
    scenes, frames = sample
    decisions = [decision for decision, _ in screen(frames)]
    for scene in scenes:
        if scene.kind == "black":
            inside = [d for d in decisions if scene.start <= d.time + 0.01 < scene.end]
            assert {d.reason for d in inside} == {"dark"}
    flaws = {decision.reason for decision in decisions if not decision.kept}
    assert flaws <= {"dark", "repeats the frame before"}


def test_seeds(tmp_path):
    path = tmp_path / "video.avi"

    def written(random_state):
        scenes = write_sample_video(path, **SMALL, random_state=random_state)
        return scenes, np.array([frame.image for frame in every_frame(path)])

    scenes, images = written(3)
    for same in (3, np.random.default_rng(3)):
        scenes_again, images_again = written(same)
        assert scenes_again == scenes
        np.testing.assert_array_equal(images_again, images)
    other_scenes, other_images = written(4)
    assert other_scenes != scenes
    assert not np.array_equal(other_images, images)


def test_many_scenes(tmp_path):
    path = tmp_path / "VIDEO.MP4"
    scenes = write_sample_video(path, 1200.0, (32, 32), 1.0, 200)
    assert len({scene.scene for scene in scenes} - {None}) == 200
    assert len(every_frame(path)) == 1200


def test_scene():
    assert Scene(0.0, 1.0, "black").scene is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": (97, 64)}, "even numbers of at least 32, got (97, 64)"),
        ({"size": (96, 16)}, "even numbers of at least 32, got (96, 16)"),
        ({"size": (96.0, 64)}, "even numbers of at least 32, got (96.0, 64)"),
        ({"size": (96,)}, "even numbers of at least 32, got (96,)"),
        ({"rate": 0.5}, "rate is the frames a second, from 1 to 120, got 0.5"),
        ({"rate": float("nan")}, "rate is the frames a second"),
        ({"n_scenes": 1}, "n_scenes must be a whole number of at least 2, got 1"),
        ({"n_scenes": 2.5}, "n_scenes must be a whole number of at least 2, got 2.5"),
        (
            {"duration": 37.0},
            "6 scenes need a duration of at least 38 seconds, got 37.0",
        ),
        ({"duration": float("inf")}, "at least 38 seconds, got inf"),
        ({"duration": float("nan")}, "at least 38 seconds, got nan"),
        ({"random_state": -1}, "random_state must be None"),
    ],
)
def test_bad_arguments(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        write_sample_video(tmp_path / "video.mp4", **{**SMALL, **arguments})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["video.webm", "video"])
def test_unknown_suffix(tmp_path, name):
    message = f"a sample video ends in .mp4 or .avi, got '{name}'"
    with pytest.raises(ValueError, match=re.escape(message)):
        write_sample_video(tmp_path / name)


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"there is no folder .*; make it first"
    ):
        write_sample_video(tmp_path / "missing" / "video.mp4")
    folder = tmp_path / "folder.mp4"
    folder.mkdir()
    with pytest.raises(OSError, match=r"folder\.mp4 cannot be written as a video"):
        write_sample_video(folder)


def test_without_opencv(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match=re.escape(install_command("video"))):
        write_sample_video(tmp_path / "video.mp4")
