import json
import re

import cv2
import numpy as np
import pytest
from sample_video import write_sample_video
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import variegate as vg
from variegate.files.models import ModelFileError
from variegate.selection import Selection
from variegate.video import KeyframePicker, PickedVideo, load_default
from variegate.video.candidates import TrainingVideo, VideoView, read_candidates
from variegate.video.choosing import Amount, fill_up
from variegate.video.picture import PICTURE_STATISTICS, describe
from variegate.video.shots import Stretch, merge_stretches, shot_at

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SMALL = {"duration": 40.0, "size": (96, 64), "rate": 5.0, "n_scenes": 5}


def textured(colour, seed=0, height=48, width=64):
    """Return a picture of one hue with some pattern."""
    rng = np.random.default_rng(seed)
    blocks = rng.uniform(0.3, 1.0, size=(height // 8, width // 8, 1))
    pattern = np.repeat(np.repeat(blocks, 8, axis=0), 8, axis=1)
    return (pattern * np.array(colour)).astype(np.uint8)


def write_video(path, pictures, rate=4.0):
    height, width = pictures[0].shape[:2]
    codec = cv2.VideoWriter_fourcc(*"MJPG")
    writer = cv2.VideoWriter(str(path), codec, rate, (width, height))
    for picture in pictures:
        writer.write(np.ascontiguousarray(picture[:, :, ::-1]))
    writer.release()
    return path


def view_of(pictures, duration=None):
    descriptions = [describe(k, float(k), image) for k, image in enumerate(pictures)]
    return VideoView(descriptions, duration or float(len(pictures)))


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    """Three films, and users who pick the middle of every scene."""
    folder = tmp_path_factory.mktemp("videos")
    made = []
    for seed in range(3):
        path = folder / f"film{seed}.avi"
        scenes = write_sample_video(path, random_state=seed, **SMALL)
        middles = [(s.start + s.end) / 2 for s in scenes if s.kind == "scene"]
        made.append((PickedVideo(path, [middles, middles[:-1]]), scenes))
    return made


@pytest.fixture(scope="module")
def picker(videos):
    picked = [video for video, _ in videos]
    model = KeyframePicker(omega=(0.25, 1.0, 4.0), max_iter=60, n_samples=100)
    return model.fit(picked)


# Candidates -----------------------------------------------------------------------


def test_every_scene_has_candidates_and_black_none(videos):
    for video, scenes in videos:
        read = read_candidates(video.path)
        times = [d.time for d in read.view.descriptions]
        assert times == sorted(times)
        for scene in scenes:
            inside = [t for t in times if scene.start <= t < scene.end]
            if scene.kind == "black":
                assert not inside
            else:
                assert inside
        assert all(end - start <= 4.0 + 1e-9 for start, end in read.spans)
        assert all(
            start <= time <= end
            for time, (start, end) in zip(times, read.spans, strict=True)
        )
        reasons = {d.reason for d in read.decisions if not d.kept}
        assert "dark" in reasons


def test_times_find_their_candidate(videos):
    read = read_candidates(videos[0][0].path)
    for place, (start, end) in enumerate(read.spans):
        assert read.candidate_at((start + end) / 2) == place
    assert read.candidate_at(1e6, reach=2.0) is None
    assert read.candidate_at(read.spans[-1][1] + 1.0, reach=2.0) == len(read.spans) - 1


def test_steps_of_a_fade_are_no_candidates(tmp_path):
    picture = textured((250, 120, 60))
    black = np.zeros_like(picture)
    fade = [(picture * share).astype(np.uint8) for share in (0.3, 0.55, 0.8)]
    frames = [black] * 4 + [p for p in fade for _ in range(2)] + [picture] * 16
    path = write_video(tmp_path / "fade.avi", frames)
    times = [d.time for d in read_candidates(path).view.descriptions]
    assert times
    assert min(times) >= 2.5  # black for 1 s, then three steps of half a second


def test_merging_cuts_where_neighbours_differ_most():
    looks = [np.full(96, v) for v in (0.0, 0.1, 5.0, 5.2, 5.3, 9.0)]
    frame = describe(0, 0.0, textured((250, 120, 60)))
    details = (1.0, 2.0, 3.0, 9.0, 4.0, 5.0)
    stretches = [
        Stretch(float(k), k + 0.5, frame, look, detail)
        for k, (look, detail) in enumerate(zip(looks, details, strict=True))
    ]
    merged = merge_stretches(stretches, 3)
    assert [(s.start, s.end) for s in merged] == [(0.0, 1.5), (2.0, 4.5), (5.0, 5.5)]
    # The frame of each is the most detailed one.
    assert [s.detail for s in merged] == [2.0, 9.0, 5.0]
    assert merge_stretches(stretches[:2], 3) == stretches[:2]
    (one,) = merge_stretches(stretches, 1)
    assert (one.start, one.end) == (0.0, 5.5)


# Views ----------------------------------------------------------------------------


def test_quality_features_have_mean_0_and_deviation_1():
    colours = [(250, 90, 10), (20, 200, 90), (30, 40, 240), (200, 200, 30)]
    table = view_of([textured(c, k) for k, c in enumerate(colours)]).quality()
    assert table.shape == (4, len(PICTURE_STATISTICS))
    np.testing.assert_allclose(table.mean(axis=0), 0.0, atol=1e-9)
    deviation = table.std(axis=0)
    is_constant = deviation < 1e-6
    np.testing.assert_allclose(deviation[~is_constant], 1.0)
    assert (~is_constant).sum() > len(deviation) / 2


def test_one_frame_has_features():
    table = view_of([textured((250, 90, 10))], 0.0).quality()
    np.testing.assert_array_equal(table, np.zeros((1, len(PICTURE_STATISTICS))))


def test_frames_that_are_alike():
    red, more_red = textured((250, 60, 40), 0), textured((250, 60, 40), 1)
    blue = textured((30, 50, 240), 0)
    dark_grey = textured((60, 60, 60), 0)
    light_grey = (dark_grey.astype(int) // 4 + 190).astype(np.uint8)
    alike = view_of([red, more_red, blue, dark_grey, light_grey]).alike
    np.testing.assert_array_equal(alike, alike.T)
    assert alike.diagonal().all()
    assert alike[0, 1]
    assert not alike[0, 2]
    # Greys have one hue; brightness tells them apart.
    assert not alike[3, 4]


# Learning and choosing ------------------------------------------------------------


def test_learned_pickers_find_every_scene(picker, videos):
    for video, scenes in videos:
        summary = picker.pick(video.path, omega=4.0)
        times = [keyframe.time for keyframe in summary.keyframes]
        contents = {s.scene for s in scenes if s.kind == "scene"}
        found = {s.scene for s in scenes for t in times if s.start <= t < s.end}
        assert found == contents
        assert [c.time for c in summary.candidates if c.chosen] == times
        for keyframe in summary.keyframes:
            assert keyframe.image.shape == (64, 96, 3)
            assert keyframe.image.max() > 60


def test_the_pictures_are_those_of_the_frames(picker, videos):
    path = videos[0][0].path
    summary = picker.pick(path)
    capture = cv2.VideoCapture(str(path))
    frames = []
    while True:
        read, frame = capture.read()
        if not read:
            break
        frames.append(frame)
    for keyframe in summary.keyframes:
        same = frames[keyframe.number][:, :, ::-1]
        np.testing.assert_array_equal(keyframe.image, same)


def test_larger_omegas_expect_more(picker, videos):
    view = read_candidates(videos[0][0].path).view
    sizes = [picker.choose(view, w).ensemble.expected_size() for w in (0.25, 1, 2, 4)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_at_most_so_many_frames(picker, videos):
    for most in (1, 2, 3):
        summary = picker.pick(videos[0][0].path, omega=4.0, max_frames=most)
        assert 1 <= len(summary.keyframes) <= most


def test_exactly_so_many_frames(picker, videos):
    path = videos[0][0].path
    n_candidates = len(read_candidates(path).view)
    free = {k.number for k in picker.pick(path).keyframes}
    for count in (1, 2, len(free) + 1, n_candidates):
        summary = picker.pick(path, count=count)
        numbers = {k.number for k in summary.keyframes}
        assert len(numbers) == len(summary.keyframes) == count
        if count >= len(free):
            assert numbers >= free
    fewer = picker.pick(path, max_frames=2)
    assert picker.pick(path, count=2).as_dict() == fewer.as_dict()


def test_what_is_added_raises_the_probability_most():
    rng = np.random.default_rng(3)
    B = rng.normal(size=(7, 7))
    ensemble = vg.LEnsemble(B @ B.T)
    start = Selection(np.array([2, 5]), 0.0, "so far")
    filled = fill_up(ensemble, start, 5)
    chosen = [2, 5]
    for _ in range(3):
        others = [k for k in range(7) if k not in chosen]
        chosen.append(max(others, key=lambda k: ensemble.log_prob([*chosen, k])))
    assert filled.indices.tolist() == sorted(chosen)
    assert fill_up(ensemble, start, 2) is start
    assert "to 5 frames" in filled.stop_reason


def test_so_many_where_the_rank_is_less():
    B = np.repeat(np.eye(2), [3, 2], axis=0) * np.array([3.0, 2.0])
    ensemble = vg.LEnsemble(B @ B.T)
    filled = fill_up(ensemble, Selection(np.array([0]), 0.0, "so far"), 4)
    # One of the other kind, then the likeliest: of three alike, each is in a set with
    # probability 27 / 28 / 3, and of two with 8 / 9 / 2.
    assert filled.indices.tolist() == [0, 1, 3, 4]


def test_one_frame_for_each_shot(picker, videos):
    for video, scenes in videos:
        summary = picker.pick(video.path, per_shot=True)
        filmed = [scene for scene in scenes if scene.kind == "scene"]
        assert len(summary.keyframes) == len(summary.shots) == len(filmed)
        for keyframe, scene in zip(summary.keyframes, filmed, strict=True):
            assert scene.start - 1e-3 <= keyframe.time < scene.end - 1e-3
        assert summary.shots_shown == len(filmed)
        for place, candidate in enumerate(summary.candidates):
            beside = [
                c
                for c in summary.candidates
                if c.chosen
                and shot_at(summary.shots, c.time)
                == shot_at(summary.shots, candidate.time)
            ]
            assert len(beside) == 1
            assert beside[0].probability >= candidate.probability, place
            if candidate.why_not is not None:
                assert candidate.why_not.startswith("same shot as frame ")
                assert candidate.like == beside[0].number


def test_every_shot_of_a_film_of_two_colours_is_chosen(tmp_path):
    """By their hues one would stand for the other."""
    y, x = np.mgrid[:96, :128]
    masks = [x < 64, y < 48, x // 4 % 2 == 0, y // 8 % 2 == 0]
    masks.append((x - 64) ** 2 + (y - 48) ** 2 < 45**2)
    red, blue = np.uint8([230, 90, 60]), np.uint8([60, 90, 230])
    pictures = [np.where(mask[..., None], red, blue) for mask in masks]
    path = write_video(tmp_path / "same.avi", [p for p in pictures for _ in range(12)])
    view = read_candidates(path).view
    assert view.alike.all()
    model = load_default()
    summary = model.pick(path, omega=64.0)
    assert summary.shots_shown == len(summary.shots) == 5
    # Where shots are not known, colours alone decide.
    blind = VideoView(view.descriptions, view.duration)
    assert len(model.choose(blind, 64.0).selection) < 5


def test_the_sharpest_frame_is_taken(tmp_path):
    sharp = textured((250, 120, 60), height=96, width=128)
    blurred = [cv2.blur(sharp, (k, k)) for k in (5, 4, 3, 1, 3, 4, 5, 6)]
    path = write_video(tmp_path / "focus.avi", blurred)
    (keyframe,) = load_default().pick(path, omega=64.0).keyframes
    assert keyframe.number == 3


def test_why_a_likelier_frame_is_refused(picker, videos):
    found = 0
    for video, _ in videos:
        read = read_candidates(video.path)
        choice = picker.choose(read.view, 1.0, Amount(max_frames=2))
        ensemble, chosen = choice.ensemble, choice.selection.indices
        summary = picker.pick(video.path, omega=1.0, max_frames=2)
        probability = ensemble.marginals()
        keyframes = dict(zip(chosen.tolist(), summary.keyframes, strict=True))
        for place, candidate in enumerate(summary.candidates):
            refused = place not in chosen and probability[place] > min(
                probability[chosen]
            )
            assert (candidate.why_not is not None) == refused
            if not refused:
                continue
            found += 1
            # What each chosen frame alone takes from the gain of this one.
            alone = ensemble.log_prob([place]) - ensemble.log_prob([])
            lost = {
                number: alone - (ensemble.log_prob([place, c]) - ensemble.log_prob([c]))
                for c, number in zip(
                    keyframes, [k.number for k in keyframes.values()], strict=True
                )
            }
            told = lost[candidate.like]
            assert told == pytest.approx(-np.log(1 - candidate.similarity**2))
            if candidate.why_not.startswith("adds too little beside"):
                assert told == max(lost.values())
            else:
                assert candidate.why_not.startswith("too similar to frame ")
    assert found


def test_the_duration_is_that_of_the_film(picker, videos, tmp_path):
    assert picker.pick(videos[0][0].path).duration == pytest.approx(40.0)
    pictures = [textured((250, 120, 60), k) for k in range(7)]
    path = write_video(tmp_path / "short.avi", pictures, rate=5.0)
    assert picker.pick(path).duration == pytest.approx(1.4)


def test_no_two_frames_above_a_similarity(picker, videos):
    view = read_candidates(videos[0][0].path).view
    generous = clone(picker).set_params(beta=5.0, max_similarity=0.8)
    generous.__dict__.update({k: v for k, v in vars(picker).items() if k.endswith("_")})
    choice = generous.choose(view, 4.0)
    ensemble, chosen = choice.ensemble, choice.selection.indices
    lengths = np.sqrt(np.diagonal(ensemble.S))
    cosine = ensemble.S / np.outer(lengths, lengths)
    between = cosine[np.ix_(chosen, chosen)] - np.eye(len(chosen))
    assert between.max() <= 0.8
    more = generous.set_params(max_similarity=1.0).choose(view, 4.0).selection
    assert len(more) > len(chosen)


def test_the_same_seed_gives_the_same_frames(picker, videos):
    path = videos[1][0].path
    one, other = picker.pick(path), picker.pick(path)
    assert one.as_dict() == other.as_dict()


def test_training_is_recorded(picker, videos):
    assert picker.training_["n_videos"] == 3
    assert picker.training_["n_users"] == 6
    assert picker.training_["n_candidates"] >= 15
    # The best candidates match nearly all of both users' picks.
    assert picker.training_["oracle_f"] > 0.8


def test_settings_of_an_estimator():
    model = KeyframePicker(lam=2.0, beta=1.5)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.pick("x.mp4")


def test_verbose_tells_how_far_it_is(videos, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("variegate._progress._PAUSE", 0.0)
    seen = []
    model = KeyframePicker(verbose=True, max_iter=5, n_samples=20)
    model.fit([videos[0][0]], progress=lambda *step: seen.append(step))
    told = capsys.readouterr().err.splitlines()
    assert [line.split(" (")[0] for line in told[-2:]] == [
        "KeyframePicker: fitting, 1 of 2",
        "KeyframePicker: fitting, 2 of 2",
    ]
    assert seen[-1] == ("fitting", 2, 2)
    frames = []
    model.pick(videos[0][0].path, progress=lambda *frame: frames.append(frame))
    told = capsys.readouterr().err
    assert "KeyframePicker: reading, 1.0 of 40.0 (" in told
    assert len(told.splitlines()) == len(frames)
    model.save(tmp_path / "model.json")
    assert (
        "verbose" not in json.loads((tmp_path / "model.json").read_text())["settings"]
    )
    assert KeyframePicker.load(tmp_path / "model.json").verbose is False
    quiet = clone(model).set_params(verbose=False).fit([videos[0][0]])
    quiet.pick(videos[0][0].path)
    assert capsys.readouterr().err == ""


# Files ----------------------------------------------------------------------------


def test_a_loaded_picker_picks_the_same(picker, videos, tmp_path):
    path = tmp_path / "model.json"
    picker.save(path)
    for loaded in (KeyframePicker.load(path), vg.load(path)):
        assert loaded.omegas_ == picker.omegas_
        assert loaded.training_ == picker.training_
        for omega in (0.25, 2.0, None):
            one = picker.pick(videos[0][0].path, omega=omega)
            other = loaded.pick(videos[0][0].path, omega=omega)
            assert one.as_dict() == other.as_dict()


def test_a_model_keeps_the_step_it_was_learned_with(videos, tmp_path):
    model = KeyframePicker(max_iter=20, n_samples=50).set_params(blocks=["palette"])
    model.fit([video for video, _ in videos], every=2.0)
    model.save(tmp_path / "model.json")
    loaded = KeyframePicker.load(tmp_path / "model.json")
    path = videos[0][0].path
    for picker in (model, loaded):
        times = [decision.time for decision in picker.pick(path).decisions]
        assert np.diff(times) == pytest.approx(2.0, abs=0.2)
    often = loaded.pick(path, every=1.0)
    assert len(often.decisions) == pytest.approx(2 * len(times), abs=1)


def test_trouble_while_learning_names_the_video(videos, monkeypatch):
    def odd(self, view):
        return vg.GroundSet(np.ones((len(view), 1 + (view is second))))

    picked = [video for video, _ in videos]
    training = [TrainingVideo.read(video, 1.0) for video in picked[:2]]
    second = training[1].view
    monkeypatch.setattr(KeyframePicker, "ground_set", odd)
    with pytest.raises(ValueError, match=f"^{re.escape(str(picked[1].path))}: .*qual"):
        KeyframePicker().fit_prepared(training, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": []}, '"models" is missing'),
        ({"patterns": None}, '"patterns" is missing'),
        ({"settings": {"colour": 1}}, "unknown settings: colour"),
    ],
)
def test_damaged_files(picker, tmp_path, change, message):
    path = tmp_path / "model.json"
    picker.save(path)
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | change))
    with pytest.raises(ModelFileError, match=message):
        KeyframePicker.load(path)


def test_a_file_of_another_kind(tmp_path):
    rng = np.random.default_rng(0)
    sets = [vg.GroundSet(rng.normal(size=(5, 2)))]
    path = tmp_path / "model.json"
    vg.LargeMarginDPP(max_iter=3).fit(sets, [[0, 1]]).save(path)
    with pytest.raises(ModelFileError, match="holds a LargeMarginDPP, no key frames"):
        KeyframePicker.load(path)


# The model of the package ---------------------------------------------------------


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_the_packaged_model_covers_scenes_it_never_saw(tmp_path, seed):
    path = tmp_path / "film.mp4"
    scenes = write_sample_video(
        path, duration=90.0, size=(176, 120), rate=6.0, n_scenes=10, random_state=seed
    )
    summary = load_default().pick(path)
    times = [keyframe.time for keyframe in summary.keyframes]
    # A frame is shown until the next one.
    found = [s for t in times for s in scenes if s.start - 1e-3 <= t < s.end - 1e-3]
    assert all(scene.kind == "scene" for scene in found)
    assert {s.scene for s in found} == set(range(10))
    assert len(times) <= 20


def test_what_one_user_sets_another_does_not_get():
    one = load_default().set_params(n_samples=7)
    assert load_default().n_samples != one.n_samples


# Bad input ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": "palette"}, "blocks must be a list of names"),
        ({"blocks": ["colour"]}, "unknown block 'colour'"),
        ({"omega": -1.0}, "omega must be one or more positive numbers"),
        ({"beta": 0.0}, "beta must be a finite number > 0"),
        ({"max_similarity": 0.0}, "max_similarity must be a finite number > 0"),
        ({"n_samples": 0}, "n_samples must be a whole number"),
        ({"verbose": 1}, "verbose must be True or False"),
    ],
)
def test_bad_settings(settings, message, videos):
    with pytest.raises(ValueError, match=message):
        KeyframePicker(**settings).fit([videos[0][0]])


def test_bad_training_data(videos):
    with pytest.raises(ValueError, match="no videos to learn from"):
        KeyframePicker().fit([])
    late = PickedVideo(videos[0][0].path, [[500.0]])
    with pytest.raises(
        ValueError, match=r"no picked time is within 2 s .* ends at 40.0 s"
    ):
        KeyframePicker().fit([late])


def test_nothing_to_learn_from():
    view = view_of([textured((250, 60, 40), k) for k in range(3)])
    model = KeyframePicker()
    with pytest.raises(ValueError, match="no user chose a frame"):
        model.fit_prepared([TrainingVideo(view, [[]], [2])], model.fit_encoder([view]))


def test_bad_choices(picker, videos):
    path = videos[0][0].path
    with pytest.raises(ValueError, match=r"learned for 0.25 to 4"):
        picker.pick(path, omega=9.0)
    with pytest.raises(ValueError, match="max_frames must be a whole number"):
        picker.pick(path, max_frames=0)
    with pytest.raises(ValueError, match="count must be a whole number"):
        picker.pick(path, count=1.5)
    with pytest.raises(ValueError, match="per_shot must be True or False"):
        picker.pick(path, per_shot=1)
    with pytest.raises(ValueError, match="max_frames and count each say how many"):
        picker.pick(path, max_frames=3, count=3)
    with pytest.raises(ValueError, match="count and per_shot each say how many"):
        picker.pick(path, count=3, per_shot=True)
    n_candidates = len(read_candidates(path).view)
    with pytest.raises(
        ValueError, match=f"but there are only {n_candidates} to choose"
    ):
        picker.pick(path, count=n_candidates + 1)


@pytest.mark.parametrize("n_frames", [1, 12])
def test_videos_of_one_colour_or_one_frame(tmp_path, n_frames):
    grey = np.full((48, 64, 3), 120, dtype=np.uint8)
    path = write_video(tmp_path / "grey.avi", [grey] * n_frames)
    summary = load_default().pick(path)
    assert len(summary.keyframes) == 1
    assert summary.decisions[0].reason.startswith("flat")


@pytest.mark.slow
def test_two_hours_in_a_gigabyte(tmp_path):
    import subprocess
    import sys

    path = tmp_path / "long.mp4"
    scenes = write_sample_video(
        path, duration=7200.0, size=(96, 64), rate=5.0, n_scenes=400
    )
    code = (
        "import resource, sys; from variegate.video import load_default;"
        f"print(len(load_default().pick({str(path)!r}).keyframes));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    n_keyframes, kilobytes = map(int, found.stdout.split())
    assert n_keyframes >= len(scenes) / 10
    assert kilobytes < 1_000_000
