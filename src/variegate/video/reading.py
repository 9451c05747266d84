"""Read frames of a video file in order, sampled by time."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from variegate._install import explain_missing
from variegate._progress import Progress
from variegate.video.picture_size import MOST_PIXELS

#: Suffixes by which a video is told from other files.
VIDEO_SUFFIXES = (
    *(".3gp", ".avi", ".flv", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg"),
    *(".mpg", ".mts", ".ogv", ".ts", ".vob", ".webm", ".wmv"),
)

#: Red, green and blue, 0 to 255, of shape (height, width, 3).
Picture: TypeAlias = NDArray[np.uint8]

EVERY = 0.5  # default seconds between sampled frames
EVERY_FRAME = 0.001  # shortest step in seconds: every frame of an ordinary video
_ROUNDING = 0.0005  # seconds; containers round times to milliseconds
_SHORT = 1.0  # seconds; less may be missing at the end of a whole file
_NEVER = (math.inf, math.inf)  # a span without frames
_DEFAULT_RATE = 25.0  # frames a second where the container does not say


def require_cv2() -> None:
    """Raise ImportError, which says how to install it, unless OpenCV is installed."""
    with explain_missing("reading videos needs OpenCV", "video"):
        import cv2  # noqa: F401


if TYPE_CHECKING:
    import cv2 as cv2
else:

    class _OpenCV:
        """OpenCV, imported at its first use."""

        def __getattr__(self, name: str) -> object:
            """Return an attribute of the module cv2, imported now."""
            if name.startswith("__"):  # asked by tools that look at a module
                raise AttributeError(name)
            require_cv2()
            return getattr(sys.modules["cv2"], name)

    cv2 = _OpenCV()


class VideoError(ValueError):
    """A file that cannot be read as a video."""


class TruncatedVideoWarning(UserWarning):
    """A video that ends before the frames that it promises."""


@dataclass(frozen=True, eq=False)
class Frame:
    """One frame of a video: its ``number`` in the file from 0, its ``time`` in seconds.

    ``image`` has red, green and blue from 0 to 255: (height, width, 3).
    """

    number: int
    time: float
    image: Picture


def read_frames(path: str | PathLike[str], every: float = 1.0) -> Iterator[Frame]:
    """Read a video and yield one frame for each step of time.

    These are the first frames at or after 0, ``every``, 2 ``every``, ... seconds.
    The file is read once from start to end; one image is held at a time.

    Parameters
    ----------
    path : str or path
    every : float
        Seconds between frames, at least 0.001.  A step shorter than the distance of
        two frames takes every frame.

    Raises
    ------
    VideoError
        If the file is missing, cannot be opened as a video, or, known when the first
        frame is read, has no frames.

    Warns
    -----
    TruncatedVideoWarning
        After the last frame, if the file promises clearly more frames, and a second
        or more (of a clip of less than two seconds, half of it) is missing at its end.
    """
    check_every(every)
    file = Path(path)
    return _sampled_frames(_open_capture(file), file, every)


def with_progress(
    frames: Iterable[Frame], path: str | PathLike[str], progress: Progress | None
) -> Iterator[Frame]:
    """Yield frames, and report the time of each and the duration of the file ``path``.

    ``progress`` is called with "reading", both in seconds; an unknown duration is 0.
    """
    duration = 0.0 if progress is None else promised_duration(path) or 0.0
    for frame in frames:
        if progress is not None:
            progress("reading", max(frame.time, 0.0), duration)
        yield frame


def check_every(every: float) -> None:
    """Raise ValueError for a step between frames of less than 0.001 seconds."""
    if not (math.isfinite(every) and every >= EVERY_FRAME):
        raise ValueError(
            f"every is the seconds between frames, at least {EVERY_FRAME}, got {every}"
        )


def step_of(time: float, every: float) -> int:
    """Return the number of the time step, of ``every`` seconds, that a time is in."""
    return math.floor((time + _ROUNDING) / every)


def time_label(seconds: float) -> str:
    """Return a time as minutes, seconds and tenths, or from an hour on without tenths.

    Rounded, not cut off: 59.96 is "1:00.0", and 3599.99 is "1:00:00".
    """
    if not (math.isfinite(seconds) and seconds >= 0.0):
        raise ValueError(f"a time is a number of seconds from 0 on, got {seconds}")
    tenths = round(10.0 * seconds)
    if tenths >= 36_000:
        whole = round(seconds)
        return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{tenths // 600}:{tenths // 10 % 60:02d}.{tenths % 10}"


def frames_within(
    path: str | PathLike[str], spans: Iterable[tuple[float, float]]
) -> Iterator[tuple[int, Frame]]:
    """Yield every frame within spans of time, as (number of its span, frame).

    Spans are in order and do not overlap; a frame at the end of one is not in it.  They
    may come from an iterator, which is asked for one when the one before has passed.
    """
    capture = _open_capture(Path(path))
    try:
        numbered = enumerate(spans)
        place, (start, end) = next(numbered, (0, _NEVER))
        for number, time in _grab_frames(capture):
            while end <= time:
                place, (start, end) = next(numbered, (place, _NEVER))
            if start == math.inf:
                return
            if time >= start and (frame := _decode_frame(capture, number, time)):
                yield place, frame
    finally:
        capture.release()


def promised_duration(path: str | PathLike[str]) -> float | None:
    """Return the seconds of video that a file promises, None if it does not."""
    capture = _open_capture(Path(path))
    try:
        n_frames = capture.get(cv2.CAP_PROP_FRAME_COUNT)
        rate = capture.get(cv2.CAP_PROP_FPS)
    finally:
        capture.release()
    known = all(math.isfinite(v) and v > 0.0 for v in (n_frames, rate))
    return n_frames / rate if known else None


def _open_capture(file: Path) -> cv2.VideoCapture:
    """Return a file opened as a video, or raise VideoError with the reason."""
    if not file.exists():
        raise VideoError(f"there is no file {file}; check the path")
    if not file.is_file():
        raise VideoError(f"{file} is a folder; give the path of a video file")
    capture = cv2.VideoCapture(str(file))
    if not capture.isOpened():
        raise VideoError(
            f"{file} cannot be opened as a video: it is in no format that OpenCV "
            "knows, or its start or index is lost; check that it plays, or convert it"
        )
    width = capture.get(cv2.CAP_PROP_FRAME_WIDTH)
    height = capture.get(cv2.CAP_PROP_FRAME_HEIGHT)
    if width * height > MOST_PIXELS:
        capture.release()
        raise VideoError(
            f"{file} has frames of {width:,.0f} x {height:,.0f} pixels, more than "
            f"{MOST_PIXELS:,}: convert it to a smaller size"
        )
    return capture


def _sampled_frames(
    capture: cv2.VideoCapture, file: Path, every: float
) -> Iterator[Frame]:
    """Yield the first readable frame of each time step; close the video at the end."""
    try:
        number, time, last_step = -1, -math.inf, -1
        for number, time in _grab_frames(capture):
            step = step_of(time, every)
            # A damaged frame leaves its step to the next one.
            if step > last_step and (frame := _decode_frame(capture, number, time)):
                last_step = step
                yield frame
        if last_step < 0:
            raise VideoError(f"{file} is a video without frames that can be read")
        promised = capture.get(cv2.CAP_PROP_FRAME_COUNT)
        rate = _frame_rate(capture.get(cv2.CAP_PROP_FPS))
        _warn_if_truncated(file, promised, number + 1, time, rate)
    finally:
        capture.release()


def _grab_frames(capture: cv2.VideoCapture) -> Iterator[tuple[int, float]]:
    """Yield the number and time of each frame, grabbed but not decoded."""
    time = -math.inf
    rate = _frame_rate(capture.get(cv2.CAP_PROP_FPS))
    for number in count():
        if not capture.grab():
            return
        reported = capture.get(cv2.CAP_PROP_POS_MSEC) / 1000.0
        time = _frame_time(reported, number, rate, time)
        yield number, time


def _decode_frame(capture: cv2.VideoCapture, number: int, time: float) -> Frame | None:
    """Return the frame grabbed last, of this number and time; None if damaged."""
    decoded, image = capture.retrieve()
    if not decoded:
        return None
    rgb = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    return Frame(number, time, np.asarray(rgb, dtype=np.uint8))


def _frame_rate(reported: float) -> float:
    """Return frames a second, 25 where the reported rate is not a positive number."""
    known = math.isfinite(reported) and reported > 0.0
    return reported if known else _DEFAULT_RATE


def _frame_time(reported: float, number: int, rate: float, before: float) -> float:
    """Return the time of a frame in seconds, always later than the frame before.

    The reported time is taken if it moves on.  A file without times reports 0; then,
    and where time goes backwards, it is number / rate, or one frame after the one
    before if that is later.
    """
    if math.isfinite(reported) and reported >= 0.0 and reported > before:
        return reported
    return max(number / rate, before + 1.0 / rate)


def _warn_if_truncated(
    file: Path, promised: float, n_read: int, time: float, rate: float
) -> None:
    """Warn if clearly fewer frames than ``promised`` were read.

    ``time`` is that of the last one in seconds, ``rate`` the frames a second.
    """
    missing, duration = promised - n_read, promised / rate
    # Where a format does not count its frames, the promise is an estimate.  Where they
    # are not evenly spaced, time tells what is missing; the last may be shown for long.
    is_short = duration - time < min(_SHORT, duration / 2)
    if missing > 5 and missing > 0.02 * promised and not is_short:
        warnings.warn(
            f"{file} promises {promised:.0f} frames, but only {n_read} could be read, "
            f"up to {time:.1f} s: the file seems cut short or damaged; fetch it again "
            "if the rest matters",
            TruncatedVideoWarning,
            stacklevel=3,
        )
