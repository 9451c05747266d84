"""The plots of the video experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from variegate.experiments.video.claims import fraction
from variegate.experiments.video.rows import HERO
from variegate.report.figures import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GREY = "#9a9a9a"
_LIGHT = "#c9c9c9"

#: Where names go of points that lie beside the path of ω.
_LABELS = {
    "MLE+MKR": ((-6, -12), "right"),
    "VSUMM1": ((2, 7), "left"),
    "VSUMM2": ((-6, -12), "right"),
}


def draw_all(results: dict[str, Any]) -> dict[str, Figure]:
    """Return every figure by the name of its file."""
    return {
        "table-2": _methods(results["rows"]),
        "figure-2": _precision_and_recall(results["rows"]),
        "steps": _steps(results["steps"]),
    }


def label(row: dict[str, Any]) -> str:
    """Return how a row is named."""
    if row["omega"] is None:
        return str(row["method"])
    return f"{row['method']}, ω = {fraction(row['omega'])}"


def _methods(rows: list[dict[str, Any]]) -> Figure:
    rows = sorted(rows, key=lambda row: row["f"])
    figure, (axes,) = new_figure(7.2, 0.26 * len(rows) + 1.0)
    values = [100 * row["f"] for row in rows]
    colours = [_colour(row["method"]) for row in rows]
    axes.barh(range(len(rows)), values, color=colours, height=0.72)
    for place, value in enumerate(values):
        axes.text(value + 0.4, place, f"{value:.1f}", va="center", fontsize=7.5)
    axes.set_yticks(range(len(rows)), [label(row) for row in rows], fontsize=8)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel("F-score against the users, mean over videos")
    axes.grid(visible=False)
    axes.tick_params(axis="y", length=0)
    return figure


def _colour(method: str) -> str:
    if method.startswith("LME"):
        return COLOURS["lme"]
    if method.startswith("MLE"):
        return COLOURS["mle"]
    return _LIGHT if method == "oracle" else _GREY


def _precision_and_recall(rows: list[dict[str, Any]]) -> Figure:
    figure, (axes,) = new_figure(6.6, 4.8)
    path = sorted(
        (row for row in rows if row["method"] == "LME+MKR"), key=lambda r: r["omega"]
    )
    axes.errorbar(
        [100 * row["recall"] for row in path],
        [100 * row["precision"] for row in path],
        xerr=[100 * (row["se"]["recall"] or 0.0) for row in path],
        yerr=[100 * (row["se"]["precision"] or 0.0) for row in path],
        color=COLOURS["lme"],
        marker="o",
        capsize=2,
        label="large margin, by ω",
    )
    for place, row in enumerate(path):
        # The last values of ω lie close together.
        drop = 12 * (place == len(path) - 1)
        axes.annotate(
            f"ω = {fraction(row['omega'])}",
            (100 * row["recall"], 100 * row["precision"]),
            xytext=(7, 5 - drop),
            textcoords="offset points",
            fontsize=8,
            color=COLOURS["lme"],
        )
    for row in rows:
        if row["method"] in ("LME+MKR", HERO) or "our implementation" in row["method"]:
            continue
        marker = "s" if row["method"] == "MLE+MKR" else "D"
        x, y = 100 * row["recall"], 100 * row["precision"]
        axes.plot([x], [y], marker=marker, color=_colour(row["method"]))
        offset, side = _LABELS.get(row["method"], ((6, -10), "left"))
        axes.annotate(
            row["method"],
            (x, y),
            xytext=offset,
            ha=side,
            textcoords="offset points",
            fontsize=8,
        )
    axes.margins(x=0.14, y=0.08)
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.set_xlabel("recall")
    axes.set_ylabel("precision")
    return figure


def _steps(steps: list[dict[str, Any]]) -> Figure:
    import textwrap

    figure, (axes,) = new_figure(8.6, 0.52 * len(steps) + 0.9)
    places = range(len(steps))[::-1]
    for score, colour, marker in (
        ("precision", COLOURS["mle"], "s"),
        ("recall", COLOURS["lme"], "o"),
        ("f", COLOURS["oracle"], "^"),
    ):
        axes.plot(
            [100 * row[score] for row in steps],
            places,
            color=colour,
            marker=marker,
            label="F" if score == "f" else score,
        )
    names = [textwrap.fill(row["method"], 58) for row in steps]
    axes.set_yticks(list(places), names, fontsize=8)
    axes.set_ylim(-0.6, len(steps) - 0.4)
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower left")
    axes.set_xlabel("mean over videos")
    return figure
