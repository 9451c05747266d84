"""Key frames chosen in order, segment by segment."""

import copy
import gc
import itertools
import weakref

import numpy as np
import pytest
from sample_video import write_sample_video

import variegate as vg
from films import write_film
from variegate.decoding import Greedy
from variegate.ensemble import LEnsemble
from variegate.video import KeyframePicker, PickedVideo, load_default, picker, sequence
from variegate.video.candidates import CandidateReader, VideoView, read_candidates
from variegate.video.choosing import Amount, choose_frames
from variegate.video.picture import FrameDescription, describe
from variegate.video.picture_store import PictureStore
from variegate.video.reading import Frame
from variegate.video.sequence import RunningMoments

SIZE = (96, 64)


def textured(seed):
    """Return a picture with blocks of one random colour, some of them dark."""
    rng = np.random.default_rng(seed)
    blocks = rng.uniform(0.3, 1.0, size=(SIZE[1] // 8, SIZE[0] // 8, 1))
    pattern = np.repeat(np.repeat(blocks, 8, axis=0), 8, axis=1)
    colour = rng.permutation([255.0, *rng.uniform(0.0, 255.0, size=2)])
    return (pattern * colour).astype(np.uint8)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("learning") / "film.avi"
    scenes = write_sample_video(path, 40.0, SIZE, 5.0, 5, 0)
    middles = [(s.start + s.end) / 2 for s in scenes if s.kind == "scene"]
    learner = KeyframePicker(omega=(0.25, 4.0), max_iter=30, n_samples=50, l2=1.0)
    with pytest.warns(match="max_iter"):
        return learner.fit([PickedVideo(path, [middles])])


def write_scenes(path, seeds, n_frames=10, rate=5.0):
    """Write a film of still scenes, each lit a little differently in each frame."""
    rng = np.random.default_rng(0)
    pictures = [
        np.clip(textured(seed) * rng.uniform(0.8, 1.0), 0, 255).astype(np.uint8)
        for seed in seeds
        for _ in range(n_frames)
    ]
    return write_film(path, pictures, rate)


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A film of forty scenes."""
    folder = tmp_path_factory.mktemp("film")
    return write_scenes(folder / "film.avi", range(40))


def numbers(summary):
    return [keyframe.number for keyframe in summary.keyframes]


# Segments -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 7, 1000])
def test_segments_have_the_candidates_of_the_whole_film(film, size):
    whole = read_candidates(film)
    reader = CandidateReader(film)
    segments = list(reader.segments(size))
    assert max(len(segment.view) for segment in segments) <= size
    assert [one for s in segments for one in s.frames] == whole.frames
    assert reader.duration == whole.duration
    assert reader.shots == whole.shots
    assert reader.decisions == whole.decisions
    spans = [s.span_around(k) for s in segments for k in range(len(s.view))]
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert end <= start
    for place, span in enumerate(spans):
        if size == 1000:
            assert span == whole.span_around(place)


def test_segments_end_at_cuts(tmp_path):
    # Two shots of three scenes each: scenes that grow dark are not cut off.
    path = write_scenes(tmp_path / "film.avi", range(6), n_frames=30)
    whole = read_candidates(path)
    segments = list(CandidateReader(path).segments(len(whole.view) // 2 + 1))
    ends = [segment.bounds[1] for segment in segments[:-1]]
    cuts = [shot.start for shot in whole.shots]
    for end in ends:
        assert min(abs(end - cut) for cut in cuts) < 0.6


def test_running_moments_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    tables = [rng.normal(5.0, 3.0, size=(n, 3)) for n in (1, 4, 20)]
    for table in tables:
        table[:, 2] = 7.0
    moments = RunningMoments()
    for table in tables:
        moments.add(table)
    rows = np.concatenate(tables)[:, :2]
    expected = (tables[0][:, :2] - rows.mean(axis=0)) / rows.std(axis=0)
    found = moments.standardize(tables[0])
    np.testing.assert_allclose(found[:, :2], expected, rtol=1e-12)
    assert (found[:, 2] == 0.0).all()


# Choosing -------------------------------------------------------------------------


def greedy(alike, same, nonempty):
    return Greedy()


def test_frames_beside_earlier_ones_have_their_conditional_probabilities():
    pictures = [textured(seed) for seed in range(6)]
    view = VideoView([describe(k, float(k), p) for k, p in enumerate(pictures)], 6.0)
    B = np.random.default_rng(0).standard_normal((6, 6))
    ensemble = LEnsemble(B @ B.T)
    rng = np.random.default_rng(0)
    choice = choose_frames(ensemble, view, greedy, 1.0, Amount(), rng, n_earlier=2)
    subsets = [
        subset
        for size in range(5)
        for subset in itertools.combinations(range(2, 6), size)
    ]
    total = np.zeros(4)
    weights = []
    for subset in subsets:
        items = [0, 1, *subset]
        weights.append(np.linalg.det(ensemble.L[np.ix_(items, items)]))
        total[np.array(subset, dtype=int) - 2] += weights[-1]
    np.testing.assert_allclose(choice.probability, total / sum(weights))
    chosen = tuple((choice.selection.indices + 2).tolist())
    expected = np.log(weights[subsets.index(chosen)] / sum(weights))
    assert choice.selection.log_prob == pytest.approx(expected)


def test_repeats_of_earlier_frames_are_not_chosen():
    pictures = [textured(0), textured(0), textured(1)]
    view = VideoView([describe(k, float(k), p) for k, p in enumerate(pictures)], 3.0)
    S = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.1], [0.1, 0.1, 1.0]])
    ensemble = LEnsemble.from_quality(S, [0.0, 4.0, 2.0])
    rng = np.random.default_rng(0)
    choice = choose_frames(ensemble, view, greedy, 0.8, Amount(), rng, n_earlier=1)
    assert choice.selection.indices.tolist() == [1]
    assert choice.probability[0] > choice.probability[1]
    refusal = choice.refusals[0]
    assert refusal.why == "too similar to"
    assert refusal.beside == -1
    assert refusal.similarity == pytest.approx(0.9)
    both = VideoView(view.descriptions[:2], 2.0)
    pair = LEnsemble.from_quality(S[:2, :2], [0.0, 4.0])
    choice = choose_frames(pair, both, greedy, 0.8, Amount(), rng, n_earlier=1)
    assert len(choice.selection) == 0
    assert "repeat" in choice.selection.stop_reason


def test_a_film_of_one_segment_is_chosen_from_as_a_set(model, film):
    for whole in (model, load_default()):
        one, other = whole.pick(film), whole.pick(film, sequential=True)
        first, second = one.as_dict(), other.as_dict()
        assert len(first.pop("candidates")) == len(second.pop("candidates")) > 30
        for summary in (first, second):
            assert "segment" in summary.pop("stop_reason") or summary is first
        assert first == second
        for a, b in zip(one.candidates, other.candidates, strict=True):
            assert (a.number, a.chosen, a.why_not) == (b.number, b.chosen, b.why_not)
            assert a.probability == pytest.approx(b.probability, rel=1e-6)
        for a, b in zip(one.keyframes, other.keyframes, strict=True):
            np.testing.assert_array_equal(a.image, b.image)


def test_scenes_may_return_once_they_are_forgotten(model, tmp_path, monkeypatch):
    monkeypatch.setattr(sequence, "SEGMENT", 4)
    scenes = [0, 1, 2, 0, 1, 2, *range(3, 12), 0, 1, 2]
    path = write_scenes(tmp_path / "film.avi", scenes)
    summary = clone_with(model, 0.6).pick(path, sequential=True, omega=4.0)
    shown = [scenes[int(k.time // 2.0)] for k in summary.keyframes]
    # Of a segment and the one before, no scene is there twice.
    for first, second in itertools.pairwise(shown):
        assert first != second
    assert {0, 1, 2} & set(shown[-3:])
    assert "segments, each chosen beside" in summary.selection.stop_reason
    for candidate in summary.candidates:
        if candidate.why_not is not None:
            assert candidate.like in numbers(summary)


def clone_with(model, max_similarity):
    changed = copy.copy(model)
    return changed.set_params(max_similarity=max_similarity)


@pytest.mark.parametrize("at_once", [300, 6])
def test_at_most_so_many_frames_of_the_whole_film(model, film, monkeypatch, at_once):
    monkeypatch.setattr(sequence, "SEGMENT", 5)
    monkeypatch.setattr(sequence, "_MOST_AT_ONCE", at_once)
    every = model.pick(film, sequential=True)
    few = model.pick(film, sequential=True, max_frames=3)
    assert len(every.keyframes) > 6
    # Of as few as six, the model may want less than three.
    assert 0 < len(few.keyframes) <= 3
    assert at_once == 6 or len(few.keyframes) == 3
    assert set(numbers(few)) <= set(numbers(every))
    assert sum(c.chosen for c in few.candidates) == len(few.keyframes)
    likes = {c.like for c in few.candidates if c.like is not None}
    assert likes <= set(numbers(few))
    assert few.selection.stop_reason.endswith("at most 3")
    if at_once == 6:  # an equal share of each part: not all are of one half
        some = model.pick(film, sequential=True, max_frames=12)
        late = [keyframe.time > every.duration / 2 for keyframe in some.keyframes]
        assert 0.25 <= np.mean(late) <= 0.75
    many = model.pick(film, sequential=True, max_frames=500)
    assert numbers(many) == numbers(every)


def test_other_amounts_need_all_candidates(model, film):
    for amount in ({"count": 3}, {"per_shot": True}):
        with pytest.raises(ValueError, match="count and per_shot need all candidates"):
            model.pick(film, sequential=True, **amount)
    with pytest.raises(ValueError, match="sequential"):
        model.pick(film, sequential="yes")


# Memory ---------------------------------------------------------------------------


class Census:
    """Counts living objects of a class, and the most at a time."""

    def __init__(self, monkeypatch, kind):
        self.alive, self.most = weakref.WeakSet(), 0
        original = kind.__init__

        def counted(one, *args, **kwargs):
            original(one, *args, **kwargs)
            self.alive.add(one)
            self.most = max(self.most, len(self.alive))

        monkeypatch.setattr(kind, "__init__", counted)


def test_held_frames_do_not_grow_with_the_film(model, tmp_path, monkeypatch):
    monkeypatch.setattr(sequence, "SEGMENT", 6)
    most = []
    for n_scenes in (20, 60):
        path = write_scenes(tmp_path / f"{n_scenes}.avi", range(n_scenes))
        gc.collect()
        with monkeypatch.context() as patch:
            frames, described = Census(patch, Frame), Census(patch, FrameDescription)
            summary = model.pick(path, sequential=True)
            assert len(summary.candidates) >= n_scenes
        most.append((frames.most, described.most))
    # Pictures of a few neighbours, and descriptions of two segments.
    assert max(frames for frames, _ in most) <= 16
    assert max(described for _, described in most) <= 32
    assert most[1][0] <= most[0][0] + 1
    assert most[1][1] <= most[0][1] + 6


def test_pictures_are_stored_before_later_segments_are_read(model, film, monkeypatch):
    monkeypatch.setattr(sequence, "SEGMENT", 5)
    events = []
    add, choose = PictureStore.add, sequence.KeyframeSequence.add
    monkeypatch.setattr(
        picker.PictureStore,
        "add",
        lambda store, image: events.append("picture") or add(store, image),
    )
    monkeypatch.setattr(
        sequence.KeyframeSequence,
        "add",
        lambda one, segment: events.append("segment") or choose(one, segment),
    )
    model.pick(film, sequential=True)
    assert events[0] == "segment"
    assert "picture" in events[: events.index("segment", 3)]


def test_stored_pictures_come_back_and_leave_no_file(tmp_path):
    store = PictureStore(tmp_path)
    pictures = [textured(seed) for seed in range(3)]
    stored = [store.add(picture) for picture in pictures]
    for one, picture in reversed(list(zip(stored, pictures, strict=True))):
        np.testing.assert_array_equal(one.read(), picture)
    file = store._file
    del store, stored, one
    gc.collect()
    assert file.closed
    assert list(tmp_path.iterdir()) == []


def test_stream_of_the_library_and_of_films_agree_on_the_law(model, film):
    """The conditional ensemble of frames is that of a ground set with given items."""
    view = read_candidates(film).view
    whole = model.ground_set(VideoView(view.descriptions[:8], 8.0))
    fitted = model.family_.at(1.0)
    beside = fitted.ensemble(vg.GroundSet(whole.quality, whole.blocks, given=[0, 1]))
    expected = fitted.ensemble(whole).condition(include=[0, 1])
    np.testing.assert_allclose(beside.marginals(), expected.marginals(), rtol=1e-9)
