"""From a video file to the frames that may be chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np

from variegate.video.description import Description, describe
from variegate.video.reading import Frame, read_frames
from variegate.video.screening import Decision, Screening, screen
from variegate.video.shots import Shot, merge_shots, split_into_shots
from variegate.video.view import VideoView

__all__ = ["EVERY", "MAX_CANDIDATES", "ReadVideo", "read_candidates"]

#: Seconds between the frames that are looked at, where nobody says.
EVERY = 0.5

#: Of more stretches than this, neighbours are merged.
MAX_CANDIDATES = 1000

#: Seconds that a stretch must last, if it has less than so much of the detail of one
#: beside it.
_SHORTEST = 1.0
_FADED = 0.75

_Stretch = Shot[Description]


@dataclass(frozen=True, eq=False)
class ReadVideo:
    """A video as it was read.

    The view has one frame for each stretch in which the picture stays much the same,
    ``spans`` the times of these stretches; decisions are on every frame looked at.
    """

    view: VideoView
    spans: list[tuple[float, float]]
    decisions: list[Decision]

    def candidate_at(self, time: float, reach: float = 0.0) -> int | None:
        """Return the candidate whose stretch a time is in, or within reach of."""
        starts, ends = np.array(self.spans).T
        distance = np.maximum(np.maximum(starts - time, time - ends), 0.0)
        nearest = int(np.argmin(distance))
        return nearest if distance[nearest] <= reach else None


def read_candidates(
    path: str | PathLike[str],
    every: float = EVERY,
    screening: Screening | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> ReadVideo:
    """Read a video once, whatever its length, and describe one frame a stretch.

    Parameters
    ----------
    path, every : as for :func:`variegate.video.read_frames`
    screening : Screening, optional
        Which frames are not worth choosing from.
    progress : callable, optional
        Called with the number and the time of each frame that is looked at.
    """
    decisions: list[Decision] = []
    frames = _watched(read_frames(path, every), progress)
    stretches: list[_Stretch] = []
    for shot in split_into_shots(_worth_choosing(frames, screening, decisions)):
        stretches.append(_described(shot))
        if len(stretches) == 2 * MAX_CANDIDATES:
            stretches = _merged(stretches)
    stretches = _lasting(_merged(stretches))
    view = VideoView([s.frame for s in stretches], decisions[-1].time)
    return ReadVideo(view, [(s.start, s.end) for s in stretches], decisions)


def _watched(
    frames: Iterable[Frame], progress: Callable[[int, float], None] | None
) -> Iterator[Frame]:
    for frame in frames:
        if progress is not None:
            progress(frame.number, frame.time)
        yield frame


def _worth_choosing(
    frames: Iterable[Frame], screening: Screening | None, decisions: list[Decision]
) -> Iterator[Frame]:
    for decision, frame in screen(frames, screening):
        decisions.append(decision)
        if frame is not None:
            yield frame


def _described(shot: Shot[Frame]) -> _Stretch:
    frame = describe(shot.frame.number, shot.frame.time, shot.frame.image)
    return Shot(shot.start, shot.end, frame, shot.look, shot.detail)


def _lasting(stretches: list[_Stretch]) -> list[_Stretch]:
    """Leave out what only passes: steps of a fade, between a black frame and a scene.

    These are short, and have less detail than what comes before or after.
    """
    kept = []
    for place, stretch in enumerate(stretches):
        after = stretches[place + 1 : place + 2]
        neighbours = stretches[max(place - 1, 0) : place] + after
        end = after[0].start if after else np.inf
        passes = end - stretch.start < _SHORTEST and any(
            stretch.detail < _FADED * other.detail for other in neighbours
        )
        if not passes:
            kept.append(stretch)
    return kept


def _merged(stretches: list[_Stretch]) -> list[_Stretch]:
    """Return at most as many stretches as there may be candidates."""
    merged = []
    for group in merge_shots([s.look for s in stretches], MAX_CANDIDATES):
        members = stretches[group]
        best = max(members, key=lambda s: s.detail)
        merged.append(replace(best, start=members[0].start, end=members[-1].end))
    return merged
