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
    shrink_picture,
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
class _ComparedFrame:
    """A frame, and small pictures of it and of the frame before (None at the first).

    ``change`` is their mean difference, 0 to 255, inf at the first frame.
    """

    frame: Frame
    small: FloatArray
    before: FloatArray | None
    change: float

    @property
    def is_black(self) -> bool:
        """Whether no pixel of the small picture is above 40 of 255."""
        return bool(self.small.max() < _BLACK)

    @property
    def detail(self) -> float:
        """The mean absolute difference of neighbouring pixels, down plus across."""
        return sum(float(np.abs(np.diff(self.small, axis=a)).mean()) for a in (0, 1))

    def is_cut(self, usual: float) -> bool:
        """Whether a shot begins here (see ``Reel``); ``usual`` is the change around."""
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
        """Yield the sampled frames in order, while ``cuts`` and ``duration`` grow."""
        last, seen = -1, False
        held: _ComparedFrame | None = None  # the best of a shot without a sample
        for compared, usual in _with_usual_change(_compare_each(self._timed_frames())):
            frame = compared.frame
            if compared.is_cut(usual):
                yield from self._yield_missed(held, frame.time)
                seen, held = self._add_cut(compared), None
            number = step_of(frame.time, self._every)
            if number > last:
                last, seen, held = number, True, None
                yield frame
            elif not (seen or compared.is_black):
                held = max(filter(None, (held, compared)), key=lambda one: one.detail)
        yield from self._yield_missed(held, self.duration)
        if self.cuts and self.duration - self.cuts[-1] < _SHORTEST:
            self.cuts.pop()

    @property
    def shots(self) -> list[Shot]:
        """All shots, in order; known when all frames have been read."""
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

    def _yield_missed(self, held: _ComparedFrame | None, end: float) -> Iterator[Frame]:
        """Yield ``held``, the best of a shot that ends at ``end`` without a sample.

        Yield nothing if it is None, or the shot is a flash, of less than 0.2 seconds.
        """
        start = self.cuts[-1] if self.cuts else self._start
        if held is not None and end - start >= _SHORTEST:
            yield held.frame

    def _add_cut(self, compared: _ComparedFrame) -> bool:
        """Add a cut before a frame; return whether its shot counts as sampled.

        A shot of less than 0.2 seconds is a flash, and the cut before it is removed.
        If the pictures around it are alike, or it began the video, no cut is added, and
        True is returned as the earlier shot continues.
        """
        time = compared.frame.time
        if time - (self.cuts[-1] if self.cuts else self._start) < _SHORTEST:
            if not self.cuts:
                return True
            self.cuts.pop()
            before = self._before_cut
            if before is not None and _correlation(compared.small, before) > _SAME:
                return True
        else:
            self._before_cut = compared.before
        self.cuts.append(time)
        return False


def shot_at(shots: list[Shot], time: float) -> int:
    """Return the position of the shot at a time in seconds; first or last outside."""
    return max(bisect_right([shot.start for shot in shots], time) - 1, 0)


def _compare_each(frames: Iterable[Frame]) -> Iterator[_ComparedFrame]:
    """Yield each frame, compared with the frame before."""
    before: FloatArray | None = None
    for frame in frames:
        # The mean of four pixels is enough, and much faster than that of all.
        pixels = cv2.resize(frame.image, _TWICE, interpolation=cv2.INTER_NEAREST)
        small = cv2.resize(pixels, _SMALL, interpolation=cv2.INTER_AREA).astype(float)
        change = math.inf if before is None else float(np.abs(small - before).mean())
        yield _ComparedFrame(frame, small, before, change)
        before = small


def _with_usual_change(
    frames: Iterable[_ComparedFrame],
) -> Iterator[tuple[_ComparedFrame, float]]:
    """Yield each frame with the mean change of the two before and the two after.

    Infinite changes do not count; without others the mean is 0.
    """
    window: deque[_ComparedFrame | None] = deque([None] * 5, maxlen=5)
    for compared in chain(frames, (None, None)):
        window.append(compared)
        middle = window[2]
        if middle is not None:
            others = [f.change for f in window if f is not None and f is not middle]
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

    One ends at a cut, after four seconds, or where a frame differs from its first one.
    ``cuts`` (seconds) may grow while frames are read, if it has all before a frame.
    """
    best: tuple[Frame, FloatArray, float] | None = None
    start, end, first = 0.0, 0.0, np.empty(0)
    for frame in frames:
        look, detail = _look_and_detail(frame)
        if best is not None and (
            look_distance(look, first) >= 1.0
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
    """Return a stretch with the description of ``frame``, its most detailed one."""
    description = describe(frame.number, frame.time, frame.image)
    return Stretch(start, end, description, look, detail)


def merge_stretches(stretches: list[Stretch], n: int) -> list[Stretch]:
    """Return at most ``n`` stretches; neighbours that differ least are merged.

    A merged one has the most detailed frame of its parts.
    """
    if len(stretches) <= n:
        return stretches
    steps = [look_distance(one.look, other.look) for one, other in pairwise(stretches)]
    cuts = np.sort(np.argsort(-np.array(steps), kind="stable")[: n - 1]) + 1
    merged = []
    for first, end in pairwise([0, *cuts.tolist(), len(stretches)]):
        members = stretches[first:end]
        best = max(members, key=lambda stretch: stretch.detail)
        merged.append(replace(best, start=members[0].start, end=members[-1].end))
    return merged


def look_distance(one: FloatArray, other: FloatArray) -> float:
    """Return how far two looks of stretches differ; from 1 on, another one begins."""
    hue, value, grey = np.split(np.abs(one - other), [N_BINS, 2 * N_BINS])
    return float(max(hue.sum() / _HUE, value.sum() / _VALUE, grey.mean() / _GREY))


def _look_and_detail(frame: Frame) -> tuple[FloatArray, float]:
    """Return a frame's look (shares of 16 hues and values, 64 greys) and its detail."""
    small = shrink_picture(frame.image, _LONGEST)
    colours = colour_layout(small, 1, 1)
    grey = small.mean(axis=2)
    cells = cv2.resize(grey, (_CELLS, _CELLS), interpolation=cv2.INTER_AREA)
    steps = [np.abs(np.diff(grey, axis=axis)).sum() for axis in (0, 1)]
    look = np.concatenate([colours[:N_BINS], colours[-N_BINS:], np.ravel(cells)])
    return look, float(sum(steps) / grey.size)
