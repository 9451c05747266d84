"""The key frames of a video on one page of HTML, without anything from outside."""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from variegate.report.html import count, escape, percent
from variegate.video.reading import require_cv2
from variegate.video.screening import BEST, Decision
from variegate.video.storyboard import encode_jpeg, fitted, time_label, usual_aspect
from variegate.video.summary import Keyframe, VideoSummary

__all__ = ["html_report"]

#: Pixels on each side that a picture on the page must fit into.
_LARGEST = 480

#: Units across the timeline; it is a few hundred to a thousand pixels wide.
_UNITS = 20_000

#: Seconds between two times on the axis, of which the first is taken that gives few.
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_MOST_TICKS = 8

#: Reasons in the order of the legend; any other comes after them.
_REASONS = ("dark", "flat", "blurred", "repeats the frame before")

_STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfcfa; --ink: #22211f; --quiet: #65615a; --rule: #e3dfd8;
  --link: #1f5a8c; --badge: #a85b00; --bar: #33739f; --box: #f5f3ef;
  --r0: #55524d; --r1: #d9b98c; --r2: #b3a3cf; --r3: #dbd6cd; --r4: #a9c4a4;
  --serif: Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, "Noto Serif",
    serif;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
@media (prefers-color-scheme: dark) { :root {
  --paper: #191a1c; --ink: #dcdad5; --quiet: #a19d96; --rule: #34353a;
  --link: #8fc0ea; --badge: #f0b84b; --bar: #6fb0dc; --box: #232427;
  --r0: #000; --r1: #6b5227; --r2: #574a78; --r3: #3d3e44; --r4: #3d5a3a;
} }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; padding: 3.5rem 1.5rem 6rem; max-width: 63rem;
  background: var(--paper); color: var(--ink); font: .9375rem/1.5 var(--sans);
  overflow-wrap: anywhere; }
h1 { margin: 0; font: 600 2rem/1.25 var(--serif); letter-spacing: -.01em;
  text-wrap: balance; }
h2 { margin: 2.75rem 0 .9rem; font: 600 1.25rem/1.25 var(--serif); }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; text-underline-offset: .18em; }
.facts { display: flex; flex-wrap: wrap; gap: .7rem 1.9rem; margin: 1.5rem 0 0;
  padding: .9rem 0; border: solid var(--rule); border-width: 1px 0;
  font: .875rem/1.45 var(--sans); }
.facts dt { color: var(--quiet); font-size: .8125rem; } .facts dd { margin: 0; }
.note { margin: 1rem 0 0; color: var(--quiet); }
main > .note { margin-top: 2rem; }
svg { overflow: visible; } a, text { -webkit-tap-highlight-color: transparent; }
.timeline { display: block; width: 100%; height: 9.5rem;
  -webkit-print-color-adjust: exact; print-color-adjust: exact; }
.timeline path { fill: none; } .timeline .plot { fill: var(--box); }
.timeline .axis { stroke: var(--quiet); }
.timeline text { fill: var(--quiet); font: 12px var(--sans); }
.r0 { --c: var(--r0); } .r1 { --c: var(--r1); } .r2 { --c: var(--r2); }
.r3 { --c: var(--r3); } .r4 { --c: var(--r4); }
.dropped { stroke: var(--c); } .bars { stroke: var(--bar); }
.bars.chosen { stroke: var(--badge); }
.mark circle { fill: var(--badge); stroke: var(--paper); stroke-width: 1.5px; }
.mark .reach { fill: transparent; stroke: none; }
.mark:hover circle:first-of-type, .mark:focus-visible circle:first-of-type {
  stroke: var(--ink); stroke-width: 2px; }
.mark:focus { outline: none; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.3rem; margin: .6rem 0 0;
  padding: 0; list-style: none; color: var(--quiet); font-size: .8125rem; }
.legend li { display: flex; gap: .45rem; align-items: center; }
.legend i { flex: none; width: .85rem; height: .85rem; border-radius: .15rem;
  background: var(--c); box-shadow: 0 0 0 1px var(--rule);
  -webkit-print-color-adjust: exact; print-color-adjust: exact; }
