"""Weights and kernels drawn; matplotlib is imported only when one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from variegate.application.description.parts import KernelPart, Weight, strongest
from variegate.report.figures import COLOURS, new_figure
from variegate.report.words import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["WIDTH", "model_figure"]

#: Bars in one figure, at most.
MAX_BARS = 30

#: Inches: narrow enough to be read on a phone, where names are short.
WIDTH = 5.2

#: The colour of vector columns, in which it is a length that is drawn.
_VECTOR = "#008060"


@dataclass(frozen=True)
class _Chart:
    """Horizontal bars, from the top, with their values as text beside them."""

    names: Sequence[str]
    values: Sequence[float]
    numbers: Sequence[str]
    colours: Sequence[str]
    label: str

    @property
    def height(self) -> float:
        return 0.9 + 0.25 * max(len(self.names), 2)

    def draw(self, axes: Axes) -> None:
        places = np.arange(len(self.names))
        axes.barh(places, self.values, height=0.66, color=self.colours)
        axes.axvline(0.0, color="black", linewidth=0.8)
        axes.set_yticks(places, self.names, parse_math=False)
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(self.names) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.grid(axis="x", color="#dddddd", linewidth=0.8)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(self.label)
        for place, value, number in zip(places, self.values, self.numbers, strict=True):
            axes.annotate(
                number,
                (value, float(place)),
                xytext=(4 if value >= 0.0 else -4, 0),
                textcoords="offset points",
                ha="left" if value >= 0.0 else "right",
                va="center",
                fontsize=8,
            )
        _widen(axes, self.values)


def model_figure(
    weights: Sequence[Weight] = (),
    intercept: float = 0.0,
    parts: Sequence[KernelPart] = (),
) -> Figure:
    """Draw weights, the largest first, and below them the coefficients of a kernel.

    At most 30 bars are drawn of each, and a line says how many are left out; what is
    not given has no place.
    """
    charts = [_weights_chart(weights, intercept)] if weights else []
    charts += [_kernel_chart(parts)] if parts else []
    longest = max(len(name) for chart in charts for name in chart.names)
    width = WIDTH + 0.06 * max(longest - 18, 0)  # long names take no room from bars
    heights = [chart.height for chart in charts]
    figure, panels = new_figure(width, heights, panels=len(charts))
    for axes, chart in zip(panels, charts, strict=True):
        chart.draw(axes)
    return figure


def _weights_chart(weights: Sequence[Weight], intercept: float) -> _Chart:
    bars, note = strongest(weights, MAX_BARS)
    has_vectors = any(bar.n_features > 1 for bar in bars)
    below = [
        f"weight (intercept {intercept:.3g})",
        "green: the length of the weights of a vector" if has_vectors else "",
        note,
    ]
    return _Chart(
        [
            shortened(bar.name, 34)
            + (f" ({bar.n_features} numbers)" if bar.n_features > 1 else "")
            for bar in bars
        ],
        [bar.value for bar in bars],
        [_short_number(bar.value) for bar in bars],
        [_colour(bar) for bar in bars],
        "\n".join(line for line in below if line),
    )


def _colour(bar: Weight) -> str:
    if bar.n_features > 1:
        return _VECTOR
    return COLOURS["lme" if bar.value >= 0.0 else "mle"]


def _kernel_chart(parts: Sequence[KernelPart]) -> _Chart:
    left_out = 0
    if len(parts) > MAX_BARS:
        enough = sorted((part.weight for part in parts), reverse=True)[MAX_BARS - 1]
        shown = [part for part in parts if part.weight >= enough][:MAX_BARS]
        left_out, parts = len(parts) - len(shown), shown
    note = f"\n{left_out} smaller ones are left out" if left_out else ""
    values = [part.weight for part in parts]
    return _Chart(
        [part.label for part in parts],
        values,
        [f"{value:.2f}" if value >= 0.005 else "0" for value in values],
        [COLOURS["mle" if part.bandwidth is None else "lme"] for part in parts],
        f"share of the similarity{note}",
    )


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
