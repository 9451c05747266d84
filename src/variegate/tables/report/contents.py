"""What the report of a fitted selector says, in order, as a page and in Markdown."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from variegate.application.description.parts import kernel_parts, strongest
from variegate.report.document import (
    Block,
    Cell,
    Code,
    Column,
    Document,
    Facts,
    Folded,
    Part,
    Picture,
    Row,
    Sheet,
    Words,
)
from variegate.report.words import count, one_line, percent
from variegate.tables.evaluation import Evaluation, Interval
from variegate.tables.report import pictures
from variegate.tables.report.examples import ExampleGroup, ExampleRow
from variegate.tables.report.facts import (
    SCORE_NAMES,
    about_columns,
    about_data,
    about_empty_cells,
    about_path,
    about_training,
    between,
    has_history,
    omega_name,
    path_points,
    score,
    scores_in_words,
    validation,
    weights,
)
from variegate.tuning.path import PathPoint

if TYPE_CHECKING:
    from variegate.tables.report import Report
    from variegate.tables.selector import TableSelector

__all__ = ["commands", "contents"]

_MARKS = {"right": "✔", "wrong": "✗", "missed": "○", "left out": "·"}

#: Weights that are listed where a table cannot be folded.
_MOST = 30


def contents(report: Report) -> Document:
    """Return the facts of a report, with its figures."""
    selector = report.selector
    return Document(
        f"What was learned from {one_line(report.table)}",
        scores_in_words(selector),
        about_data(selector),
        [
            _columns(selector),
            *_scores(report),
            *_path(selector),
            *_curve(selector),
            _weights(selector),
            *_kernel(selector),
            *_examples(report),
            Part("Training", [Facts(about_training(selector))]),
            Part("Using the model", [Code(commands(report.model))]),
        ],
    )


def commands(model: str) -> str:
    """Return how rows are chosen with the model, from a shell and from Python."""
    quoted, name = shlex.quote(model), json.dumps(model, ensure_ascii=False)
    return (
        f"variegate select new.parquet --model {quoted} -o chosen.parquet\n"
        f"variegate describe {quoted}\n\n"
        "import variegate as vg\n"
        f'chosen = vg.load({name}).select("new.parquet")'
    )


def _columns(selector: TableSelector) -> Part:
    heads = [
        Column("Part", "head"),
        Column("Column"),
        Column("What it becomes", "wide"),
    ]
    rows = [
        Row([Cell(one_line(text)) for text in column])
        for column in about_columns(selector)
    ]
    note = Words(about_empty_cells(selector), is_note=True)
    return Part("Columns", [Sheet("Columns", heads, rows), note])


def _scores(report: Report) -> Iterator[Part]:
    found = validation(report.selector)
    blocks: list[Block] = []
    if found:
        blocks.append(_score_sheet(found))
    if report.comparison is not None:
        blocks.append(_comparison(report.comparison))
    if blocks:
        about = (
            "Means over groups. An interval holds the mean of 95 % of samples that are "
            "drawn from these groups with replacement."
        )
        yield Part("Scores on held-out groups", [Words(about), *blocks])


def _score_sheet(found: Mapping[str, Interval]) -> Sheet:
    heads = [
        Column("Score", "head"),
        Column("Mean", "number"),
        Column("95 % interval", "number"),
        Column("From 0 to 1", "drawn"),
    ]
    rows = [
        Row(
            [
                Cell(SCORE_NAMES[name]),
                Cell(score(name, interval.mean)),
                Cell(between(name, interval)),
                Cell() if name == "size" else _drawn(interval),
            ]
        )
        for name, interval in found.items()
    ]
    return Sheet("Scores", heads, rows)


def _drawn(interval: Interval) -> Cell:
    return Cell(span=(interval.low, interval.high, interval.mean))


def _comparison(comparison: Evaluation) -> Part:
    intervals = comparison.intervals()
    model = next(iter(intervals))
    heads = [
        Column("Way to choose", "head"),
        *(Column(name, "number") for name in SCORE_NAMES.values()),
        Column("F-score from 0 to 1", "drawn"),
    ]
    rows = [
        Row(
            [
                Cell(name),
                *(_with_interval(s, found[s]) for s in SCORE_NAMES),
                _drawn(found["f"]),
            ],
            "chosen" if name == model else "",
        )
        for name, found in intervals.items()
    ]
    about = (
        f"On the same {count(comparison.n_groups, 'group')}, where "
        f"{comparison.wanted_size:.3g} rows a group are wanted on average, with 95 % "
        "intervals."
    )
    blocks: list[Block] = [Words(about), Sheet("Comparison", heads, rows)]
    if len(intervals) > 1:
        about = (
            f"By how much “{one_line(model)}” is above each of the others, group by "
            "group: ▲ above and ▼ below with some certainty, ≈ where the 95 % interval "
            "holds 0."
        )
        blocks += [Words(about), _differences(comparison, model)]
    return Part("Beside methods that learn nothing", blocks)


def _with_interval(name: str, interval: Interval) -> Cell:
    return Cell(score(name, interval.mean), between(name, interval), below=True)


def _differences(comparison: Evaluation, model: str) -> Sheet:
    scores = [name for name in SCORE_NAMES if name != "size"]
    heads = [Column("Above", "head")]
    heads += [Column(SCORE_NAMES[name], "number") for name in scores]
    rows = [
        Row([Cell(name), *(_difference(found[s]) for s in scores)])
        for name, found in comparison.differences(model).items()
    ]
    return Sheet("Differences", heads, rows)


def _difference(interval: Interval) -> Cell:
    mark = "▲" if interval.low > 0.0 else "▼" if interval.high < 0.0 else "≈"
    return Cell(
        f"{interval.mean:+.3f} {mark}",
        f"{interval.low:+.3f} to {interval.high:+.3f}",
        below=True,
        style="same" if mark == "≈" else "",
    )


def _path(selector: TableSelector) -> Iterator[Part]:
    figure = pictures.path_figure(selector)
    if figure is None:
        return
    heads = [Column("ω", "head")]
    heads += [Column(name, "number") for name in SCORE_NAMES.values()]
    rows = [_point(p, p.omega == selector.omega_) for p in path_points(selector)]
    yield Part(
        "From precision to recall",
        [
            Words(about_path(selector)),
            Picture("path", figure, "Precision and recall for every omega"),
            Sheet("Scores by omega", heads, rows),
            Words("± standard error.", is_note=True),
        ],
    )


def _point(point: PathPoint, is_chosen: bool) -> Row:
    cells = [Cell(omega_name(point.omega) + " (chosen)" * is_chosen)]
    for name in SCORE_NAMES:
        error = getattr(point, f"{name}_error")
        # The error of a mean of one group is not known.
        beside = f"± {score(name, error)}" if error == error else ""
        cells.append(Cell(score(name, getattr(point, name)), beside))
    return Row(cells, "chosen" if is_chosen else "")


def _curve(selector: TableSelector) -> Iterator[Part]:
    if not has_history(selector):
        return
    status = selector.model_.solver_result_.status
    caption = f"{status[:1].upper()}{status[1:]}."
    if len(selector.omegas_) > 1:
        caption += (
            " This is the first of the models; those for other ω have curves of their "
            "own."
        )
    figure = pictures.learning_figure(selector.training_)
    picture = Picture("learning", figure, "Objective over time", caption)
    yield Part("Learning curve", [picture])


def _weights(selector: TableSelector) -> Part:
    about = (
        "A row has the quality exp(weights · features + intercept). Numbers are "
        "standardised, so that their weights can be compared: one standard deviation "
        "more multiplies the quality by exp(weight). A category counts as 1 or 0."
    )
    picture = Picture(
        "weights",
        pictures.weights_figure(selector),
        "Weights of the features, also in the table below",
    )
    every = sorted(selector.weights_.items(), key=lambda item: -abs(item[1]))
    listed = _weight_sheet(selector, every)
    if len(every) == 1:
        return Part("Weights of the quality", [Words(about), picture, listed])
    few, note = strongest(weights(selector), _MOST)
    brief: list[Block] = [
        _weight_sheet(selector, [(weight.label(200), weight.value) for weight in few]),
        *([Words(note, is_note=True)] if note else []),
    ]
    folded = Folded(f"All {len(every):,} weights in numbers", listed, brief)
    return Part("Weights of the quality", [Words(about), picture, folded])


def _weight_sheet(selector: TableSelector, named: Iterable[tuple[str, float]]) -> Sheet:
    every = [*named, ("(intercept)", selector.model_.intercept_)]
    rows = [Row([Cell(one_line(name)), Cell(f"{value:.5g}")]) for name, value in every]
    heads = [Column("Feature", "head"), Column("Weight", "number")]
    return Sheet("Weights", heads, rows)


def _kernel(selector: TableSelector) -> Iterator[Part]:
    figure = pictures.kernel_figure(selector)
    if figure is None:
        return
    about = (
        "How alike two rows are is a weighted mean of these similarities. A Gaussian "
        "of a small σ calls only near copies alike, one of a large σ all that is "
        "related; the linear part goes by the angle between vectors."
    )
    parts = kernel_parts(selector.model_)
    shares = "; ".join(f"{part.label}: {part.weight:.3f}" for part in parts)
    picture = Picture("kernel", figure, shares)
    yield Part("Weights of the similarity", [Words(about), picture])


def _examples(report: Report) -> Iterator[Part]:
    if report.examples:
        about = (
            "Rows that the model chose, from the first, then wanted rows that it "
            "missed, then the most probable of the others. The probability is that "
            "with which a set drawn from the model holds the row."
        )
        groups = [_group(group, report.show) for group in report.examples]
        yield Part("Some groups", [Words(about), *groups])


def _group(group: ExampleGroup, show: Sequence[str]) -> Part:
    heads = [
        Column("", "mark"),
        Column("Rank", "number"),
        Column("Probability", "chance"),
        *(Column(one_line(name)) for name in show or ("Row",)),
    ]
    name = one_line(group.name)
    found = Counter(map(_fate, group.rows))
    tally = ", ".join(f"{found[word]} {word}" for word in ("right", "wrong", "missed"))
    sheet = Sheet(f"Group {name}", heads, [_example(row) for row in group.rows])
    return Part(name, [sheet], [f"F-score {group.f:.3f}", tally])


def _fate(row: ExampleRow) -> str:
    """Return what became of a row of an example, in a word or two."""
    if row.rank:
        return "right" if row.is_wanted else "wrong"
    return "missed" if row.is_wanted else "left out"


def _example(row: ExampleRow) -> Row:
    word = _fate(row)
    cells = [
        Cell(word, mark=_MARKS[word]),
        Cell(str(row.rank) if row.rank else ""),
        Cell(percent(row.probability), share=row.probability),
        *map(Cell, row.cells),
    ]
    return Row(cells, "other" if word == "left out" else word)
