"""Describe the picture of a frame: statistics, colours and local patterns.

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
from variegate.video.colour import (
    N_BINS,
    check_image,
    colour_layout,
    hue_histogram,
    shrunk,
)
from variegate.video.reading import cv2

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

_LONGEST = 352  # pixels on the longer side of the picture that is described
_SMALL = 32  # pixels on the longer side of the picture of the coarse statistics
_DARK = 30.0  # grey value below which a pixel is dark
_LEVELS = 8  # of red, green and blue, that colours are counted by
LAYOUT = 5  # rows and columns of cells with histograms of their own

SIFT_LENGTH = 128  # numbers in a descriptor: 4 x 4 cells of 8 directions
_SIFT_LONGEST = 256  # pixels on the longer side of the image at the first scale
_PATCH = 24  # pixels on each side of a patch
_STEP = 8  # pixels between patches
# OpenCV makes a cell 3/2 of the size of a keypoint wide, so a patch of 4 cells 6.
_KEYPOINT = _PATCH / 6.0


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
    small = shrunk(image, _SMALL)
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
    steps = np.abs(np.diff(grey, axis=axis))
    return float(steps.mean()) if steps.size else 0.0


@dataclass(frozen=True, eq=False)
class FrameDescription:
    """Features of one frame, without its picture.

    Attributes
    ----------
    hue : array of shape (16,)
        The histogram that VSUMM compares.
    palette, layout : arrays of shape (48,) and (25 · 48,)
        Roots of the histograms of hue, saturation and value, of the whole picture and
        in 5 × 5 cells: vectors of length 1.
    picture : array
        The numbers of :func:`picture_statistics`.
    sift : uint8 array of shape (n, 128)
        Descriptors of local patterns.
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
        """The histogram of brightness."""
        return np.asarray(3.0 * self.palette[-N_BINS:] ** 2)


def describe(number: int, time: float, image: AnyArray) -> FrameDescription:
    """Return the description of a frame, from its picture in red, green and blue."""
    small = described_size(image)
    palette = colour_layout(small, 1, 1, square_root=True)
    layout = colour_layout(small, LAYOUT, LAYOUT, square_root=True)
    return FrameDescription(
        number,
        time,
        hue_histogram(small),
        palette / np.sqrt(3.0),
        (layout / np.sqrt(3.0 * LAYOUT**2)).astype(np.float32),
        picture_statistics(small),
        dense_sift(small),
    )


def described_size(image: AnyArray) -> AnyArray:
    """Return a picture in the size in which it is described."""
    check_image(image)
    small = shrunk(image, _LONGEST)
    if min(small.shape[:2]) < LAYOUT:  # too small for the cells
        small = np.repeat(np.repeat(small, LAYOUT, axis=0), LAYOUT, axis=1)
    return small


def dense_sift(image: AnyArray, n_scales: int = 2) -> NDArray[np.uint8]:
    """Return SIFT descriptors [1]_ of square patches on a regular grid.

    The image is turned to grey and shrunk, by means over areas, so that its longer
    side is at most 256.  Patches of 24 pixels are 8 pixels apart.  Each further scale
    halves that image; scales at which a patch does not fit into the image are left
    out, except the first.

    Patches lie inside the image and stand upright: no direction is estimated.  A side
    shorter than a patch has one patch in its middle, cut at the borders.  A patch of
    one grey is described by zeros, as OpenCV alone would scale up rounding errors.

    Returns
    -------
    uint8 array of shape (n, 128), n at least 1
        Scale by scale, each row by row.
    """
    check_image(image)
    grey = shrunk(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), _SIFT_LONGEST)
    found = [_patches(grey)]
    for scale in range(1, n_scales):
        smaller = shrunk(grey, 0.5**scale * max(grey.shape))
        if min(smaller.shape) < _PATCH:
            break
        found.append(_patches(smaller))
    return np.concatenate(found)


def _patches(grey: AnyArray) -> NDArray[np.uint8]:
    rows, columns = map(_centres, grey.shape)
    places = product(map(float, rows), map(float, columns))
    keypoints = [cv2.KeyPoint(column, row, _KEYPOINT, 0.0) for row, column in places]
    # One layer is all that keypoints of octave 0 read.
    _, values = cv2.SIFT.create(nOctaveLayers=1).compute(grey, keypoints)
    descriptors = values.astype(np.uint8)  # whole numbers, as OpenCV rounds them
    window = np.ones((_PATCH, _PATCH), dtype=np.uint8)
    is_flat = cv2.erode(grey, window) == cv2.dilate(grey, window)
    descriptors[is_flat[np.ix_(rows, columns)].ravel()] = 0
    return np.asarray(descriptors)


def _centres(side: int) -> list[int]:
    """Return the centres of patches along a side, evenly to both ends."""
    if side <= _PATCH:
        return [side // 2]
    first = _PATCH // 2 + (side - _PATCH) % _STEP // 2
    return list(range(first, side - _PATCH // 2 + 1, _STEP))
