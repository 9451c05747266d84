"""The numbers of a report, by the names that ``contents.jinja`` has for them."""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from variegate.application.description.parts import kernel_parts, strongest
from variegate.report.cells import Cell, Row
from variegate.report.words import count, one_line, percent
from variegate.tables.evaluation import Evaluation, Interval
from variegate.tables.judging import NEAR_COPY
from variegate.tables.report import facts, similarity
from variegate.tables.report.choice import compared_rows, compared_words
from variegate.tables.report.examples import ExampleGroup, ExampleRow
from variegate.tables.report.pictures import all_figures
from variegate.tuning.path import PathPoint

if TYPE_CHECKING:
    from variegate.tables.report import Report
    from variegate.tables.selector import TableSelector

__all__ = ["commands", "contents"]

_MARKS = {"right": "✔", "wrong": "✗", "missed": "○", "left out": "·"}

#: Weights that are listed where a table cannot be folded.
_MOST = 30


def contents(report: Report) -> dict[str, Any]:
    """Return what a report shows, numbers as text and figures by their names."""
    selector = report.selector
    status = selector.model_.solver_result_.status
    parts = kernel_parts(selector.model_)
    every = sorted(selector.weights_.items(), key=lambda item: -abs(item[1]))
    few, left_out = strongest(facts.weights(selector), _MOST)
    return {
        "title": f"What was learned from {one_line(report.table)}",
        "lead": facts.scores_in_words(selector),
        "facts": facts.about_data(selector),
        "figures": all_figures(selector),
        "columns": [
            Row([one_line(text) for text in column])
            for column in facts.about_columns(selector)
        ],
        "empty_cells": facts.EMPTY_CELLS[selector.encoding_.missing],
        "score_heads": [(name, "number") for name in facts.SCORE_NAMES.values()],
        "scores": [
            _score(name, interval)
            for name, interval in facts.validation(selector).items()
        ],
        "comparison": report.comparison and _comparison(report.comparison),
        "compared": [Row(list(row)) for row in compared_rows(selector)],
        "about_compared": compared_words(selector),
        "about_path": facts.about_path(selector),
        "points": [
            _point(point, point.omega == selector.omega_)
            for point in facts.path_points(selector)
        ],
        "ended": f"{status[:1].upper()}{status[1:]}.",
        "is_family": len(selector.omegas_) > 1,
        "n_weights": len(every),
        "weights": _weights(selector, every),
        "strongest": _weights(selector, [(w.label(200), w.value) for w in few]),
        "left_out": left_out,
        "shares": "; ".join(f"{part.label}: {part.weight:.3f}" for part in parts),
        "typical": report.typical,
        "same": similarity.contents(selector, report.typical),
        "shown": [(one_line(name), "cell") for name in report.show or ("Row",)],
        "groups": [_group(group) for group in report.examples],
        "training": facts.about_training(selector),
        "commands": commands(report.model),
    }


def commands(model: str) -> str:
    """Return how rows are chosen with the model, from a shell and from Python."""
    quoted, name = shlex.quote(model), json.dumps(model, ensure_ascii=False)
    return (
        f"variegate select new.parquet --model {quoted} -o chosen.parquet\n"
        f"variegate describe {quoted}\n\n"
        "import variegate as vg\n"
        f'chosen = vg.load({name}).select("new.parquet")'
    )


def _drawn(interval: Interval) -> Cell:
    return Cell(span=(interval.low, interval.high, interval.mean))


def _score(name: str, interval: Interval) -> Row:
    mean, ends = facts.score(name, interval.mean), facts.between(name, interval)
    drawn = "" if name == "size" else _drawn(interval)
    return Row([facts.SCORE_NAMES[name], mean, ends, drawn])


