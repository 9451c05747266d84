"""Find the sharpest of the frames that a candidate stands for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, groupby, pairwise
from operator import itemgetter
from os import PathLike

import numpy as np

from variegate._typing import AnyArray, FloatArray
from variegate.video.colour import shrunk
from variegate.video.reading import Frame, cv2, frames_within

__all__ = ["sharpest_frames"]

#: Pixels on the longer side of the picture that is measured.
_LONGEST = 256

#: How much stillness counts: of frames about as sharp, one without motion is taken, as
#: what moves is blurred though all around it is sharp.
_STILLNESS = 0.1


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
    unrest = 0.0
    measured = ((frame, _smooth(frame.image)) for frame in frames)
    # Only the last of them is None.
    for (frame, picture), after in pairwise(chain(measured, [None])):  # type: ignore[misc]
        change = 0.0 if after is None else float(np.abs(after[1] - picture).mean())
        motion = max(unrest, change)
        merit = _sharpness(picture) / float((1.0 + motion) ** _STILLNESS)
        if best is None or merit > best[0]:
            best = merit, frame
        unrest = change
    assert best is not None  # a span has frames
    return best[1]


def _smooth(image: AnyArray) -> FloatArray:
    """Return a picture in grey, shrunk and smoothed by one pixel, against noise."""
    grey = shrunk(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), _LONGEST)
    return np.asarray(cv2.GaussianBlur(grey.astype(np.float64), (0, 0), 1.0))


def _sharpness(picture: FloatArray) -> float:
    """Return the variance of the Laplacian of a smooth picture in grey.

    Not relative to its contrast: a picture that fades is not sharp.
    """
    return float(cv2.Laplacian(picture, cv2.CV_64F).var())