.legend .bar { width: 3px; border-radius: 0; box-shadow: none; --c: var(--bar); }
.legend .dot { width: .7rem; height: .7rem; border-radius: 50%; box-shadow: none;
  --c: var(--badge); }
.frames { display: grid; gap: 1.6rem 1.1rem; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(13.5rem, 1fr)); }
.few { grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); }
.one { grid-template-columns: minmax(0, 30rem); }
figure { margin: 0; scroll-margin-top: 20vh; border-radius: .2rem; }
figure img { display: block; width: 100%; height: auto; border-radius: .2rem;
  background: var(--box); }
.frames img { aspect-ratio: var(--shape); object-fit: contain; }
figure:target { outline: 3px solid var(--badge); outline-offset: 5px; }
figcaption { display: flex; flex-wrap: wrap; gap: 0 .8rem; margin-top: .4rem;
  color: var(--quiet); font-size: .8125rem; font-variant-numeric: tabular-nums; }
figcaption b { color: var(--ink); font-size: .9375rem; line-height: 1.3; }
figcaption span:last-child { margin-inline-start: auto; color: var(--badge); }
details { margin-top: 2.75rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
summary { cursor: pointer; color: var(--link); }
table { margin-top: .8rem; border-collapse: collapse; font-size: .875rem;
  font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .35rem 1.6rem .35rem 0; border-bottom: 1px solid var(--rule);
  text-align: end; font-weight: 400; }
thead th { color: var(--quiet); vertical-align: bottom; }
th:first-child { text-align: start; overflow-wrap: anywhere; }
td:last-child, th:last-child { padding-inline-end: 0; }
tfoot > tr > * { border: 0; font-weight: 600; }
@media (max-width: 34rem) {
  body { padding: 1.75rem 1.125rem 4rem; } h1 { font-size: 1.625rem; }
  h2 { margin-top: 2rem; } .facts { gap: .6rem 1.5rem; margin-top: 1.1rem; }
  .odd { display: none; } .mark circle:first-of-type { r: 4px; }
  .frames { gap: 1.1rem .8rem;
    grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); }
  .frames.few, .frames.one { grid-template-columns: 100%; }
  figcaption { gap: 0 .6rem; } th, td { padding-inline-end: .9rem; }
}
@media print {
  :root { --paper: #fff; --ink: #000; --quiet: #444; --rule: #bbb; --badge: #9a5200;
    --bar: #33739f; --box: #f5f3ef; --link: #000; --r0: #55524d; --r1: #d9b98c;
    --r2: #b3a3cf; --r3: #dbd6cd; --r4: #a9c4a4; }
  body { max-width: none; padding: 0 8px; font-size: 9.5pt; }
  h2 { break-after: avoid; } figure, table, #timeline { break-inside: avoid; }
  .frames { grid-template-columns: repeat(auto-fill, minmax(5cm, 1fr)); }
  .frames.one { grid-template-columns: 10cm; } figure:target { outline: none; }
  details::details-content { content-visibility: visible; display: block; }
}
"""


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
    candidate, which were chosen, and where frames were dropped before, by reason.
    Pictures are shrunk to at most 480 pixels and held in the page; nothing is loaded
    from elsewhere.  The page is to be written as UTF-8.
    """
    require_cv2()
    stretches = _stretches(summary.decisions)
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>\n</head>\n<body>",
            f"<header>\n<h1>{escape(title)}</h1>\n{_facts(summary)}\n</header>\n<main>",
            _timeline(summary, stretches),
            _frames(summary.keyframes),
            _dropped(summary.decisions, stretches),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _facts(summary: VideoSummary) -> str:
    name = re.split(r"[/\\]", summary.source.rstrip("/\\"))[-1]
    facts = {
        "Duration": time_label(summary.duration),
        "Looked at": count(len(summary.decisions), "frame"),
        "Candidates": count(len(summary.candidates), "frame"),
        "Chosen": count(len(summary.keyframes), "frame"),
        "ω": f"{summary.omega:g}",
        "Source": f'<bdi title="{escape(summary.source)}">{escape(name)}</bdi>',
    }
    rows = (
        f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items()
    )
    note = ""
    if any(d.kept and (d.reason or "").endswith(BEST) for d in summary.decisions):
        note = (
            '\n<p class="note">No frame passed the checks, so the best of them '
            "was kept.</p>"
        )
    return f'<dl class="facts">{"".join(rows)}</dl>{note}'


def _stretches(decisions: Sequence[Decision]) -> list[_Stretch]:
    """Merge frames next to each other that were dropped for the same reason."""
    times = [decision.time for decision in decisions]
    stretches: list[_Stretch] = []
    open_reason: str | None = None
    for place, decision in enumerate(decisions):
        reason = None if decision.kept else decision.reason or "no reason given"
        if reason is not None:
            start = (times[max(place - 1, 0)] + times[place]) / 2
            end = (times[place] + times[min(place + 1, len(times) - 1)]) / 2
            if reason == open_reason:
                _, start, _, frames = stretches.pop()
                stretches.append(_Stretch(reason, start, end, frames + 1))
            else:
                stretches.append(_Stretch(reason, start, end, 1))
        open_reason = reason
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


def _timeline(summary: VideoSummary, stretches: Sequence[_Stretch]) -> str:
    axis = _Axis(summary.duration)
    highest = _ceiling(max((c.probability for c in summary.candidates), default=0.0))
    reasons = _reasons(stretches)
    ticks = "".join(
        f'<g class="{("even", "odd")[place % 2]}">'
        f'<line class="axis" x1="{x}" x2="{x}" y1="128" y2="133"/>'
        f'<text x="{x}" y="147" text-anchor="{anchor}">{text}</text></g>'
        for place, (x, anchor, text) in enumerate(axis.ticks())
    )
    return (
        '<section id="timeline">\n<h2>Timeline</h2>\n'
        '<svg class="timeline" role="group" aria-labelledby="about">\n'
        f'<title id="about">Timeline of {time_label(summary.duration)} with '
        f"{count(len(summary.candidates), 'candidate')} and "
        f"{count(len(summary.keyframes), 'chosen frame')}</title>\n"
        f'<svg y="24" width="100%" height="104" viewBox="0 0 {_UNITS} 1000" '
        'preserveAspectRatio="none">\n'
        f'<rect class="plot" width="{_UNITS}" height="1000"/>\n'
        f"{_shades(axis, stretches, reasons)}{_bars(summary, axis, highest)}</svg>\n"
        '<line class="axis" y1="128.5" y2="128.5" x2="100%"/>\n'
        f"{ticks}\n{_marks(summary.keyframes, axis)}</svg>\n"
        f"{_legend(reasons, highest)}\n</section>"
    )


def _shades(
    axis: _Axis, stretches: Sequence[_Stretch], reasons: Sequence[tuple[str, str]]
) -> str:
    """Return one path a reason: lines as thick as the plot is high."""
    lines: dict[str, list[str]] = {reason: [] for reason, _ in reasons}
    for reason, start, end, _ in stretches:
        left, right = axis.unit(start), axis.unit(end)
        lines[reason].append(f"M{left} 500H{max(right, left + 1)}")
    return "".join(
        f'<path class="dropped {style}" stroke-width="1000" '
        f'd="{"".join(lines[reason])}"><title>dropped: {escape(reason)}</title>'
        "</path>\n"
        for reason, style in reasons
    )


def _bars(summary: VideoSummary, axis: _Axis, highest: float) -> str:
    """Return the probabilities in one path, and those of chosen frames in another."""
    count = len(summary.candidates)
    thickness = 1 if count > 300 else 2 if count > 100 else 3
    paths = []
    for style, chosen in (("bars", False), ("bars chosen", True)):
        lines = "".join(
            f"M{axis.unit(c.time)} 1000V{round(1000 - 1000 * c.probability / highest)}"
            for c in summary.candidates
            if c.chosen == chosen
        )
        paths.append(
            f'<path class="{style}" vector-effect="non-scaling-stroke" '
            f'stroke-width="{thickness}" d="{lines}"/>\n'
        )
    return "".join(paths)


def _ceiling(probability: float) -> float:
    """Return the least of 1, 1/2, 1/5, 1/10, 1/20, ... that is not exceeded."""
    steps = [part * 0.1**power for power in range(6) for part in (1.0, 0.5, 0.2)]
    enough = [step for step in steps if step >= probability > 0.0]
    return min(enough, default=1.0)


def _marks(keyframes: Sequence[Keyframe], axis: _Axis) -> str:
    radius = 6 if len(keyframes) <= 40 else 4
    return "".join(
        f'<a class="mark" href="#k{number}"><title>{time_label(keyframe.time)}, '
        f"probability {percent(keyframe.probability)}</title>"
        f'<circle cx="{axis.percent(keyframe.time)}" cy="12" r="{radius}"/>'
        f'<circle class="reach" cx="{axis.percent(keyframe.time)}" cy="12" '
        f'r="{radius + 6}"/></a>\n'
        for number, keyframe in enumerate(keyframes, 1)
    )


def _legend(reasons: Sequence[tuple[str, str]], highest: float) -> str:
    items = [
        '<i class="dot"></i>chosen; leads to the picture',
        '<i class="bar"></i>probability that the model includes the frame '
        f"(full height: {100.0 * highest:g} %)",
        *(f'<i class="{s}"></i>dropped: {escape(reason)}' for reason, s in reasons),
    ]
    return f'<ul class="legend">{"".join(f"<li>{item}</li>" for item in items)}</ul>'


def _frames(keyframes: Sequence[Keyframe]) -> str:
    if not keyframes:
        return '<p class="note">No frame was chosen.</p>'
    few = " one" if len(keyframes) == 1 else " few" * (len(keyframes) <= 4)
    shape = f"--shape: {usual_aspect(keyframes):.4f}"
    figures = "\n".join(
        _figure(keyframe, number) for number, keyframe in enumerate(keyframes, 1)
    )
    return (
        "<section>\n<h2>Key frames</h2>\n"
        f'<div class="frames{few}" style="{shape}">\n'
        f"{figures}\n</div>\n</section>"
    )


def _figure(keyframe: Keyframe, number: int) -> str:
    picture = _shrunk(keyframe.image)
    height, width = picture.shape[:2]
    data = b64encode(encode_jpeg(picture, 80)).decode("ascii")
    time = time_label(keyframe.time)
    return (
        f'<figure id="k{number}"><img alt="Frame {keyframe.number} at {time}" '
        f'width="{width}" height="{height}" src="data:image/jpeg;base64,{data}">'
        f"<figcaption><b>{time}</b><span>frame {keyframe.number}</span>"
        f'<span title="probability that the model includes the frame">'
        f"{percent(keyframe.probability)}</span></figcaption></figure>"
    )


def _shrunk(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return fitted(image, _LARGEST, _LARGEST) if max(image.shape) > _LARGEST else image


def _dropped(decisions: Sequence[Decision], stretches: Sequence[_Stretch]) -> str:
    total = sum(stretch.frames for stretch in stretches)
    if not total:
        return '<p class="note">No frame was dropped.</p>'
    frames, places = Counter[str](), Counter[str]()
    for stretch in stretches:
        frames[stretch.reason] += stretch.frames
        places[stretch.reason] += 1
    rows = "\n".join(
        _row(escape(reason), frames[reason], len(decisions), places[reason])
        for reason, _ in _reasons(stretches)
    )
    return (
        f"<details>\n<summary>{count(total, 'frame')} dropped before the model "
        "chose</summary>\n<table>\n<thead><tr><th>Reason</th><th>Frames</th>"
        "<th>Share</th><th>Stretches</th></tr></thead>\n"
        f"<tbody>\n{rows}\n</tbody>\n<tfoot>"
        f"{_row('together', total, len(decisions), len(stretches))}</tfoot>\n"
        "</table>\n</details>"
    )


def _row(name: str, frames: int, looked_at: int, stretches: int) -> str:
    return (
        f'<tr><th scope="row">{name}</th><td>{frames:,}</td>'
        f"<td>{percent(frames / looked_at)}</td><td>{stretches:,}</td></tr>"
    )
