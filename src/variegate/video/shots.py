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
from variegate.video.picture import (
    N_BINS,
    FrameDescription,
    colour_layout,
    describe,
    shrunk,
)
from variegate.video.reading import (
    EVERY_FRAME,
    Frame,
    check_every,
    cv2,
    read_frames,
    step_of,
)

# Width and height of the small picture in which frames are compared.
_SMALL = (64, 36)
_TWICE = (128, 72)
_BLACK = 40.0  # a frame is black whose small picture has no pixel above this

# A cut is where the mean change of the small picture (0 to 255) is at least the first
# number and the second times its mean in the two frames before and after, and where the
# correlation of the two pictures is at most the third, so that light may grow or fade.
_LEAST_CHANGE = 12.0
_TIMES_USUAL = 3.0
_MOST_CORRELATION = 0.9

_SAME = 0.5  # correlation above which pictures around a flash are of one shot
_SHORTEST = 0.2  # seconds of a shot; a shorter one is a flash
_ONE_FRAME = 0.04  # seconds of the only frame of a video

# A stretch ends where the histograms of hue or of brightness differ from those of its
# first frame by this much (L1; the most is 2), or the small pictures (grey, 0 to 255),
# or after some seconds: the models learned from films sampled about as densely.
_HUE = 0.4
_VALUE = 0.8
_GREY = 40.0
_LONGEST_STRETCH = 4.0

_LONGEST = 96  # pixels on the longer side of the picture that stretches are compared by
_CELLS = 8  # cells on each side of its smallest form


@dataclass(frozen=True)
class Shot:
    """The part of a video between two cuts, from ``start`` to before ``end``."""

    start: float
    end: float


@dataclass(frozen=True, eq=False)
class _Step:
    """A frame, small pictures of it and the frame before, and their mean difference."""

    frame: Frame
    small: FloatArray
    before: FloatArray | None
    change: float

    @property
    def is_black(self) -> bool:
        """Whether no pixel of the small picture is bright."""
        return bool(self.small.max() < _BLACK)

    @property
    def detail(self) -> float:
        """The mean difference of neighbouring pixels, down plus across."""
        return sum(float(np.abs(np.diff(self.small, axis=a)).mean()) for a in (0, 1))

    def is_cut(self, usual: float) -> bool:
        """Whether a shot begins here, given the mean change of the frames around."""
        if self.before is None:
            return False
        if self.before.max() < _BLACK and not self.is_black:
            return True
        if self.change < max(_LEAST_CHANGE, _TIMES_USUAL * usual):
            return False
        return _correlation(self.small, self.before) <= _MOST_CORRELATION


