import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
from sklearn.base import clone

import variegate as vg
from outside_data import outside_data
from paper.learned import DECODERS, ROWS, best_choices, expected_f
from paper.video import Settings, pieces, reproduce
from paper.video.features import FEATURE_SETS, PaperPicker, PaperView, saliency_of
from paper.video.pieces import STEPS
from paper.video.pool import read_pool
from paper.video.rows import HERO, comparisons
from paper.video.sequences import SEQUENCE_ROWS
from paper.video.settings import Setup
from variegate.kernels import Linear
from variegate.video import KeyframePicker, load_default

pytestmark = pytest.mark.paper

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def write_pool(folder):
    pictures = folder / "frames" / "v01"
    pictures.mkdir(parents=True)
    for frame, colour in ((10, RED), (200, GREEN), (400, BLUE)):
        image = np.full((24, 32, 3), colour, dtype=np.uint8)
        cv2.imwrite(str(pictures / f"{frame:05d}.jpg"), image[:, :, ::-1])
    video = {
        "n_frames": 500,
        "fps": 30,
        "frames_with_image": [200, 10, 400],
        # 30 and 150 borrow pictures; 300 is too far from any.
        "users": [[30, 200], [150, 300]],
        "methods": {"ALL": [10, 200, 400], "ONE": [200, 300]},
    }
    (folder / "videos.json").write_text(json.dumps({"v01": video}))
    return folder


def test_the_protocol_by_hand(tmp_path):
    (video,) = read_pool(write_pool(tmp_path))
    assert video.frames == [10, 200, 400]
    assert video.users == [[0, 1], [1]]
    assert video.n_unmatchable == [0, 1]
    assert video.methods == {"ALL": ([0, 1, 2], 0), "ONE": ([1], 1)}
    # Green alone: precision 1 for both users, recall 1/2 (red is missing) and 1/2 (one
    # frame of the second user has no picture).
    score = video.score([1])
    assert score.precision == pytest.approx(1.0)
    assert score.recall == pytest.approx(0.5)
    assert score.f == pytest.approx(2 / 3)
    # A lost frame is one that nobody can match.
    assert video.score(*video.methods["ONE"]).precision == pytest.approx(0.5)
    assert video.image(2)[0, 0].argmax() == 2  # blue, not red


def test_published_numbers_of_the_methods():
    # As measured for the data: F of VSUMM1, VSUMM2, VISTO and OVS on the 40 videos.
    folder = outside_data("video") / "ovp"
    videos = read_pool(folder)
    known = {"VSUMM1": 70.1, "VSUMM2": 64.7, "VISTO": 59.4, "OVS": 56.7}
    for method, f in known.items():
        scores = [video.score(*video.methods[method]).f for video in videos]
        assert 100 * np.mean(scores) == pytest.approx(f, abs=0.05)


def test_bad_folders(tmp_path):
    with pytest.raises(ValueError, match=r"no videos.json in .*: say where"):
        read_pool(tmp_path)
    folder = write_pool(tmp_path / "pool")
    (folder / "frames" / "v01" / "00010.jpg").write_text("no picture")
    with pytest.raises(ValueError, match=r"00010.jpg is missing or no picture"):
        read_pool(folder)


# Features of the paper -------------------------------------------------------------


def view_of(folder):
    (video,) = read_pool(write_pool(folder))
    return video.prepared().view


@pytest.mark.parametrize("features", FEATURE_SETS)
def test_features_have_mean_0_and_deviation_1(features, tmp_path):
    data = write_films(tmp_path / "data", 1)
    table = read_pool(data)[0].prepared().view.features(features)
    assert table.shape == (6, len(FEATURE_SETS[features]))
    np.testing.assert_allclose(table.mean(axis=0), 0.0, atol=1e-9)
    deviation = table.std(axis=0)
    is_constant = deviation < 1e-6
    np.testing.assert_allclose(deviation[~is_constant], 1.0)
    assert (~is_constant).sum() > len(deviation) / 2


def test_one_frame_has_features(tmp_path):
    view = view_of(tmp_path)
    one = PaperView(view.descriptions[:1], 1.0, saliency=view.saliency[:1])
    for name, features in FEATURE_SETS.items():
        np.testing.assert_array_equal(one.features(name), np.zeros((1, len(features))))


def test_features_of_the_picture_are_those_of_the_library(tmp_path):
    view = view_of(tmp_path)
    np.testing.assert_array_equal(view.features("picture"), view.quality())


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (4, 40), (720, 1280)])
def test_saliency_of_any_size(size):
    image = np.random.default_rng(1).integers(0, 256, size=(*size, 3), dtype=np.uint8)
    found = saliency_of(image)
    assert found.shape == (16,)
    assert np.isfinite(found).all()


