"""``variegate select``: rows that are good and unlike each other, from a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.cli.notes import note, notes
from variegate.cli.paths import MODEL, OUTPUT, PATH, output, refuse_to_replace
from variegate.cli.progress import Stage, stage_progress
from variegate.cli.table_options import (
    FORCE,
    JOBS,
    MEMORY,
    column_options,
    columns_of,
    load_selector,
    need_tables,
    refuse_existing,
)
from variegate.cli.values import NAMES, Number
from variegate.report.words import count

if TYPE_CHECKING:
    from variegate.tables.choosing import Choice, Choices
    from variegate.tables.columns import Columns
    from variegate.tables.groups import Group, Groups
    from variegate.tables.table import Table


@click.command(
    epilog="\b\nvariegate select new.parquet --model model.json -o chosen.parquet\n"
    "variegate select new.csv --method mmr --k 5 --group query --relevance score \\\n"
    "    --similarity embedding -o chosen.csv"
)
@click.argument("table", type=PATH)
@click.option("--model", type=MODEL, metavar="FILE", help="What 'variegate fit' wrote.")
@click.option(
    "--method",
    type=click.Choice(
        ["dpp", "mmr", "facility-location", "k-medoids", "max-min", "top", "random"]
    ),
    help="Without a model, how to choose.",
)
@click.option(
    "-o", "--out", callback=output, type=OUTPUT, required=True, metavar="FILE",
    help="Where the rows are written: .parquet, .csv, .jsonl or .arrow.",
)  # fmt: skip
@click.option(
    "--k", type=click.IntRange(min=1), metavar="N",
    help="Rows to choose from each group; a model decides itself without it.",
)  # fmt: skip
@click.option(
    "--budget", type=Number(min=0.0, min_open=True), metavar="COST",
    help="The most that the rows of a group may cost together; needs --cost.",
)  # fmt: skip
@click.option(
    "--omega", type=Number(min=0.0, min_open=True),
    help="Below 1 few and precise, above 1 many and complete, between the values that "
    "the model was learned for.",
)  # fmt: skip
@click.option(
    "--trade-off", type=Number(min=0.0, max=1.0), default=0.5, show_default=True,
    help="Of a method: from 0 (relevance only) to 1 (diversity only).",
)  # fmt: skip
@click.option(
    "--all", "keep_all", is_flag=True,
    help='Write all rows, with a column "selected".',
)  # fmt: skip
@click.option(
    "--drop", type=NAMES, default=(), metavar="A,B,...",
    help="Columns to leave out of the file.",
)  # fmt: skip
@column_options("group", "similarity", "categorical", "relevance", "cost")
@click.option(
    "--seed", type=click.IntRange(min=0),
    help="For methods that draw at random; by default that of the model, or 0.",
)  # fmt: skip
@MEMORY
@JOBS
@FORCE
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def select(
    table: Path,
    model: Path | None,
    method: str | None,
    out: Path,
    k: int | None,
    budget: float | None,
    omega: float | None,
    trade_off: float,
    keep_all: bool,
    drop: tuple[str, ...],
    columns_file: Path | None,
    seed: int | None,
    memory: int,
    jobs: int | None,
    force: bool,
    as_json: bool,
    **parts: Any,
) -> None:
    """Choose rows of each group of a table.

    The chosen rows are written in the order of the table and with all their columns,
    next to which stand "selection_rank" and, from a model, "inclusion_probability".
    """
    need_tables()
    from variegate.tables.choosing import choose
    from variegate.tables.output import check_output, write_choices
    from variegate.tables.table import as_table
    from variegate.tables.training import ignore
    from variegate.tables.untrained import untrained_groups

    if (model is None) == (method is None):
        raise click.UsageError("choose with --model or with --method, one of the two")
    refuse_existing(force, out)
    refuse_to_replace(out, "-o", [table])
    columns = columns_of(columns_file, **parts)
    source = as_table(table)
    check_output(
        source, out, keep_all=keep_all, has_probability=model is not None, drop=drop
    )
    with notes(), stage_progress() as progress:
        report = progress or ignore
        if model is not None:
            _refuse_parts(parts)
            limits = (k, budget, omega)
            groups, way = _by_model(
                source, model, columns, limits, seed, memory, report
            )
        else:
            if omega is not None:
                raise click.UsageError("--omega is for a --model")
            way = _method(str(method), columns, k, budget, trade_off, seed or 0)
            groups = untrained_groups(source, columns, str(method), memory, report)
        choices = choose(
            groups,
            groups.survey.n_rows,
            way,
            jobs or -1,
            lambda done: report("choosing", done, len(groups)),
        )
        write_choices(
            source, choices, out, keep_all=keep_all, drop=drop, progress=progress
        )
    _note_unknown(groups)
    click.echo(_summary(choices, len(groups), out, as_json=as_json))
    click.echo(f"written: {out}", err=True)


def _refuse_parts(parts: Mapping[str, Any]) -> None:
    """Refuse options that a model has no use for; a file of columns may have them."""
    unused = [f"--{part}" for part in _OF_A_MODEL if parts[part]]
    if unused:
        raise click.UsageError(
            f"{' and '.join(unused)} cannot be used with --model, which knows its "
            "columns"
        )


#: Columns that a model knows.
_OF_A_MODEL = ("similarity", "categorical", "relevance")


def _by_model(
    source: Table,
    path: Path,
    columns: Columns,
    limits: tuple[int | None, float | None, float | None],
    seed: int | None,
    memory: int,
    report: Stage,
) -> tuple[Groups, Callable[[Group], Choice]]:
    """Return groups, and what a model chooses from each within ``k`` and a budget."""
    from variegate.tables.using import chooser_of, groups_of, with_columns

    k, budget, omega = limits
    selector = load_selector(path).set_params(memory=memory)
    selector = with_columns(selector, group=columns.group, cost=columns.cost)
    if seed is not None:
        selector.seed_ = seed
    way = chooser_of(selector, omega, k, budget)
    return groups_of(
        selector, source, use_costs=budget is not None, progress=report
    ), way


def _method(
    method: str,
    columns: Columns,
    k: int | None,
    budget: float | None,
    trade_off: float,
    seed: int,
) -> Callable[[Group], Choice]:
    from variegate.tables.choosing import ByMethod

    if k is None and budget is None:
        raise click.UsageError("say how many rows to choose: --k or --budget")
    if budget is not None and columns.cost is None:
        raise click.UsageError("--budget needs --cost, the column of costs")
    return ByMethod(method, k, budget, trade_off, seed)


def _note_unknown(groups: Groups) -> None:
    for name, number in groups.unknown_levels().items():
        note(
            f"{number:,} rows have a value of {name!r} that was not there in training: "
            "they count as none of its kinds"
        )


def _summary(choices: Choices, n_groups: int, out: Path, *, as_json: bool) -> str:
    n_rows, chosen = len(choices.selected), int(choices.selected.sum())
    # One row of every group that has any is the first.
    n_empty = n_groups - int((choices.rank == 1).sum())
    if as_json:
        result = {
            "rows": n_rows,
            "groups": n_groups,
            "empty_groups": n_empty,
            "chosen": chosen,
            "file": str(out),
        }
        return json.dumps(result, ensure_ascii=False)
    none = f", none from {n_empty:,} of them" if n_empty else ""
    return f"{chosen:,} of {n_rows:,} rows chosen from {count(n_groups, 'group')}{none}"
