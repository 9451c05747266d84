"""``variegate evaluate``: learned models against other ways to choose, on labels."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.application.table_defaults import UNTRAINED
from variegate.cli.cluster_options import (
    Cluster,
    cluster_options,
    note_unreadable,
    refuse_on_cluster,
)
from variegate.cli.notes import note, notes
from variegate.cli.paths import MODEL, PATH
from variegate.cli.progress import stage_progress
from variegate.cli.results import echo_json, json_option, say
from variegate.cli.table_options import (
    JOBS,
    MEMORY,
    SEPARATOR,
    empty_groups,
    load_selector,
    need_tables,
    open_table,
    trade_off,
)
from variegate.cli.values import NAMES, POSITIVE, parsed
from variegate.report.terminal import columns

if TYPE_CHECKING:
    from variegate.tables.evaluation import Evaluation, Interval
    from variegate.tables.selector import TableSelector
    from variegate.tables.table import Table

#: The columns of the first table that is printed.
_SHOWN = {"precision": "precision", "recall": "recall", "f": "F"}

#: The columns of the second about diversity; how many kinds may follow.
_DIVERSITY = {"similarity": "similarity", "copies": "near copies"}


#: What a cluster has no use for.
_AT_HOME = {
    "n_jobs": "each worker has one thread",
    "separator": "the files of a folder need none",
}


@parsed
def _count(value: str) -> int | str:
    if value == "wanted":
        return value
    if not value.isdecimal() or int(value) == 0:
        raise ValueError(f"--k is a number of rows or 'wanted', not {value!r}")
    return int(value)


@click.command(
    epilog="\b\nvariegate evaluate test.parquet --model model.json --relevance score\n"
    "variegate evaluate test.parquet --model model.json --train train.parquet --k 5\n"
    "variegate evaluate test.parquet --model tuned.json --model mle.json\n"
    "variegate evaluate test/ --model model.json --cluster tcp://10.0.0.1:8786"
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
    "--train", type=PATH, metavar="TABLE",
    help="A labelled table, such as the one of the model, from which logistic "
    "regression and gradient boosting learn relevance, to compare with.",
)  # fmt: skip
@click.option(
    "--methods", type=NAMES, default=",".join(UNTRAINED), show_default=True,
    metavar="A,B,...", help="Untrained methods to compare with, or none.",
)  # fmt: skip
@click.option(
    "--relevance", metavar="COLUMN",
    help="What untrained methods go by; by default the relevance of the first model, "
    "or its first quality column.",
)  # fmt: skip
@click.option(
    "--k", callback=_count, metavar="N",
    help="How many rows all choose from each group: a number, or 'wanted' for as many "
    "as are labelled 1 there. By default models decide, what learns relevance takes "
    "the best number in training, and untrained methods the mean there.",
)  # fmt: skip
@click.option(
    "--budget", type=POSITIVE, metavar="COST",
    help="The most that the rows of a group may cost together, for all.",
)  # fmt: skip
@click.option(
    "--cost", metavar="COLUMN",
    help="The costs for --budget; by default those of the first model.",
)  # fmt: skip
@trade_off(help="Of untrained methods: from 0 (relevance only) to 1 (diversity only).")
@empty_groups(
    help="What to do with groups of which no row was chosen; by default as the first "
    "model was fitted.",
)
@click.option("--label", metavar="COLUMN", help="By default that of the first model.")
@SEPARATOR
@MEMORY
@JOBS
@cluster_options()
@json_option(help="JSON instead of a table.")
def evaluate(
    table: Path,
    models: tuple[Path, ...],
    methods: tuple[str, ...],
    relevance: str | None,
    train: Path | None,
    separator: str | None,
    label: str | None,
    cost: str | None,
    memory: int,
    n_jobs: int,
    cluster: Cluster | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare what models choose with the labels of a table.

    Precision, recall and F-score are means over groups, with 95 % intervals from
    bootstrap samples of the groups; other ways choose from the same groups. With --k
    and --budget, models are judged by what they choose by themselves and on the terms
    that hold for all.
    """
    need_tables()
    if train is not None and train.resolve() == table.resolve():
        raise click.UsageError(
            f"{table} is what is judged by: name another table for --train"
        )

    if cluster is not None:
        refuse_on_cluster(_AT_HOME)
        if len(models) > 1:
            raise click.UsageError(
                "a cluster judges one --model at a time: give one, or leave out "
                "--cluster or --workers"
            )
    others = {str(path): load_selector(path, memory, n_jobs) for path in models}
    if len(others) < len(models):
        raise click.UsageError("a model cannot be compared with itself: name each once")
    name = str(models[0])
    columns = others[name].columns_
    for other, selector in others.items():
        others[other] = selector.with_columns(
            columns.group, label or columns.label, cost or columns.cost
        )
    first = others.pop(name)
    methods = () if methods == ("none",) else methods
    given |= {"methods": methods, "relevance": relevance, "name": name}
    with notes():
        if cluster is not None:
            result = _evaluate_on(cluster, first, table, train, **given)
        else:
            source = open_table(table, separator)
            given["train"] = train and _training_table(train, separator)
            with stage_progress() as progress:
                result = first.evaluate(
                    source, others=others, progress=progress, **given
                )
    if methods and relevance is None and first.columns_.relevance is None:
        # Not before, so that what is wrong is said in one line.
        guessed = first.default_relevance()
        if guessed is not None:
            note(f"untrained methods go by {guessed!r}; --relevance names another")
    if as_json:
        echo_json(_numbers(result))
        return
    say(_as_text(result))
    if train is None:
        say(
            "\n--train TABLE adds rivals whose relevance scikit-learn learns from a "
            "labelled table"
        )


