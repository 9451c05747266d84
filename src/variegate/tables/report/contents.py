"""Pages and Markdown of a report: contents by the names of ``contents.jinja``."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from variegate.application.description import WIDTH, model_figure
from variegate.application.model_facts import Weight, kernel_parts, largest_weights
from variegate.files.atomic import write_atomic
from variegate.report.figures import COLOURS, new_figure, to_png
from variegate.report.page import Cell, Row, render, render_markdown
from variegate.report.wording import count, one_line, percent
from variegate.tables.evaluation import NEAR_COPY, Evaluation, Interval
from variegate.tables.report import facts
from variegate.tables.report.description import (
    MOST_FEATURES,
    KindTable,
    kind_tables,
    metric_tables,
    row_name,
)
from variegate.tables.report.gathering import ExampleGroup, ExampleRow, Report
from variegate.tuning.path import (
    PathPoint,
    draw_against_omega,
    draw_curve,
    format_omega,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from variegate.tables.selector import TableSelector

_MARKS = {"right": "✔", "wrong": "✗", "missed": "○", "left out": "·"}

#: Scores in a comparison.
_COMPARED = ("f", "precision", "recall", "size")

#: Scores over rows, and measures of how alike they are.
_DIVERSITY_NAMES = {
    "precision": "Precision of rows",
    "recall": "Recall of rows",
    "similarity": "Similarity of two rows",
    "copies": "Near copies",
    "kinds": "Kinds",
}

#: Weights that are listed where a table cannot be folded.
_MOST = 30


def html_page(report: Report) -> str:
    """Return a report as one HTML page, which loads nothing, to be written as UTF-8."""
    return render("tables", "report.html", **_report_context(report))


def markdown(report: Report) -> tuple[str, dict[str, bytes]]:
    """Return the text of a Markdown file, and by name the PNG files that it shows."""
    shown = _report_context(report)
    files = {f"{name}.png": to_png(figure) for name, figure in shown["figures"].items()}
    return render_markdown("tables", "report.md", **shown), files


def write_markdown(report: Report, folder: Path) -> None:
    """Write ``report.md`` and its pictures into a folder, made where it is missing."""
    words, files = markdown(report)
    folder.mkdir(parents=True, exist_ok=True)
    # The pictures first, so that no link is ever broken.
    for name, content in files.items():
        write_atomic(folder / name, content)
    write_atomic(folder / "report.md", words)


def _report_context(report: Report) -> dict[str, Any]:
    """Return the values for a report's templates, numbers as text, figures by name."""
    selector = report.selector
    about = selector.describe()
    columns, compared = about.section("columns"), about.section("compared models")
    status = selector.model_.solver_result_.status
    parts = kernel_parts(selector.model_)
    every = facts.weights(selector, joins_vectors=False)
    few, left_out = largest_weights(about.weights, _MOST)
    return {
        "title": f"Model learned from {one_line(report.table)}",
        "verdict": facts.verdict(selector, report.comparison),
        "headings": [],
        "facts": about.section("training data").facts,
        "figures": all_figures(selector),
        "columns": [Row(list(map(one_line, row))) for row in columns.rows],
        "empty_cells": columns.words[0],
        "compared_heads": [(facts.SCORE_NAMES[n], "number") for n in _COMPARED],
        "score_heads": [(name, "number") for name in facts.SCORE_NAMES.values()],
        "scores": [
            _score_row(name, interval)
            for name, interval in facts.held_out_scores(selector).items()
        ],
        "comparison": report.comparison and _comparison_context(report.comparison),
        "compared": [Row(list(row)) for row in compared.rows[1:]],
        "about_compared": " ".join(compared.words),
        "about_path": facts.about_path(selector),
        "points": [
            _point_row(point, point.omega == selector.omega_)
            for point in facts.path_points(selector)
        ],
        "ended": f"{status[:1].upper()}{status[1:]}.",
        "n_weights": len(every),
        "weights": _weight_rows(selector, every),
        "strongest": _weight_rows(selector, few),
        "left_out": left_out,
        "shares": "; ".join(f"{part.label}: {part.weight:.3f}" for part in parts),
        "typical": report.typical,
        "same": _similarity_context(selector, report.typical),
        "shown": [(one_line(name), "cell") for name in report.show or ("Row",)],
        "groups": [_group_context(group) for group in report.examples],
        "training": about.section("training").facts,
        "commands": commands(report.model),
    }


