"""Find the sharpest frame of each span of time in a video."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, groupby, pairwise
from operator import itemgetter
from os import PathLike

import numpy as np

from variegate._typing import AnyArray, FloatArray
from variegate.video.picture import shrink_picture
from variegate.video.reading import Frame, cv2, frames_within

_LONGEST = 256  # pixels on the longer side of the picture whose sharpness is measured
# Exponent of motion: of frames about as sharp, one without motion is taken, as moving
# things are blurred though all around them is sharp.
_STILLNESS = 0.1


def sharpest_frames(
    path: str | PathLike[str], spans: Iterable[tuple[float, float]]
) -> Iterator[Frame]:
    """Read a video, and yield the sharpest frame of each span of time, in order.

    Sharpness, the variance of the Laplacian, is divided by the tenth root of 1 + the
    mean difference, 0 to 255, from the frame before or after, whichever is larger.  The
    first of equals is taken.  Spans must not overlap, and must have frames; each is
    asked for when the one before has been read.
    """
    for _, frames in groupby(frames_within(path, spans), key=itemgetter(0)):
        yield _sharpest_of(frame for _, frame in frames)


def _sharpest_of(frames: Iterable[Frame]) -> Frame:
    """Return the sharpest of successive frames: see :func:`sharpest_frames`."""
    best: tuple[float, Frame] | None = None
    unrest = 0.0
    measured = ((frame, _smooth_grey(frame.image)) for frame in frames)
    # Only the last of them is None.
    for (frame, picture), after in pairwise(chain(measured, [None])):  # type: ignore[misc]
        change = 0.0 if after is None else float(np.abs(after[1] - picture).mean())
        motion = max(unrest, change)
        # Not relative to its contrast: a picture that fades is not sharp.
        sharpness = float(cv2.Laplacian(picture, cv2.CV_64F).var())
        merit = sharpness / float((1.0 + motion) ** _STILLNESS)
        if best is None or merit > best[0]:
            best = merit, frame
        unrest = change
    assert best is not None  # a span has frames
    return best[1]


def _smooth_grey(image: AnyArray) -> FloatArray:
    """Return a picture in grey, at most 256 pixels a side, smoothed against noise."""
    grey = shrink_picture(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), _LONGEST)
    return np.asarray(cv2.GaussianBlur(grey.astype(np.float64), (0, 0), 1.0))