def _evaluate_on(
    cluster: Cluster, selector: TableSelector, table: Path, train: Path | None,
    **given: Any,
) -> Evaluation:  # fmt: skip
    """Compare on the files of a folder, on a cluster."""
    folder = cluster.folder(table)
    given["train"] = train and cluster.folder(train)
    given["skip_unreadable"] = cluster.skip_unreadable
    with cluster.engine() as (engine, progress):
        found = selector.evaluate(folder, engine=engine, progress=progress, **given)
    note_unreadable(found.unreadable)
    if found.n_groups < found.n_in_all:
        note(
            f"judged by {found.n_groups:,} of {found.n_in_all:,} groups, drawn at "
            "random"
        )
    return found


def _training_table(path: Path, separator: str | None) -> Table:
    """Return the table for rivals, which need not be CSV where the other one is."""
    from variegate.tables.reading import format_of

    is_csv = not path.is_dir() and format_of(path) == "csv"
    return open_table(path, separator if is_csv else None)


def _numbers(result: Evaluation) -> dict[str, Any]:
    def plain(found: dict[str, dict[str, Interval]]) -> dict[str, Any]:
        return {
            name: {score: _plain(interval) for score, interval in scores.items()}
            for name, scores in found.items()
        }

    return {
        "groups": result.n_groups,
        "wanted": result.wanted_size,
        "scores": plain(result.intervals()),
        "over_rows": plain(result.over_rows()),
        "diversity": plain(result.diversities()),
        "reference": result.reference,
        "less": plain(result.differences(result.reference)),
        "endings": result.endings_in_short(),
    }


def _plain(interval: Interval) -> dict[str, float | None]:
    """Return an interval for JSON, which knows no NaN."""
    numbers = interval._asdict().items()
    return {name: None if math.isnan(value) else value for name, value in numbers}


def _as_text(result: Evaluation) -> str:
    from variegate.tables.judging import NEAR_COPY

    others = result.differences(result.reference)
    parts = [
        f"{result.n_groups:,} groups, {result.wanted_size:.1f} rows of each wanted on "
        "average",
        _scores(result),
        _rows_and_diversity(result),
    ]
    if others:
        width = max(map(len, result.scores))
        gains = [
            (name.ljust(width), _interval(found["f"], "+"))
            for name, found in others.items()
        ]
        parts.append(f"F of {result.reference} less that of\n{columns(gains)}")
    parts.append(
        "[...]: 95 % of bootstrap samples of the groups\n"
        "precision of rows: over the rows of all groups together\n"
        "similarity: mean cosine of two chosen rows of a group\n"
        f"near copies: share of rows with a cosine above {NEAR_COPY} to another"
    )
    return "\n\n".join(parts)


def _scores(result: Evaluation) -> str:
    rows = [("", *_SHOWN.values(), "rows")]
    for name, scores in result.intervals().items():
        cells = [_interval(scores[score]) for score in _SHOWN]
        rows.append((name, *cells, f"{scores['size'].mean:.1f}"))
    return columns(rows)


def _rows_and_diversity(result: Evaluation) -> str:
    """Return what is said over all rows, and how alike the chosen ones are."""
    over_rows, diversities = result.over_rows(), result.diversities()
    has_kinds = any("kinds" in found for found in diversities.values())
    kinds_head = ["kinds"] if has_kinds else []
    rows = [("", "precision of rows", *_DIVERSITY.values(), *kinds_head)]
    for name, found in diversities.items():
        own = over_rows.get(name)
        cells = [_interval(found[score]) for score in _DIVERSITY]
        kinds = [f"{found['kinds'].mean:.1f}"] if has_kinds else []
        rows.append((name, _interval(own["precision"]) if own else "", *cells, *kinds))
    return columns(rows)


def _interval(interval: Interval, sign: str = "") -> str:
    if math.isnan(interval.mean):
        return "-"
    mean, low, high = (f"{value:{sign}.3f}" for value in interval)
    return f"{mean} [{low}, {high}]"
