"""The plots of the synthetic experiments, one function a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from variegate.experiments.plotting import COLOURS, MARKERS, NAMES, new_figure
from variegate.experiments.synthetic.protocol import Protocol
from variegate.experiments.synthetic.summary import AXES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _line(
    axes: Axes,
    results: dict[str, Any],
    figure: str,
    method: str,
    *,
    label: str | None = None,
    **style: Any,
) -> None:
    rows = [row for row in results[figure] if row["method"] == method]
    axes.errorbar(
        [row[AXES[figure]] for row in rows],
        [row["f"]["mean"] for row in rows],
        [row["f"]["se"] for row in rows],
        label=label,
        **{
            "color": COLOURS[method],
            "marker": MARKERS[method],
            "markersize": 5,
            "capsize": 3,
            "linewidth": 1.8,
            **style,
        },
    )


def _log_axis(axes: Axes, values: list[float], label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()
    axes.set_xlabel(label)
    axes.set_ylabel("F-score on noisy test subsets")


def figure_1a(protocol: Protocol, results: dict[str, Any]) -> Figure:
    """Learning θ with the true similarity, against the number of training pairs."""
    figure, axes = new_figure()
    for method in ("oracle", "lme", "mle"):
        _line(axes, results, "fig1a", method, label=NAMES[method])
    _log_axis(axes, list(protocol.train_sizes), "training pairs")
    axes.set_title("1a: learning θ, similarity known", fontsize=11)
    axes.legend(frameon=False, loc="lower right")
    return figure


def figure_1b(protocol: Protocol, results: dict[str, Any]) -> Figure:
    """Learning θ with a wrong similarity, against its bandwidth."""
    figure, axes = new_figure()
    _line(axes, results, "fig1b", "oracle", label=NAMES["oracle"])
    for method in ("lme", "mle"):
        _line(axes, results, "fig1b", method, label=NAMES[method])
    for method in ("lme", "mle"):
        _line(
            axes,
            results,
            "fig1b_intercept",
            method,
            label=f"{NAMES[method]}, intercept",
            linestyle=":",
            alpha=0.75,
        )
    _log_axis(axes, list(protocol.bandwidths), "bandwidth σ of the wrong similarity")
    axes.set_title(
        f"1b: learning θ, similarity wrong ({protocol.bandwidth_train_size} pairs)",
        fontsize=11,
    )
    axes.legend(frameon=False, fontsize=8.5, loc="lower left")
    return figure


def figure_1c(protocol: Protocol, results: dict[str, Any]) -> Figure:
    """Learning θ and the similarity, against the number of training pairs."""
    figure, axes = new_figure(6.4, 4.2)
    _line(axes, results, "fig1c", "oracle", label=NAMES["oracle"])
    for method in ("lme", "mle"):
        _line(
            axes,
            results,
            "fig1a",
            method,
            label=f"{NAMES[method]}, true S",
            linestyle="--",
            alpha=0.6,
            marker="",
        )
    for method in ("lme", "mle"):
        _line(axes, results, "fig1c", method, label=f"{NAMES[method]}, learned S")
    for method in ("lme", "mle"):
        _line(
            axes,
            results,
            "fig1c_no_intercept",
            method,
            label=f"{NAMES[method]}, learned S, no intercept",
            linestyle=":",
            alpha=0.75,
        )
    _log_axis(axes, list(protocol.train_sizes), "training pairs")
    axes.set_title("1c: learning θ and the similarity", fontsize=11)
    figure.legend(
        *axes.get_legend_handles_labels(),
        frameon=False,
        fontsize=8.5,
        loc="outside lower center",
        ncols=2,
    )
    return figure


def figure_clean(protocol: Protocol, results: dict[str, Any]) -> Figure:
    """Figure 1a without noise."""
    figure, axes = new_figure()
    for method in ("lme", "mle"):
        _line(axes, results, "clean", method, label=NAMES[method])
    _log_axis(axes, list(protocol.train_sizes), "training pairs")
    axes.set_ylabel("F-score (no noise anywhere)")
    axes.set_title("without noise: learning θ, similarity known", fontsize=11)
    axes.legend(frameon=False, loc="lower right")
    return figure


def figure_gap(protocol: Protocol, results: dict[str, Any]) -> Figure:
    """Draw what closes the gap of figure 1c: one row of dots a variant."""
    figure, axes = new_figure(7.4, 4.2)
    names = list(dict.fromkeys(row["variant"] for row in results["gap"]))
    for method, shift in (("lme", -0.12), ("mle", 0.12)):
        rows = [row for row in results["gap"] if row["method"] == method]
        axes.errorbar(
            [row["f"]["mean"] for row in rows],
            [names.index(row["variant"]) + shift for row in rows],
            xerr=[row["f"]["se"] for row in rows],
            fmt=MARKERS[method],
            color=COLOURS[method],
            capsize=3,
            label=NAMES[method],
        )
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.set_xlabel("F-score on noisy test subsets")
    axes.set_title(
        f"what closes the gap of 1c ({protocol.bandwidth_train_size} pairs)",
        fontsize=11,
    )
    axes.legend(frameon=False, loc="lower left", fontsize=9)
    return figure


FIGURES = {
    "fig1a": figure_1a,
    "fig1b": figure_1b,
    "fig1c": figure_1c,
    "clean": figure_clean,
    "gap": figure_gap,
}
