"""The report of a fitted selector as Markdown, with pictures beside it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from variegate.application.description.parts import one_line, strongest
from variegate.report.html import percent
from variegate.tables.evaluation import Evaluation, Interval
from variegate.tables.report import pictures
from variegate.tables.report.examples import ExampleGroup
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
    weights,
    with_error,
)
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

if TYPE_CHECKING:
    from variegate.tables.report import Report
    from variegate.tables.selector import TableSelector

__all__ = ["markdown"]

_MARKS = {"right": "✔", "wrong": "✗", "missed": "○", "left out": "·"}

#: Weights in the table.
_MOST = 30


def markdown(report: Report) -> tuple[str, dict[str, bytes]]:
    """Return the text of a Markdown file, and the pictures that it shows by name."""
    selector = report.selector
    files = _pictures(selector)
    return "\n\n".join([*_parts(report, files)]) + "\n", files


def _pictures(selector: TableSelector) -> dict[str, bytes]:
    figures = {
        "path.png": pictures.path_figure(selector),
        "learning.png": pictures.learning_figure(selector.training_)
        if has_history(selector)
        else None,
        "weights.png": pictures.weights_figure(selector),
        "kernel.png": pictures.kernel_figure(selector),
    }
    return {
        name: pictures.as_png(figure)
        for name, figure in figures.items()
        if figure is not None
    }


def _parts(report: Report, files: Mapping[str, bytes]) -> Iterator[str]:
    selector = report.selector
    yield f"# {_escaped(title(report.table))}"
    yield scores_in_words(selector)
    yield from _facts(about_data(selector))
    yield "## Columns"
    yield _table(("Part", "Column", "What it becomes"), about_columns(selector))
    yield about_empty_cells(selector)
    yield from _scores(report)
    if path_points(selector):
        yield "## From precision to recall"
        yield about_path(selector)
        yield from _picture(files, "path.png", "Precision and recall by omega")
        yield _path_table(selector)
    if "learning.png" in files:
        yield "## Learning curve"
        yield from _picture(files, "learning.png", "The objective over time")
        if len(selector.omegas_) > 1:
            yield ABOUT_CURVE
    yield "## Weights of the quality"
    yield ABOUT_WEIGHTS
    yield from _picture(files, "weights.png", "The weights of the features")
    yield from _weights(selector)
    if "kernel.png" in files:
        yield "## Weights of the similarity"
        yield ABOUT_KERNEL
        yield from _picture(files, "kernel.png", "The weights of the similarities")
    if report.examples:
        yield "## Some groups"
        yield ABOUT_EXAMPLES
        for group in report.examples:
            yield from _group(group, report.show)
    yield "## Training"
    yield from _facts(about_training(selector))
    yield "## Using the model"
    yield f"```\n{commands(report.model)}\n```"


def _facts(facts: Mapping[str, str]) -> Iterator[str]:
    if facts:
        yield "\n".join(f"- {name}: {_escaped(value)}" for name, value in facts.items())


def _picture(files: Mapping[str, bytes], name: str, about: str) -> Iterator[str]:
    if name in files:
        yield f"![{about}]({name})"


def _table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, first_number: int = 99
) -> str:
    """Return a table; columns from ``first_number`` on are aligned to the right."""
    rules = ["---:" if k >= first_number else "---" for k in range(len(heads))]
    lines = [[_escaped(head) for head in heads], rules]
    lines += [[_escaped(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>|~&#])", r"\\\1", one_line(text))


def _scores(report: Report) -> Iterator[str]:
    selector = report.selector
    if has_validation(selector) or report.comparison is not None:
        yield "## Scores on held-out groups"
        yield ABOUT_SCORES
    if has_validation(selector):
        yield _table(
            ("Score", "Mean", "95 % interval"),
            [
                (SCORE_NAMES[name], f"{mean:.3f}", f"{low:.3f} to {high:.3f}")
                for name, (mean, low, high) in selector.training_["validation"].items()
            ],
            first_number=1,
        )
    if report.comparison is not None:
        yield from _comparison(report.comparison)


def _comparison(comparison: Evaluation) -> Iterator[str]:
    intervals = comparison.intervals()
    model = next(iter(intervals))
    yield "### Beside methods that learn nothing"
    yield about_comparison(comparison)
    yield _table(
        ("Way to choose", *SCORE_NAMES.values()),
        [
            (name, *(_with_interval(found[score]) for score in SCORE_NAMES))
            for name, found in intervals.items()
        ],
        first_number=1,
    )
    if len(intervals) < 2:
        return
    scores = ("precision", "recall", "f")
    yield _escaped(about_differences(model))
    yield _table(
        ("Above", *(SCORE_NAMES[score] for score in scores)),
        [
            (
                name,
                *(
                    f"{found[score].mean:+.3f} {verdict(found[score])} "
                    f"({found[score].low:+.3f} to {found[score].high:+.3f})"
                    for score in scores
                ),
            )
            for name, found in comparison.differences(model).items()
        ],
        first_number=1,
    )


def _with_interval(interval: Interval) -> str:
    return f"{interval.mean:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def _path_table(selector: TableSelector) -> str:
    rows = [
        (
            omega_name(point.omega) + " (chosen)" * (point.omega == selector.omega_),
            with_error(point.precision, point.precision_error),
            with_error(point.recall, point.recall_error),
            with_error(point.f, point.f_error),
            with_error(point.size, point.size_error, 2),
        )
        for point in path_points(selector)
    ]
    return _table(("ω (± standard error)", *SCORE_NAMES.values()), rows, first_number=1)


def _weights(selector: TableSelector) -> Iterator[str]:
    shown, note = strongest(weights(selector), _MOST)
    rows = [
        (
            weight.name
            + (f" (length of {weight.n_features})" if weight.n_features > 1 else ""),
            f"{weight.value:.5g}",
        )
        for weight in shown
    ]
    rows.append(("(intercept)", f"{selector.model_.intercept_:.5g}"))
    yield _table(("Feature", "Weight"), rows, first_number=1)
    if note:
        yield note


def _group(group: ExampleGroup, show: Sequence[str]) -> Iterator[str]:
    yield f"### {_escaped(group.name)}"
    yield f"F-score {group.f:.3f}: {tally(group)}."
    yield _table(
        ("", "Rank", "Probability", *(show or ("Row",))),
        [
            (
                f"{_MARKS[fate(row)]} {fate(row)}",
                str(row.rank) if row.rank else "",
                percent(row.probability),
                *row.cells,
            )
            for row in group.rows
        ],
    )
