"""The plots of the document experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from variegate.report.figures import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GREY = "#9a9a9a"
_LIGHT = "#c9c9c9"


def draw_all(results: dict[str, Any]) -> dict[str, Figure]:
    """Return every figure by the name of its file."""
    figures = {}
    for name in (
        "duc 2004 665b",
        "multiling english 250w",
        "multiling english 665b",
        "multiling all languages 250w",
        "fewsum 300c",
    ):
        rows = [row for row in results["rows"] if row["set"] == name]
        if rows:
            figures[name.replace(" ", "-")] = _methods(name, rows)
    if results["omega"]:
        figures["omega"] = _omega(results["omega"])
    return figures


def _methods(name: str, rows: list[dict[str, Any]]) -> Figure:
    rows = sorted(rows, key=lambda row: row["rouge_1_f"])
    figure, panels = new_figure(8.6, 0.24 * len(rows) + 1.3, panels=2)
    for axes, n in zip(panels, (1, 2), strict=True):
        values = [100 * row[f"rouge_{n}_f"] for row in rows]
        colours = [_colour(row["method"]) for row in rows]
        axes.barh(range(len(rows)), values, color=colours, height=0.72)
        for place, value in enumerate(values):
            axes.text(value + 0.2, place, f"{value:.1f}", va="center", fontsize=7)
        axes.set_yticks(range(len(rows)), [row["method"] for row in rows], fontsize=8)
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlim(0.0, 1.08 * max(values))
        axes.set_xlabel(f"ROUGE-{n} F")
        axes.grid(visible=False)
        axes.tick_params(axis="y", length=0)
    panels[1].set_yticklabels([])
    figure.suptitle(f"{name}, {max(row['n_clusters'] for row in rows)} clusters")
    return figure


def _colour(method: str) -> str:
    if method.startswith("LME"):
        return COLOURS["lme"]
    if method.startswith("MLE"):
        return COLOURS["mle"]
    return _LIGHT if method in ("oracle", "human") else _GREY


def _omega(rows: list[dict[str, Any]]) -> Figure:
    figure, (left, right) = new_figure(8.6, 3.6, panels=2)
    omegas = [row["omega"] for row in rows]
    styles = (
        ("p", "precision", COLOURS["mle"], "s"),
        ("r", "recall", COLOURS["lme"], "o"),
        ("f", "F", COLOURS["oracle"], "^"),
    )
    for letter, label, colour, marker in styles:
        left.errorbar(
            omegas,
            [100 * row[f"rouge_1_{letter}"] for row in rows],
            [100 * (row["se"][f"rouge_1_{letter}"] or 0.0) for row in rows],
            color=colour,
            marker=marker,
            capsize=3,
            label=label,
        )
    left.set_xscale("log", base=2)
    left.set_xticks(omegas, [_fraction(omega) for omega in omegas])
    left.minorticks_off()
    left.set_xlabel("ω: what a missed sentence costs against one too many")
    left.set_ylabel("ROUGE-1")
    left.legend(frameon=False, fontsize=9, loc="upper center", ncols=3)
    low, high = left.get_ylim()
    left.set_ylim(low, high + 0.15 * (high - low))
    right.plot(
        [100 * row["rouge_1_r"] for row in rows],
        [100 * row["rouge_1_p"] for row in rows],
        color=COLOURS["lme"],
        marker="o",
    )
    for row in rows:
        right.annotate(
            f"ω = {_fraction(row['omega'])}, {row['words']:.0f} words",
            (100 * row["rouge_1_r"], 100 * row["rouge_1_p"]),
            xytext=(6, 4),
            textcoords="offset points",
            fontsize=8,
        )
    right.margins(x=0.4, y=0.12)
    right.set_xlabel("ROUGE-1 recall")
    right.set_ylabel("ROUGE-1 precision")
    figure.suptitle("LME+MKR without a budget, topics left out of learning")
    return figure


def _fraction(omega: float) -> str:
    return f"{omega:g}" if omega >= 1 else f"1/{1 / omega:g}"
