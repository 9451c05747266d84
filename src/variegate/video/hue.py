"""The colour histogram by which VSUMM compares frames."""

from __future__ import annotations

import numpy as np

from variegate._typing import AnyArray, FloatArray

__all__ = ["N_BINS", "hue_histogram", "hue_of_pixels"]

#: Bins of hue, each 16 of 256 values wide.
N_BINS = 16


def hue_of_pixels(image: AnyArray) -> AnyArray:
    """Return the hue of each pixel, 0 to 255, as VSUMM's evaluator computes it.

    The usual angle of the colour circle, cut to whole degrees (towards zero, then
    moved up by 360 where negative), then scaled to 256 values, cut again.  Grey has
    hue 0.

    Parameters
    ----------
    image : array of shape (height, width, 3), red, green and blue, whole numbers
    """
    red, green, blue = (image[..., k].astype(np.float64) for k in range(3))
    largest = np.maximum(np.maximum(red, green), blue)
    spread = largest - np.minimum(np.minimum(red, green), blue)
    safe = np.where(spread > 0.0, spread, 1.0)
    angle = np.select(
        [spread == 0.0, largest == red, largest == green],
        [
            np.zeros_like(red),
            60.0 * ((green - blue) / safe),
            60.0 * (2.0 + (blue - red) / safe),
        ],
        60.0 * (4.0 + (red - green) / safe),
    )
    degrees = np.trunc(angle).astype(np.int64)
    degrees = np.where(degrees < 0, degrees + 360, degrees)
    return np.asarray(255 * degrees // 360)


def hue_histogram(image: AnyArray) -> FloatArray:
    """Return the shares of 16 hues among the pixels of an image."""
    if image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise ValueError(
            f"an image has rows, columns and three colours, got shape {image.shape}"
        )
    bins = hue_of_pixels(image) // 16
    counts = np.bincount(bins.ravel(), minlength=N_BINS)
    return np.asarray(counts / counts.sum())
