"""The plots of the document experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper.documents.rows import ABOUT
from paper.documents.settings import Setup
from paper.experiment import Record, Results
from paper.figures import SCORE_STYLES, annotate, draw_bars
from variegate.report.figures import COLOURS, new_figure
from variegate.tuning.path import format_omega

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_all(
    setup: Setup, results: Results, records: list[Record]
) -> dict[str, Figure]:
    """Return every figure by the name of its file."""
    figures = {}
    for name in ABOUT:
        rows = [row for row in results["rows"] if row["set"] == name]
        if rows:
            figures[name.replace(" ", "-")] = _methods(name, rows)
    if results["omega"]:
        figures["omega"] = _omega(results["omega"])
    return figures


def _methods(name: str, rows: list[Record]) -> Figure:
    rows = sorted(rows, key=lambda row: row["rouge_1_f"])
    figure, panels = new_figure(8.6, 0.24 * len(rows) + 1.3, panels=2)
    for axes, n in zip(panels, (1, 2), strict=True):
        values = [100 * row[f"rouge_{n}_f"] for row in rows]
        draw_bars(axes, [row["method"] for row in rows], values)
        axes.set_xlim(0.0, 1.08 * max(values))
        axes.set_xlabel(f"ROUGE-{n} F")
    panels[1].set_yticklabels([])
    figure.suptitle(f"{name}, {max(row['n_clusters'] for row in rows)} clusters")
    return figure


def _omega(rows: list[Record]) -> Figure:
    figure, (left, right) = new_figure(8.6, 3.6, panels=2)
    omegas = [row["omega"] for row in rows]
    for score, (colour, marker) in SCORE_STYLES.items():
        name = f"rouge_1_{score[0].lower()}"
        left.errorbar(
            omegas,
            [100 * row[name] for row in rows],
            [100 * (row["se"][name] or 0.0) for row in rows],
            color=colour,
            marker=marker,
            capsize=3,
            label=score,
        )
    left.set_xscale("log", base=2)
    left.set_xticks(omegas, [format_omega(omega) for omega in omegas])
    left.minorticks_off()
    left.set_xlabel("ω: what a missed sentence costs against one too many")
    left.set_ylabel("ROUGE-1")
    left.legend(frameon=False, fontsize=9, loc="upper center", ncols=3)
    low, high = left.get_ylim()
    left.set_ylim(low, high + 0.15 * (high - low))
    recall = [100 * row["rouge_1_r"] for row in rows]
    precision = [100 * row["rouge_1_p"] for row in rows]
    right.plot(recall, precision, color=COLOURS["lme"], marker="o")
    for row, x, y in zip(rows, recall, precision, strict=True):
        text = f"ω = {format_omega(row['omega'])}, {row['words']:.0f} words"
        annotate(right, text, x, y, (6, 4))
    right.margins(x=0.4, y=0.12)
    right.set_xlabel("ROUGE-1 recall")
    right.set_ylabel("ROUGE-1 precision")
    figure.suptitle("LME+MKR without a budget, topics left out of learning")
    return figure
