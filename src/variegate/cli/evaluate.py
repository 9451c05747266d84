"""``variegate evaluate``: learned models against untrained methods, on labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.application.table_defaults import UNTRAINED
from variegate.cli.notes import note, notes
from variegate.cli.paths import MODEL, PATH
from variegate.cli.progress import stage_progress
from variegate.cli.results import echo_json, json_option
from variegate.cli.table_options import (
    EMPTY,
    JOBS,
    MEMORY,
    load_selector,
    need_tables,
    trade_off,
)
from variegate.cli.values import NAMES, POSITIVE, parsed
from variegate.report.terminal import columns

if TYPE_CHECKING:
    from variegate.tables.evaluation import Evaluation, Interval

#: The columns of the table that is printed.
_SHOWN = {"precision": "precision", "recall": "recall", "f": "F"}


@parsed
def _count(value: str) -> int | str:
    if value == "wanted":
        return value
    if not value.isdecimal() or int(value) == 0:
        raise ValueError(f"--k is a number of rows or 'wanted', not {value!r}")
    return int(value)


@click.command(
    epilog="\b\nvariegate evaluate test.parquet --model model.json --relevance score\n"
    "variegate evaluate test.parquet --model tuned.json --model mle.json"
)
@click.argument("table", type=PATH)
@click.option(
    "--model", "models", type=MODEL, multiple=True, required=True, metavar="FILE",
    help="What 'variegate fit' wrote; repeat to compare several.",
)  # fmt: skip
@click.option(
    "--omega", type=POSITIVE,
    help="For the models; by default each its own.",
)  # fmt: skip
@click.option(
    "--methods", type=NAMES, default=",".join(UNTRAINED), show_default=True,
    metavar="A,B,...", help="Untrained methods to compare with, or none.",
)  # fmt: skip
@click.option(
    "--relevance", metavar="COLUMN",
    help="What they go by; by default the first quality column.",
)  # fmt: skip
@click.option(
    "--k", callback=_count, metavar="N",
    help="How many rows they choose from each group: a number, or 'wanted' for as many "
    "as are labelled 1 there. By default the mean of the training groups.",
)  # fmt: skip
@trade_off(help="From 0 (relevance only) to 1 (diversity only).")
@EMPTY
@click.option("--label", metavar="COLUMN", help="By default that of the first model.")
@MEMORY
@JOBS
@json_option(help="JSON instead of a table.")
def evaluate(
    table: Path,
    models: tuple[Path, ...],
    methods: tuple[str, ...],
    relevance: str | None,
    label: str | None,
    memory: int,
    n_jobs: int,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare what models choose with the labels of a table.

    Precision, recall and F-score are means over groups, with 95 % intervals from
    bootstrap samples of the groups; untrained methods choose from the same groups.
    """
    need_tables()
    from variegate.tables.table import as_table

    source = as_table(table)
    others = {str(path): load_selector(path, memory, n_jobs) for path in models}
    if len(others) < len(models):
        raise click.UsageError("a model cannot be compared with itself: name each once")
    name = str(models[0])
    columns = others[name].columns_
    for other, selector in others.items():
        others[other] = selector.with_columns(columns.group, label or columns.label)
    first = others.pop(name)
    methods = () if methods == ("none",) else methods
    with notes(), stage_progress() as progress:
        given |= {"methods": methods, "relevance": relevance, "progress": progress}
        result = first.evaluate(source, others=others, name=name, **given)
    if methods and relevance is None:
        # Not before, so that what is wrong is said in one line.
        guessed = first.default_relevance()
        if guessed is not None:
            note(f"untrained methods go by {guessed!r}; --relevance names another")
    if as_json:
        echo_json(_numbers(result))
    else:
        click.echo(_as_text(result))


def _numbers(result: Evaluation) -> dict[str, Any]:
    first = next(iter(result.scores))

    def plain(found: dict[str, dict[str, Interval]]) -> dict[str, Any]:
        return {
            name: {score: interval._asdict() for score, interval in scores.items()}
            for name, scores in found.items()
        }

    return {
        "groups": result.n_groups,
        "wanted": result.wanted_size,
        "scores": plain(result.intervals()),
        "less": plain(result.differences(first)),
        "endings": result.endings_in_short(),
    }


def _as_text(result: Evaluation) -> str:
    first = next(iter(result.scores))
    rows = [("", *_SHOWN.values(), "rows")]
    for name, scores in result.intervals().items():
        cells = [_interval(scores[score]) for score in _SHOWN]
        rows.append((name, *cells, f"{scores['size'].mean:.1f}"))
    parts = [
        f"{result.n_groups:,} groups, {result.wanted_size:.1f} rows of each wanted on "
        "average",
        columns(rows),
    ]
    others = result.differences(first)
    if others:
        width = max(map(len, result.scores))
        gains = [
            (name.ljust(width), _interval(found["f"], "+"))
            for name, found in others.items()
        ]
        parts.append(f"F of {first} less that of\n{columns(gains)}")
    parts.append("[...]: 95 % of bootstrap samples of the groups")
    return "\n\n".join(parts)


def _interval(interval: Interval, sign: str = "") -> str:
    mean, low, high = (f"{value:{sign}.3f}" for value in interval)
    return f"{mean} [{low}, {high}]"
