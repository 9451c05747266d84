import json

import cv2
import numpy as np
import pytest

from outside_data import outside_data
from variegate.experiments.video.pool import read_pool

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
