"""The look that all figures share; matplotlib is imported only when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours that people with colour blindness can tell apart (Okabe and Ito).
COLOURS = {"lme": "#0072B2", "mle": "#D55E00", "oracle": "#333333"}
NAMES = {"lme": "large margin", "mle": "maximum likelihood", "oracle": "oracle"}
MARKERS = {"lme": "o", "mle": "s", "oracle": ""}


def new_figure(
    width: float = 5.6, height: float | Sequence[float] = 3.8, panels: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a row of axes, drawn without a window system.

    With several heights, the axes are below each other.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "figures need matplotlib: pip install 'variegate[plot]'"
        ) from error
    if isinstance(height, Sequence):
        figure = Figure(figsize=(width, sum(height)), layout="constrained")
        grid = figure.add_gridspec(panels, 1, height_ratios=height)
    else:
        figure = Figure(figsize=(width, height), layout="constrained")
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
