"""Read frames of a video file in order, sampled by time."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Suffixes by which a video is told from other files.
VIDEO_SUFFIXES = (
    *(".3gp", ".avi", ".flv", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg"),
    *(".mpg", ".mts", ".ogv", ".ts", ".vob", ".webm", ".wmv"),
)

#: Red, green and blue, 0 to 255, of shape (height, width, 3).
Picture: TypeAlias = NDArray[np.uint8]

#: Seconds by which a time may miss a multiple: containers round to milliseconds.
_ROUNDING = 0.0005

#: Seconds between the frames that are looked at by default.
EVERY = 0.5

#: The shortest step in seconds; it already takes every frame of an ordinary video.
EVERY_FRAME = 0.001

#: Frames a second where the container does not say.
_USUAL_RATE = 25.0


def require_cv2() -> None:
    """Raise an error that says how to install OpenCV where it is missing."""
    try:
        import cv2  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "reading videos needs OpenCV: pip install 'variegate[video]'"
        ) from error


if TYPE_CHECKING:
    import cv2 as cv2
else:

    class _OpenCV:
        """OpenCV, which is imported when it is first used."""

        def __getattr__(self, name: str) -> object:
            if name.startswith("__"):  # asked by tools that look at a module
                raise AttributeError(name)
            if sys.modules.get("cv2") is None:
                require_cv2()
            return getattr(sys.modules["cv2"], name)

    cv2 = _OpenCV()


class VideoError(ValueError):
    """A file that cannot be read as a video."""


class TruncatedVideoWarning(UserWarning):
    """A video that ends before the frames that it promises."""


@dataclass(frozen=True, eq=False)
class Frame:
    """One frame of a video.

    Attributes
    ----------
    number : int
        Position in the file, from 0.
    time : float
        Seconds from the start of the video.
    image : array of shape (height, width, 3), red, green and blue, 0 to 255
    """

    number: int
    time: float
    image: Picture


def read_frames(path: str | PathLike[str], every: float = 1.0) -> Iterator[Frame]:
    """Read a video and yield one frame for each step of time.

    These are the first frames at or after 0, ``every``, 2 ``every``, ... seconds.
    The file is read once from start to end, without jumps and without trust in the
    number of frames that it promises.  One image is held at a time.

    Parameters
    ----------
    path : str or path
    every : float
        Seconds between frames, at least 0.001.  A step shorter than the distance of
        two frames takes every frame.

    Raises
    ------
    VideoError
        If the file is missing, cannot be opened as a video, or has no frames.  The
        last is known only when the first frame is asked for.

    Warns
    -----
    TruncatedVideoWarning
        After the last frame, if the file promises clearly more frames.
    """
    check_every(every)
    file = Path(path)
    return _sampled(_open(file), file, every)


def check_every(every: float) -> None:
    """Refuse a step between frames that is not a number of at least 0.001."""
    if not (math.isfinite(every) and every >= EVERY_FRAME):
        raise ValueError(
            f"every is the seconds between frames, at least {EVERY_FRAME}, got {every}"
        )


def step_of(time: float, every: float) -> int:
    """Return the number of the time step that a frame is in."""
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
    path: str | PathLike[str], spans: Sequence[tuple[float, float]]
) -> Iterator[tuple[int, Frame]]:
    """Yield every frame within spans of time, each with the number of its span.

    Spans are in order and do not overlap; a frame at the end of one is not in it.
    Whatever is wrong with the file was said when it was first read.
    """
    capture = _open(Path(path))
    try:
        place = 0
        for number, time in _grabbed(capture):
            while place < len(spans) and spans[place][1] <= time:
                place += 1
            if place == len(spans):
                return
            if time >= spans[place][0]:
                frame = _retrieved(capture, number, time)
                if frame is not None:
                    yield place, frame
    finally:
        capture.release()


def promised_duration(path: str | PathLike[str]) -> float | None:
    """Return the seconds that a container promises, or None: only for progress."""
    capture = _open(Path(path))
    try:
        n_frames = capture.get(cv2.CAP_PROP_FRAME_COUNT)
        rate = capture.get(cv2.CAP_PROP_FPS)
    finally:
        capture.release()
    known = all(math.isfinite(v) and v > 0.0 for v in (n_frames, rate))
    return n_frames / rate if known else None


def _open(file: Path) -> cv2.VideoCapture:
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
    return capture


def _sampled(capture: cv2.VideoCapture, file: Path, every: float) -> Iterator[Frame]:
    try:
        number, time, last_step = -1, -math.inf, -1
        for number, time in _grabbed(capture):
            step = step_of(time, every)
            if step > last_step:
                frame = _retrieved(capture, number, time)
                # A damaged frame leaves its step to the next one.
                if frame is not None:
                    last_step = step
                    yield frame
        if last_step < 0:
            raise VideoError(f"{file} is a video without frames that can be read")
        promised = capture.get(cv2.CAP_PROP_FRAME_COUNT)
        _warn_if_truncated(file, promised, number + 1, time)
    finally:
        capture.release()


def _grabbed(capture: cv2.VideoCapture) -> Iterator[tuple[int, float]]:
    """Yield the number and the time of each frame, which can then be retrieved."""
    number, time = 0, -math.inf
    rate = _frame_rate(capture.get(cv2.CAP_PROP_FPS))
    while capture.grab():
        reported = capture.get(cv2.CAP_PROP_POS_MSEC) / 1000.0
        time = _frame_time(reported, number, rate, time)
        yield number, time
        number += 1


def _retrieved(capture: cv2.VideoCapture, number: int, time: float) -> Frame | None:
    decoded, image = capture.retrieve()
    if not decoded:
        return None
    rgb = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    return Frame(number, time, np.asarray(rgb, dtype=np.uint8))


def _frame_rate(reported: float) -> float:
    known = math.isfinite(reported) and reported > 0.0
    return reported if known else _USUAL_RATE


def _frame_time(reported: float, number: int, rate: float, before: float) -> float:
    """Return the time of a frame in seconds, always later than the frame before.

    The reported time is taken if it moves on.  A file without times reports 0 for
    every frame; there, and where time goes backwards, it is number / rate, or one
    frame after the one before if that is later still.
    """
    if math.isfinite(reported) and reported >= 0.0 and reported > before:
        return reported
    return max(number / rate, before + 1.0 / rate)


def _warn_if_truncated(file: Path, promised: float, n_read: int, time: float) -> None:
    missing = promised - n_read
    # Where a format does not count its frames, the promise is an estimate.
    if missing > 5 and missing > 0.02 * promised:
        warnings.warn(
            f"{file} promises {promised:.0f} frames, but only {n_read} could be read, "
            f"up to {time:.1f} s: the file seems cut short or damaged; fetch it again "
            "if the rest matters",
            TruncatedVideoWarning,
            stacklevel=3,
        )
