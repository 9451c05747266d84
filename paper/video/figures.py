"""The plots of the video experiments."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from paper.experiment import Record, Results
from paper.figures import SCORE_STYLES, annotate, colour_of, draw_bars
from paper.learned import ROWS
from paper.video.pool import read_pool
from paper.video.rows import HERO, label
from paper.video.settings import Setup
from variegate.report.figures import COLOURS, new_figure
from variegate.tuning.path import format_omega
from variegate.video.reading import time_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Where names go of points that lie beside the path of ω.
_LABELS = {
    "MLE+MKR": ((-6, -12), "right"),
    "VSUMM1": ((2, 7), "left"),
    "VSUMM2": ((-6, -12), "right"),
}

#: Inches across a picture of figure 3.
_ACROSS = 1.2


def draw_all(
    setup: Setup, results: Results, records: list[Record]
) -> dict[str, Figure]:
    """Return every figure by the name of its file."""
    folder = Path(setup.test_data or setup.data)
    figures = {"table-2": _methods(results["rows"])}
    if not results["settings"]["rows"]:
        figures["figure-3"] = _storyboard(records, folder, results["storyboard"])
        figures["figure-2"] = _precision_and_recall(results["rows"])
        figures["steps"] = _steps(results["steps"])
    return figures


def _methods(rows: list[Record]) -> Figure:
    rows = sorted(rows, key=lambda row: row["f"])
    figure, (axes,) = new_figure(7.2, 0.26 * len(rows) + 1.0)
    draw_bars(
        axes,
        [label(row["method"], row["omega"]) for row in rows],
        [100 * row["f"] for row in rows],
    )
    axes.set_xlabel("F-score against the users, mean over videos")
    return figure


def _precision_and_recall(rows: list[Record]) -> Figure:
    figure, (axes,) = new_figure(6.6, 4.8)
    path = [row for row in rows if row["method"] == "LME+MKR"]
    path.sort(key=lambda row: float(row["omega"]))
    recall, precision = (
        [100 * row[s] for row in path] for s in ("recall", "precision")
    )
    axes.errorbar(
        recall,
        precision,
        xerr=[100 * (row["se"]["recall"] or 0.0) for row in path],
        yerr=[100 * (row["se"]["precision"] or 0.0) for row in path],
        color=COLOURS["lme"],
        marker="o",
        capsize=2,
        label="large margin, by ω",
    )
    for row, x, y in zip(path, recall, precision, strict=True):
        # The last values of ω lie close together.
        offset = (7, 5 - 12 * (row is path[-1]))
        text = f"ω = {format_omega(row['omega'])}"
        annotate(axes, text, x, y, offset, color=COLOURS["lme"])
    for row in rows:
        method = row["method"]
        if method in ("LME+MKR", HERO, *ROWS) or "our implementation" in method:
            continue
        x, y = 100 * row["recall"], 100 * row["precision"]
        marker = "s" if method == "MLE+MKR" else "D"
        axes.plot([x], [y], marker=marker, color=colour_of(method))
        offset, side = _LABELS.get(method, ((6, -10), "left"))
        annotate(axes, method, x, y, offset, ha=side)
    axes.margins(x=0.14, y=0.08)
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.set_xlabel("recall")
    axes.set_ylabel("precision")
    return figure


def _steps(steps: list[Record]) -> Figure:
    figure, (axes,) = new_figure(8.6, 0.52 * len(steps) + 0.9)
    places = range(len(steps))[::-1]
    for score, (colour, marker) in SCORE_STYLES.items():
        values = [100 * row[score.lower()] for row in steps]
        axes.plot(values, places, color=colour, marker=marker, label=score)
    names = [textwrap.fill(row["method"], 58) for row in steps]
    axes.set_yticks(list(places), names, fontsize=8)
    axes.set_ylim(-0.6, len(steps) - 0.4)
    axes.grid(axis="x", color="#dddddd", linewidth=0.8)
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower left")
    axes.set_xlabel("mean over videos")
    return figure


def _storyboard(records: list[Record], folder: Path, name: str) -> Figure:
    """Return figure 3: one video under the oracle, MLE and three values of ω."""
    video = next(video for video in read_pool(folder) if video.name == name)
    of_video = [r for r in records if r["judged"] == name and r["kind"] == "table"]
    omegas = sorted(r["omega"] for r in of_video if r["method"] == "LME+MKR")
    wanted: list[tuple[str, float | None]] = [("oracle", None), ("MLE+MKR", None)]
    wanted += [("LME+MKR", omega) for omega in _three(omegas)]
    shape = video.image(0).shape
    height = _ACROSS * shape[0] / shape[1] + 0.4
    most = max(len(r["frames"]) for r in of_video)
    figure, panels = new_figure(
        1.2 + _ACROSS * most, [height] * len(wanted), panels=len(wanted)
    )
    for axes, (method, omega) in zip(panels, wanted, strict=True):
        record = next(
            r for r in of_video if (r["method"], r["omega"]) == (method, omega)
        )
        text = method if omega is None else f"omega = {format_omega(omega)}"
        for place, frame in enumerate(record["frames"]):
            picture = video.image(frame)
            below = picture.shape[0] / picture.shape[1]
            axes.imshow(picture, extent=(place, place + 0.95, below, 0.0))
            time = time_label(video.frames[frame] / video.rate)
            axes.text(place, below, time, fontsize=7, va="top")
        axes.set_title(
            f"{text}: F {100 * record['runs'][0][2]:.0f}", fontsize=8, loc="left"
        )
        axes.set(xlim=(0.0, most), ylim=(shape[0] / shape[1] + 0.12, 0.0))
        axes.set_axis_off()
    return figure


def _three(omegas: list[float]) -> list[float]:
    """Return the paper's 1/64, 1 and 64 where they are, or what comes nearest."""

    def nearest(wanted: float) -> float:
        return min(omegas, key=lambda omega: abs(omega / wanted - 1.0))

    return sorted({nearest(wanted) for wanted in (1 / 64, 1.0, 64.0)})