def test_learning_from_the_oracle_and_choosing_the_best_sample(tmp_path):
    data = write_films(tmp_path / "data", 2)
    videos = [video.prepared() for video in read_pool(data)]
    picker = PaperPicker(targets="oracle", n_samples=50)
    picker.fit_prepared(videos, picker.fit_encoder([v.view for v in videos]))
    view = videos[0].view
    assert len(picker.choose(view).selection) >= 2
    for best_sample in ("equal", "matched"):
        picker.set_params(best_sample=best_sample)
        choice = picker.choose(view, random_state=3)
        chosen = choice.selection.indices.tolist()
        samples = choice.ensemble.sample(50, random_state=3)
        assert chosen in [np.flatnonzero(sample).tolist() for sample in samples]
        again = picker.choose(view, random_state=3).selection
        assert again.indices.tolist() == chosen


def test_choosing_greedily(tmp_path):
    videos = [video.prepared() for video in read_pool(write_films(tmp_path, 2))]
    picker = PaperPicker(decoder="greedy")
    picker.fit_prepared(videos, picker.fit_encoder([v.view for v in videos]))
    choice = picker.choose(videos[0].view)
    size = max(1, round(choice.ensemble.expected_size()))
    expected = choice.ensemble.decode("greedy", k=size)
    np.testing.assert_array_equal(choice.selection.indices, expected.indices)


def test_a_picker_learns_the_kernel_that_is_given(tmp_path):
    (video,) = [video.prepared() for video in read_pool(write_films(tmp_path, 1))]
    picker = PaperPicker(blocks=["palette"], kernel=Linear())
    picker.fit_prepared([video], picker.fit_encoder([video.view]))
    assert isinstance(picker.models_[0].kernel_, Linear)


def test_a_picker_knows_its_features(tmp_path):
    picker = PaperPicker(features="full", lam=2.0)
    assert clone(picker).get_params() == picker.get_params()
    assert len(picker.feature_names_) == len(FEATURE_SETS["full"])
    # The library reads its own files with its own picker.
    assert type(load_default()) is KeyframePicker


# The experiment -------------------------------------------------------------------

TINY = Settings(
    n_folds=3,
    n_runs=2,
    n_samples=30,
    omegas=(0.25, 1.0, 4.0),
    lambdas=(6.0,),
    ridges=(0.1,),
    feature_sets=("picture",),
    inner_omegas=(1.0, 4.0),
    sizes=(2,),
    penalties=(1e-2,),
    n_inner=2,
    counts=(2, 3),
    n_bootstrap=50,
    max_iter=5,
)


