"""Compute colour histograms of pictures: VSUMM's hues, and colours in a grid of cells.

Pictures are ``uint8`` arrays of shape (height, width, 3), red, green and blue.
"""

from __future__ import annotations

import numpy as np

from variegate._typing import AnyArray, FloatArray
from variegate.video.reading import cv2

N_BINS = 16  # of hue, each 16 of 256 values wide


def check_image(image: AnyArray) -> None:
    """Raise unless an image is a ``uint8`` array of shape (height, width, 3)."""
    _check_shape(image)
    if image.dtype != np.uint8:
        raise ValueError(
            f"an image has whole numbers from 0 to 255 (uint8), got {image.dtype}; "
            "scale it and call .astype('uint8')"
        )


def _check_shape(image: AnyArray) -> None:
    if image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise ValueError(
            f"an image has rows, columns and three colours, got shape {image.shape}"
        )


def shrunk(image: AnyArray, longest: float) -> AnyArray:
    """Return a picture of at most ``longest`` pixels on its longer side."""
    height, width = image.shape[:2]
    scale = longest / max(height, width)
    if scale >= 1.0:
        return image
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA))


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
    """Return the shares of 16 hues among the pixels of an image."""
    _check_shape(image)
    return _histograms(hue_of_pixels(image), np.zeros(1, dtype=int), 1)


def colour_layout(
    image: AnyArray, rows: int, columns: int, *, square_root: bool = False
) -> FloatArray:
    """Return histograms of colour in the cells of a grid, one after the other.

    Row i of an image of height h lies in row ⌊i · rows / h⌋ of the grid, and
    likewise the columns.  Each histogram has 16 bins of equal width over the values 0
    to 255, and holds shares, which sum to 1: those of hue over the whole grid, then
    those of saturation and of value.

    With ``square_root``, half the squared Euclidean distance between two such vectors
    is the sum of the histograms' squared Hellinger distances.

    Returns
    -------
    array of length 3 · rows · columns · 16
        Cells go row by row; the bins of one cell are neighbours.
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
    layout = np.concatenate([_histograms(c, cells, n_cells) for c in channels])
    return np.sqrt(layout) if square_root else layout


def _histograms(values: AnyArray, cells: AnyArray, n_cells: int) -> FloatArray:
    """Return the shares of the bins in each cell, flat, cell by cell."""
    flat = cells * N_BINS + values * N_BINS // 256
    counts = np.bincount(flat.ravel(), minlength=n_cells * N_BINS)
    by_cell = counts.reshape(n_cells, N_BINS)
    return np.asarray((by_cell / by_cell.sum(axis=1, keepdims=True)).ravel())
