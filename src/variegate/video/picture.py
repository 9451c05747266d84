"""Describe pictures by statistics, histograms of colours and local patterns.

Pictures are ``uint8`` arrays of shape (height, width, 3), red, green and blue.

References
----------
.. [1] Lowe, 2004, "Distinctive image features from scale-invariant keypoints".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from variegate._typing import AnyArray, FloatArray
from variegate.video.picture_size import has_size_to_decode, picture_size
from variegate.video.reading import Picture, cv2

#: The quality features of a frame, numbers about its picture, in order.
PICTURE_STATISTICS = (
    "brightness",
    "contrast",
    "sharpness",
    "colour_spread",
    "detail",
    "n_colours",
    "saturation",
    "hue_entropy",
    "dark_share",
)

_BLENDED = 2**20  # pixels that are blended at once
_LONGEST = 352  # pixels on the longer side of the picture that is described
_SMALL = 32  # pixels on the longer side of the picture of the coarse statistics
_DARK = 30.0  # grey value below which a pixel is dark
_LEVELS = 8  # of red, green and blue, that colours are counted by
LAYOUT = 5  # rows and columns of cells with histograms of their own

N_BINS = 16  # of hue, each 16 of 256 values wide

SIFT_LENGTH = 128  # numbers in a descriptor: 4 x 4 cells of 8 directions
_SIFT_LONGEST = 256  # pixels on the longer side of the image at the first scale
_PATCH = 24  # pixels on each side of a patch
_STEP = 8  # pixels between patches
# OpenCV makes a cell 3/2 of the size of a keypoint wide, so a patch of 4 cells 6.
_KEYPOINT = _PATCH / 6.0


def check_image(image: AnyArray) -> None:
    """Raise ValueError unless an image is ``uint8`` of shape (height, width, 3)."""
    if image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise ValueError(
            f"an image has rows, columns and three colours, got shape {image.shape}"
        )
    if image.dtype != np.uint8:
        raise ValueError(
            f"an image has whole numbers from 0 to 255 (uint8), got {image.dtype}; "
            "scale it and call .astype('uint8')"
        )


def shrink_picture(image: AnyArray, longest: float) -> AnyArray:
    """Return a picture, shrunk if its longer side has more than ``longest`` pixels."""
    height, width = image.shape[:2]
    scale = longest / max(height, width)
    if scale >= 1.0:
        return image
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA))


def decode_picture(data: bytes) -> Picture | None:
    """Decode the bytes of an image file, blended with white where transparent.

    Return None for bytes that cannot be decoded, and where the header declares no size
    or over ``MOST_PIXELS`` pixels (:func:`variegate.video.picture_size.picture_size`).
    """
    if not has_size_to_decode(picture_size(data)):
        return None
    array = np.frombuffer(data, dtype=np.uint8)
    try:
        image = cv2.imdecode(array, cv2.IMREAD_COLOR)
        if image is not None:
            image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
        if image is not None and _may_be_transparent(data):
            layers = cv2.imdecode(array, cv2.IMREAD_UNCHANGED)
            if layers is not None:
                _blend_with_white(layers, image)
    except (cv2.error, MemoryError):
        image = None
    return None if image is None else np.asarray(image, dtype=np.uint8)


def _may_be_transparent(data: bytes) -> bool:
    """Return whether a file may have transparent pixels, by its first bytes."""
    if data.startswith(b"\x89PNG"):
        return bool(data[25] & 4) or b"tRNS" in data[: data.find(b"IDAT")]
    return not data.startswith(b"\xff\xd8")  # JPEG


def _blend_with_white(layers: AnyArray, image: AnyArray) -> None:
    """Blend ``image`` with white, in place, by the opacity in the file's ``layers``.

    This is the last of four layers; another number of them leaves it as it is.
    """
    if layers.ndim != 3 or layers.shape[2] != 4:
        return
    n_rows = max(1, _BLENDED // image.shape[1])
    for start in range(0, len(image), n_rows):
        rows = slice(start, start + n_rows)
        opacity = layers[rows, :, 3:] / np.iinfo(layers.dtype).max
        image[rows] = (255 - (255.0 - image[rows]) * opacity).round()


def hue_of_pixels(image: AnyArray) -> AnyArray:
    """Return the hue of each pixel, 0 to 255, as VSUMM's evaluator computes it.

    The usual angle of the colour circle, cut to whole degrees (towards zero, then
    moved up by 360 where negative), then scaled to 256 values, cut again.  Grey has
    hue 0.
    """
    red, green, blue = (image[..., k].astype(np.float64) for k in range(3))
    largest = np.maximum(np.maximum(red, green), blue)
    spread = largest - np.minimum(np.minimum(red, green), blue)
    safe = np.where(spread > 0.0, spread, 1.0)
    sixths = np.select(
        [spread == 0.0, largest == red, largest == green],
        [0.0, (green - blue) / safe, 2.0 + (blue - red) / safe],
        4.0 + (red - green) / safe,
    )
    degrees = np.trunc(60.0 * sixths).astype(np.int64)
    degrees = np.where(degrees < 0, degrees + 360, degrees)
    return np.asarray(255 * degrees // 360)


def hue_histogram(image: AnyArray) -> FloatArray:
    """Return the shares (16,) of equal ranges of hue among the pixels of an image."""
    check_image(image)
    return _histograms(hue_of_pixels(image), np.zeros(1, dtype=int), 1)


def colour_layout(image: AnyArray, rows: int, columns: int) -> FloatArray:
    """Return histograms of colour in the cells of a grid, one after the other.

    Row i of an image of height h lies in row ⌊i · rows / h⌋ of the grid, and
    likewise the columns.  Each histogram has 16 bins of equal width over the values 0
    to 255, and holds shares, which sum to 1: those of hue over the whole grid, then
    those of saturation and of value: (3 · rows · columns · 16,).  Cells go row by row;
    the bins of one cell are neighbours.
    """
    check_image(image)
    height, width = image.shape[:2]
    if height < rows or width < columns:
        raise ValueError(
            f"an image of {height} rows and {width} columns is too small for a grid "
            f"of {rows} x {columns}: use fewer cells or a larger image"
        )
    row = np.arange(height) * rows // height
    column = np.arange(width) * columns // width
    cells = row[:, None] * columns + column
    value = image.max(axis=2).astype(np.int64)
    spread = value - image.min(axis=2)
    # Black has no saturation, and no other pixel has a largest colour below 1.
    saturation = 255 * spread // np.maximum(value, 1)
    channels = hue_of_pixels(image), saturation, value
    n_cells = rows * columns
    return np.concatenate([_histograms(c, cells, n_cells) for c in channels])


def _histograms(values: AnyArray, cells: AnyArray, n_cells: int) -> FloatArray:
    """Return the shares of 16 equal bins of values 0 to 255 in each cell, flat.

    ``cells`` has the number of each pixel's cell; the bins of a cell are neighbours.
    """
    flat = cells * N_BINS + values * N_BINS // 256
    counts = np.bincount(flat.ravel(), minlength=n_cells * N_BINS)
    by_cell = counts.reshape(n_cells, N_BINS)
    return np.asarray((by_cell / by_cell.sum(axis=1, keepdims=True)).ravel())


def picture_statistics(image: AnyArray) -> FloatArray:
    """Return the numbers that :data:`PICTURE_STATISTICS` names, of a ``uint8`` picture.

    Brightness and contrast are the mean and the deviation of grey values; sharpness is
    the mean difference between neighbouring pixels in a column, colour spread the mean
    deviation of the three colours, and the entropy of hues that of 16 shares.  The
    others are of the picture shrunk to 32 pixels on its longer side: detail is the mean
    difference between neighbours, the number of colours (its logarithm) is counted on 8
    levels of each, saturation is the mean spread of red, green and blue, and the dark
    share that of pixels below a grey of 30.
    """
    check_image(image)
    grey = image.mean(axis=2)
    small = shrink_picture(image, _SMALL)
    small_grey = small.mean(axis=2)
    levels = small.astype(np.int64) * _LEVELS // 256
    colours = (levels[..., 0] * _LEVELS + levels[..., 1]) * _LEVELS + levels[..., 2]
    hues = hue_histogram(image)
    return np.array(
        [
            grey.mean(),
            grey.std(),
            _mean_step(grey, 0),
            image.std(axis=(0, 1)).mean(),
            _mean_step(small_grey, 0) + _mean_step(small_grey, 1),
            np.log(len(np.unique(colours))),
            np.ptp(small.astype(np.float64), axis=2).mean(),
            -np.sum(hues * np.log(np.maximum(hues, 1e-12))),
            (small_grey < _DARK).mean(),
        ]
    )


def _mean_step(grey: FloatArray, axis: int) -> float:
    """Return the mean absolute difference of neighbours on an axis, 0 without any."""
    steps = np.abs(np.diff(grey, axis=axis))
    return float(steps.mean()) if steps.size else 0.0


@dataclass(frozen=True, eq=False)
class FrameDescription:
    """Features of one frame, without its picture.

    Attributes
    ----------
    number, time : as in :class:`variegate.video.Frame`
    hue : array of shape (16,), the histogram that VSUMM compares
    palette, layout : arrays of shape (48,) and (25 · 48,)
        Roots of the histograms of hue, saturation and value, of the whole picture and
        in 5 × 5 cells: vectors of length 1, whose distance is that of Hellinger.
    picture : numbers of :func:`picture_statistics`
    sift : uint8 array of shape (n, 128), descriptors of local patterns
    """

    number: int
    time: float
    hue: FloatArray
    palette: FloatArray
    layout: NDArray[np.float32]
    picture: FloatArray
    sift: NDArray[np.uint8]

    @property
    def value(self) -> FloatArray:
        """The histogram of brightness (16,), shares that sum to 1."""
        return np.asarray(3.0 * self.palette[-N_BINS:] ** 2)


def describe(number: int, time: float, image: AnyArray) -> FrameDescription:
    """Return the description of a frame, from its picture in red, green and blue."""
    small = shrink_to_describe(image)
    palette = np.sqrt(colour_layout(small, 1, 1)) / np.sqrt(3.0)
    layout = np.sqrt(colour_layout(small, LAYOUT, LAYOUT)) / np.sqrt(3.0 * LAYOUT**2)
    return FrameDescription(
        number,
        time,
        hue_histogram(small),
        palette,
        layout.astype(np.float32),
        picture_statistics(small),
        dense_sift(small),
    )


def shrink_to_describe(image: AnyArray) -> AnyArray:
    """Return a picture of at most 352 pixels, or enlarged if a side is below 5."""
    check_image(image)
    small = shrink_picture(image, _LONGEST)
    if min(small.shape[:2]) < LAYOUT:  # too small for the cells
        small = np.repeat(np.repeat(small, LAYOUT, axis=0), LAYOUT, axis=1)
    return small


def dense_sift(image: AnyArray) -> NDArray[np.uint8]:
    """Return SIFT descriptors [1]_ (n, 128) of square patches on a regular grid.

    The image is turned to grey and shrunk, by means over areas, so that its longer
    side is at most 256.  Patches of 24 pixels are 8 pixels apart.  A second scale is
    half of that image, unless a patch does not fit into it.

    Patches lie inside the image and stand upright: no direction is estimated.  A side
    shorter than a patch has one patch in its middle, cut at the borders.  A patch of
    one grey is described by zeros, as OpenCV alone would scale up rounding errors.
    Patches go scale by scale, each row by row; there is at least one.
    """
    check_image(image)
    grey = shrink_picture(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), _SIFT_LONGEST)
    half = shrink_picture(grey, 0.5 * max(grey.shape))
    scales = [grey, half] if min(half.shape) >= _PATCH else [grey]
    return np.concatenate([_patch_descriptors(scale) for scale in scales])


def _patch_descriptors(grey: AnyArray) -> NDArray[np.uint8]:
    """Return the SIFT descriptors (n, 128) of the patches of a grey picture."""
    rows, columns = map(_patch_centres, grey.shape)
    places = product(map(float, rows), map(float, columns))
    keypoints = [cv2.KeyPoint(column, row, _KEYPOINT, 0.0) for row, column in places]
    # One layer is all that keypoints of octave 0 read.
    _, values = cv2.SIFT.create(nOctaveLayers=1).compute(grey, keypoints)
    descriptors = values.astype(np.uint8)  # whole numbers, as OpenCV rounds them
    window = np.ones((_PATCH, _PATCH), dtype=np.uint8)
    is_flat = cv2.erode(grey, window) == cv2.dilate(grey, window)
    descriptors[is_flat[np.ix_(rows, columns)].ravel()] = 0
    return np.asarray(descriptors)


def _patch_centres(side: int) -> list[int]:
    """Return the centres of patches, in pixels, along a side of that many pixels."""
    if side <= _PATCH:
        return [side // 2]
    first = _PATCH // 2 + (side - _PATCH) % _STEP // 2
    return list(range(first, side - _PATCH // 2 + 1, _STEP))