def write_films(folder, n_videos, seed=0):
    """Write a pool of films with three scenes, two pictures each."""
    rng = np.random.default_rng(seed)
    videos = {}
    for number in range(n_videos):
        name = f"v{number:02d}"
        (folder / "frames" / name).mkdir(parents=True)
        frames = [10, 20, 200, 210, 400, 410]
        for place, frame in enumerate(frames):
            hue = np.array([(255, 40, 40), (40, 255, 40), (40, 40, 255)][place // 2])
            blocks = rng.uniform(0.2, 1.0, size=(6, 8, 1))
            pattern = np.repeat(np.repeat(blocks, 8, axis=0), 8, axis=1)
            image = (pattern * hue).astype(np.uint8)
            path = folder / "frames" / name / f"{frame:05d}.jpg"
            cv2.imwrite(str(path), np.ascontiguousarray(image[:, :, ::-1]))
        videos[name] = {
            "n_frames": 500,
            "fps": 30,
            "frames_with_image": frames,
            "users": [[10, 200, 400], [20, 210]],
            "methods": {"VSUMM1": [10, 200, 300], "OVS": [10]},
        }
    (folder / "videos.json").write_text(json.dumps(videos))
    return folder


def test_the_whole_experiment_on_a_tiny_pool(tmp_path):
    data = write_films(tmp_path / "data", 6)
    outcome = reproduce(tmp_path / "out", TINY, data)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    rows = {(row["method"], row["omega"]): row for row in results["rows"]}
    assert {omega for method, omega in rows if method == "LME+MKR"} == {0.25, 1.0, 4.0}
    for method in ("MLE+MKR", HERO, "oracle", "k-means", "uniform", "random", "VSUMM1"):
        row = rows[method, None]
        assert row["n_videos"] == 6
        assert 0.0 <= row["f"] <= 1.0
        assert set(row["se"]) == {"precision", "recall", "f"}
    # Two frames against users with three and two: F is 0.8 and 1.  A third would turn
    # them around and gain nothing.
    assert rows["oracle", None]["precision"] == pytest.approx(1.0)
    assert rows["oracle", None]["recall"] == pytest.approx((2 / 3 + 1) / 2)
    # One frame of the method is lost: it counts against its precision.
    assert rows["VSUMM1", None]["precision"] == pytest.approx(2 / 3)
    assert rows["OVS", None]["se"]["f"] is None
    assert rows["MLE+MKR", None]["se"]["f"] is not None
    assert len(results["steps"]) == len(STEPS)
    assert {"MLE+MKR", "LME+MKR"} == {c["method"] for c in results["chosen"]}
    for path in outcome.files:
        assert path.stat().st_size > 0
    report = (tmp_path / "out" / "report.md").read_text()
    assert "The data differ from the paper's" in report
    assert "73.5" in report  # the paper's own number stands beside ours
    assert not list((tmp_path / "out").glob(".unfinished*"))


def test_learning_from_all_and_judging_on_another_folder(tmp_path):
    data = write_films(tmp_path / "data", 4)
    test = write_films(tmp_path / "test", 2, seed=9)
    results = reproduce(tmp_path / "out", TINY, data, test).results
    assert results["test_data"]
    assert {row["n_videos"] for row in results["rows"]} == {2}


@pytest.mark.slow
def test_only_the_rows_that_are_asked_for(tmp_path):
    data = write_films(tmp_path / "data", 6)
    outcome = reproduce(tmp_path / "out", replace(TINY, rows=tuple(ROWS)), data)
    rows = {row["method"]: row for row in outcome.results["rows"]}
    assert set(rows) == {HERO, *ROWS}
    for name, row in rows.items():
        assert row["n_videos"] == 6
        assert 0.0 <= row["f"] <= 1.0
        assert (row["se"]["f"] is None) == name.endswith("expected-f")
    assert {c["less"] for c in outcome.results["comparisons"]} == set(ROWS)
    chosen = {c["method"]: c for c in outcome.results["chosen"]}
    assert chosen["LME+KINDS"]["size"] == 2
    assert chosen["LME+METRIC, expected-f"]["beta"] in (1.0, 2.0)
    assert "size" not in chosen["LME+MKR, expected-f"]
    assert {claim.paper for claim in outcome.claims} == set()
    report = (tmp_path / "out" / "report.md").read_text()
    assert "Beyond the paper" in report
    assert "figure-2.png" not in report


def test_a_row_that_there_is_not(tmp_path):
    data = write_films(tmp_path / "data", 3)
    with pytest.raises(ValueError, match=r"no row 'LME\+COS'; there are \['MLE\+MKR'"):
        reproduce(tmp_path / "out", replace(TINY, rows=("LME+COS",)), data)


def test_the_best_of_each_decoder_by_hand():
    totals = np.zeros((2, len(DECODERS)))
    totals[0, 0], totals[1, 0] = 0.3, 0.2  # "mbr" is best with the first kernel
    totals[1, 2] = 0.9  # "expected-f" with the second, and its own second settings
    found = best_choices([{"size": 8}, {"size": 32}], totals)
    assert found["mbr"] == {"size": 8}
    assert found["expected-f"] == {"size": 32, "beta": 1.0, "repetition": 1.0}
    assert expected_f(found["mbr"]) is None
    assert expected_f(found["expected-f"]) == vg.decoding.ExpectedF(1.0, 1.0)


def test_held_out_videos_are_not_learned_from(tmp_path):
    setup = Setup(TINY, str(write_films(tmp_path / "data", 6)), None)
    seen = []
    for fold in range(3):
        learn, judge = pieces.split(setup, fold)
        names = {video.name for video, _ in judge}
        assert len(learn) + len(judge) == 6
        assert not names & {video.name for video, _ in learn}
        seen += names
    assert len(seen) == len(set(seen)) == 6


def test_differences_are_paired_by_video():
    def record(method, omega, video, f):
        run = [[f, f, f]]
        return {
            "kind": "table",
            "method": method,
            "omega": omega,
            "judged": video,
            "runs": run,
            "n_frames": 1.0,
        }

    records = [
        *(record(HERO, None, f"v{k}", 0.5 + 0.1 * k) for k in range(4)),
        *(record("k-means", None, f"v{k}", 0.4 + 0.1 * k) for k in range(4)[::-1]),
    ]
    (found,) = comparisons(TINY, records)
    assert found["less"] == "k-means"
    # Every video differs by a tenth, so the interval is a point.
    for part in ("difference", "low", "high"):
        assert found[part]["f"] == pytest.approx(0.1)


def test_rows_of_sequences(tmp_path):
    data = write_films(tmp_path / "data", 4)
    settings = replace(
        TINY,
        rows=tuple(SEQUENCE_ROWS),
        segments=(2, 3),
        memories=(1,),
        sequence_lambdas=(6.0,),
        sequence_omegas=(4.0,),
    )
    outcome = reproduce(tmp_path / "out", settings, data)
    rows = {row["method"]: row for row in outcome.results["rows"]}
    assert set(rows) == {HERO, *SEQUENCE_ROWS}
    for name, row in rows.items():
        assert row["n_videos"] == 4
        assert 0.0 <= row["f"] <= 1.0
        assert (row["se"]["f"] is None) == name.endswith("beam")
    for choice in outcome.results["chosen"]:
        if choice["method"] in SEQUENCE_ROWS:
            assert choice["segment"] in (2, 3)
            assert choice["memory"] == 1
    assert "by segments" in (tmp_path / "out" / "report.md").read_text()
