"""Show the key frames of a video on one page of HTML that loads nothing else."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from variegate.report.page import Row, render
from variegate.report.wording import count, percent
from variegate.video.reading import time_label
from variegate.video.screening import BEST, Decision
from variegate.video.storyboard import encode_jpeg, resize_to_fit, usual_aspect
from variegate.video.summary import Keyframe, VideoSummary

_LARGEST = 480  # pixels on each side that a picture on the page must fit into

# The timeline, a few hundred to a thousand pixels wide.
_UNITS = 20_000
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_MOST_TICKS = 8
_MOST_CUTS = 100

# Reasons in the order of the legend, before any other.
_REASONS = ("dark", "flat", "blurred", "repeats the frame before")


class _Dropped(NamedTuple):
    """Neighbouring dropped frames; times, in seconds, reach half way to the others."""

    start: float
    end: float
    frames: int  # their number


def html_report(summary: VideoSummary, title: str = "Key frames") -> str:
    """Return a page with the key frames and, above them, where they come from.

    A timeline shows the probability of each candidate in a set drawn from the model,
    the chosen ones, and dropped frames by reason; a table says why likelier candidates
    were not chosen.  Pictures are shrunk to at most 480 pixels and embedded.  Write the
    page as UTF-8.
    """
    axis = _Axis(summary.duration)
    kept_for = (d.reason or "" for d in summary.decisions if d.kept)
    dropped = _find_dropped(summary.decisions, summary.duration)
    return render(
        "video",
        "keyframes.html",
        title=title,
        summary=summary,
        facts=_page_facts(summary),
        is_rescued=any(reason.endswith(BEST) for reason in kept_for),
        axis=axis,
        highest=_axis_end([c.probability for c in summary.candidates]),
        cuts=summary.shots[1:] if len(summary.shots) <= _MOST_CUTS else (),
        frames=[_keyframe_values(keyframe, axis) for keyframe in summary.keyframes],
        shape=f"{usual_aspect(summary.keyframes):.4f}" if summary.keyframes else "",
        styles={reason: f"r{place}" for place, reason in enumerate(_REASONS)},
        refused=[
            Row([time_label(c.time), f"{c.number}", percent(c.probability), c.why_not])
            for c in summary.candidates
            if c.why_not is not None
        ],
        dropped=dropped,
        n_dropped=sum(not decision.kept for decision in summary.decisions),
        counts=_count_rows(dropped, len(summary.decisions)),
        time_label=time_label,
    )


def _page_facts(summary: VideoSummary) -> dict[str, str]:
    """Return the facts at the top of the page as texts by name."""
    facts = {"Duration": time_label(summary.duration)}
    n_shots, shown = len(summary.shots), summary.shots_shown
    if n_shots:
        which = f"{shown:,}" if shown < n_shots else "all"
        facts["Shots"] = f"{n_shots:,}, {which} shown" if n_shots > 1 else "1"
    return facts | {
        "Frames read": count(len(summary.decisions), "frame"),
        "Candidates": count(len(summary.candidates), "frame"),
        "Chosen": count(len(summary.keyframes), "frame"),
        "ω": f"{summary.omega:g}",
    }


def _find_dropped(
    decisions: Sequence[Decision], duration: float
) -> dict[str, list[_Dropped]]:
    """Return runs of frames dropped for one reason, by reason as in the legend."""
    times = [decision.time for decision in decisions]
    edges = [*times[:1], *((a + b) / 2 for a, b in pairwise(times)), duration]
    found: dict[str, list[_Dropped]] = {}
    place = 0
    for (kept, reason), members in groupby(decisions, lambda d: (d.kept, d.reason)):
        first, place = place, place + len(list(members))
        if not kept:
            stretch = _Dropped(edges[first], edges[place], place - first)
            found.setdefault(reason or "no reason given", []).append(stretch)
    others = sorted(found.keys() - set(_REASONS))
    return {reason: found[reason] for reason in (*_REASONS, *others) if reason in found}


def _count_rows(dropped: dict[str, list[_Dropped]], n_sampled: int) -> list[Row]:
    """Return a row for each reason, and for all: frames, share of sampled, stretches.

    There is no row where no frame was dropped.
    """
    if not dropped:
        return []
    everything = [stretch for stretches in dropped.values() for stretch in stretches]
    rows = []
    for name, stretches in (*dropped.items(), ("together", everything)):
        n_frames = sum(stretch.frames for stretch in stretches)
        share = percent(n_frames / n_sampled)
        style = "chosen" if name == "together" else ""
        rows.append(Row([name, f"{n_frames:,}", share, f"{len(stretches):,}"], style))
    return rows


class _Axis:
    """Turns seconds into positions on the timeline: the middle for a duration of 0."""

    units = _UNITS

    def __init__(self, duration: float) -> None:
        self.duration = duration

    def fraction(self, time: float) -> float:
        """Return the position of a time, from 0 to 1."""
        return time / self.duration if self.duration > 0.0 else 0.5

    def percent(self, time: float) -> str:
        """Return the position of a time for a style sheet: "25%"."""
        return f"{100.0 * self.fraction(time):.5g}%"

    def unit(self, time: float) -> int:
        """Return the position of a time in the SVG drawing, from 0 to ``units``."""
        return round(_UNITS * self.fraction(time))

    def ticks(self) -> list[tuple[str, str, str]]:
        """Return position ("25%"), SVG text anchor and label of times on the axis."""
        steps = (s for s in _STEPS if self.duration <= s * (_MOST_TICKS - 1))
        # Beyond the longest step, whole multiples of an hour.
        hours = math.ceil(self.duration / (_MOST_TICKS - 1) / 3600.0)
        step = next(steps, 3600.0 * hours)
        ticks = []
        for number in range(math.floor(self.duration / step + 1e-9) + 1):
            time = step * number
            fraction, text = self.fraction(time), time_label(time)
            anchor = "start" if fraction < 0.03 else "middle"
            anchor = "end" if fraction > 0.97 else anchor
            # Tenths are redundant where all of them are 0.
            text = text.removesuffix(".0") if step >= 1.0 else text
            ticks.append((self.percent(time), anchor, text))
        return ticks


def _axis_end(probabilities: Sequence[float]) -> float:
    """Return the end of an axis: the least of 1, 1/2, ... above all; 1 for zeros."""
    largest = max(probabilities, default=0.0)
    steps = [part * 0.1**power for power in range(6) for part in (1.0, 0.5, 0.2)]
    enough = [step for step in steps if step >= largest > 0.0]
    return min(enough, default=1.0)


def _keyframe_values(keyframe: Keyframe, axis: _Axis) -> dict[str, Any]:
    """Return a key frame's texts, position and Base64 picture for the template."""
    picture = keyframe.image
    if max(picture.shape) > _LARGEST:
        picture = resize_to_fit(picture, _LARGEST, _LARGEST)
    return {
        "number": keyframe.number,
        "time": time_label(keyframe.time),
        "chance": percent(keyframe.probability),
        "x": axis.percent(keyframe.time),
        "height": picture.shape[0],
        "width": picture.shape[1],
        "jpeg": b64encode(encode_jpeg(picture, 80)).decode("ascii"),
    }
