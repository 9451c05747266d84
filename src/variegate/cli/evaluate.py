"""``variegate evaluate``: learned models against other ways to choose, on labels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.application.table_defaults import UNTRAINED
from variegate.cli import options, output
from variegate.cli.cluster import Cluster, cluster_options, note_unreadable
from variegate.cli.options import option
from variegate.report.terminal import align_columns

if TYPE_CHECKING:
    from variegate.tables.evaluation import Evaluation, Interval
    from variegate.tables.table import Table

_OF_THE_FIRST = "  [default: that of the first model]"

#: Columns of the first table that is printed.
_SCORES = {"precision": "precision", "recall": "recall", "f": "F", "size": "rows"}

#: Further columns with --subtopics.
_SUBTOPICS = {
    "subtopic_recall": "subtopic recall",
    "alpha_ndcg": "alpha-nDCG",
    "intent_aware_precision": "IA precision",
}

#: Columns of the second; the last one is for models with learned kinds.
_DIVERSITY = {
    "precision": "precision of rows",
    "similarity": "similarity",
    "copies": "near copies",
    "kinds": "kinds",
}


def _parse_k(value: str) -> int | str:
    """Return a number of rows, or "wanted"."""
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
@click.argument("table", type=options.PATH)
@options.model_option(
    "Model of 'variegate fit'. Repeat to compare several.",
    multiple=True, required=True, name="models",
)  # fmt: skip
@options.OMEGA
@option(
    "--train TABLE", "Labelled table to train logistic regression and gradient "
    "boosting on, for comparison.", options.PATH,
)  # fmt: skip
@option(
    "--methods A,B,...", "Untrained methods to compare with, or none.",
    options.NAMES, default=",".join(UNTRAINED),
)  # fmt: skip
@options.role_option(
    "relevance", "  [default: that of the first model, or its first quality column]"
)
@option(
    "--k N", "Rows to choose from each group, or 'wanted' for as many as are labelled "
    "1.", options.Parsed("count", _parse_k),
)  # fmt: skip
@options.BUDGET
@options.LIMITS
@options.role_option("cost", _OF_THE_FIRST)
@options.DIVERSITY
@option(
    "--subtopics COLUMN", "Column with the subtopic of each row labelled 1, or a list "
    "of several. Adds scores of the subtopics that are covered.",
)  # fmt: skip
@options.empty_groups(f"Treatment of groups without a chosen row.{_OF_THE_FIRST}")
@options.role_option("label", _OF_THE_FIRST)
@options.role_option("given", _OF_THE_FIRST)
@options.SEPARATOR
@options.MEMORY
@options.JOBS
@cluster_options()
@options.JSON
def evaluate(
    table: Path,
    models: tuple[Path, ...],
    train: Path | None,
    separator: str | None,
    cluster: Cluster,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare the choices of models with the labels of a table.

    Precision, recall and F-score are means over groups, with 95 % intervals from
    bootstrap samples of the groups; other methods choose from the same groups. Without
    --k, models decide how many rows to choose, trained baselines take the best number
    in training, and untrained methods the mean there. With --k or --budget, each model
    has a second line with this limit.
    """
    if train is not None and train.resolve() == table.resolve():
        raise click.UsageError(
            f"{table} is the table to judge by: name another for --train"
        )
    cluster.refuse()
    if cluster and len(models) > 1:
        raise click.UsageError(
            "a cluster judges one --model at a time: give one, or leave out "
            "--cluster or --workers"
        )
    if len(set(models)) < len(models):
        raise click.UsageError("a model cannot be compared with itself: name each once")
    machine = given.pop("memory"), given.pop("n_jobs")
    selectors = [options.load_selector(path, *machine) for path in models]
    # All take the roles of columns of the first.
    columns = selectors[0].columns_
    roles = {
        role: given.pop(role) or getattr(columns, role)
        for role in ("label", "cost", "given")
    }
    first, *others = [s.with_columns(columns.group, **roles) for s in selectors]
    if given["methods"] == ("none",):
        given["methods"] = ()
    skip = cluster.skip_unreadable
    with output.print_warnings_as_notes():
        rival_table = train and _open_training_table(train, separator)
        source = options.open_table(table, separator, skip)
        with cluster.engine_and_progress() as (engine, progress):
            result = first.evaluate(
                source,
                train=rival_table,
                name=str(models[0]),
                others=dict(zip(map(str, models[1:]), others, strict=True)),
                engine=engine,
                progress=progress,
                skip_unreadable=skip,
                **given,
            )
        note_unreadable(result.unreadable)
        if result.n_groups < result.n_in_all:
            output.print_note(
                f"judged by {result.n_groups:,} of {result.n_in_all:,} groups, drawn "
                "at random"
            )
    is_known = given["relevance"] is not None or columns.relevance is not None
    # Not before, so that errors are one line.
    guessed = first.default_relevance() if given["methods"] and not is_known else None
    if guessed is not None:
        output.print_note(
            f"untrained methods go by {guessed!r}; --relevance names another"
        )
    output.print_result(
        as_json, _evaluation_numbers(result), partial(_evaluation_text, result, train)
    )


