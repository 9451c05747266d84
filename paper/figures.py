"""Colours, names and bars that the plots share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from variegate.report.figures import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MARKERS", "NAMES", "SCORE_STYLES", "annotate", "colour_of", "draw_bars"]

#: Names and markers of methods.
NAMES = {"lme": "large margin", "mle": "maximum likelihood", "oracle": "oracle"}
MARKERS = {"lme": "o", "mle": "s", "oracle": ""}

_GREY = "#9a9a9a"
_LIGHT = "#c9c9c9"

#: The colour and the marker of a score.
SCORE_STYLES = {
    "precision": (COLOURS["mle"], "s"),
    "recall": (COLOURS["lme"], "o"),
    "F": (COLOURS["oracle"], "^"),
}


def colour_of(method: str) -> str:
    """Return the colour of a method: what is learned stands out."""
    if method[:3] in ("LME", "MLE"):
        return COLOURS[method[:3].lower()]
    return _LIGHT if method in ("oracle", "human") else _GREY


def draw_bars(axes: Axes, methods: Sequence[str], values: Sequence[float]) -> None:
    """Draw a bar for the score of each method, from below, in points."""
    places = range(len(methods))
    colours = [colour_of(method) for method in methods]
    axes.barh(places, values, color=colours, height=0.72)
    for place, value in enumerate(values):
        axes.text(value + 0.3, place, f"{value:.1f}", va="center", fontsize=7)
    axes.set_yticks(places, methods, fontsize=8)
    axes.set_ylim(-0.6, len(methods) - 0.4)
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)


def annotate(
    axes: Axes, text: str, x: float, y: float, offset: tuple[float, float], **style: Any
) -> None:
    """Write beside a point, ``offset`` from it in points."""
    style |= {"textcoords": "offset points", "fontsize": 8}
    axes.annotate(text, (x, y), xytext=offset, **style)
