"""Split a video into shots, at its cuts, and these into stretches of like pictures."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from os import PathLike

import numpy as np

from variegate._typing import FloatArray
from variegate.video.colour import N_BINS, colour_layout, shrunk
from variegate.video.picture import FrameDescription, describe
from variegate.video.reading import (
    EVERY_FRAME,
    Frame,
    check_every,
    cv2,
    read_frames,
    step_of,
)

#: Width and height of the small picture in which frames are compared.
_SMALL = (64, 36)
_TWICE = (128, 72)

#: A cut is where the mean change of the small picture (0 to 255) is at least the first
#: number, the second times what it is two frames before and after, and the correlation
#: of the two pictures at most the third, so that light may grow or fade.
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

#: A stretch ends where the histograms of hue or of brightness differ from those of its
#: first frame by this much (L1; the most is 2), or the small pictures (grey, 0 to 255).
_HUE = 0.4
_VALUE = 0.8
_GREY = 40.0

#: Seconds that a stretch lasts at most: the models learned from films sampled about as
#: densely.
_LONGEST_STRETCH = 4.0

#: Pixels on the longer side of the picture that stretches are compared by, and cells on
#: each side of its smallest form.
_LONGEST = 96
_CELLS = 8


@dataclass(frozen=True)
class Shot:
    """The part of a video between two cuts, from ``start`` to before ``end``."""

    start: float
    end: float


@dataclass(frozen=True, eq=False)
class _Step:
    """A frame and its small picture, that of the frame before, and their difference."""

    frame: Frame
    small: FloatArray
    before: FloatArray | None
    change: float

    @property
    def is_black(self) -> bool:
        return bool(self.small.max() < _BLACK)

    @property
    def detail(self) -> float:
        return sum(float(np.abs(np.diff(self.small, axis=a)).mean()) for a in (0, 1))

    def is_cut(self, usual: float) -> bool:
        """Tell whether a shot begins here, given the usual change around it."""
        if self.before is None:
            return False
        if self.before.max() < _BLACK and not self.is_black:
            return True
        if self.change < max(_LEAST_CHANGE, _TIMES_USUAL * usual):
            return False
        return _correlation(self.small, self.before) <= _MOST_CORRELATION


class Reel:
    """The frames of a video that are looked at, and where it is cut.

    To be read once, by iterating.  All frames are compared with those before them, and
    one is looked at for each step of time; of a shot that lies between two steps,
    unless it is black, the most detailed one is.  A cut is seen where the picture
    changes at once, by far more than in the frames around, or comes out of black;
    dissolves and wipes are not seen.

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
            if step.is_cut(usual):
                yield from self._missed(held, frame.time)
                seen, held = self._cut(step), None
            number = step_of(frame.time, self._every)
            if number > last:
                last, seen, held = number, True, None
                yield frame
            elif not (seen or step.is_black):
                held = max(filter(None, (held, step)), key=lambda s: s.detail)
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
    before: FloatArray | None = None
    for frame in frames:
        # Four pixels for each are enough, and much faster than the mean of all.
        pixels = cv2.resize(frame.image, _TWICE, interpolation=cv2.INTER_NEAREST)
        small = cv2.resize(pixels, _SMALL, interpolation=cv2.INTER_AREA).astype(float)
        change = math.inf if before is None else float(np.abs(small - before).mean())
        yield _Step(frame, small, before, change)
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


def _correlation(one: FloatArray, other: FloatArray) -> float:
    a, b = one - one.mean(), other - other.mean()
    size = math.sqrt(float(np.sum(a * a) * np.sum(b * b)))
    return float(np.sum(a * b)) / size if size > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class Stretch:
    """A stretch of a video in which the picture stays much the same.

    It goes from the time of its first to that of its last frame.  Of the most detailed
    frame there are a description, histograms and a small picture, its ``look``, and the
    mean difference between neighbouring pixels, its ``detail``.
    """

    start: float
    end: float
    frame: FrameDescription
    look: FloatArray
    detail: float


def split_into_stretches(
    frames: Iterable[Frame], cuts: Sequence[float]
) -> Iterator[Stretch]:
    """Yield stretches in order; one picture is held at a time.

    None goes on beyond a cut.  The list of the times of cuts may grow while frames are
    taken, as long as those before a frame are known with it.
    """
    best: tuple[Frame, FloatArray, float] | None = None
    start, end, first = 0.0, 0.0, np.empty(0)
    for frame in frames:
        look, detail = _look(frame)
        if best is not None and (
            distance(look, first) >= 1.0
            or frame.time - start > _LONGEST_STRETCH
            or bisect_right(cuts, frame.time) > bisect_right(cuts, end)
        ):
            yield _described(start, end, *best)
            best = None
        if best is None:
            start, first = frame.time, look
        if best is None or detail > best[2]:
            best = frame, look, detail
        end = frame.time
    if best is not None:
        yield _described(start, end, *best)


def _described(
    start: float, end: float, frame: Frame, look: FloatArray, detail: float
) -> Stretch:
    description = describe(frame.number, frame.time, frame.image)
    return Stretch(start, end, description, look, detail)


def merge_stretches(stretches: list[Stretch], n: int) -> list[Stretch]:
    """Merge neighbours that differ least, until there are at most ``n`` stretches."""
    if len(stretches) <= n:
        return stretches
    steps = [distance(one.look, other.look) for one, other in pairwise(stretches)]
    cuts = np.sort(np.argsort(-np.array(steps), kind="stable")[: n - 1]) + 1
    merged = []
    for first, end in pairwise([0, *cuts.tolist(), len(stretches)]):
        members = stretches[first:end]
        best = max(members, key=lambda stretch: stretch.detail)
        merged.append(replace(best, start=members[0].start, end=members[-1].end))
    return merged


def distance(one: FloatArray, other: FloatArray) -> float:
    """Return how much two looks differ; at 1 a new stretch begins."""
    hue, value, grey = np.split(np.abs(one - other), [N_BINS, 2 * N_BINS])
    return float(max(hue.sum() / _HUE, value.sum() / _VALUE, grey.mean() / _GREY))


def _look(frame: Frame) -> tuple[FloatArray, float]:
    small = shrunk(frame.image, _LONGEST)
    colours = colour_layout(small, 1, 1)
    grey = small.mean(axis=2)
    cells = cv2.resize(grey, (_CELLS, _CELLS), interpolation=cv2.INTER_AREA)
    steps = [np.abs(np.diff(grey, axis=axis)).sum() for axis in (0, 1)]
    look = np.concatenate([colours[:N_BINS], colours[-N_BINS:], np.ravel(cells)])
    return look, float(sum(steps) / grey.size)
