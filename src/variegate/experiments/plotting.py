"""The look that all figures share; matplotlib is imported only when one is drawn."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours that people with colour blindness can tell apart (Okabe and Ito).
COLOURS = {"lme": "#0072B2", "mle": "#D55E00", "oracle": "#333333"}
NAMES = {"lme": "large margin", "mle": "maximum likelihood", "oracle": "oracle"}
MARKERS = {"lme": "o", "mle": "s", "oracle": ""}


def new_figure(
    width: float = 5.6, height: float = 3.8, panels: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a row of axes, drawn without a window system."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "figures need matplotlib: pip install 'variegate[plot]'"
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained")
    row = [figure.add_subplot(1, panels, k + 1) for k in range(panels)]
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
