import re
import sys
import weakref

import cv2
import numpy as np
import pytest

from variegate._install import install_command
from variegate.video.picture import shrink_picture
from variegate.video.reading import Frame, read_frames
from variegate.video.screening import (
    BEST,
    _sharpness,
    screen,
)

REPEATS = "repeats the frame before"


def plain(value, height=90, width=160):
    return np.full((height, width, 3), value, dtype=np.uint8)


def scene(seed, height=90, width=160):
    """Rectangles of random colours with sharp edges."""
    rng = np.random.default_rng(seed)
    image = plain(rng.integers(60, 200, 3), height, width)
    for _ in range(12):
        top, left = rng.integers(height), rng.integers(width)
        bottom, right = top + height // 4, left + width // 4
        image[top:bottom, left:right] = rng.integers(0, 256, 3)
    return image


def blurred(image, sigma):
    return cv2.GaussianBlur(image, (0, 0), sigma)


def as_frames(images):
    return [Frame(10 * k, 0.4 * k, image) for k, image in enumerate(images)]


def reasons(images):
    return [d.reason for d, _ in screen(as_frames(images))]


def test_each_reason():
    images = [
        plain(0),
        scene(0),
        scene(0),
        plain(128),
        blurred(scene(1), 12.0),
        scene(1),
        plain((200, 30, 30)),
        scene(1),
        scene(0),
    ]
    assert reasons(images) == [
        "dark",
        None,
        REPEATS,
        "flat",
        "blurred",
        None,
        "flat",
        REPEATS,
        None,
    ]


def test_decisions_come_in_order_with_their_frames():
    frames = as_frames([plain(0), plain(128), scene(0), scene(0), scene(1)])
    results = list(screen(frames))
    assert [d.number for d, _ in results] == [0, 10, 20, 30, 40]
    assert [d.time for d, _ in results] == [frame.time for frame in frames]
    assert [d.kept for d, _ in results] == [False, False, True, False, True]
    assert [frame for _, frame in results] == [None, None, frames[2], None, frames[4]]


def test_a_white_title_on_black_is_kept():
    title = plain(0)
    title[40:50, 40:120:4] = 255  # strokes: 200 of 14,400 pixels
    assert reasons([title]) == [None]


def test_colours_of_one_grey_are_not_flat():
    image = plain((100, 100, 100))
    image[:, 80:] = (195, 51, 100)  # 0.299 · 95 = 0.587 · 48.4
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(int)
    assert np.ptp(grey) <= 1
    assert reasons([image]) == [None]


def test_slow_change_is_kept_in_the_end(monkeypatch):
    """Each step is tiny, but frames are compared with the last kept one."""
    image = np.clip(scene(0), 20, 200)
    images = [image + np.uint8(k) for k in range(9)]
    monkeypatch.setattr("variegate.video.screening._CHANGE", 3.0)
    kept = [k for k, reason in enumerate(reasons(images)) if not reason]
    assert kept == [0, 3, 6]


def test_noise_is_a_repeat():
    """Thumbnails average over noise; whole pictures would differ by several."""
    rng = np.random.default_rng(0)
    image = scene(0, 360, 640)
    noise = rng.normal(0.0, 5.0, image.shape)
    noisy = np.clip(image + noise, 0, 255).astype(np.uint8)
    assert np.abs(noisy.astype(int) - image).mean() > 2.0
    assert reasons([image, noisy]) == [None, REPEATS]


@pytest.mark.parametrize("sigma", [0.0, 2.0, 3.0])
def test_sharpness_of_an_edge(sigma):
    edge = plain(0, 144, 256)
    edge[:, 128:] = 200
    if sigma:
        edge = blurred(edge, sigma)
    # Smoothed by a normal curve of width w, an edge of height a has a second
    # derivative with the energy a² / (4 √π w³), and the variance a² / 4 or a
    # little less.  The measure itself smooths by 1; differences of neighbours
    # and rounding cost some accuracy.
    wide = np.hypot(sigma, 1.0)
    expected = 1.0 / (np.sqrt(np.pi) * wide**3) / 256.0
    assert _sharpness(edge) == pytest.approx(expected, rel=0.25)


