"""Figures of a fitted selector; matplotlib is imported only when one is drawn."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from variegate.application.description import figures
from variegate.application.description.parts import kernel_parts
from variegate.report.figures import COLOURS, new_figure, to_png
from variegate.report.html import escape
from variegate.tables.report.facts import path_points, weights

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


def weights_figure(selector: TableSelector) -> Figure:
    """Draw the weight of every quality feature, the largest first."""
    return figures.weights_figure(weights(selector), selector.model_.intercept_)


def kernel_figure(selector: TableSelector) -> Figure | None:
    """Draw the coefficients of the kernel, or nothing if it has none."""
    return figures.kernel_figure(kernel_parts(selector.model_))


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
    figure, row = new_figure(9.4 if has_f else figures.WIDTH, 3.2, panels=1 + has_f)
    _curve(row[0], steps, history["objective"], COLOURS["lme"])
    held_out = " on groups set aside" if has_f else ""
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
