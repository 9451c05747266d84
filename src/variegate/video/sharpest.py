"""Of the frames that a candidate stands for, the sharpest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from os import PathLike

import numpy as np

from variegate._typing import AnyArray, FloatArray
from variegate.video.colour import shrunk
from variegate.video.reading import Frame, frames_within

__all__ = ["sharpest_frames", "sharpness"]

#: Pixels on the longer side of the picture that is measured.
_LONGEST = 256

#: How much stillness counts: of frames about as sharp, one without motion is taken, as
#: what moves is blurred though all around it is sharp.
_STILLNESS = 0.1


@dataclass(eq=False)
class _Measured:
    """A frame, and how much it differs from those beside it at most."""

    frame: Frame
    picture: FloatArray
    unrest: float = 0.0

    @property
    def merit(self) -> float:
        return sharpness(self.picture) / float((1.0 + self.unrest) ** _STILLNESS)


def sharpest_frames(
    path: str | PathLike[str], spans: Sequence[tuple[float, float]]
) -> list[Frame]:
    """Read a video, and return the sharpest frame of each span of time, in order.

    Sharpness is divided by the tenth root of 1 + the mean difference, 0 to 255, from
    the frame before or after, whichever is larger.  Spans do not overlap, and have
    frames; of those equally sharp the first is taken.  Three pictures are held.
    """
    found = groupby(frames_within(path, spans), key=itemgetter(0))
    return [_sharpest(frame for _, frame in frames) for _, frames in found]


def _sharpest(frames: Iterable[Frame]) -> Frame:
    best: tuple[float, Frame] | None = None
    last: _Measured | None = None
    for frame in frames:
        measured = _Measured(frame, _smooth(frame.image))
        if last is not None:
            measured.unrest = float(np.abs(measured.picture - last.picture).mean())
            last.unrest = max(last.unrest, measured.unrest)
            best = _better(best, last)
        last = measured
    assert last is not None  # a span has frames
    return _better(best, last)[1]


def _better(best: tuple[float, Frame] | None, other: _Measured) -> tuple[float, Frame]:
    merit = other.merit
    return (merit, other.frame) if best is None or merit > best[0] else best


def _smooth(image: AnyArray) -> FloatArray:
    """Return a picture in grey, shrunk and smoothed by one pixel, against noise."""
    import cv2

    grey = shrunk(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), _LONGEST)
    return np.asarray(cv2.GaussianBlur(grey.astype(np.float64), (0, 0), 1.0))


def sharpness(picture: FloatArray) -> float:
    """Return the variance of the Laplacian of a smooth picture in grey.

    Not relative to its contrast: one that fades is not sharp.
    """
    import cv2

    return float(cv2.Laplacian(picture, cv2.CV_64F).var())
