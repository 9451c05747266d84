"""``variegate evaluate``: learned models against untrained methods, on labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.cli.notes import note, notes
from variegate.cli.paths import MODEL, PATH
from variegate.cli.progress import stage_progress
from variegate.cli.table_options import JOBS, MEMORY, load_selector, need_tables
from variegate.cli.values import NAMES, Number
from variegate.report.terminal import columns

if TYPE_CHECKING:
    from variegate.tables.evaluation import Evaluation, Interval

#: The columns of the table that is printed.
_SHOWN = {"precision": "precision", "recall": "recall", "f": "F"}


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
    "--omega", type=Number(min=0.0, min_open=True),
    help="For the models; by default each its own.",
)  # fmt: skip
@click.option(
    "--methods", type=NAMES, default="dpp,mmr,top", show_default=True,
    metavar="A,B,...", help="Untrained methods to compare with, or none.",
)  # fmt: skip
@click.option(
    "--relevance", metavar="COLUMN",
    help="What they go by; by default the first quality column.",
)  # fmt: skip
@click.option(
    "--k", metavar="N",
    help="How many rows they choose from each group: a number, or 'wanted' for as many "
    "as are labelled 1 there. By default the mean of the training groups.",
)  # fmt: skip
@click.option(
    "--trade-off", type=Number(min=0.0, max=1.0), default=0.5, show_default=True,
    help="From 0 (relevance only) to 1 (diversity only).",
)  # fmt: skip
@click.option(
    "--empty-groups", type=click.Choice(["error", "keep", "drop"]), default="error",
    show_default=True, help="What to do with groups of which no row was chosen.",
)  # fmt: skip
@click.option("--label", metavar="COLUMN", help="By default that of the first model.")
@MEMORY
@JOBS
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
def evaluate(
    table: Path,
    models: tuple[Path, ...],
    omega: float | None,
    methods: tuple[str, ...],
    relevance: str | None,
    k: str | None,
    trade_off: float,
    empty_groups: str,
    label: str | None,
    memory: int,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Compare what models choose with the labels of a table.

    Precision, recall and F-score are means over groups, with 95 % intervals from
    bootstrap samples of the groups; untrained methods choose from the same groups.
    """
    need_tables()
    from variegate._validation import check_choice
    from variegate.baselines import METHODS
    from variegate.tables.comparison import Contest, default_relevance, untrained_ways
    from variegate.tables.table import as_table
    from variegate.tables.using import with_columns

    source = as_table(table)
    selectors = {str(path): load_selector(path) for path in models}
    if len(selectors) < len(models):
        raise click.UsageError("a model cannot be compared with itself: name each once")
    first = next(iter(selectors.values()))
    for name, selector in selectors.items():
        selector.set_params(memory=memory, n_jobs=jobs or -1)
        selectors[name] = with_columns(
            selector, first.columns_.group, label or first.columns_.label
        )
    first = next(iter(selectors.values()))
    methods = () if methods == ("none",) else methods
    for method in methods:
        check_choice("method", method, METHODS)
    guessed = default_relevance(first) if methods and relevance is None else None
    if "top" in methods and relevance is None and guessed is None:
        raise click.UsageError(
            "'top' needs --relevance: no quality column of the model is a number"
        )
    ways = untrained_ways(methods, _count(k, first.training_), trade_off)
    contest = Contest(
        source, selectors, ways, relevance or guessed, omega, empty_groups
    )
    with notes(), stage_progress() as progress:
        result = contest.judge(progress)
    if guessed is not None:
        # Not before, so that what is wrong is said in one line.
        note(f"untrained methods go by {guessed!r}; --relevance names another")
    click.echo(
        json.dumps(_as_json(result), indent=1, ensure_ascii=False)
        if as_json
        else _as_text(result)
    )


def _count(k: str | None, training: dict[str, Any]) -> int | None:
    """Return how many rows untrained methods choose, None for as many as wanted."""
    if k == "wanted":
        return None
    if k is None:
        return max(1, round(float(training["chosen_sizes"]["mean"])))
    if not k.isdecimal() or int(k) == 0:
        raise click.BadParameter(f"--k is a number of rows or 'wanted', not {k!r}")
    return int(k)


def _as_json(result: Evaluation) -> dict[str, Any]:
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