def _comparison(comparison: Evaluation) -> dict[str, Any]:
    intervals = comparison.intervals()
    model = next(iter(intervals))
    rows = []
    for name, found in intervals.items():
        scores = [
            Cell(facts.score(s, found[s].mean), facts.between(s, found[s]), below=True)
            for s in facts.SCORE_NAMES
        ]
        style = "chosen" if name == model else ""
        rows.append(Row([one_line(name), *scores, _drawn(found["f"])], style))
    return {
        **_diversity(comparison),
        "model": one_line(model),
        "groups": count(comparison.n_groups, "group"),
        "wanted": f"{comparison.wanted_size:.3g}",
        "scores": rows,
        "differences": [
            Row([one_line(name), *(_difference(found[s]) for s in list(found)[:3])])
            for name, found in comparison.differences(model).items()
        ],
    }


def _diversity(comparison: Evaluation) -> dict[str, Any]:
    """Return how alike chosen rows are, and how many of all were wanted."""
    over_rows, diversities = comparison.over_rows(), comparison.diversities()
    known = {"precision", "recall"}.union(*diversities.values())
    names = {n: words for n, words in facts.DIVERSITY_NAMES.items() if n in known}
    rows = []
    for name, found in diversities.items():
        scores = {**found, **over_rows.get(name, {})}
        style = "chosen" if name == comparison.reference else ""
        cells = [_rate(score, scores.get(score)) for score in names]
        rows.append(Row([one_line(name), *cells], style))
    return {
        "diversity": rows,
        "diversity_heads": [(words, "number") for words in names.values()],
        "near_copy": NEAR_COPY,
        "has_kinds": "kinds" in names,
    }


def _rate(name: str, interval: Interval | None) -> Cell | str:
    if interval is None or math.isnan(interval.mean):
        return ""
    # Numbers of kinds have decimals as numbers of rows do.
    name = "size" if name == "kinds" else name
    return Cell(
        facts.score(name, interval.mean), facts.between(name, interval), below=True
    )


def _difference(interval: Interval) -> Cell:
    mark = "▲" if interval.low > 0.0 else "▼" if interval.high < 0.0 else "≈"
    return Cell(
        f"{interval.mean:+.3f} {mark}",
        f"{interval.low:+.3f} to {interval.high:+.3f}",
        below=True,
        style="same" if mark == "≈" else "",
    )


def _point(point: PathPoint, is_chosen: bool) -> Row:
    cells: list[Cell | str] = [facts.omega_name(point.omega) + " (chosen)" * is_chosen]
    for name in facts.SCORE_NAMES:
        error = getattr(point, f"{name}_error")
        # That of a mean over one group is not known.
        beside = "" if math.isnan(error) else f"± {facts.score(name, error)}"
        cells.append(Cell(facts.score(name, getattr(point, name)), beside))
    return Row(cells, "chosen" if is_chosen else "")


def _weights(selector: TableSelector, named: Iterable[tuple[str, float]]) -> list[Row]:
    every = [*named, ("(intercept)", selector.model_.intercept_)]
    return [Row([one_line(name), f"{value:.5g}"]) for name, value in every]


def _group(group: ExampleGroup) -> dict[str, Any]:
    found = Counter(map(_fate, group.rows))
    tally = ", ".join(f"{found[word]} {word}" for word in ("right", "wrong", "missed"))
    return {
        "name": one_line(group.name),
        "notes": [f"F-score {group.f:.3f}", tally],
        "rows": [_example(row) for row in group.rows],
    }


def _fate(row: ExampleRow) -> str:
    """Return what became of a row of an example, in a word or two."""
    if row.rank:
        return "right" if row.is_wanted else "wrong"
    return "missed" if row.is_wanted else "left out"


def _example(row: ExampleRow) -> Row:
    word = _fate(row)
    chance = Cell(percent(row.probability), share=row.probability)
    rank = str(row.rank) if row.rank else ""
    mark = Cell(word, mark=_MARKS[word])
    return Row(
        [mark, rank, chance, *row.cells], "other" if word == "left out" else word
    )