class Reel:
    """The sampled frames of a video, read once by iterating, and its cuts.

    All frames are compared with the frame before, and one is sampled for each step of
    time; of a shot between two steps, unless it is black, the most detailed one.  A cut
    is where the picture changes at once, by far more than in the frames around, or
    comes out of black; dissolves and wipes are not found.  ``cuts`` are times of
    first frames after a cut, ``duration`` is in seconds, as far as the file is read.
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
        """Yield the sampled frames, in order."""
        last, seen = -1, False
        held: _Step | None = None
        for step, usual in _with_usual_change(_steps(self._timed_frames())):
            frame = step.frame
            if step.is_cut(usual):
                yield from self._missed_frame(held, frame.time)
                seen, held = self._cut(step), None
            number = step_of(frame.time, self._every)
            if number > last:
                last, seen, held = number, True, None
                yield frame
            elif not (seen or step.is_black):
                held = max(filter(None, (held, step)), key=lambda s: s.detail)
        yield from self._missed_frame(held, self.duration)
        if self.cuts and self.duration - self.cuts[-1] < _SHORTEST:
            self.cuts.pop()

    @property
    def shots(self) -> list[Shot]:
        """All shots, in order."""
        edges = [self._start, *self.cuts, self.duration]
        return [Shot(a, b) for a, b in pairwise(edges)]

    def _timed_frames(self) -> Iterator[Frame]:
        """Yield all frames, and keep ``duration`` up to date."""
        for count, frame in enumerate(self._frames):
            self._start = self._start if count else frame.time
            # The last frame lasts as long as others on average.
            lasts = (frame.time - self._start) / count if count else _ONE_FRAME
            self.duration = round(frame.time + lasts, 3)  # as containers round
            yield frame

    def _missed_frame(self, held: _Step | None, end: float) -> Iterator[Frame]:
        """Yield the held frame of a shot without another, unless it is a flash."""
        start = self.cuts[-1] if self.cuts else self._start
        if held is not None and end - start >= _SHORTEST:
            yield held.frame

    def _cut(self, step: _Step) -> bool:
        """Add a cut, unless it ends a flash; return whether the shot has a sample."""
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
    """Return the number of the shot at a time, the first or the last outside of all."""
    return max(bisect_right([shot.start for shot in shots], time) - 1, 0)


def _steps(frames: Iterable[Frame]) -> Iterator[_Step]:
    """Yield each frame with its change from the frame before, inf for the first."""
    before: FloatArray | None = None
    for frame in frames:
        # The mean of four pixels is enough, and much faster than that of all.
        pixels = cv2.resize(frame.image, _TWICE, interpolation=cv2.INTER_NEAREST)
        small = cv2.resize(pixels, _SMALL, interpolation=cv2.INTER_AREA).astype(float)
        change = math.inf if before is None else float(np.abs(small - before).mean())
        yield _Step(frame, small, before, change)
        before = small


def _with_usual_change(steps: Iterable[_Step]) -> Iterator[tuple[_Step, float]]:
    """Yield each step with the mean change of the two before and the two after."""
    window: deque[_Step | None] = deque([None] * 5, maxlen=5)
    for step in chain(steps, (None, None)):
        window.append(step)
        middle = window[2]
        if middle is not None:
            others = [s.change for s in window if s is not None and s is not middle]
            known = [change for change in others if math.isfinite(change)]
            yield middle, float(np.mean(known)) if known else 0.0


def _correlation(one: FloatArray, other: FloatArray) -> float:
    """Return the correlation of the pixels of two pictures, 0 if one is constant."""
    a, b = one - one.mean(), other - other.mean()
    size = math.sqrt(float(np.sum(a * a) * np.sum(b * b)))
    return float(np.sum(a * b)) / size if size > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class Stretch:
    """A stretch of like pictures, from the time of its first to that of its last frame.

    ``frame`` describes its most detailed frame; ``look`` is histograms and a small
    picture of it, and ``detail`` the mean difference between neighbouring pixels.
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

    None crosses a cut.  The list of cuts may grow while frames are read, as long as it
    has all cuts before a frame.
    """
    best: tuple[Frame, FloatArray, float] | None = None
    start, end, first = 0.0, 0.0, np.empty(0)
    for frame in frames:
        look, detail = _look_and_detail(frame)
        if best is not None and (
            distance(look, first) >= 1.0
            or frame.time - start > _LONGEST_STRETCH
            or bisect_right(cuts, frame.time) > bisect_right(cuts, end)
        ):
            yield _as_stretch(start, end, *best)
            best = None
        if best is None:
            start, first = frame.time, look
        if best is None or detail > best[2]:
            best = frame, look, detail
        end = frame.time
    if best is not None:
        yield _as_stretch(start, end, *best)


def _as_stretch(
    start: float, end: float, frame: Frame, look: FloatArray, detail: float
) -> Stretch:
    """Return a stretch, whose best ``frame`` is described."""
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
    """Return how much two looks of :class:`Stretch` differ; at 1 a new one begins."""
    hue, value, grey = np.split(np.abs(one - other), [N_BINS, 2 * N_BINS])
    return float(max(hue.sum() / _HUE, value.sum() / _VALUE, grey.mean() / _GREY))


def _look_and_detail(frame: Frame) -> tuple[FloatArray, float]:
    """Return a frame's look (16 hues, 16 values, 64 greys) and its detail."""
    small = shrunk(frame.image, _LONGEST)
    colours = colour_layout(small, 1, 1)
    grey = small.mean(axis=2)
    cells = cv2.resize(grey, (_CELLS, _CELLS), interpolation=cv2.INTER_AREA)
    steps = [np.abs(np.diff(grey, axis=axis)).sum() for axis in (0, 1)]
    look = np.concatenate([colours[:N_BINS], colours[-N_BINS:], np.ravel(cells)])
    return look, float(sum(steps) / grey.size)
