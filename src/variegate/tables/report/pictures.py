"""Figures of a fitted selector; matplotlib is imported only when one is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from variegate.application.description.figures import WIDTH, model_figure
from variegate.application.description.parts import kernel_parts
from variegate.report.figures import COLOURS, new_figure
from variegate.tables.report.facts import path_points, weights
from variegate.tuning.path import OmegaPath, draw_against_omega, draw_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from variegate.tables.selector import TableSelector

__all__ = ["all_figures", "learning_figures"]


def all_figures(selector: TableSelector) -> dict[str, Figure]:
    """Draw what there is of path, learning curve, weights and kernel.

    Each is narrow enough for a phone; what belongs together stands side by side where
    there is room.
    """
    path, record = selector.path_, selector.training_
    has_history = len(record["history"]["iteration"]) > 1
    parts = kernel_parts(selector.model_)
    has_path = path is not None and path_points(selector)
    found = {
        "path": _figure_of(draw_curve, path) if has_path else None,
        "omega": _figure_of(draw_against_omega, path) if has_path else None,
        **(learning_figures(record) if has_history else {}),
        "weights": model_figure(weights(selector), selector.model_.intercept_),
        "kernel": model_figure(parts=parts) if parts else None,
    }
    return {name: figure for name, figure in found.items() if figure is not None}


def _figure_of(draw: Callable[[Axes, OmegaPath], None], path: Any) -> Figure:
    figure, (axes,) = new_figure(WIDTH, 4.0)
    draw(axes, path)
    return figure


def learning_figures(record: Mapping[str, Any]) -> dict[str, Figure]:
    """Draw the objective of a training record and, where it is known, the F-score."""
    history = record["history"]
    is_stream = any(seen is not None for seen in history["n_seen"])
    steps = history["n_seen" if is_stream else "iteration"]
    has_f = any(f is not None for f in history["expected_f"])
    held_out = " on groups set aside" if has_f else ""
    drawn = {"learning": ("objective", f"objective{held_out}", COLOURS["lme"])}
    if has_f:
        label = f"expected F-score{held_out}"
        drawn["f-score"] = ("expected_f", label, COLOURS["mle"])
    found = {}
    for name, (values, label, colour) in drawn.items():
        figure, (axes,) = new_figure(WIDTH, 3.2)
        _curve(axes, steps, history[values], colour)
        axes.set_ylabel(label)
        axes.set_xlabel("groups seen" if is_stream else "iteration")
        axes.ticklabel_format(useOffset=False, style="plain")
        found[name] = figure
    return found


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
