"""Draw repetition against F-score for ``second_page.py``."""

from __future__ import annotations

import json

import numpy as np

from variegate.report.figures import new_figure, to_png

#: Points whose F is lower than the best by more are not shown.
SHOWN = 0.035
#: Colour, line and marker of each method; a knob moves along a line.
STYLES = {
    "relevance order": ("#333333", "", "X"),
    "MMR again on the rest": ("#D55E00", ":", "s"),
    "DPP again on the rest": ("#0072B2", ":", "o"),
    "learned DPP again on the rest": ("#009E73", ":", "^"),
    "near copies dropped, then top": ("#999999", "-", "v"),
    "near copies dropped, then MMR": ("#CC79A7", "-", "D"),
    "MMR, given=shown": ("#D55E00", "-", "s"),
    "DPP, given=shown": ("#0072B2", "-", "o"),
    "learned DPP, given=shown": ("#009E73", "-", "^"),
}


def best_points(points):
    """Return points (n, 2) that no other one beats in both, sorted."""
    kept = [
        (x, y)
        for x, y in points
        if not any((a <= x and b > y) or (a < x and b >= y) for a, b in points)
    ]
    return np.array(sorted(kept))


def draw(folder):
    """Write second-page.png from the JSON files of a folder."""
    files = sorted(folder.glob("second-page-*.json"), reverse=True)
    figure, panels = new_figure(4.6 * len(files), 3.9, panels=len(files))
    for axes, file in zip(panels, files, strict=True):
        curves = json.loads(file.read_text())["curves"]
        best = max(one["f"] for curve in curves.values() for one in curve)
        for name, (colour, line, marker) in STYLES.items():
            points = np.array([(one["words"], one["f"]) for one in curves[name]])
            if name == "near copies dropped, then MMR":
                points = best_points(points)
            points = points[points[:, 1] > best - SHOWN]
            look = f"{marker}{line}" if line else marker
            face = "white" if line == ":" else colour
            axes.plot(
                *points.T,
                look,
                color=colour,
                markerfacecolor=face,
                markersize=5 if line else 9,
                linewidth=1.3,
                zorder=2 if line else 3,
                label=name,
            )
        axes.set_title(file.stem.removeprefix("second-page-"), fontsize=11)
        axes.set_xlabel("share of words that one earlier item has")
    panels[0].set_ylabel("F of four pages")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9
    )
    (folder / "second-page.png").write_bytes(to_png(figure))
