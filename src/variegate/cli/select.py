"""``variegate select``: rows that are good and unlike each other, from a table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.baselines import METHODS
from variegate.cli.notes import note, notes
from variegate.cli.paths import (
    FORCE,
    MODEL,
    PATH,
    output_option,
    refuse_existing,
    refuse_to_replace,
)
from variegate.cli.progress import stage_progress
from variegate.cli.results import echo_json, say, say_written
from variegate.cli.table_options import (
    JOBS,
    JSON,
    MEMORY,
    SEPARATOR,
    column_options,
    columns_of,
    load_selector,
    need_tables,
    open_table,
    trade_off,
)
from variegate.cli.values import NAMES, POSITIVE
from variegate.report.words import count

if TYPE_CHECKING:
    from variegate.tables.choosing import Choices
    from variegate.tables.columns import Columns

#: Parts of a table that have an option, and those of them that a model knows.
_COLUMNS = ("group", "similarity", "categorical", "relevance", "cost")
_OF_A_MODEL = ("similarity", "categorical", "relevance")


@click.command(
    epilog="\b\nvariegate select new.parquet --model model.json -o chosen.parquet\n"
    "variegate select new.csv --method mmr --k 5 --group query --relevance score \\\n"
    "    --similarity embedding -o chosen.csv"
)
@click.argument("table", type=PATH)
@click.option("--model", type=MODEL, metavar="FILE", help="What 'variegate fit' wrote.")
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    help="Without a model, how to choose.",
)
@output_option(
    "-o", "--out", required=True,
    help="Where the rows are written: .parquet, .csv, .jsonl or .arrow.",
)  # fmt: skip
@click.option(
    "--k", type=click.IntRange(min=1), metavar="N",
    help="Rows to choose from each group; a model decides itself without it.",
)  # fmt: skip
@click.option(
    "--budget", type=POSITIVE, metavar="COST",
    help="The most that the rows of a group may cost together; needs --cost.",
)  # fmt: skip
@click.option(
    "--omega", type=POSITIVE,
    help="Below 1 few and precise, above 1 many and complete, between the values that "
    "the model was learned for.",
)  # fmt: skip
@trade_off(help="Of a method: from 0 (relevance only) to 1 (diversity only).")
@click.option(
    "--all", "keep_all", is_flag=True,
    help='Write all rows, with a column "selected".',
)  # fmt: skip
@click.option(
    "--drop", type=NAMES, default=(), metavar="A,B,...",
    help="Columns to leave out of the file; * stands for anything.",
)  # fmt: skip
@SEPARATOR
@column_options(*_COLUMNS)
@click.option(
    "--seed", type=click.IntRange(min=0),
    help="For methods that draw at random; by default that of the model, or 0.",
)  # fmt: skip
@MEMORY
@JOBS
@FORCE
@JSON
def select(
    table: Path,
    model: Path | None,
    method: str | None,
    out: Path,
    separator: str | None,
    columns_file: Path | None,
    omega: float | None,
    trade_off: float,
    seed: int | None,
    memory: int,
    n_jobs: int,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Choose rows of each group of a table.

    The chosen rows are written in the order of the table and with all their columns,
    next to which stand "selection_rank" and, from a model, "inclusion_probability".
    """
    need_tables()
    from variegate.tables.untrained import select_untrained

    refuse_existing(force, out)
    refuse_to_replace(out, "-o", [table])
    parts = {part: given.pop(part) for part in _COLUMNS}
    columns = columns_of(columns_file, **parts)
    _refuse_mixture(model, method, columns, parts, {**given, "omega": omega})
    source = open_table(table, separator)
    with notes(), stage_progress() as progress:
        how = {"out": out, "progress": progress, **given}
        if model is not None:
            selector = load_selector(model, memory, n_jobs)
            selector = selector.with_columns(group=columns.group, cost=columns.cost)
            selector.seed_ = selector.seed_ if seed is None else seed
            choices = selector.select(source, omega=omega, **how)
        else:
            how |= {"memory": memory, "n_jobs": n_jobs, "seed": seed or 0}
            choices = select_untrained(
                source, columns, str(method), trade_off=trade_off, **how
            )
    for name, number in choices.unknown_levels.items():
        note(
            f"{number:,} rows have a value of {name!r} that was not there in training: "
            "they count as none of its kinds"
        )
    if as_json:
        echo_json(_numbers(choices, out), indent=None, default=str)
    else:
        say(_as_text(choices))
    say_written(out)


def _refuse_mixture(
    model: Path | None,
    method: str | None,
    columns: Columns,
    parts: Mapping[str, Any],
    given: Mapping[str, Any],
) -> None:
    """Refuse options that do not go together; a file of columns may have them all."""
    if (model is None) == (method is None):
        raise click.UsageError("choose with --model or with --method, one of the two")
    if model is not None:
        unused = [f"--{part}" for part in _OF_A_MODEL if parts[part]]
        if unused:
            raise click.UsageError(
                f"{' and '.join(unused)} cannot be used with --model, which knows its "
                "columns"
            )
        return
    if given["omega"] is not None:
        raise click.UsageError("--omega is for a --model")
    if given["k"] is None and given["budget"] is None:
        raise click.UsageError("say how many rows to choose: --k or --budget")
    if given["budget"] is not None and columns.cost is None:
        raise click.UsageError("--budget needs --cost, the column of costs")


def _counts(choices: Choices) -> dict[str, int]:
    return {
        "rows": len(choices.rank),
        "groups": len(choices.groups),
        # One row of every group that has any is the first.
        "empty_groups": len(choices.groups) - int((choices.rank == 1).sum()),
        "chosen": int(choices.selected.sum()),
    }


def _numbers(choices: Choices, out: Path) -> dict[str, Any]:
    endings = [
        {"group": name, **ending}
        for name, ending in zip(choices.groups, choices.endings, strict=False)
    ]
    return {**_counts(choices), "file": str(out), "endings": endings}


def _as_text(choices: Choices) -> str:
    n = _counts(choices)
    none = f", none from {n['empty_groups']:,} of them" if n["empty_groups"] else ""
    groups = count(n["groups"], "group")
    return f"{n['chosen']:,} of {n['rows']:,} rows chosen from {groups}{none}"