def _open_training_table(path: Path, separator: str | None) -> Table:
    """Open the table of --train; the separator is used only if it is CSV."""
    from variegate.tables.reading import format_of

    is_csv = not path.is_dir() and format_of(path) == "csv"
    return options.open_table(path, separator if is_csv else None)


def _evaluation_numbers(result: Evaluation) -> dict[str, Any]:
    """Return the results as values for JSON: intervals by method and score.

    "less" has those of the scores of "reference" less the scores of each other one.
    """

    def plain_intervals(found: dict[str, dict[str, Interval]]) -> dict[str, Any]:
        """Return intervals, by method and score, as dictionaries with None for NaN."""
        return {
            name: {
                score: {e: None if isnan(x) else x for e, x in it._asdict().items()}
                for score, it in scores.items()
            }
            for name, scores in found.items()
        }

    return {
        "groups": result.n_groups,
        "wanted": result.wanted_size,
        "scores": plain_intervals(result.intervals()),
        "over_rows": plain_intervals(result.over_rows()),
        "diversity": plain_intervals(result.diversities()),
        "reference": result.reference,
        "less": plain_intervals(result.differences(result.reference)),
        "endings": {n: one._asdict() for n, one in result.endings.items()},
    }


def _evaluation_text(result: Evaluation, train: Path | None) -> str:
    """Return tables and notes on their columns; for None, a note on --train, too."""
    from variegate.tables.evaluation import NEAR_COPY

    over_rows, diversities = result.over_rows(), result.diversities()
    diversity = {
        name: {**found, **over_rows.get(name, {})}
        for name, found in diversities.items()
    }
    parts = [
        f"{result.n_groups:,} groups, on average {result.wanted_size:.1f} wanted rows "
        "in each",
        _score_table(_SCORES | _SUBTOPICS, result.intervals()),
        _score_table(_DIVERSITY, diversity),
    ]
    others = result.differences(result.reference)
    if others:
        width = max(map(len, result.scores))
        gains = [
            (name.ljust(width), _interval_text("f", found["f"], "+"))
            for name, found in others.items()
        ]
        parts.append(f"F of {result.reference} less that of\n{align_columns(gains)}")
    explained = (
        "subtopic recall: share of a group's subtopics that are chosen\n"
        "alpha-nDCG: gain by rank, half for each repetition, relative to the ideal\n"
        "IA precision: mean over subtopics of the share of chosen rows about each\n"
    )
    parts.append(
        "[...]: 95 % of bootstrap samples of the groups\n"
        f"{explained if result.subtopics else ''}"
        "precision of rows: over the rows of all groups together\n"
        "similarity: mean cosine of two chosen rows of a group\n"
        f"near copies: share of rows with a cosine above {NEAR_COPY} to another"
    )
    if train is None:
        parts.append(
            "--train TABLE adds baselines whose relevance scikit-learn learns from a "
            "labelled table"
        )
    return "\n\n".join(parts)


def _score_table(
    heads: Mapping[str, str], found: Mapping[str, dict[str, Interval]]
) -> str:
    """Return a text table: a line for each model or method in ``found``.

    Columns are the scores, of those in ``heads``, that any of them has.
    """
    known = set().union(*found.values())
    heads = {score: head for score, head in heads.items() if score in known}
    rows = [("", *heads.values())]
    for name, scores in found.items():
        rows.append(
            (name, *(_interval_text(score, scores.get(score)) for score in heads))
        )
    return align_columns(rows)


def _interval_text(score: str, interval: Interval | None, sign: str = "") -> str:
    """Return a mean and its interval as text, "-" for NaN and "" for None.

    For the scores "size" and "kinds" it is the mean alone.  ``sign`` is "+" to show the
    sign of positive numbers.
    """
    if interval is None:
        return ""
    if isnan(interval.mean):
        return "-"
    if score in ("size", "kinds"):
        return f"{interval.mean:.1f}"
    mean, low, high = (f"{value:{sign}.3f}" for value in interval)
    return f"{mean} [{low}, {high}]"
