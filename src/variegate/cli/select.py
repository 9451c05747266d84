"""``variegate select``: rows that are good and unlike each other, from a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.baselines import METHODS
from variegate.cli import options, output
from variegate.cli.cluster import (
    ClusterChoice,
    cluster_options,
    note_unreadable,
    refuse_on_cluster,
    working,
)
from variegate.cli.progress import show_progress
from variegate.report.wording import count

if TYPE_CHECKING:
    from variegate.tables.columns import Columns
    from variegate.tables.table import Table

#: Roles of columns that have an option, and those of them that a model knows.
_ROLES = ("group", "similarity", "categorical", "relevance", "cost")
_OF_A_MODEL = ("similarity", "categorical", "relevance")

#: Reasons why options cannot be used with a cluster.
_UNUSED = {
    "method": "workers choose by a --model",
    "force": "only what is missing is done; remove the folder to begin again",
}


@click.command(
    epilog="\b\nvariegate select new.parquet --model model.json -o chosen.parquet\n"
    "variegate select new.csv --method mmr --k 5 --group query --relevance score \\\n"
    "    --similarity embedding -o chosen.csv\n"
    "variegate select new/ --model model.json --workers 8 -o chosen/"
)
@click.argument("table", type=options.PATH)
@options.MODEL(help="Model of 'variegate fit' to choose by.")
@click.option(
    "--method", type=click.Choice(list(METHODS)),
    help="Untrained method to choose by, in place of --model.",
)  # fmt: skip
@click.option(
    "-o", "--out", type=options.PATH, required=True, metavar="FILE",
    help="File to write: .parquet, .csv, .jsonl or .arrow. On a cluster a folder, with "
    "a file for each of TABLE.",
)  # fmt: skip
@click.option(
    "--k", type=options.COUNT, metavar="N",
    help="Rows to choose from each group.  [default: the model decides]",
)  # fmt: skip
@options.BUDGET
@click.option(
    "--omega", type=options.POSITIVE, metavar="W",
    help="Omega of the model: below 1 few rows and precise, above 1 many and complete.",
)  # fmt: skip
@options.TRADE_OFF
@click.option(
    "--all", "keep_all", is_flag=True,
    help='Write all rows, with a column "selected".',
)  # fmt: skip
@click.option(
    "--drop", type=options.NAMES, default=(), metavar="A,B,...",
    help="Columns to leave out of the file; * matches anything.",
)  # fmt: skip
@options.SEPARATOR
@options.column_options(*_ROLES)
@click.option(
    "--seed", type=click.IntRange(min=0), metavar="N",
    help="Seed of random methods.  [default: that of the model, or 0]",
)  # fmt: skip
@options.MEMORY
@options.JOBS
@cluster_options()
@options.FORCE
@options.JSON
def select(
    table: Path,
    model: Path | None,
    method: str | None,
    out: Path,
    separator: str | None,
    column_roles: Sequence[Path | tuple[str, str]],
    seed: int | None,
    cluster: ClusterChoice | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Choose rows of each group of a table.

    The chosen rows are written in the order of the table and with all their columns,
    next to which stand "selection_rank" and, from a model, "inclusion_probability".

    On a cluster, TABLE and -o are folders. Run again after an interruption, the command
    writes only the files that are missing; .manifest.sqlite in the folder of -o records
    those that are finished.
    """
    options.need_tables()
    from variegate.tables.selecting import select_untrained

    if cluster is None:
        output.check_writable(out, option="-o")
        output.refuse_existing(force, out)
        output.refuse_to_replace(out, "-o", [table])
    else:
        refuse_on_cluster(**_UNUSED)
        output.check_writable(out, is_folder=True, option="-o")
    roles = {role: given.pop(role) for role in _ROLES}
    columns = options.columns_of(column_roles, **roles)
    _refuse_mixture(model, method, columns, roles, given)
    choose: Callable[..., Any] = partial(
        select_untrained, columns=columns, method=str(method), seed=seed or 0
    )
    del given["omega" if model is None else "trade_off"]
    if model is not None:
        parameters = given.pop("memory"), given.pop("n_jobs")
        selector = options.load_selector(model, *parameters)
        selector = selector.with_columns(group=columns.group, cost=columns.cost)
        selector.seed_ = selector.seed_ if seed is None else seed
        choose = selector.select
    skip = cluster is not None and cluster.skip_unreadable
    with output.notes():
        source = options.open_table(table, separator, skip)
        if cluster is None:
            numbers, unknown = _select_locally(choose, source, out, given)
        else:
            given |= {"skip_unreadable": skip, "out": out}
            numbers, unknown = _select_on(cluster, choose, source, given)
    for name, number in unknown.items():
        output.note(
            f"{number:,} rows have a value of {name!r} that was not there in training: "
            "they count as none of its kinds"
        )
    text = partial(_as_text, **numbers)
    output.say_result(as_json, numbers, text, indent=None, default=str)
    output.say_written(out)


def _as_text(
    rows: int, groups: int, empty_groups: int, chosen: int, **others: Any
) -> str:
    none = f", none from {empty_groups:,} of them" if empty_groups else ""
    return f"{chosen:,} of {rows:,} rows chosen from {count(groups, 'group')}{none}"


def _select_locally(
    choose: Callable[..., Any], table: Table, out: Path, given: Mapping[str, Any]
) -> tuple[dict[str, Any], Mapping[str, int]]:
    """Choose rows of a table by a model or a method.

    Returns the numbers for JSON, and the counts of unknown levels of categories.
    """
    with show_progress() as progress:
        choices = choose(table, out=out, progress=progress, **given)
    endings = [
        {"group": name, **ending}
        for name, ending in zip(choices.groups, choices.endings, strict=False)
    ]
    numbers = {
        "rows": len(choices.rank),
        "groups": len(choices.groups),
        # One row of every group that has any is the first.
        "empty_groups": len(choices.groups) - int((choices.rank == 1).sum()),
        "chosen": int(choices.selected.sum()),
        "file": str(out),
        "endings": endings,
    }
    return numbers, choices.unknown_levels


def _select_on(
    cluster: ClusterChoice,
    choose: Callable[..., Any],
    table: Table,
    given: Mapping[str, Any],
) -> tuple[dict[str, Any], Mapping[str, int]]:
    """Do the same with the files of a folder, on a cluster."""
    resume = "run it again, and it does only what is missing"
    with working(cluster, resume) as (engine, progress):
        found = choose(table, engine=engine, progress=progress, **given)
    note_unreadable(found.unreadable)
    numbers = {
        "rows": found.n_rows,
        "groups": found.n_groups,
        "empty_groups": found.n_empty,
        "chosen": found.n_chosen,
        "folder": str(found.folder),
        "files": found.n_files,
        "written": found.n_written,
        "unreadable": list(found.unreadable),
        "stop_reasons": dict(found.stop_reasons),
    }
    return numbers, found.unknown_levels


def _refuse_mixture(
    model: Path | None,
    method: str | None,
    columns: Columns,
    roles: Mapping[str, Any],
    given: Mapping[str, Any],
) -> None:
    """Refuse options that do not go together; --columns may have all roles."""
    if (model is None) == (method is None):
        raise click.UsageError("choose with --model or with --method, one of the two")
    if model is not None:
        unused = [f"--{role}" for role in _OF_A_MODEL if roles[role]]
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
