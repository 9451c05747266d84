"""Drop frames not worth choosing from: dark, of one colour, blurred or repeated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from variegate._typing import AnyArray, FloatArray
from variegate.video.picture import check_image, shrink_picture
from variegate.video.reading import Frame, Picture, cv2

#: The end of the reason of a frame that is kept because no frame passes.
BEST = ", but the best of all frames"

_LONGEST = 256  # pixels on the longer side of the picture that is measured
_THUMBNAIL = (32, 32)  # size of the picture by which frames are compared
_SCENE = 2.0  # seconds of blurred frames that make a scene
_FLAWS = ("dark", "flat", "blurred", "")  # from the worst to none

# Limits below which a frame is dropped.
_BRIGHTNESS = 40.0  # that one pixel in a hundred must exceed; titles on black do
_CONTRAST = 5.0  # standard deviation that one of the three colours must have
# Variance of the Laplacian over the variance of the picture, after smoothing by one
# pixel, so that noise does not pass for detail.  One sharp edge down the middle has
# 0.002, photographs 0.01, and those smoothed by 3 of 256 pixels 0.0003 to 0.0004.
_SHARPNESS = 0.0005
_CHANGE = 1.0  # mean difference, 0 to 255, from the thumbnail of the last kept frame


@dataclass(frozen=True)
class Decision:
    """Whether a frame was kept, and why it was dropped.

    The reason is "dark", "flat", "blurred" or "repeats the frame before".  If no frame
    passes, the best one is kept, and its reason ends with `BEST`.
    """

    number: int
    time: float
    kept: bool
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class _Judged:
    """A frame and its flaw, "" for none, with the ``measure`` that decided it.

    ``frame`` is None where it can no longer be kept; ``thumbnail`` is (32, 32, 3).
    """

    number: int
    time: float
    frame: Frame | None
    thumbnail: FloatArray
    flaw: str
    measure: float

    @property
    def rank(self) -> tuple[int, float]:
        """A key, larger for better frames: position of the flaw, and ``measure``."""
        return _FLAWS.index(self.flaw), self.measure


def screen(
    frames: Iterable[Frame],
) -> Iterator[tuple[Decision, Frame | None]]:
    """Yield the decision on each frame, in order, and the frame if it is kept.

    Where frames are blurred for two seconds on end, the sharpest of them passes.  If
    none passes at all, the one that fails the latest check (dark, flat, blurred) by
    the least is kept.  Decisions are therefore held back until a first frame passes;
    of the images only the best one is held.
    """
    waiting: list[Decision] = []
    best: _Judged | None = None
    last_kept: FloatArray | None = None
    for judged in _pass_blurred_scenes(map(_judge_frame, frames)):
        reason = judged.flaw
        if not reason and last_kept is not None:
            change = np.abs(judged.thumbnail - last_kept).mean()
            reason = "repeats the frame before" if change < _CHANGE else ""
        decision = Decision(judged.number, judged.time, not reason, reason or None)
        if not reason:
            yield from ((dropped, None) for dropped in waiting)
            waiting, best, last_kept = [], None, judged.thumbnail
            yield decision, judged.frame
        elif last_kept is not None:
            yield decision, None
        else:
            waiting.append(decision)
            if judged.frame and (best is None or judged.rank > best.rank):
                best = judged
    for decision in waiting:
        if best is not None and decision.number == best.number:
            reason = f"{decision.reason}{BEST}"
            yield replace(decision, kept=True, reason=reason), best.frame
        else:
            yield decision, None


def _pass_blurred_scenes(frames: Iterable[_Judged]) -> Iterator[_Judged]:
    """Yield all frames; of two seconds of blurred ones, the sharpest gets flaw "".

    Others get ``frame`` None, so that one picture of them is held at a time.
    """
    run: list[_Judged] = []
    best = 0
    for judged in frames:
        if judged.flaw != "blurred":
            yield from (*run, judged)
            run = []
            continue
        best = best if run else 0
        run.append(judged)
        last = worse = len(run) - 1
        if judged.measure > run[best].measure:
            best, worse = last, best
        if worse != best:
            run[worse] = replace(run[worse], frame=None)
        if judged.time - run[0].time >= _SCENE:
            run[best] = replace(run[best], flaw="")
            yield from run
            run = []
    yield from run


def _judge_frame(frame: Frame) -> _Judged:
    """Return a frame with its thumbnail and first flaw: dark, flat or blurred."""
    # OpenCV takes no views with reversed axes.
    image = np.ascontiguousarray(frame.image)
    try:
        check_image(image)
    except ValueError as error:
        raise ValueError(f"frame {frame.number}: {error}") from None
    small = shrink_picture(image, _LONGEST)
    pixels = small.astype(np.float64)
    thumbnail: Any = cv2.resize(pixels, _THUMBNAIL, interpolation=cv2.INTER_AREA)
    flaw = _find_flaw(small)
    return _Judged(frame.number, frame.time, frame, thumbnail, *flaw)


def _find_flaw(small: Picture) -> tuple[str, float]:
    """Return the first flaw, "" for none, and the measure that was checked last."""
    grey = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)
    brightness = float(np.percentile(grey, 99.0))
    if brightness < _BRIGHTNESS:
        return "dark", brightness
    contrast = float(np.max(cv2.meanStdDev(small)[1]))
    if contrast < _CONTRAST:
        return "flat", contrast
    sharpness = _sharpness(small)
    return "blurred" if sharpness < _SHARPNESS else "", sharpness


def _sharpness(small: Picture) -> float:
    """Return the variance of the Laplacian over that of the picture, 0 if constant."""
    # Rounding alone gives the plain Laplacian a variance of 20 / 12, as much as a
    # blurred picture of low contrast has; smoothing takes 99 % of that away.
    smooth = cv2.GaussianBlur(small.astype(np.float64), (0, 0), 1.0)
    variance = _channel_variance(smooth)
    if variance < 1e-12:
        return 0.0
    return _channel_variance(cv2.Laplacian(smooth, cv2.CV_64F)) / variance


def _channel_variance(picture: AnyArray) -> float:
    """Return the sum of the variances of the channels of a picture."""
    return float(np.sum(np.square(cv2.meanStdDev(picture)[1])))
