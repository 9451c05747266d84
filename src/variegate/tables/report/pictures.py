"""Figures of a fitted selector; matplotlib is imported only when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from variegate.application.description.figures import WIDTH, model_figure
from variegate.application.description.parts import kernel_parts
from variegate.report.figures import COLOURS, new_figure
from variegate.tables.report.facts import path_points, weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from variegate.tables.selector import TableSelector

__all__ = ["all_figures", "learning_figure"]


def all_figures(selector: TableSelector) -> dict[str, Figure]:
    """Draw what there is of path, learning curve, weights and kernel."""
    path, record = selector.path_, selector.training_
    has_history = len(record.get("history", {}).get("iteration", ())) > 1
    parts = kernel_parts(selector.model_)
    found = {
        "path": path.plot() if path is not None and path_points(selector) else None,
        "learning": learning_figure(record) if has_history else None,
        "weights": model_figure(weights(selector), selector.model_.intercept_),
        "kernel": model_figure(parts=parts) if parts else None,
    }
    return {name: figure for name, figure in found.items() if figure is not None}


def learning_figure(record: Mapping[str, Any]) -> Figure:
    """Draw the objective of a training record and, where it is known, the F-score."""
    history = record["history"]
    is_stream = any(seen is not None for seen in history["n_seen"])
    steps = history["n_seen" if is_stream else "iteration"]
    has_f = any(f is not None for f in history["expected_f"])
    figure, row = new_figure(9.4 if has_f else WIDTH, 3.2, panels=1 + has_f)
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
