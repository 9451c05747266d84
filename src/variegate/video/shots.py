"""Shots: what is filmed from one cut to the next, and the frames to look at in each."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from os import PathLike

import numpy as np

from variegate._typing import FloatArray
from variegate.video.reading import (
    EVERY_FRAME,
    Frame,
    check_every,
    read_frames,
    step_of,
)

__all__ = ["Reel", "Shot", "shot_at"]

#: Width and height of the small picture in which frames are compared.
_SMALL = (64, 36)
_TWICE = (128, 72)

#: A cut is where the mean change of the small picture (0 to 255) is at least so much,
#: so many times what it is two frames before and after, and the correlation of the two
#: pictures at most this: light that grows or fades is none.
_LEAST_CHANGE = 12.0
_TIMES_USUAL = 3.0
_MOST_CORRELATION = 0.9

#: Pictures before and after a flash are of one shot if their correlation is above this.
_SAME = 0.5

#: A frame is black whose small picture has no pixel above this.
_BLACK = 40.0

#: Seconds that a shot lasts at least; what is shorter is a flash.
_SHORTEST = 0.2

#: Seconds that a single frame is taken to last.
_ONE_FRAME = 0.04


@dataclass(frozen=True)
class Shot:
    """What is filmed from one cut to the next: from ``start`` to before ``end``."""

    start: float
    end: float


@dataclass(frozen=True, eq=False)
class _Step:
    """A frame, and how it differs from the one before."""

    frame: Frame
    small: FloatArray
    before: FloatArray | None
    change: float

    @property
    def is_black(self) -> bool:
        return bool(self.small.max() < _BLACK)


class Reel:
    """The frames of a video that are looked at, and where it is cut.

    To be read once, by iterating.  All frames are compared with those before them, and
    one is looked at for each step of time; of a shot that lies between two steps,
    unless it is black, the most detailed one is.  A cut is seen where the picture
    changes at once, by far more than in the frames around, or comes out of black;
    dissolves and wipes are not seen.

    Parameters
    ----------
    path, every : as for :func:`variegate.video.read_frames`

    Attributes
    ----------
    cuts : list of float
        Times of the first frames after a cut, known as far as the file is read.
    duration : float
        Seconds; right once all is read.
    """

    def __init__(self, path: str | PathLike[str], every: float) -> None:
        check_every(every)
        self._frames = read_frames(path, EVERY_FRAME)
        self._every = every
        self._before_cut: FloatArray | None = None
        self._start = 0.0
        self.cuts: list[float] = []
        self.duration = 0.0

    def __iter__(self) -> Iterator[Frame]:
        """Yield the frames that are looked at, in order."""
        last, seen = -1, False
        held: _Step | None = None
        for step, usual in _with_usual_change(_steps(self._timed())):
            frame = step.frame
            if _is_cut(step, usual):
                yield from self._missed(held, frame.time)
                seen, held = self._cut(step), None
            number = step_of(frame.time, self._every)
            if number > last:
                last, seen, held = number, True, None
                yield frame
            elif not (seen or step.is_black) and _detail(step) > _detail(held):
                held = step
        yield from self._missed(held, self.duration)
        if self.cuts and self.duration - self.cuts[-1] < _SHORTEST:
            self.cuts.pop()

    @property
    def shots(self) -> list[Shot]:
        """All shots, in order."""
        edges = [self._start, *self.cuts, self.duration]
        return [Shot(a, b) for a, b in pairwise(edges)]

    def _timed(self) -> Iterator[Frame]:
        """Yield every frame, and note how long the video is with it."""
        for count, frame in enumerate(self._frames):
            self._start = self._start if count else frame.time
            passed = frame.time - self._start
            # The last frame is shown as long as others are on average; containers round
            # to milliseconds.
            lasts = passed / count if count else _ONE_FRAME
            self.duration = round(frame.time + lasts, 3)
            yield frame

    def _missed(self, held: _Step | None, end: float) -> Iterator[Frame]:
        start = self.cuts[-1] if self.cuts else self._start
        if held is not None and end - start >= _SHORTEST:
            yield held.frame

    def _cut(self, step: _Step) -> bool:
        """Note a cut, unless it ends a flash; return whether its shot was seen."""
        time = step.frame.time
        if time - (self.cuts[-1] if self.cuts else self._start) < _SHORTEST:
            if not self.cuts:
                return True
            self.cuts.pop()
            before = self._before_cut
            if before is not None and _correlation(step.small, before) > _SAME:
                return True
        else:
            self._before_cut = step.before
        self.cuts.append(time)
        return False


def shot_at(shots: list[Shot], time: float) -> int:
    """Return which shot a time is in, the first or the last for those outside."""
    place = bisect_right([shot.start for shot in shots], time) - 1
    return max(place, 0)


def _steps(frames: Iterable[Frame]) -> Iterator[_Step]:
    import cv2

    before: FloatArray | None = None
    for frame in frames:
        # Four pixels for each are enough, and much faster than the mean of all.
        pixels = cv2.resize(frame.image, _TWICE, interpolation=cv2.INTER_NEAREST)
        shrunk = cv2.resize(pixels, _SMALL, interpolation=cv2.INTER_AREA)
        small = shrunk.astype(np.float64)
        yield _Step(frame, small, before, _change(small, before))
        before = small


def _with_usual_change(steps: Iterable[_Step]) -> Iterator[tuple[_Step, float]]:
    """Yield steps with the mean change of the two before and the two after."""
    window: deque[_Step | None] = deque([None] * 5, maxlen=5)
    for step in chain(steps, (None, None)):
        window.append(step)
        middle = window[2]
        if middle is not None:
            others = [s.change for s in window if s is not None and s is not middle]
            known = [change for change in others if math.isfinite(change)]
            yield middle, float(np.mean(known)) if known else 0.0


def _is_cut(step: _Step, usual: float) -> bool:
    if step.before is None:
        return False
    if step.before.max() < _BLACK and not step.is_black:
        return True
    change = step.change
    if change < _LEAST_CHANGE or change < _TIMES_USUAL * usual:
        return False
    return _correlation(step.small, step.before) <= _MOST_CORRELATION


def _change(one: FloatArray, other: FloatArray | None) -> float:
    return math.inf if other is None else float(np.abs(one - other).mean())


def _correlation(one: FloatArray, other: FloatArray) -> float:
    a, b = one - one.mean(), other - other.mean()
    size = math.sqrt(float(np.sum(a * a) * np.sum(b * b)))
    return float(np.sum(a * b)) / size if size > 0.0 else 0.0


def _detail(step: _Step | None) -> float:
    if step is None:
        return -1.0
    return sum(float(np.abs(np.diff(step.small, axis=a)).mean()) for a in (0, 1))
