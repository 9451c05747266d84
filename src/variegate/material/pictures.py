"""Pictures: features of them, and thumbnails.

A picture is an array (height, width, 3) of bytes in red, green and blue.
Numbers about the quality of a picture are those of
:func:`variegate.video.picture.picture_statistics`, but for the sharpness, which looks
along rows and columns.  Two vectors describe the rest: its palette (histograms of
hue, saturation and value) and its shapes (which way edges run, in 4 by 4 cells).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from variegate._typing import AnyArray, FloatArray
from variegate.material.base import MaterialError
from variegate.report.wording import percent
from variegate.video.picture import (
    PICTURE_STATISTICS,
    colour_layout,
    decode_picture,
    picture_statistics,
    shrink_picture,
)
from variegate.video.picture_size import MOST_PIXELS, picture_size
from variegate.video.reading import cv2
from variegate.video.storyboard import encode_jpeg, encode_png

#: Names of the numbers about the quality of a picture.
PICTURE_NAMES = tuple(name.replace("_", " ") for name in PICTURE_STATISTICS)

PICTURE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")

#: The largest file that is read; pixels on the longer side of a picture whose numbers
#: are computed, and on each side of the square in which edges are.
_MAX_BYTES = 64 * 2**20
_LONGEST = 352
_SMALL = 32

#: Cells on a side, and directions of edges in each.
_CELLS = 4
_DIRECTIONS = 8

#: Pictures narrower than this are shown without loss; and the most times that a picture
#: is as high as it may be wide.
_TINY = 64
_TALLEST = 4
_JPEG_QUALITY = 95


def is_picture(path: Path) -> bool:
    """Return whether a name, not hidden, ends as that of a picture."""
    return path.suffix.lower() in PICTURE_SUFFIXES and not path.name.startswith(".")


def read_picture(path: Path) -> AnyArray:
    """Return a picture as an RGB array; MaterialError if it cannot be read."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise MaterialError(
                f"{path.name} is larger than {_MAX_BYTES >> 20} MB: make it smaller"
            )
        data = path.read_bytes()
    except OSError as error:
        raise MaterialError(f"{path.name} cannot be read: {error.strerror}") from None
    size = picture_size(data)
    if size is not None and size[0] * size[1] > MOST_PIXELS:
        raise MaterialError(
            f"{path.name} has {size[0]:,} x {size[1]:,} pixels, more than "
            f"{MOST_PIXELS:,}: make it smaller"
        )
    image = decode_picture(data)
    if image is None:
        raise MaterialError(f"{path.name} cannot be read as a picture")
    return image


def describe_picture(image: AnyArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return statistics, palette and shapes of a picture, three vectors.

    The statistics (named ``PICTURE_NAMES``) are for quality, the others, of length 1,
    for similarity.
    """
    small = shrink_picture(image, _LONGEST)
    statistics = picture_statistics(small)
    statistics[PICTURE_STATISTICS.index("sharpness")] = _sharpness(small)
    palette = np.sqrt(colour_layout(small, 1, 1)) / np.sqrt(3.0)
    return statistics, palette, _edge_histogram(small)


def statistic_texts(statistics: FloatArray) -> list[str]:
    """Return ``PICTURE_STATISTICS`` as texts; n_colours, a logarithm, as a number."""
    texts = []
    for name, value in zip(PICTURE_STATISTICS, statistics.tolist(), strict=True):
        if name == "n_colours":
            texts.append(f"{np.exp(value):.0f}")
        else:
            texts.append(percent(value) if name == "dark_share" else f"{value:.3g}")
    return texts


def _sharpness(image: AnyArray) -> float:
    """Return the root of mean squared differences of neighbours, summed over axes."""
    grey = image.mean(axis=2)
    squares = [
        float((np.diff(grey, axis=axis) ** 2).mean())
        for axis in (0, 1)
        if grey.shape[axis] > 1
    ]
    return float(np.sqrt(sum(squares)))


def _edge_histogram(image: AnyArray) -> FloatArray:
    """Return roots of edge strengths (4 * 4 cells * 8 directions,), of length 1.

    Directions are without sign, so that light on dark is like dark on light; roots, so
    that one strong edge does not outweigh all others.  Zeros without edges.
    """
    height, width = image.shape[:2]
    is_smaller = max(height, width) < _SMALL
    how = cv2.INTER_LINEAR if is_smaller else cv2.INTER_AREA
    grey = cv2.resize(
        image.mean(axis=2).astype(np.float32), (_SMALL, _SMALL), None, 0, 0, how
    )
    across, down = cv2.Sobel(grey, cv2.CV_32F, 1, 0), cv2.Sobel(grey, cv2.CV_32F, 0, 1)
    strength = np.hypot(across, down)
    place = np.arctan2(down, across) / np.pi * _DIRECTIONS % _DIRECTIONS
    low = np.floor(place).astype(int) % _DIRECTIONS
    share = place - np.floor(place)
    maps = []
    for direction in range(_DIRECTIONS):
        before = (low + 1) % _DIRECTIONS == direction
        weight = np.where(low == direction, 1.0 - share, np.where(before, share, 0.0))
        layer = cv2.GaussianBlur(strength * weight, (0, 0), _SMALL / _CELLS / 4)
        maps.append(cv2.resize(layer, (_CELLS, _CELLS), None, 0, 0, cv2.INTER_AREA))
    shapes = np.sqrt(np.maximum(np.stack(maps, axis=-1).ravel(), 0.0))
    length = float(np.linalg.norm(shapes))
    return np.asarray(shapes / length if length > 0.0 else shapes, dtype=np.float64)


def thumbnail(image: AnyArray, width: int) -> tuple[bytes, str]:
    """Return a picture as the bytes of a file, and its MIME type.

    It is shrunk to at most ``width`` pixels wide and ``_TALLEST`` times that high, and
    never enlarged.
    """
    height, own = image.shape[:2]
    scale = min(1.0, width / own, _TALLEST * width / height)
    if scale < 1.0:
        size = (max(1, round(scale * own)), max(1, round(scale * height)))
        image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    if own < _TINY:
        return encode_png(image), "image/png"
    return encode_jpeg(image, _JPEG_QUALITY), "image/jpeg"
