"""The key frames of a video on one page of HTML, without anything from outside."""

from __future__ import annotations

import math
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from variegate.report.page import Row, render
from variegate.report.words import count, percent
from variegate.video.reading import require_cv2
from variegate.video.screening import BEST, Decision
from variegate.video.storyboard import encode_jpeg, fitted, usual_aspect
from variegate.video.summary import Keyframe, VideoSummary
from variegate.video.times import time_label

__all__ = ["html_report"]

#: Pixels on each side that a picture on the page must fit into.
_LARGEST = 480

#: Units across the timeline; it is a few hundred to a thousand pixels wide.
_UNITS = 20_000

#: Seconds between two times on the axis, of which the first is taken that gives few.
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_MOST_TICKS = 8

#: Cuts that are shown on the timeline, at most.
_MOST_CUTS = 100

#: Reasons in the order of the legend; any other comes after them.
_REASONS = ("dark", "flat", "blurred", "repeats the frame before")


class _Stretch(NamedTuple):
    """Frames in a row that were dropped for one reason, from start to end in seconds.

    A frame stands for the time up to half way to the frames beside it.
    """

    reason: str
    start: float
    end: float
    frames: int


def html_report(summary: VideoSummary, title: str = "Key frames") -> str:
    """Return a page with the key frames and, above them, where they come from.

    A timeline shows with which probability a set drawn from the model holds each
    candidate, which were chosen, and where frames were dropped before, by reason; a
    table says why likelier candidates were not chosen.
    Pictures are shrunk to at most 480 pixels and held in the page; nothing is loaded
    from elsewhere.  The page is to be written as UTF-8.
    """
    require_cv2()
    stretches = _stretches(summary.decisions, summary.duration)
    axis = _Axis(summary.duration)
    kept_for = (d.reason or "" for d in summary.decisions if d.kept)
    return render(
        "video",
        "keyframes.html",
        title=title,
        facts=_facts(summary),
        source=summary.source,
        is_rescued=any(reason.endswith(BEST) for reason in kept_for),
        timeline=_timeline(summary, stretches, axis),
        frames=[_frame(keyframe, axis) for keyframe in summary.keyframes],
        shape=f"{usual_aspect(summary.keyframes):.4f}" if summary.keyframes else "",
        refused=_refused(summary),
        n_dropped=sum(stretch.frames for stretch in stretches),
        dropped=_dropped(len(summary.decisions), stretches),
    )


def _facts(summary: VideoSummary) -> dict[str, str]:
    return {
        "Duration": time_label(summary.duration),
        **_shots(summary),
        "Looked at": count(len(summary.decisions), "frame"),
        "Candidates": count(len(summary.candidates), "frame"),
        "Chosen": count(len(summary.keyframes), "frame"),
        "ω": f"{summary.omega:g}",
    }


def _shots(summary: VideoSummary) -> dict[str, str]:
    """Return how many shots there are and are shown, if they are known."""
    n_shots, shown = len(summary.shots), summary.shots_shown
    if not n_shots:
        return {}
    left_out = f", {shown:,} shown" if shown < n_shots else ", all shown"
    return {"Shots": f"{n_shots:,}{left_out if n_shots > 1 else ''}"}


def _refused(summary: VideoSummary) -> list[Row]:
    """Return the candidates that were not chosen though likelier than a chosen one."""
    return [
        Row([time_label(c.time), f"{c.number}", percent(c.probability), c.why_not])
        for c in summary.candidates
        if c.why_not is not None
    ]


def _stretches(decisions: Sequence[Decision], duration: float) -> list[_Stretch]:
    """Merge frames next to each other that were dropped for the same reason."""
    times = [decision.time for decision in decisions]
    edges = [*times[:1], *((a + b) / 2 for a, b in pairwise(times)), duration]
    stretches, place = [], 0
    for (kept, reason), members in groupby(decisions, lambda d: (d.kept, d.reason)):
        first, place = place, place + len(list(members))
        if not kept:
            reason = reason or "no reason given"
            span = edges[first], edges[place]
            stretches.append(_Stretch(reason, *span, place - first))
    return stretches


def _reasons(stretches: Sequence[_Stretch]) -> list[tuple[str, str]]:
    """Return the reasons that occur, each with the class that colours it."""
    found = {stretch.reason for stretch in stretches}
    known = [(r, f"r{k}") for k, r in enumerate(_REASONS) if r in found]
    return known + [(r, "r4") for r in sorted(found - set(_REASONS))]


