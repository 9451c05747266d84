"""Compute SIFT descriptors on a regular grid, the local patterns of an image.

Lowe, 2004, "Distinctive image features from scale-invariant keypoints".
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from variegate._typing import AnyArray
from variegate._validation import check_count
from variegate.video.colour import check_image, shrunk
from variegate.video.reading import cv2

__all__ = ["LENGTH", "dense_sift"]

#: Numbers in a SIFT descriptor: 4 x 4 cells of 8 directions.
LENGTH = 128

#: The longer side of the image at the first scale is at most this.
_LONGEST_SIDE = 256

#: OpenCV makes a cell 3/2 of the size of a keypoint wide, so a patch of 4 cells 6 of
#: them.
_PATCH_PER_KEYPOINT = 6.0


def dense_sift(
    image: AnyArray, step: int = 8, size: int = 24, n_scales: int = 2
) -> NDArray[np.uint8]:
    """Return SIFT descriptors of square patches on a regular grid.

    The image is turned to grey and shrunk, by means over areas, so that its longer
    side is at most 256.  Each further scale halves that image, with the same step and
    size of patches, which so cover more of the image.  Scales at which a patch does
    not fit into the image are left out, except the first.

    Patches lie inside the image and stand upright: no direction is estimated.  A side
    shorter than a patch has one patch in its middle, cut at the borders.

    A patch of one grey is described by zeros: it says nothing.  (OpenCV alone would
    scale up the rounding errors of some of them.)  A patch with the faintest pattern
    is described like any other, scaled to one length.

    Parameters
    ----------
    image : uint8 array of shape (height, width, 3), red, green and blue
    step : int
        Pixels between neighbouring patches.
    size : int, at least 4
        Pixels along the side of a patch, best a multiple of 4.
    n_scales : int
        Number of scales, at most.

    Returns
    -------
    uint8 array of shape (n, 128), n at least 1
        Scale by scale, each row by row.
    """
    check_image(image)
    for name, value in (("step", step), ("size", size), ("n_scales", n_scales)):
        check_count(name, value)
    if size < 4:
        raise ValueError(f"a patch has 4 x 4 cells, so size is at least 4, got {size}")
    grey = shrunk(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), _LONGEST_SIDE)
    found = [_patches(grey, step, size)]
    for scale in range(1, n_scales):
        smaller = shrunk(grey, 0.5**scale * max(grey.shape))
        if min(smaller.shape) < size:
            break
        found.append(_patches(smaller, step, size))
    return np.concatenate(found)


def _patches(grey: AnyArray, step: int, size: int) -> NDArray[np.uint8]:
    """Return the descriptors of one scale."""
    rows, columns = (_centres(side, step, size) for side in grey.shape)
    places = product(map(float, rows), map(float, columns))
    width = size / _PATCH_PER_KEYPOINT
    keypoints = [cv2.KeyPoint(column, row, width, 0.0) for row, column in places]
    # One layer is all that keypoints of octave 0 read.
    _, values = cv2.SIFT.create(nOctaveLayers=1).compute(grey, keypoints)
    descriptors = values.astype(np.uint8)  # whole numbers, as OpenCV rounds them
    window = np.ones((size, size), dtype=np.uint8)
    is_flat = cv2.erode(grey, window) == cv2.dilate(grey, window)
    descriptors[is_flat[np.ix_(rows, columns)].ravel()] = 0
    return np.asarray(descriptors)


def _centres(side: int, step: int, size: int) -> list[int]:
    """Return where patches along a side have their centres, evenly to both ends."""
    if side <= size:
        return [side // 2]
    spare = (side - size) % step
    return list(range(spare // 2 + size // 2, side - size + size // 2 + 1, step))
