"""Histograms of colour over a grid of cells: what colours a frame has, and where."""

from __future__ import annotations

from typing import Literal

import numpy as np

from variegate._typing import AnyArray, FloatArray
from variegate.video.hue import N_BINS, hue_of_pixels
from variegate.video.reading import require_cv2

__all__ = ["Channels", "check_image", "colour_layout", "shrunk"]

Channels = Literal["hue", "hsv"]


def check_image(image: AnyArray) -> None:
    """Raise unless an image is a ``uint8`` array of shape (height, width, 3)."""
    if image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise ValueError(
            f"an image has rows, columns and three colours, got shape {image.shape}"
        )
    if image.dtype != np.uint8:
        raise ValueError(
            f"an image has whole numbers from 0 to 255 (uint8), got {image.dtype}; "
            "scale it and call .astype('uint8')"
        )


def shrunk(image: AnyArray, longest: float) -> AnyArray:
    """Return a picture of at most so many pixels on its longer side."""
    require_cv2()
    import cv2

    height, width = image.shape[:2]
    scale = longest / max(height, width)
    if scale >= 1.0:
        return image
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA))


def colour_layout(
    image: AnyArray,
    rows: int,
    columns: int,
    bins: int = N_BINS,
    *,
    channels: Channels = "hue",
    square_root: bool = False,
) -> FloatArray:
    """Return histograms of colour in the cells of a grid, one after the other.

    Row i of an image of height h lies in row ⌊i · rows / h⌋ of the grid, and
    likewise the columns.  Each histogram holds shares, which sum to 1.  A grid of
    1 × 1 with 16 bins of hue is :func:`~variegate.video.hue.hue_histogram`.

    Parameters
    ----------
    image : uint8 array of shape (height, width, 3), red, green and blue
    rows, columns : int
        Cells of the grid, at most one for each row and column of the image.
    bins : int
        Bins of each histogram, of equal width over the values 0 to 255.
    channels : {"hue", "hsv"}
        "hsv" adds saturation and value, each over the whole grid, after the hues.
    square_root : bool
        Return the roots of the shares.  Half the squared Euclidean distance between
        two such vectors is the sum of the histograms' squared Hellinger distances.

    Returns
    -------
    array of length rows · columns · bins, three times that for "hsv"
        Cells go row by row; the bins of one cell are neighbours.
    """
    check_image(image)
    _check_grid(image, rows, columns, bins)
    cells = _cells(image.shape[0], image.shape[1], rows, columns)
    layout = np.concatenate(
        [
            _histograms(values, cells, rows * columns, bins)
            for values in _channel_values(image, channels)
        ]
    )
    return np.sqrt(layout) if square_root else layout


def _check_grid(image: AnyArray, rows: int, columns: int, bins: int) -> None:
    height, width = image.shape[:2]
    if rows < 1 or columns < 1:
        raise ValueError(
            f"a grid has at least one row and column, got {rows} x {columns}"
        )
    if not 1 <= bins <= 256:
        raise ValueError(f"a histogram has from 1 to 256 bins, got {bins}")
    if height < rows or width < columns:
        raise ValueError(
            f"an image of {height} rows and {width} columns is too small for a grid "
            f"of {rows} x {columns}: use fewer cells or a larger image"
        )


def _cells(height: int, width: int, rows: int, columns: int) -> AnyArray:
    """Return the cell of each pixel, as an array of shape (height, width)."""
    row = np.arange(height) * rows // height
    column = np.arange(width) * columns // width
    return np.asarray(row[:, None] * columns + column)


def _channel_values(image: AnyArray, channels: Channels) -> list[AnyArray]:
    """Return arrays of whole numbers from 0 to 255, one for each channel."""
    hue = hue_of_pixels(image)
    if channels == "hue":
        return [hue]
    if channels == "hsv":
        value = image.max(axis=2).astype(np.int64)
        spread = value - image.min(axis=2)
        # Black has no saturation, and no other pixel has a largest colour below 1.
        return [hue, 255 * spread // np.maximum(value, 1), value]
    raise ValueError(f"channels must be 'hue' or 'hsv', got {channels!r}")


def _histograms(
    values: AnyArray, cells: AnyArray, n_cells: int, bins: int
) -> FloatArray:
    """Return the shares of the bins in each cell, flat, cell by cell."""
    flat = cells * bins + values * bins // 256
    counts = np.bincount(flat.ravel(), minlength=n_cells * bins)
    by_cell = counts.reshape(n_cells, bins)
    return np.asarray((by_cell / by_cell.sum(axis=1, keepdims=True)).ravel())
