"""From a video file to the frames that may be chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np

from variegate._progress import Progress
from variegate.video.description import Description, describe
from variegate.video.reading import EVERY, Frame, promised_duration
from variegate.video.screening import Decision, Screening, screen
from variegate.video.shots import Reel, Shot, shot_at
from variegate.video.stretches import (
    Stretch,
    merge_stretches,
    split_into_stretches,
)
from variegate.video.view import VideoView

__all__ = ["MAX_CANDIDATES", "ReadVideo", "read_candidates"]

#: Of more stretches than this, neighbours are merged.
MAX_CANDIDATES = 1000

#: Seconds that a stretch must last, if it has less than so much of the detail of one
#: beside it.
_SHORTEST = 1.0
_FADED = 0.75

#: Seconds before and after a candidate that it stands for, at most.
_AROUND = 4.0

_Stretch = Stretch[Description]


@dataclass(frozen=True, eq=False)
class ReadVideo:
    """A video as it was read.

    The view has one frame for each stretch in which the picture stays much the same,
    ``spans`` the times of these stretches; decisions are on every frame looked at.
    Shots that are dark from end to end are left out.
    """

    view: VideoView
    spans: list[tuple[float, float]]
    decisions: list[Decision]
    shots: list[Shot]

    def candidate_at(self, time: float, reach: float = 0.0) -> int | None:
        """Return the candidate whose stretch a time is in, or within reach of."""
        starts, ends = np.array(self.spans).T
        distance = np.maximum(np.maximum(starts - time, time - ends), 0.0)
        nearest = int(np.argmin(distance))
        return nearest if distance[nearest] <= reach else None

    def around(self, place: int) -> tuple[float, float]:
        """Return the times around a candidate that it stands for.

        They end where its shot does, half way to the stretches beside its own, and four
        seconds away.
        """
        time = self.view.descriptions[place].time
        shots = self.view.shots
        shot = self.shots[shots[place]]
        edges = [(time - _AROUND, time + _AROUND), (shot.start, shot.end)]
        for beside in (place - 1, place + 1):
            if 0 <= beside < len(shots) and shots[beside] == shots[place]:
                one, other = sorted((place, beside))
                half_way = (self.spans[one][1] + self.spans[other][0]) / 2.0
                edges.append((half_way, np.inf) if beside < place else (0.0, half_way))
        starts, ends = zip(*edges, strict=True)
        return max(starts), min(ends)


def read_candidates(
    path: str | PathLike[str],
    every: float = EVERY,
    screening: Screening | None = None,
    progress: Progress | None = None,
) -> ReadVideo:
    """Read a video once, whatever its length, and describe one frame a stretch.

    No stretch goes on beyond a cut, and every shot has a frame that is looked at.

    Parameters
    ----------
    path, every : as for :func:`variegate.video.read_frames`
    screening : Screening, optional
        Which frames are not worth choosing from.
    progress : callable, optional
        Called with "reading", the time of each frame that is looked at, and the
        duration of the video, 0 where it is not known.
    """
    decisions: list[Decision] = []
    reel = Reel(path, every)
    kept = _worth_choosing(_watched(reel, path, progress), screening, decisions)
    stretches: list[_Stretch] = []
    for stretch in split_into_stretches(kept, reel.cuts):
        stretches.append(_described(stretch))
        if len(stretches) == 2 * MAX_CANDIDATES:
            stretches = _merged(stretches)
    shots = _not_dark(reel.shots, decisions)
    stretches = _lasting(_merged(stretches), shots)
    places = [shot_at(shots, s.frame.time) for s in stretches]
    view = VideoView([s.frame for s in stretches], reel.duration, places)
    return ReadVideo(view, [(s.start, s.end) for s in stretches], decisions, shots)


def _not_dark(shots: list[Shot], decisions: Sequence[Decision]) -> list[Shot]:
    """Return the shots of which a frame was looked at that is not dark."""
    lit = {shot_at(shots, d.time) for d in decisions if d.kept or d.reason != "dark"}
    return [shot for place, shot in enumerate(shots) if place in lit]


def _watched(
    frames: Iterable[Frame], path: str | PathLike[str], progress: Progress | None
) -> Iterator[Frame]:
    total = 0.0 if progress is None else promised_duration(path) or 0.0
    for frame in frames:
        if progress is not None:
            progress("reading", max(frame.time, 0.0), total)
        yield frame


def _worth_choosing(
    frames: Iterable[Frame], screening: Screening | None, decisions: list[Decision]
) -> Iterator[Frame]:
    for decision, frame in screen(frames, screening):
        decisions.append(decision)
        if frame is not None:
            yield frame


def _described(stretch: Stretch[Frame]) -> _Stretch:
    seen = stretch.frame
    frame = describe(seen.number, seen.time, seen.image)
    return Stretch(stretch.start, stretch.end, frame, stretch.look, stretch.detail)


def _lasting(stretches: list[_Stretch], shots: list[Shot]) -> list[_Stretch]:
    """Leave out what only passes: steps of a fade, between a black frame and a scene.

    These are short, and have less detail than what comes before or after; the only
    stretch of a shot stays.
    """
    kept = []
    places = [shot_at(shots, stretch.frame.time) for stretch in stretches]
    for place, stretch in enumerate(stretches):
        after = stretches[place + 1 : place + 2]
        neighbours = stretches[max(place - 1, 0) : place] + after
        end = after[0].start if after else np.inf
        passes = end - stretch.start < _SHORTEST and any(
            stretch.detail < _FADED * other.detail for other in neighbours
        )
        if not passes or places.count(places[place]) == 1:
            kept.append(stretch)
    return kept


def _merged(stretches: list[_Stretch]) -> list[_Stretch]:
    """Return at most as many stretches as there may be candidates."""
    merged = []
    for group in merge_stretches([s.look for s in stretches], MAX_CANDIDATES):
        members = stretches[group]
        best = max(members, key=lambda s: s.detail)
        merged.append(replace(best, start=members[0].start, end=members[-1].end))
    return merged
