"""The plots of the synthetic experiments, one function a panel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paper.experiment import Record, Results
from paper.figures import MARKERS, NAMES
from paper.synthetic.settings import Settings
from paper.synthetic.summary import AXES
from variegate.report.figures import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: How far the points of a method are moved to the side, as a share of the axis, so
#: that error bars of methods that score alike stand beside each other.
_SHIFTS = {"oracle": 0.0, "lme": -0.009, "mle": 0.009}


def _line(axes: Axes, results: Results, figure: str, method: str, **style: Any) -> None:
    rows = [row for row in results[figure] if row["method"] == method]
    values = [row[AXES[figure]] for row in rows]
    moved = (max(values) / min(values)) ** _SHIFTS[method]  # the axis is logarithmic
    x = [value * moved for value in values]
    mean = [row["f"]["mean"] for row in rows]
    style = {"color": COLOURS[method], "linewidth": 1.8, **style}
    if method == "oracle":
        axes.plot(x, mean, **{"label": NAMES[method], **style})
    else:
        style = {"marker": MARKERS[method], "markersize": 5, "capsize": 3, **style}
        axes.errorbar(x, mean, [row["f"]["se"] for row in rows], **style)


def _leave_room(axes: Axes, share: float) -> None:
    """Leave room for a legend below the curves, as a share of their height."""
    low, high = axes.get_ylim()
    axes.set_ylim(low - share * (high - low), high)


def _finish(
    axes: Axes, title: str, values: Sequence[float], label: str, **legend: Any
) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()
    axes.set_xlabel(label)
    axes.set_ylabel("F-score on noisy test subsets")
    axes.set_title(title, fontsize=11)
    axes.legend(**{"frameon": False, "fontsize": 9, **legend})


def panel_1a(axes: Axes, settings: Settings, results: Results) -> None:
    """Draw what learning θ achieves with the true similarity."""
    for method in ("oracle", "lme", "mle"):
        _line(axes, results, "fig1a", method, label=NAMES[method])
    _leave_room(axes, 0.3)
    title = "1a: learning θ, similarity known"
    _finish(axes, title, settings.train_sizes, "training pairs", loc="lower right")


def panel_1b(axes: Axes, settings: Settings, results: Results) -> None:
    """Draw what learning θ achieves with a wrong similarity."""
    _line(axes, results, "fig1b", "oracle")
    for method in ("lme", "mle"):
        name = NAMES[method]
        _line(axes, results, "fig1b", method, label=name)
        style = {"label": f"{name}, intercept", "linestyle": ":", "alpha": 0.75}
        _line(axes, results, "fig1b_intercept", method, **style)
    title = f"1b: learning θ, similarity wrong ({settings.bandwidth_train_size} pairs)"
    label = "bandwidth σ of the wrong similarity"
    _finish(axes, title, settings.bandwidths, label, loc="lower left")


def panel_1c(axes: Axes, settings: Settings, results: Results) -> None:
    """Draw what learning θ and the similarity achieves."""
    _line(axes, results, "fig1c", "oracle")
    styles: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("fig1a", "true S", {"linestyle": "--", "alpha": 0.6, "marker": ""}),
        ("fig1c", "learned S", {}),
        ("fig1c_no_intercept", "no intercept", {"linestyle": ":", "alpha": 0.75}),
        ("fig1c_anchored", "anchored", {"linestyle": "-.", "alpha": 0.9}),
    )
    for method, short in (("lme", "margin"), ("mle", "likelihood")):
        for figure, name, style in styles:
            _line(axes, results, figure, method, label=f"{short}, {name}", **style)
    _leave_room(axes, 0.4)
    handles = axes.get_legend_handles_labels()[0]
    # The oracle below the first column, so that learners stand beside each other.
    handles.insert(len(styles), handles.pop(0))
    legend = {"handles": handles, "fontsize": 8.5, "ncols": 2}
    title, sizes = "1c: learning θ and the similarity", settings.train_sizes
    _finish(axes, title, sizes, "training pairs", loc="lower center", **legend)


def panel_clean(axes: Axes, settings: Settings, results: Results) -> None:
    """Draw figure 1a without noise."""
    for method in ("oracle", "lme", "mle"):
        _line(axes, results, "clean", method, label=NAMES[method])
    _leave_room(axes, 0.3)
    title = "no noise: learning θ, similarity known"
    _finish(axes, title, settings.train_sizes, "training pairs", loc="lower right")
    axes.set_ylabel("F-score")


def panel_gap(axes: Axes, settings: Settings, results: Results) -> None:
    """Draw what closes the gap of figure 1c: a pair of dots a variant."""
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
    size = settings.bandwidth_train_size
    axes.set_title(f"what closes the gap of 1c ({size} pairs)", fontsize=11)
    axes.legend(frameon=False, fontsize=9, loc="center right")


PANELS = {
    "fig1a": (panel_1a, (5.6, 3.8)),
    "fig1b": (panel_1b, (5.6, 3.8)),
    "fig1c": (panel_1c, (5.6, 4.4)),
    "clean": (panel_clean, (5.6, 3.8)),
    "gap": (panel_gap, (7.4, 4.2)),
}


def draw_all(
    settings: Settings, results: Results, records: list[Record]
) -> dict[str, Figure]:
    """Return every figure by name, and ``fig1`` with its three panels in a row."""
    drawn = {}
    for name, (panel, size) in PANELS.items():
        if name in results:
            figure, (axes,) = new_figure(*size)
            panel(axes, settings, results)
            drawn[name] = figure
    figure, row = new_figure(15.0, 4.4, panels=3)
    for panel, axes in zip((panel_1a, panel_1b, panel_1c), row, strict=True):
        panel(axes, settings, results)
    drawn["fig1"] = figure
    return drawn