def test_sharpness_does_not_depend_on_contrast():
    image = scene(0)
    assert _sharpness(image // 2) == pytest.approx(_sharpness(image), rel=0.02)
    assert _sharpness(plain(7)) == 0.0


@pytest.mark.parametrize(
    ("height", "width", "expected"),
    [(90, 160, (90, 160)), (1080, 1920, (144, 256)), (1000, 2, (256, 1))],
)
def test_shrinking(height, width, expected):
    assert shrink_picture(plain(9, height, width), 256).shape[:2] == expected


def test_same_reason_at_every_resolution():
    small = scene(3)
    for factor in (2, 8):
        large = np.kron(small, np.ones((factor, factor, 1), np.uint8))
        # Blurred by the same share of the width.
        images = [large, blurred(large, 10.0 * factor)]
        assert reasons(images) == [None, "blurred"]


def only_kept(images):
    """Return the position and the decision of the only frame kept."""
    results = list(screen(as_frames(images)))
    assert len(results) == len(images)
    ((k, decision, frame),) = [
        (k, d, frame) for k, (d, frame) in enumerate(results) if d.kept
    ]
    assert frame is not None
    assert frame.image is images[k]
    assert all(f is None for d, f in results if not d.kept)
    return k, decision.reason


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        ([plain(0), plain(20), plain(10)], (1, "dark" + BEST)),
        ([plain(5), plain(128), plain(20)], (1, "flat" + BEST)),
        ([plain(9), plain(9)], (0, "dark" + BEST)),
        (
            [plain(128), *(blurred(scene(0), s) for s in (16.0, 12.0, 14.0)), plain(0)],
            (2, "blurred" + BEST),
        ),
    ],
    ids=["dark", "flat", "ties", "blurred"],
)
def test_the_best_is_kept_if_none_passes(images, expected):
    assert only_kept(images) == expected


def test_no_frames():
    assert list(screen([])) == []


def test_bad_image():
    frame = Frame(7, 0.0, np.zeros((4, 4), np.uint8))
    with pytest.raises(ValueError, match="frame 7: an image has rows, columns"):
        list(screen([frame]))
    frame = Frame(8, 0.0, np.zeros((4, 4, 3)))
    with pytest.raises(ValueError, match=r"frame 8: .* \(uint8\), got float64"):
        list(screen([frame]))


def test_views_and_tiny_images():
    image = scene(0)
    assert reasons([image[::-1, :, ::-1]]) == [None]
    assert reasons([plain(128, 1, 1)]) == ["flat" + BEST]
    assert reasons([plain(128, 1, 700)]) == ["flat" + BEST]


def test_images_of_dropped_frames_are_let_go():
    alive = weakref.WeakSet()
    most = 0

    def dark_frames():
        nonlocal most
        for k in range(20):
            frame = Frame(k, float(k), plain(k))
            alive.add(frame)
            most = max(most, len(alive))
            yield frame
            del frame

    assert sum(d.kept for d, _ in screen(dark_frames())) == 1
    # The best, the one before (still named by the loop) and the new one.
    assert most <= 3


def test_a_video_file(tmp_path):
    shots = [plain(0), scene(0), scene(0), plain(128), scene(1)]
    code = cv2.VideoWriter_fourcc(*"MJPG")
    path = tmp_path / "video.avi"
    writer = cv2.VideoWriter(str(path), code, 25.0, (160, 90))
    for shot in shots:
        for _ in range(25):
            writer.write(cv2.cvtColor(shot, cv2.COLOR_RGB2BGR))
    writer.release()
    results = list(screen(read_frames(path)))
    assert [(d.number, d.reason) for d, _ in results] == [
        (0, "dark"),
        (25, None),
        (50, REPEATS),
        (75, "flat"),
        (100, None),
    ]


def test_a_constant_video_keeps_one_frame(tmp_path):
    path = tmp_path / "video.avi"
    code = cv2.VideoWriter_fourcc(*"MJPG")
    writer = cv2.VideoWriter(str(path), code, 25.0, (160, 90))
    for _ in range(75):
        writer.write(plain(128))
    writer.release()
    decisions = [d for d, _ in screen(read_frames(path))]
    assert len(decisions) == 3
    assert [d.reason for d in decisions if d.kept] == ["flat" + BEST]


def test_without_opencv(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match=re.escape(install_command("video"))):
        list(screen(as_frames([plain(9)])))


def test_a_scene_that_is_blurred_throughout_passes_once():
    sharp = [scene(seed) for seed in range(4)]
    soft = blurred(scene(9), 8.0)
    softer = [np.clip(blurred(soft, 4.0) + k, 0, 255) for k in range(10)]
    softer = [image.astype(np.uint8) for image in softer]
    softer[3] = soft  # the sharpest of them

    def kept(images):
        frames = [Frame(k, 0.5 * k, image) for k, image in enumerate(images)]
        return [d.number for d, frame in screen(frames) if frame is not None]

    # One second is a transition, two seconds and more are a scene.
    assert kept([*sharp, *softer[:2], *sharp]) == [0, 1, 2, 3, 6, 7, 8, 9]
    assert kept([*sharp, *softer[:5], *sharp]) == [0, 1, 2, 3, 7, 9, 10, 11, 12]
