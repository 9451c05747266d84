"""The page about a fitted selector, without anything from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from variegate.application.description.parts import kernel_parts, one_line
from variegate.report.html import escape, percent
from variegate.tables.evaluation import Evaluation, Interval
from variegate.tables.report import pictures
from variegate.tables.report.examples import ExampleGroup, ExampleRow
from variegate.tables.report.facts import (
    about_columns,
    about_data,
    about_empty_cells,
    about_path,
    about_training,
    has_history,
    has_validation,
    omega_name,
    path_points,
    scores_in_words,
    with_error,
)
from variegate.tables.report.pieces import (
    cell,
    fact_line,
    fact_list,
    head,
    paragraph,
    row,
    row_head,
    section,
    table,
)
from variegate.tables.report.style import STYLE
from variegate.tables.report.words import (
    ABOUT_CURVE,
    ABOUT_EXAMPLES,
    ABOUT_KERNEL,
    ABOUT_SCORES,
    ABOUT_WEIGHTS,
    SCORE_NAMES,
    about_comparison,
    about_differences,
    commands,
    fate,
    tally,
    title,
    verdict,
)
from variegate.tuning.path import PathPoint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from variegate.tables.report import Report
    from variegate.tables.selector import TableSelector

__all__ = ["html_page"]


def html_page(report: Report) -> str:
    """Return one page about a fitted selector.

    Figures are in the page, and nothing is loaded from elsewhere.  The page is to be
    written as UTF-8.
    """
    selector = report.selector
    heading = escape(title(report.table))
    lead = scores_in_words(selector)
    sections = [
        _data(selector),
        _scores(report),
        _path(selector),
        _curve(selector),
        _weights(selector),
        _kernel(selector),
        _examples(report),
        section("Training", fact_list(about_training(selector))),
        section("Using the model", f"<pre>{escape(commands(report.model))}</pre>"),
    ]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{heading}</title>",
            f"<style>{STYLE}</style>\n</head>\n<body>",
            f'<header>\n<h1>{heading}</h1>\n<p class="lead">{escape(lead)}</p>',
            f"{fact_line(about_data(selector))}\n</header>\n<main>",
            *(section for section in sections if section),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _figure(figure: Figure, name: str, about: str, caption: str = "") -> str:
    broad = " broad" if figure.get_size_inches()[0] > 7.0 else ""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure>\n<div class="scroll{broad}">'
        f"{pictures.as_svg(figure, name, about)}</div>{below}\n</figure>"
    )


def _data(selector: TableSelector) -> str:
    rows = [
        row(
            row_head(part),
            cell(f"<bdi>{escape(one_line(name))}</bdi>", "cell"),
            cell(escape(how), "wide"),
        )
        for part, name, how in about_columns(selector)
    ]
    heads = [head("Part"), head("Column"), head("What it becomes")]
    empty = f'<p class="note">{escape(about_empty_cells(selector))}</p>'
    return section("Columns", table("Columns", heads, rows), empty)


def _scores(report: Report) -> str:
    selector = report.selector
    content: list[str] = []
    if has_validation(selector):
        found = {
            name: Interval(*values)
            for name, values in selector.training_["validation"].items()
        }
        content += [paragraph(ABOUT_SCORES), _score_table(found)]
    if report.comparison is not None:
        content += _comparison(report.comparison)
    return section("Scores on held-out groups", *content) if content else ""


def _score_table(found: Mapping[str, Interval]) -> str:
    rows = [
        row(
            row_head(SCORE_NAMES[name]),
            cell(_number(name, interval.mean), "number"),
            cell(_between(name, interval), "number"),
            cell("" if name == "size" else _range(interval)),
        )
        for name, interval in found.items()
    ]
    heads = [
        head("Score"),
        head("Mean", "number"),
        head("95 % interval", "number"),
        head("From 0 to 1"),
    ]
    return table("Scores", heads, rows)


def _number(name: str, value: float) -> str:
    return f"{value:.{_digits(name)}f}"


def _digits(name: str) -> int:
    return 2 if name == "size" else 3


def _between(name: str, interval: Interval) -> str:
    return f"{_number(name, interval.low)} to {_number(name, interval.high)}"


def _range(interval: Interval) -> str:
    """Draw an interval on the way from 0 to 1."""
    low, high, mean = (
        100.0 * min(max(value, 0.0), 1.0)
        for value in (interval.low, interval.high, interval.mean)
    )
    return (
        f'<span class="range"><i style="left: {low:.1f}%; right: {100.0 - high:.1f}%">'
        f'</i><b style="left: {mean:.1f}%"></b></span>'
    )


def _comparison(comparison: Evaluation) -> list[str]:
    intervals = comparison.intervals()
    model = next(iter(intervals))
    rows = [
        row(
            row_head(name),
            *(_with_interval(score, found[score]) for score in SCORE_NAMES),
            cell(_range(found["f"])),
            style="chosen" if name == model else "",
        )
        for name, found in intervals.items()
    ]
    heads = [head("Way to choose")]
    heads += [head(name, "number") for name in SCORE_NAMES.values()]
    heads += [head("F-score from 0 to 1")]
    parts = [
        "<h3>Beside methods that learn nothing</h3>",
        paragraph(about_comparison(comparison)),
        table("Comparison", heads, rows),
    ]
    if len(intervals) > 1:
        parts += _differences(comparison, model)
    return parts


def _with_interval(score: str, interval: Interval) -> str:
    mean = _number(score, interval.mean)
    return cell(f"{mean}<br><small>{_between(score, interval)}</small>", "number")


def _differences(comparison: Evaluation, model: str) -> list[str]:
    scores = ("precision", "recall", "f")
    rows = []
    for name, found in comparison.differences(model).items():
        cells = []
        for score in scores:
            interval = found[score]
            words = verdict(interval)
            cells.append(
                cell(
                    f"{interval.mean:+.3f} {words}<br><small>{interval.low:+.3f} to "
                    f"{interval.high:+.3f}</small>",
                    "number same" if words == "≈" else "number",
                )
            )
        rows.append(row(row_head(name), *cells))
    heads = [head("Above")]
    heads += [head(SCORE_NAMES[name], "number") for name in scores]
    return [
        paragraph(about_differences(model)),
        table("Differences", heads, rows),
    ]


def _path(selector: TableSelector) -> str:
    points = path_points(selector)
    figure = pictures.path_figure(selector)
    if figure is None:
        return ""
    rows = [_point(point, point.omega == selector.omega_) for point in points]
    heads = [head("ω"), *(head(name, "number") for name in SCORE_NAMES.values())]
    return section(
        "From precision to recall",
        paragraph(about_path(selector)),
        _figure(figure, "path", "Precision and recall for every omega"),
        table("Scores by omega", heads, rows),
        '<p class="note">± standard error.</p>',
    )


def _point(point: PathPoint, is_chosen: bool) -> str:
    cells = []
    for name in SCORE_NAMES:
        mean, error = getattr(point, name), getattr(point, f"{name}_error")
        text, _, beside = with_error(mean, error, _digits(name)).partition(" ")
        cells.append(cell(f"{text} <small>{beside}</small>", "number"))
    name = omega_name(point.omega) + " (chosen)" * is_chosen
    return row(row_head(name), *cells, style="chosen" if is_chosen else "")


def _curve(selector: TableSelector) -> str:
    if not has_history(selector):
        return ""
    figure = pictures.learning_figure(selector.training_)
    several = f" {ABOUT_CURVE}" if len(selector.omegas_) > 1 else ""
    status = selector.model_.solver_result_.status
    ended = f"{status[:1].upper()}{status[1:]}."
    return section(
        "Learning curve",
        _figure(figure, "learning", "Objective over time", f"{ended}{several}"),
    )


def _weights(selector: TableSelector) -> str:
    figure = pictures.weights_figure(selector)
    weights = sorted(selector.weights_.items(), key=lambda item: -abs(item[1]))
    rows = [
        row(row_head(one_line(name)), cell(f"{value:.5g}", "number"))
        for name, value in weights
    ]
    rows.append(
        row(
            row_head("(intercept)"),
            cell(f"{selector.model_.intercept_:.5g}", "number"),
        )
    )
    listed = table("Weights", [head("Feature"), head("Weight", "number")], rows)
    return section(
        "Weights of the quality",
        paragraph(ABOUT_WEIGHTS),
        _figure(figure, "weights", "Weights of the features, also in the table below"),
        f"<details>\n<summary>All {len(weights):,} weights in numbers</summary>\n"
        f"{listed}\n</details>"
        if len(weights) > 1
        else listed,
    )


def _kernel(selector: TableSelector) -> str:
    figure = pictures.kernel_figure(selector)
    if figure is None:
        return ""
    about = "; ".join(
        f"{part.label}: {part.weight:.3f}" for part in kernel_parts(selector.model_)
    )
    return section(
        "Weights of the similarity",
        paragraph(ABOUT_KERNEL),
        _figure(figure, "kernel", about),
    )


def _examples(report: Report) -> str:
    if not report.examples:
        return ""
    groups = [_group(group, report.show) for group in report.examples]
    return section("Some groups", paragraph(ABOUT_EXAMPLES), *groups)


def _group(group: ExampleGroup, show: Sequence[str]) -> str:
    heads = [head(""), head("Rank", "number"), head("Probability")]
    heads += [head(one_line(name)) for name in show or ("Row",)]
    name = one_line(group.name)
    return "\n".join(
        [
            f'<article class="group">\n<header><h3><bdi>{escape(name)}</bdi></h3>'
            f"<span>F-score {group.f:.3f}</span><span>{tally(group)}</span></header>",
            table(f"Group {name}", heads, map(_example, group.rows)),
            "</article>",
        ]
    )


def _example(example: ExampleRow) -> str:
    word = fate(example)
    width = 100.0 * min(max(example.probability, 0.0), 1.0)
    return row(
        cell(word, "mark"),
        cell(str(example.rank) if example.rank else "", "number"),
        cell(
            f'<span class="bar"><i style="width: {width:.1f}%"></i></span> '
            f"{percent(example.probability)}",
            "chance",
        ),
        *(cell(f"<bdi>{escape(value)}</bdi>", "cell") for value in example.cells),
        style="other" if word == "left out" else word,
    )
