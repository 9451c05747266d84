"""What can be said of a single picture: how light, sharp, detailed and colourful."""

from __future__ import annotations

import numpy as np

from variegate._typing import AnyArray, FloatArray
from variegate.video.colour import check_image, shrunk
from variegate.video.hue import hue_histogram

__all__ = ["PICTURE_STATISTICS", "picture_statistics"]

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

#: Pixels on the longer side of the small picture that the coarse numbers come from.
_SMALL = 32

#: A pixel is dark whose grey value is below this.
_DARK = 30.0

#: Levels of red, green and blue that colours are counted by.
_LEVELS = 8


def picture_statistics(image: AnyArray) -> FloatArray:
    """Return the numbers that :data:`PICTURE_STATISTICS` names.

    Brightness and contrast are the mean and the deviation of grey values; sharpness is
    the mean difference between neighbouring pixels in a column, and colour spread the
    mean deviation of the three colours.  The others are of the picture shrunk to 32
    pixels on its longer side: detail is the mean difference between neighbours there,
    the number of colours (its logarithm) is counted on 8 levels of each, saturation is
    the mean spread of red, green and blue, and the dark share that of pixels below a
    grey of 30.  The entropy of hues is of the whole picture.

    Parameters
    ----------
    image : uint8 array of shape (height, width, 3), red, green and blue
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