class _Axis:
    """Places on the timeline, from 0 to 1; a single frame is in the middle."""

    def __init__(self, duration: float) -> None:
        self.duration = duration

    def fraction(self, time: float) -> float:
        return time / self.duration if self.duration > 0.0 else 0.5

    def percent(self, time: float) -> str:
        return f"{100.0 * self.fraction(time):.5g}%"

    def unit(self, time: float) -> int:
        return round(_UNITS * self.fraction(time))

    def ticks(self) -> list[tuple[str, str, str]]:
        """Return position, anchor and text of the times beneath the axis."""
        steps = (s for s in _STEPS if self.duration <= s * (_MOST_TICKS - 1))
        # Beyond the longest step, whole multiples of an hour.
        hours = math.ceil(self.duration / (_MOST_TICKS - 1) / 3600.0)
        step = next(steps, 3600.0 * hours)
        count = math.floor(self.duration / step + 1e-9) + 1
        ticks = []
        for time in (step * k for k in range(count)):
            fraction = self.fraction(time)
            anchor = "start" if fraction < 0.03 else "middle"
            anchor = "end" if fraction > 0.97 else anchor
            text = time_label(time)
            # Tenths say nothing where all of them are 0.
            text = text.removesuffix(".0") if step >= 1.0 else text
            ticks.append((self.percent(time), anchor, text))
        return ticks


def _timeline(
    summary: VideoSummary, stretches: Sequence[_Stretch], axis: _Axis
) -> dict[str, object]:
    """Return the paths of a timeline, its times, and what they are about."""
    highest = _ceiling(max((c.probability for c in summary.candidates), default=0.0))
    count_of = len(summary.candidates)
    return {
        "about": f"Timeline of {time_label(summary.duration)} with "
        f"{count(count_of, 'candidate')} and "
        f"{count(len(summary.keyframes), 'chosen frame')}",
        "units": _UNITS,
        "shades": _shades(axis, stretches),
        "cuts": _cuts(summary, axis),
        "bars": {
            "bars": _bars(summary, axis, highest, chosen=False),
            "bars chosen": _bars(summary, axis, highest, chosen=True),
        },
        "thickness": 1 if count_of > 300 else 2 if count_of > 100 else 3,
        "ticks": axis.ticks(),
        "ceiling": f"{100.0 * highest:g}",
    }


def _shades(axis: _Axis, stretches: Sequence[_Stretch]) -> list[dict[str, str]]:
    """Return one path a reason: lines as thick as the plot is high."""
    lines: dict[str, list[str]] = {reason: [] for reason, _ in _reasons(stretches)}
    for reason, start, end, _ in stretches:
        left, right = axis.unit(start), axis.unit(end)
        lines[reason].append(f"M{left} 500H{max(right, left + 1)}")
    return [
        {"reason": reason, "style": style, "lines": "".join(lines[reason])}
        for reason, style in _reasons(stretches)
    ]


def _cuts(summary: VideoSummary, axis: _Axis) -> str:
    """Return the cuts in one path, if they are few enough to be told apart."""
    if len(summary.shots) > _MOST_CUTS:
        return ""
    return "".join(f"M{axis.unit(shot.start)} 0V1000" for shot in summary.shots[1:])


def _bars(summary: VideoSummary, axis: _Axis, highest: float, chosen: bool) -> str:
    """Return the probabilities of chosen or of other candidates in one path."""
    return "".join(
        f"M{axis.unit(c.time)} 1000V{round(1000 - 1000 * c.probability / highest)}"
        for c in summary.candidates
        if c.chosen == chosen
    )


def _ceiling(probability: float) -> float:
    """Return the least of 1, 1/2, 1/5, 1/10, 1/20, ... that is not exceeded."""
    steps = [part * 0.1**power for power in range(6) for part in (1.0, 0.5, 0.2)]
    enough = [step for step in steps if step >= probability > 0.0]
    return min(enough, default=1.0)


def _frame(keyframe: Keyframe, axis: _Axis) -> dict[str, object]:
    picture = keyframe.image
    if max(picture.shape) > _LARGEST:
        picture = fitted(picture, _LARGEST, _LARGEST)
    return {
        "number": keyframe.number,
        "time": time_label(keyframe.time),
        "chance": percent(keyframe.probability),
        "x": axis.percent(keyframe.time),
        "height": picture.shape[0],
        "width": picture.shape[1],
        "jpeg": b64encode(encode_jpeg(picture, 80)).decode("ascii"),
    }


def _dropped(looked_at: int, stretches: Sequence[_Stretch]) -> list[Row]:
    """Return how many frames were dropped, by reason."""
    frames, places = Counter[str](), Counter[str]()
    for stretch in stretches:
        frames[stretch.reason] += stretch.frames
        places[stretch.reason] += 1
    counts = [(name, frames[name], places[name]) for name, _ in _reasons(stretches)]
    if counts:
        counts.append(("together", frames.total(), places.total()))
    return [
        Row(
            [name, f"{n_frames:,}", percent(n_frames / looked_at), f"{n_places:,}"],
            "chosen" if name == "together" else "",
        )
        for name, n_frames, n_places in counts
    ]
