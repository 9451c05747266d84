"""Figures of a fitted selector; matplotlib is imported only when one is drawn."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from variegate._html import escape
from variegate.experiments.plotting import COLOURS, new_figure, to_png
from variegate.tables.report_facts import (
    kernel_parts,
    path_points,
    shortened,
    strongest,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from variegate.tables.selector import TableSelector

__all__ = [
    "as_png",
    "as_svg",
    "kernel_figure",
    "learning_figure",
    "path_figure",
    "weights_figure",
]

#: Bars in one figure, at most.
MAX_BARS = 30

#: Inches: narrow enough to be read on a phone, where names are short.
_WIDTH = 5.2

#: Colours of the figures that follow the light or dark of a page.
_ON_A_PAGE = {
    "#000000": "var(--ink)",
    "#333333": "var(--ink)",
    "#ffffff": "var(--paper)",
    "#dddddd": "var(--rule)",
    "#0072b2": "var(--blue)",
    "#9ccbe6": "var(--pale)",
    "#d55e00": "var(--orange)",
    "#008060": "var(--green)",
}

#: The colour of vector columns, in which it is a length that is drawn.
_VECTOR = "#008060"


def weights_figure(selector: TableSelector) -> Figure:
    """Draw the weight of every quality feature, the largest first.

    Of a vector column of more than eight numbers, the length of its weights is drawn.
    At most 30 bars are, and a line says how many are left out.
    """
    bars, note = strongest(selector, MAX_BARS)
    values = [bar.value for bar in bars]
    colours = [
        _VECTOR
        if bar.n_features > 1
        else COLOURS["lme"]
        if bar.value >= 0.0
        else COLOURS["mle"]
        for bar in bars
    ]
    names = [
        shortened(bar.name, 34)
        + (f" ({bar.n_features} numbers)" if bar.n_features > 1 else "")
        for bar in bars
    ]
    numbers = [_short_number(value) for value in values]
    figure, axes = _bars(names, values, numbers, colours)
    axes.axvline(0.0, color="black", linewidth=0.8)
    _widen(axes, values)
    below = [f"weight (intercept {selector.model_.intercept_:.3g})"]
    if any(bar.n_features > 1 for bar in bars):
        below.append("green: the length of the weights of a vector")
    axes.set_xlabel("\n".join([*below, *([note] if note else [])]))
    return figure


def kernel_figure(selector: TableSelector) -> Figure | None:
    """Draw the coefficients of the kernel, or nothing if it has none."""
    parts = kernel_parts(selector)
    if not parts:
        return None
    left_out = 0
    if len(parts) > MAX_BARS:
        enough = sorted((part.weight for part in parts), reverse=True)[MAX_BARS - 1]
        shown = [part for part in parts if part.weight >= enough][:MAX_BARS]
        left_out, parts = len(parts) - len(shown), shown
    values = [part.weight for part in parts]
    colours = [
        COLOURS["lme"] if part.bandwidth is not None else COLOURS["mle"]
        for part in parts
    ]
    numbers = [f"{value:.2f}" if value >= 0.005 else "0" for value in values]
    names = [part.label for part in parts]
    figure, axes = _bars(names, values, numbers, colours)
    _widen(axes, values)
    note = f"\n{left_out} smaller ones are left out" if left_out else ""
    axes.set_xlabel(f"share of the similarity{note}")
    return figure


def _bars(
    names: Sequence[str],
    values: Sequence[float],
    numbers: Sequence[str],
    colours: Sequence[str],
) -> tuple[Figure, Axes]:
    """Draw horizontal bars from the top, with their values as text beside them."""
    longest = max(map(len, names))
    width = _WIDTH + 0.06 * max(longest - 18, 0)  # long names take no room from bars
    figure, (axes,) = new_figure(width, 0.9 + 0.25 * max(len(names), 2))
    places = np.arange(len(names))
    axes.barh(places, values, height=0.66, color=colours)
    axes.set_yticks(places, names, parse_math=False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.spines["left"].set_visible(False)
    for place, value, number in zip(places, values, numbers, strict=True):
        axes.annotate(
            number,
            (value, place),
            xytext=(4 if value >= 0.0 else -4, 0),
            textcoords="offset points",
            ha="left" if value >= 0.0 else "right",
            va="center",
            fontsize=8,
        )
    return figure, axes


def _short_number(value: float) -> str:
    text = f"{value:.2f}" if 0.005 <= abs(value) < 100.0 else f"{value:.2g}"
    return text.replace("-", "−")


def _widen(axes: Axes, values: Sequence[float]) -> None:
    """Leave room for the numbers beside the bars."""
    low, high = min(0.0, *values), max(0.0, *values)
    span = (high - low) or 1.0
    axes.set_xlim(
        low - (0.2 * span if low < 0.0 else 0.0),
        high + (0.2 * span if high > 0.0 or low == high else 0.0),
    )


def learning_figure(record: Mapping[str, Any]) -> Figure:
    """Draw the objective as learning went on and, where it is known, the F-score.

    Parameters
    ----------
    record : mapping
        ``selector.training_``.
    """
    history = record["history"]
    is_stream = any(seen is not None for seen in history["n_seen"])
    steps = history["n_seen" if is_stream else "iteration"]
    has_f = any(f is not None for f in history["expected_f"])
    figure, row = new_figure(9.4 if has_f else _WIDTH, 3.2, panels=1 + has_f)
    _curve(row[0], steps, history["objective"], COLOURS["lme"])
    held_out = " on held-out groups" if has_f else ""
    row[0].set_ylabel(f"objective{held_out}")
    if has_f:
        _curve(row[1], steps, history["expected_f"], COLOURS["mle"])
        row[1].set_ylabel(f"expected F-score{held_out}")
    for axes in row:
        axes.set_xlabel("groups seen" if is_stream else "iteration")
        axes.ticklabel_format(useOffset=False, style="plain")
    return figure


def _curve(
    axes: Axes, steps: Sequence[Any], values: Sequence[Any], colour: str
) -> None:
    known = [
        (step, value)
        for step, value in zip(steps, values, strict=True)
        if step is not None and value is not None
    ]
    marker = "o-" if len(known) <= 60 else "-"
    axes.plot(*zip(*known, strict=True), marker, color=colour, ms=3.5, lw=1.6)


def path_figure(selector: TableSelector) -> Figure | None:
    """Draw precision and recall over omega, or nothing where there is no path."""
    if selector.path_ is None or not path_points(selector):
        return None
    return selector.path_.plot()


@contextmanager
def _without_glyph_warnings() -> Iterator[None]:
    # Names may be in scripts that matplotlib's own font lacks.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not sup")
        yield


def as_png(figure: Figure) -> bytes:
    """Return the figure as the bytes of a PNG file."""
    with _without_glyph_warnings():
        return to_png(figure)


def as_svg(figure: Figure, name: str, about: str) -> str:
    """Return the figure as an element for a page.

    Text stays text, in the font of the page; colours are variables of its style; every
    identifier starts with ``name``, so that several figures can be on one page.

    Parameters
    ----------
    figure : Figure
    name : str
        A word.
    about : str
        What it shows, for those who cannot see it.
    """
    import matplotlib as mpl

    buffer = io.StringIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with (
        mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}),
        _without_glyph_warnings(),
    ):
        figure.savefig(buffer, format="svg", metadata=no_metadata, transparent=True)
    text = buffer.getvalue()
    inside = text[text.index(">", text.index("<svg")) + 1 :].strip()
    used = set(re.findall(r"(?:url\(#|xlink:href=\"#)([^)\"]+)", inside))
    # Only in tags: names of columns may look like anything.
    inside = re.sub(r"<[^>]*>", lambda tag: _page_tag(tag[0], name, used), inside)
    width, height = (72.0 * inches for inches in figure.get_size_inches())
    return (
        f'<svg class="figure" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'style="max-width: {width * 96.0 / 72.0:.0f}px" '
        f'aria-label="{escape(about)}">\n{inside}'
    )


def _page_tag(tag: str, name: str, used: set[str]) -> str:
    """Return a tag with colours of the page and identifiers of its own."""
    tag = " ".join(tag.split())
    tag = tag.replace("xlink:href=", "href=")
    tag = re.sub(r"#[0-9a-f]{6}\b", lambda c: _ON_A_PAGE.get(c[0], c[0]), tag)
    tag = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", tag)
    tag = re.sub(
        r" id=\"([^\"]*)\"",
        lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "",
        tag,
    )
    return re.sub(r"(url\(#|href=\"#)", rf"\g<1>{name}-", tag)