def commands(model: str) -> str:
    """Return shell and Python commands that use the model file ``model``, as text."""
    quoted, name = shlex.quote(model), json.dumps(model, ensure_ascii=False)
    return (
        f"variegate select new.parquet --model {quoted} -o chosen.parquet\n"
        f"variegate describe {quoted}\n\n"
        "import variegate as vg\n"
        f'chosen = vg.load({name}).select("new.parquet")'
    )


def _interval_cell(interval: Interval) -> Cell:
    """Return a cell that draws an interval and its mean."""
    return Cell(span=(interval.low, interval.high, interval.mean))


def _score_row(name: str, interval: Interval) -> Row:
    """Return a row for the score ``name``, a key of ``facts.SCORE_NAMES``.

    Cells: its title, mean, interval as text, and interval drawn (empty for the size).
    """
    mean = facts.score_text(name, interval.mean)
    ends = facts.interval_text(name, interval)
    drawn = "" if name == "size" else _interval_cell(interval)
    return Row([facts.SCORE_NAMES[name], mean, ends, drawn])


def _comparison_context(comparison: Evaluation) -> dict[str, Any]:
    """Return "scores" (rows), "model" (the first), "groups", "wanted" and diversity."""
    intervals = comparison.intervals()
    model = next(iter(intervals))
    less = comparison.differences(model)
    rows = []
    for name, found in intervals.items():
        f, *others = (_rate_cell(score, found[score]) for score in _COMPARED)
        gain = _difference_cell(less[name]["f"]) if name in less else ""
        cells = [one_line(name), f, _interval_cell(found["f"]), gain, *others]
        rows.append(Row(cells, "chosen" if name == model else ""))
    return {
        **_diversity_context(comparison),
        "model": one_line(model),
        "groups": count(comparison.n_groups, "group"),
        "wanted": f"{comparison.wanted_size:.3g}",
        "scores": rows,
    }


def _diversity_context(comparison: Evaluation) -> dict[str, Any]:
    """Return the contents of the diversity table: its rows, heads and legend."""
    over_rows, diversities = comparison.over_rows(), comparison.diversities()
    known = {"precision", "recall"}.union(*diversities.values())
    names = {n: words for n, words in _DIVERSITY_NAMES.items() if n in known}
    rows = []
    for name, found in diversities.items():
        scores = {**found, **over_rows.get(name, {})}
        style = "chosen" if name == comparison.reference else ""
        cells = [_rate_cell(score, scores.get(score)) for score in names]
        rows.append(Row([one_line(name), *cells], style))
    return {
        "diversity": rows,
        "diversity_heads": [(words, "number") for words in names.values()],
        "near_copy": NEAR_COPY,
        "has_kinds": "kinds" in names,
    }


def _rate_cell(name: str, interval: Interval | None) -> Cell | str:
    """Return the mean of a score with its interval below; empty for None and NaN."""
    if interval is None or math.isnan(interval.mean):
        return ""
    return Cell(
        facts.score_text(name, interval.mean),
        facts.interval_text(name, interval),
        below=True,
    )


def _difference_cell(interval: Interval) -> Cell:
    """Return by how much a method is above the model, marked if that is clear.

    ``interval`` is the difference of scores, the model minus the method.
    """
    mean, high, low = (-value for value in interval)
    mark = "▲" if low > 0.0 else "▼" if high < 0.0 else "≈"
    style = "same" if mark == "≈" else ""
    return Cell(
        f"{mean:+.3f} {mark}", f"{low:+.3f} to {high:+.3f}", below=True, style=style
    )


def _point_row(point: PathPoint, is_chosen: bool) -> Row:
    """Return a row for one omega: its scores, ± standard errors; mark a chosen one."""
    cells: list[Cell | str] = [format_omega(point.omega) + " (chosen)" * is_chosen]
    for name in facts.SCORE_NAMES:
        error = getattr(point, f"{name}_error")
        # The error of a mean over one group is not known.
        beside = "" if math.isnan(error) else f"± {facts.score_text(name, error)}"
        cells.append(Cell(facts.score_text(name, getattr(point, name)), beside))
    return Row(cells, "chosen" if is_chosen else "")


def _weight_rows(selector: TableSelector, weights: Iterable[Weight]) -> list[Row]:
    """Return a row for each weight and the intercept: name, value, training rows."""
    rows = []
    for one in [*weights, Weight("(intercept)", selector.model_.intercept_)]:
        many = f" (length of {one.n_features})" if one.n_features > 1 else ""
        n_rows = "" if one.n_rows is None else f"{one.n_rows:,}"
        rows.append(Row([one_line(one.name) + many, f"{one.value:.5g}", n_rows]))
    return rows


