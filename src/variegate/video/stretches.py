"""Stretches of a video in which the picture stays much the same, and one frame each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from variegate._typing import FloatArray
from variegate.video.colour import colour_layout, shrunk
from variegate.video.hue import N_BINS
from variegate.video.reading import Frame

__all__ = ["Stretch", "merge_stretches", "split_into_stretches"]

#: A stretch ends where the histograms of hue or of brightness differ from those of its
#: first frame by so much (L1; the most is 2), or the small pictures (grey, 0 to 255).
_HUE = 0.4
_VALUE = 0.8
_GREY = 40.0

#: And after so many seconds: films are sampled about as densely for the models.
_LONGEST_STRETCH = 4.0

#: Pixels on the longer side of the picture that is looked at.
_LONGEST = 96

#: Cells on each side of the small picture.
_CELLS = 8

#: A frame, or what is known of it once its picture is gone.
_Frame = TypeVar("_Frame")


@dataclass(frozen=True, eq=False)
class Stretch(Generic[_Frame]):
    """A stretch of a video, from its first to its last frame, and the most detailed.

    By histograms and a small picture of that frame, its ``look``, it is compared;
    ``detail`` is the mean difference between its neighbouring pixels.
    """

    start: float
    end: float
    frame: _Frame
    look: FloatArray
    detail: float


def split_into_stretches(
    frames: Iterable[Frame], cuts: Sequence[float] = ()
) -> Iterator[Stretch[Frame]]:
    """Yield stretches in order; one picture is held at a time.

    None goes on beyond a cut.  The list of the times of cuts may grow while frames are
    taken, as long as those before a frame are known with it.
    """
    first: FloatArray | None = None
    stretch: Stretch[Frame] | None = None
    for frame in frames:
        look, detail = _look(frame)
        if (
            stretch is None
            or first is None
            or distance(look, first) >= 1.0
            or frame.time - stretch.start > _LONGEST_STRETCH
            or bisect_right(cuts, frame.time) > bisect_right(cuts, stretch.end)
        ):
            if stretch is not None:
                yield stretch
            first = look
            stretch = Stretch(frame.time, frame.time, frame, look, detail)
        elif detail > stretch.detail:
            stretch = Stretch(stretch.start, frame.time, frame, look, detail)
        else:
            stretch = replace(stretch, end=frame.time)
    if stretch is not None:
        yield stretch


def merge_stretches(looks: Sequence[FloatArray], n: int) -> list[slice]:
    """Return the ``n`` groups of neighbours that differ least within.

    The sequence is cut where neighbours differ most.
    """
    if len(looks) <= n:
        return [slice(i, i + 1) for i in range(len(looks))]
    steps = [distance(one, other) for one, other in pairwise(looks)]
    cuts = np.sort(np.argsort(-np.array(steps), kind="stable")[: n - 1]) + 1
    edges = [0, *cuts.tolist(), len(looks)]
    return [slice(a, b) for a, b in pairwise(edges)]


def distance(one: FloatArray, other: FloatArray) -> float:
    """Return how much two looks differ; at 1 a new stretch begins."""
    hue, value, grey = np.split(np.abs(one - other), [N_BINS, 2 * N_BINS])
    return float(max(hue.sum() / _HUE, value.sum() / _VALUE, grey.mean() / _GREY))


def _look(frame: Frame) -> tuple[FloatArray, float]:
    import cv2

    small = shrunk(frame.image, _LONGEST)
    colours = colour_layout(small, 1, 1, channels="hsv")
    grey = small.mean(axis=2)
    cells = cv2.resize(grey, (_CELLS, _CELLS), interpolation=cv2.INTER_AREA)
    steps = [np.abs(np.diff(grey, axis=axis)).sum() for axis in (0, 1)]
    look = np.concatenate([colours[:N_BINS], colours[-N_BINS:], np.ravel(cells)])
    return look, float(sum(steps) / grey.size)
