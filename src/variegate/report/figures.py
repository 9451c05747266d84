"""The look that all figures share; matplotlib is imported only when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from variegate.report.fonts import figure_class

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours that people with colour blindness can tell apart (Okabe and Ito).
COLOURS = {"lme": "#0072B2", "mle": "#D55E00", "oracle": "#333333"}


def new_figure(
    width: float = 5.6, height: float | Sequence[float] = 3.8, panels: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a row of axes, drawn without a window system.

    With several heights, the axes are below each other.
    """
    try:
        new = figure_class()
    except ImportError as error:
        raise ImportError(
            "figures need matplotlib: pip install 'variegate[plot]'"
        ) from error
    if isinstance(height, Sequence):
        figure = new(figsize=(width, sum(height)), layout="constrained")
        grid = figure.add_gridspec(panels, 1, height_ratios=height)
    else:
        figure = new(figsize=(width, height), layout="constrained")
        grid = figure.add_gridspec(1, panels)
    row = [figure.add_subplot(grid[k]) for k in range(panels)]
    for axes in row:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd", linewidth=0.8)
        axes.set_axisbelow(True)
    return figure, row


def to_png(figure: Figure) -> bytes:
    """Return the figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160)
    return buffer.getvalue()


def as_svg(figure: Figure, name: str, about: str) -> str:
    """Return the figure as an element of a page.

    Text stays text, in the font of the page, whose style sheet also gives the colours
    that go with light and dark.  ``name`` is a word that no other figure of the page
    has: identifiers are made from it.  ``about`` says what it shows to those who cannot
    see it.
    """
    import matplotlib as mpl

    buffer = io.BytesIO()
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata=no_metadata, transparent=True)
    root = ElementTree.fromstring(buffer.getvalue())
    for element in root.iter():
        # A page knows what belongs to SVG without namespaces.
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {
            key.rpartition("}")[2]: value for key, value in element.items()
        }
        if element.tag == "g":
            # Groups have the same names in all figures, and nothing refers to them.
            element.attrib.pop("id", None)
    width, height = (72.0 * inches for inches in figure.get_size_inches())
    root.attrib = {
        "class": "figure",
        "viewBox": f"0 0 {width:g} {height:g}",
        "role": "img",
        "style": f"max-width: {width * 96.0 / 72.0:.0f}px",
        "aria-label": about,
    }
    return ElementTree.tostring(root, encoding="unicode")