def _group_context(group: ExampleGroup) -> dict[str, Any]:
    """Return an example group: name, notes (F-score and counts), and rows."""
    found = Counter(map(_outcome, group.rows))
    tally = ", ".join(f"{found[word]} {word}" for word in ("right", "wrong", "missed"))
    return {
        "name": one_line(group.name),
        "notes": [f"F-score {group.f:.3f}", tally],
        "rows": [_example_row(row) for row in group.rows],
    }


def _outcome(row: ExampleRow) -> str:
    """Return "right" or "wrong" if chosen; "missed" (a wanted row) or "left out"."""
    if row.rank:
        return "right" if row.is_wanted else "wrong"
    return "missed" if row.is_wanted else "left out"


def _example_row(row: ExampleRow) -> Row:
    """Return a row: outcome, rank, probability, and the cells of an example row."""
    word = _outcome(row)
    chance = Cell(percent(row.probability), share=row.probability)
    rank = str(row.rank) if row.rank else ""
    mark = Cell(word, mark=_MARKS[word])
    return Row(
        [mark, rank, chance, *row.cells], "other" if word == "left out" else word
    )


def _similarity_context(
    selector: TableSelector, cells: Mapping[int, Sequence[str]]
) -> dict[str, Any]:
    """Return tables of kinds and metrics; ``cells`` are texts by typical row number."""
    return {
        "kinds": [
            {
                "title": one_line(table.block or ""),
                "words": table.words,
                "has_traits": table.has_traits,
                "rows": _kind_rows(table),
                "typical": _typical_rows(table, cells),
            }
            for table in kind_tables(selector)
        ],
        "metrics": [
            {
                "title": one_line(block or ""),
                "rows": [
                    Row([one_line(name), Cell(percent(share), share=share)])
                    for name, share in shares[:MOST_FEATURES]
                ],
            }
            for block, shares in metric_tables(selector)
        ],
    }


def _kind_rows(table: KindTable) -> list[Row]:
    """Return rows of kinds: number, traits, share, mean rows in a group, and chosen."""
    rows = []
    for number, share, offered, chosen, common, _ in table.rows:
        before = [number, common] if table.has_traits else [number]
        rows.append(Row([*before, Cell(percent(share), share=share), offered, chosen]))
    return rows


def _typical_rows(table: KindTable, cells: Mapping[int, Sequence[str]]) -> list[Row]:
    """Return a row for each typical row: the kind's number, if first in it, and cells.

    ``cells`` are by row number, from 0; a row without any shows its name.
    """
    rows = []
    for number, *_, typical in table.rows:
        for place, row in enumerate(typical):
            shown = cells.get(row["row"] - 1, (row_name(row),))
            rows.append(Row(["" if place else number, *shown], "more" * bool(place)))
    return rows


# Figures ------------------------------------------------------------------------------


def all_figures(selector: TableSelector) -> dict[str, Figure]:
    """Draw figures by name, as far as there is data, narrow enough for a phone.

    "path" and "omega" (precision and recall), "learning" (objective), "weights" and
    "kernel".
    """
    path, record, model = selector.path_, selector.training_, selector.model_
    found: dict[str, Figure] = {}
    if path is not None and facts.path_points(selector):
        for name, draw in {"path": draw_curve, "omega": draw_against_omega}.items():
            found[name], (axes,) = new_figure(WIDTH, 4.0)
            draw(axes, path)
    if len(record["history"]["iteration"]) > 1:
        found["learning"] = learning_figure(record)
    found["weights"] = model_figure(facts.weights(selector), model.intercept_)
    parts = kernel_parts(model)
    if parts:
        found["kernel"] = model_figure(parts=parts)
    return found


def learning_figure(record: Mapping[str, Any]) -> Figure:
    """Draw the objective of a training record by iteration, or by groups seen."""
    history = record["history"]
    is_stream = any(seen is not None for seen in history["n_seen"])
    steps = history["n_seen" if is_stream else "iteration"]
    figure, (axes,) = new_figure(WIDTH, 3.2)
    known = [
        (step, value)
        for step, value in zip(steps, history["objective"], strict=True)
        if step is not None and value is not None
    ]
    marker = "o-" if len(known) <= 60 else "-"
    axes.plot(*zip(*known, strict=True), marker, color=COLOURS["lme"], ms=3.5, lw=1.6)
    axes.set_ylabel("objective")
    axes.set_xlabel("groups seen" if is_stream else "iteration")
    axes.ticklabel_format(useOffset=False, style="plain")
    return figure
