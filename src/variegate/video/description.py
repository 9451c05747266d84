"""What is known of a frame once its picture is gone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from variegate._typing import AnyArray, FloatArray
from variegate.video.colour import check_image, colour_layout, shrunk
from variegate.video.hue import N_BINS, hue_histogram
from variegate.video.picture import picture_statistics
from variegate.video.sift import dense_sift

__all__ = ["LAYOUT", "Description", "describe", "described_size"]

#: Rows and columns of the cells whose colours are told apart.
LAYOUT = 5

#: Pixels on the longer side of the picture that is described.
_LONGEST = 352


@dataclass(frozen=True, eq=False)
class Description:
    """Numbers about one frame.

    Attributes
    ----------
    number, time : as in :class:`variegate.video.Frame`
    hue : array of shape (16,)
        The histogram that VSUMM compares.
    palette : array of shape (48,)
        Roots of the histograms of hue, saturation and value: a vector of length 1.
    layout : array of shape (25 · 48,)
        The same in 5 × 5 cells.
    picture : array
        The numbers of :func:`variegate.video.picture.picture_statistics`.
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


def describe(number: int, time: float, image: AnyArray) -> Description:
    """Return the description of a frame, from its picture in red, green and blue."""
    small = described_size(image)
    palette = colour_layout(small, 1, 1, channels="hsv", square_root=True)
    layout = colour_layout(small, LAYOUT, LAYOUT, channels="hsv", square_root=True)
    return Description(
        number,
        time,
        hue_histogram(small),
        palette / np.sqrt(3.0),
        (layout / np.sqrt(3.0 * LAYOUT**2)).astype(np.float32),
        picture_statistics(small),
        dense_sift(small),
    )


def described_size(image: AnyArray) -> AnyArray:
    """Return the picture of a frame in the size in which it is described."""
    check_image(image)
    small = shrunk(image, _LONGEST)
    if min(small.shape[:2]) < LAYOUT:  # too small for the cells
        small = np.repeat(np.repeat(small, LAYOUT, axis=0), LAYOUT, axis=1)
    return small
