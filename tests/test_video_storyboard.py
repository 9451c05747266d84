"""The contact sheet: every picture at its place, in its shape, with its label."""

import math
import subprocess
import sys

import cv2
import numpy as np
import pytest

from variegate.video.storyboard import (
    encode_jpeg,
    encode_png,
    storyboard,
    time_label,
)
from variegate.video.summary import Keyframe


def colour(place):
    """Return a strong colour, another one for each place up to 512.

    None is near the ground, the letters or the lines, which are all almost grey.
    """
    high, low = 255 - 4 * (place % 8), 8 * (place // 64 % 8)
    return np.roll([high, low, 8 * (place // 8 % 8)], place % 3).astype(np.uint8)


def picture(place, height=90, width=160):
    return np.full((height, width, 3), colour(place), dtype=np.uint8)


def frames(count, height=90, width=160, every=7.5):
    return [
        Keyframe(187 * k, every * k, 0.5, picture(k, height, width))
        for k in range(count)
    ]


def packed(colours):
    """Return three colours in one number, which is quick to compare."""
    red, green, blue = np.moveaxis(np.asarray(colours, dtype=np.int32), -1, 0)
    return red << 16 | green << 8 | blue


def box(sheet, place):
    """Return top, bottom, left and right of all pixels of one picture's colour."""
    return _box(packed(sheet), place)


def boxes(sheet, count):
    numbers = packed(sheet)
    return [_box(numbers, place) for place in range(count)]


def _box(numbers, place):
    rows, columns = np.nonzero(numbers == packed(colour(place)))
    assert rows.size, f"picture {place} is not there"
    top, bottom, left, right = rows.min(), rows.max(), columns.min(), columns.max()
    assert rows.size == (bottom - top + 1) * (right - left + 1), "not one rectangle"
    return int(top), int(bottom) + 1, int(left), int(right) + 1


def n_columns(found):
    return len({left for _, _, left, _ in found})


def decoded(data):
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]


@pytest.mark.parametrize(
    ("seconds", "label"),
    [
        (0, "0:00.0"),
        (59.94, "0:59.9"),
        (59.96, "1:00.0"),
        (61.5, "1:01.5"),
        (3599.9, "59:59.9"),
        (3599.99, "1:00:00"),
        (3661, "1:01:01"),
        (3659.7, "1:01:00"),
        (36_000, "10:00:00"),
    ],
)
def test_times(seconds, label):
    assert time_label(seconds) == label


@pytest.mark.parametrize("seconds", [-0.1, math.nan, math.inf])
def test_no_time(seconds):
    with pytest.raises(ValueError, match="a time is a number of seconds from 0 on"):
        time_label(seconds)


def test_colours_of_the_tests_differ():
    assert len({tuple(colour(place)) for place in range(200)}) == 200


@pytest.mark.parametrize(
    ("count", "columns"), [(1, 1), (2, 2), (5, 3), (9, 3), (30, 6), (200, 10)]
)
def test_pictures_are_in_rows_in_order(count, columns):
    sheet = storyboard(frames(count))
    found = boxes(sheet, count)
    assert sheet.shape[1] == 1280
    assert sheet.dtype == np.uint8
    assert n_columns(found) == columns
    # as one reads: from left to right, then down
    assert found == sorted(found, key=lambda b: (b[0], b[2]))
    assert [b[2] for b in found[:columns]] == sorted({b[2] for b in found})
    # of one size, inside the sheet with margins, and apart from each other
    assert len({(b - t, r - le) for t, b, le, r in found}) == 1
    assert min(t for t, *_ in found) >= 24
    assert min(b[2] for b in found) >= 24
    assert max(b[3] for b in found) <= 1280 - 24
    assert max(b[1] for b in found) <= len(sheet) - 24
    covered = np.zeros(sheet.shape[:2], int)
    for top, bottom, left, right in found:
        covered[top:bottom, left:right] += 1
    assert covered.max() == 1


def test_order_is_that_of_the_times():
    ordered = storyboard(frames(7))
    np.testing.assert_array_equal(storyboard(frames(7)[::-1]), ordered)


@pytest.mark.parametrize(("columns", "n_rows"), [(1, 7), (3, 3), (7, 1), (9, 1)])
def test_columns_can_be_given(columns, n_rows):
    found = boxes(storyboard(frames(7), columns=columns), 7)
    assert n_columns(found) == min(columns, 7)
    assert len({top for top, *_ in found}) == n_rows


@pytest.mark.parametrize(
    ("height", "width"), [(90, 160), (240, 352), (160, 90), (64, 64), (800, 1900)]
)
@pytest.mark.parametrize("count", [1, 4])
def test_shapes_are_kept(height, width, count):
    found = boxes(storyboard(frames(count, height, width)), count)
    for top, bottom, left, right in found:
        # two pixels are the line around, one is rounding
        assert abs((bottom - top + 2) * width / height - (right - left + 2)) <= 2


def test_another_shape_is_fitted_in_not_stretched():
    shown = frames(4)
    for place, (height, width) in ((1, (160, 90)), (2, (30, 160))):
        shown[place] = Keyframe(
            shown[place].number,
            shown[place].time,
            0.5,
            picture(place, height, width),
        )
    usual, upright, wide, last = boxes(storyboard(shown), 4)
    assert usual[1] - usual[0] == last[1] - last[0]
    for (top, bottom, left, right), ratio in ((upright, 90 / 160), (wide, 160 / 30)):
        assert (right - left) / (bottom - top) == pytest.approx(ratio, rel=0.03)
    # in the middle of boxes like the others
    assert sum(upright[:2]) == pytest.approx(sum(usual[:2]), abs=2)
    assert sum(wide[2:]) == pytest.approx(sum(usual[2:]), abs=2)
    assert upright[1] - upright[0] == pytest.approx(usual[1] - usual[0], abs=2)


def test_small_single_picture_does_not_fill_the_sheet():
    (_, _, left, right) = box(storyboard(frames(1)), 0)
    assert right - left == pytest.approx(640, abs=4)
    assert left + right == pytest.approx(1280, abs=4)
    (_, _, left, right) = box(storyboard(frames(1, 720, 1400)), 0)
    assert right - left > 1150


def test_labels_are_beneath_their_pictures():
    before, after = frames(6), frames(6)
    after[1] = Keyframe(after[1].number, 8.8, 0.5, after[1].image)
    after[3] = Keyframe(99, after[3].time, 0.5, after[3].image)
    sheet = storyboard(before)
    changed = (sheet != storyboard(after)).any(axis=2)
    found = boxes(sheet, 6)
    assert changed.any()
    for place in (1, 3):
        _, bottom, left, right = found[place]
        below = (slice(bottom, bottom + 45), slice(left - 2, right + 2))
        assert changed[below].any()
        changed[below] = False
    assert not changed.any()


@pytest.mark.parametrize("columns", [2, 6, 12])
def test_labels_are_dark_and_stay_in_their_columns(columns):
    shown = [
        Keyframe(1_234_000 + k, 36_000.0 + k, 0.5, picture(k)) for k in range(columns)
    ]
    sheet = storyboard(shown, columns=columns)
    found = boxes(sheet, columns)
    under = sheet[found[0][1] + 2 :].mean(axis=2)
    for _, _, left, right in found:
        assert under[:, left:right].min() < 80
        # the ground is light right beside the column
        assert under[:, right + 3 : right + 12].min() > 240
    assert np.median(under) > 240


def test_long_labels_are_written_smaller_not_cut_off():
    # ends that differ can be told apart in the narrowest column
    sheets = [
        storyboard([Keyframe(123_456_000 + end, 0.0, 0.5, picture(0))], columns=12)
        for end in (1, 8)
    ]
    assert (sheets[0] != sheets[1]).any()


def test_png_loses_nothing():
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    data = encode_png(image)
    assert data.startswith(b"\x89PNG")
    np.testing.assert_array_equal(decoded(data), image)
    # a view with reversed axes is as good
    np.testing.assert_array_equal(
        decoded(encode_png(image[::-1, ::-1])), image[::-1, ::-1]
    )


def test_jpeg_keeps_the_colours_and_its_size_follows_the_quality():
    image = np.zeros((64, 64, 3), np.uint8)
    image[:, :32] = (220, 30, 60)
    image[:, 32:] = (20, 90, 200)
    data = encode_jpeg(image, quality=95)
    assert data.startswith(b"\xff\xd8")
    shown = decoded(data).astype(int)
    assert np.abs(shown[:, 4:28] - (220, 30, 60)).max() < 8
    assert np.abs(shown[:, 36:60] - (20, 90, 200)).max() < 8
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    assert len(encode_jpeg(noise, 30)) < len(encode_jpeg(noise, 90))


def test_pictures_are_left_as_they_were():
    shown = frames(3)
    copies = [keyframe.image.copy() for keyframe in shown]
    storyboard(shown)
    for keyframe, copy in zip(shown, copies, strict=True):
        np.testing.assert_array_equal(keyframe.image, copy)


def test_what_cannot_be_shown():
    with pytest.raises(ValueError, match="at least one key frame"):
        storyboard([])
    with pytest.raises(ValueError, match="number of pictures in a row, got 0"):
        storyboard(frames(2), columns=0)
    with pytest.raises(ValueError, match="each of 40 columns has 14 pixels"):
        storyboard(frames(2), columns=40)
    with pytest.raises(ValueError, match="take fewer columns or more width"):
        storyboard(frames(2), width=100)
    grey = Keyframe(0, 0.0, 0.5, np.zeros((9, 9), np.uint8))
    with pytest.raises(ValueError, match=r"three colours, got shape \(9, 9\)"):
        storyboard([grey])
    with pytest.raises(ValueError, match="got float64"):
        encode_png(np.zeros((9, 9, 3)))
    with pytest.raises(ValueError, match=r"got shape \(0, 9, 3\)"):
        encode_png(np.zeros((0, 9, 3), np.uint8))


def test_opencv_is_imported_late():
    code = "import sys, variegate.video.storyboard; assert 'cv2' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_opencv_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match="pip install"):
        storyboard(frames(1))
    with pytest.raises(ImportError, match="pip install"):
        encode_png(picture(0))
