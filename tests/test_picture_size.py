"""Sizes of pictures by their headers, compared with Pillow; and what is refused."""

import io
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from benchmarks.hostile_pictures import PICTURES, measure, png, read_file
from variegate.material.base import MaterialError
from variegate.material.pictures import read_picture, thumbnail
from variegate.video import reading
from variegate.video.picks import read_pictures
from variegate.video.picture import decode_picture
from variegate.video.picture_size import (
    MOST_PIXELS,
    has_size_to_decode,
    picture_size,
)
from variegate.video.reading import VideoError, read_frames

Image = pytest.importorskip("PIL.Image", reason="needs Pillow, to compare with")

SAVED = [
    ("JPEG", "RGB", {}),
    ("JPEG", "L", {}),
    ("JPEG", "CMYK", {}),
    ("JPEG", "RGB", {"progressive": True, "comment": "a comment", "dpi": (72, 72)}),
    ("PNG", "RGB", {}),
    ("PNG", "P", {"transparency": 0}),
    ("PNG", "1", {}),
    ("PNG", "I;16", {}),
    ("PNG", "RGBA", {}),
    ("WEBP", "RGB", {"lossless": True}),
    ("WEBP", "RGB", {"lossless": False}),
    ("WEBP", "RGBA", {"lossless": False}),
    ("BMP", "RGB", {}),
    ("BMP", "1", {}),
    ("TIFF", "RGB", {}),
    ("TIFF", "I;16", {}),
    ("TIFF", "RGB", {"big_tiff": True}),
    ("TIFF", "L", {"compression": "tiff_lzw"}),
]


@pytest.mark.parametrize(("kind", "mode", "options"), SAVED)
@pytest.mark.parametrize("size", [(1, 1), (37, 90), (300, 7)])
def test_headers_say_what_is_decoded(kind, mode, options, size):
    file = io.BytesIO()
    Image.new(mode, size).save(file, kind, **options)
    data = file.getvalue()
    assert picture_size(data) == size == Image.open(io.BytesIO(data)).size
    assert decode_picture(data).shape == (size[1], size[0], 3)


def test_big_endian_tiff_and_old_bmp():
    tiff = b"MM\0*\0\0\0\x08\0\x02"
    tiff += b"\x01\0\0\x03\0\0\0\x01\0\x05\0\0" + b"\x01\x01\0\x03\0\0\0\x01\0\x07\0\0"
    assert picture_size(tiff) == (5, 7)
    bmp = b"BM" + bytes(12) + b"\x0c\0\0\0" + b"\x05\0" + b"\x07\0"
    assert picture_size(bmp) == (5, 7)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "TIFF"])
def test_headers_that_end_early_have_no_size(kind):
    file = io.BytesIO()
    Image.new("RGB", (9, 9)).save(file, kind)
    for end in range(30):
        assert picture_size(file.getvalue()[:end]) in (None, (9, 9), (0, 0))


def test_a_size_is_known_positive_and_bounded():
    side = round(MOST_PIXELS**0.5)
    assert has_size_to_decode((side, side))
    assert has_size_to_decode((1, MOST_PIXELS))
    for size in (None, (0, 5), (5, 0), (side, side + 1)):
        assert not has_size_to_decode(size)


# What is refused ----------------------------------------------------------------------


def test_pictures_with_too_many_pixels_are_refused(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(png(10_000, 10_000, rows=0))
    with pytest.raises(MaterialError, match=r"a\.png has 10,000 x 10,000 pixels, more"):
        read_picture(path)
    with pytest.raises(ValueError, match=r"a\.png cannot .*: it is damaged, or has"):
        list(read_pictures(tmp_path))


def test_files_with_too_many_bytes_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("variegate.material.pictures._MAX_BYTES", 10)
    (tmp_path / "a.png").write_bytes(png(4, 4))
    with pytest.raises(MaterialError, match=r"a\.png is larger than 0 MB: make it"):
        read_picture(tmp_path / "a.png")


def test_videos_with_too_large_frames_are_refused(tmp_path, monkeypatch):
    sides = {cv2.CAP_PROP_FRAME_WIDTH: 10_000.0, cv2.CAP_PROP_FRAME_HEIGHT: 9000.0}
    capture = SimpleNamespace(
        isOpened=lambda: True, get=sides.get, release=lambda: None
    )
    monkeypatch.setattr(cv2, "VideoCapture", lambda path: capture)
    (tmp_path / "a.mp4").write_bytes(b"a")
    with pytest.raises(VideoError, match=r"a\.mp4 has frames of 10,000 x 9,000 pixels"):
        next(read_frames(tmp_path / "a.mp4"))
    assert reading.MOST_PIXELS == MOST_PIXELS


@pytest.mark.parametrize(
    ("shape", "shown"),
    [
        ((20_000, 1), (2560, 1)),
        ((1, 20_000), (1, 640)),
        ((3000, 100), (2560, 85)),
        ((30, 20), (30, 20)),
        ((500, 1280), (250, 640)),
    ],
)
def test_thumbnails_are_bounded_and_never_enlarged(shape, shown):
    content, _ = thumbnail(np.zeros((*shape, 3), np.uint8), 640)
    assert cv2.imdecode(np.frombuffer(content, np.uint8), 1).shape == (*shown, 3)


def test_opacity_is_blended_row_by_row_as_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    layers = rng.integers(0, 256, (50, 7, 4), dtype=np.uint8)
    data = cv2.imencode(".png", layers)[1].tobytes()
    colours = layers[..., 2::-1].astype(float)
    expected = 255 - (255 - colours) * (layers[..., 3:] / 255)
    for n_pixels in (1, 70, 2**20):
        monkeypatch.setattr("variegate.video.picture._BLENDED", n_pixels)
        np.testing.assert_array_equal(decode_picture(data), expected.round())


# Memory -------------------------------------------------------------------------------

#: Of these, making or reading the file takes seconds.
LARGE = ("largest of 16 bits", "text bomb", "TIFF of many pages", "bomb of one bit")


def peak_of(name, tmp_path):
    suffix, make = PICTURES[name]
    (tmp_path / f"a{suffix}").write_bytes(make())
    (tmp_path / "warm.png").write_bytes(png(300, 200))
    read_file(tmp_path / "warm.png")
    return measure(tmp_path / f"a{suffix}")


@pytest.mark.faults
@pytest.mark.parametrize("name", [name for name in PICTURES if name not in LARGE])
def test_memory_for_hostile_pictures_is_bounded(name, tmp_path):
    found = peak_of(name, tmp_path)
    assert found.megabytes < 500
    assert found.problem == "" or found.problem.startswith("MaterialError: ")


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_memory_for_large_hostile_pictures_is_bounded(name, tmp_path):
    found = peak_of(name, tmp_path)
    assert found.megabytes < 1500
    assert found.problem == "" or found.problem.startswith("MaterialError: ")
