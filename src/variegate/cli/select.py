"""``variegate select``: rows that are good and unlike each other, from a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from variegate.baselines import METHODS
from variegate.cli.cluster_options import (
    Cluster,
    cluster_options,
    note_unreadable,
    refuse_on_cluster,
)
from variegate.cli.notes import note, notes
from variegate.cli.paths import (
    FORCE,
    MODEL,
    PATH,
    check_writable,
    refuse_existing,
    refuse_to_replace,
)
from variegate.cli.progress import stage_progress
from variegate.cli.results import Interrupted, echo_json, say, say_written
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
    from variegate.tables.columns import Columns
    from variegate.tables.folder.files import FolderTable
    from variegate.tables.selector import TableSelector
    from variegate.tables.table import Table

#: Parts of a table that have an option, and those of them that a model knows.
_COLUMNS = ("group", "similarity", "categorical", "relevance", "cost")
_OF_A_MODEL = ("similarity", "categorical", "relevance")

#: What a cluster has no use for.
_AT_HOME = {
    "method": "workers choose by a --model",
    "n_jobs": "each worker has one thread",
    "separator": "the files of a folder need none",
    "force": "only what is missing is done; remove the folder to begin again",
}


@click.command(
    epilog="\b\nvariegate select new.parquet --model model.json -o chosen.parquet\n"
    "variegate select new.csv --method mmr --k 5 --group query --relevance score \\\n"
    "    --similarity embedding -o chosen.csv\n"
    "variegate select new/ --model model.json --workers 8 -o chosen/"
)
@click.argument("table", type=PATH)
@click.option("--model", type=MODEL, metavar="FILE", help="What 'variegate fit' wrote.")
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    help="Without a model, how to choose.",
)
@click.option(
    "-o", "--out", type=PATH, required=True, metavar="FILE",
    help="Where the rows are written: .parquet, .csv, .jsonl or .arrow. On a cluster a "
    "folder, with a file for each of TABLE.",
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
@cluster_options()
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
    cluster: Cluster | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Choose rows of each group of a table.

    The chosen rows are written in the order of the table and with all their columns,
    next to which stand "selection_rank" and, from a model, "inclusion_probability".

    On a cluster, TABLE and -o are folders. The latter has a manifest.json, too, by
    which the command does only what is missing when it is run again.
    """
    need_tables()
    if cluster is None:
        check_writable(out, option="-o")
        refuse_existing(force, out)
        refuse_to_replace(out, "-o", [table])
    else:
        refuse_on_cluster(_AT_HOME)
        check_writable(out, is_folder=True, option="-o")
    parts = {part: given.pop(part) for part in _COLUMNS}
    columns = columns_of(columns_file, **parts)
    _refuse_mixture(model, method, columns, parts, {**given, "omega": omega})
    selector = None
    if model is not None:
        selector = load_selector(model, memory, n_jobs)
        selector = selector.with_columns(group=columns.group, cost=columns.cost)
        selector.seed_ = selector.seed_ if seed is None else seed
    with notes():
        if cluster is not None and selector is not None:
            folder = cluster.folder(table)
            done = _select_on(cluster, selector, folder, out, omega=omega, **given)
        else:
            given |= {"omega": omega} if selector else {"trade_off": trade_off}
            given |= {} if selector else {"memory": memory, "n_jobs": n_jobs}
            source = open_table(table, separator)
            done = _select_here(source, selector, columns, method, seed, out, **given)
    for name, number in done.unknown_levels.items():
        note(
            f"{number:,} rows have a value of {name!r} that was not there in training: "
            "they count as none of its kinds"
        )
    if as_json:
        echo_json(done.numbers, indent=None, default=str)
    else:
        say(str(done))
    say_written(out)


@dataclass(frozen=True)
class _Done:
    """What was chosen; ``rest`` is for programs."""

    n_rows: int
    n_groups: int
    n_empty: int
    n_chosen: int
    unknown_levels: Mapping[str, int]
    rest: Mapping[str, Any]

    @property
    def numbers(self) -> dict[str, Any]:
        """All of it, for programs."""
        return {
            "rows": self.n_rows,
            "groups": self.n_groups,
            "empty_groups": self.n_empty,
            "chosen": self.n_chosen,
            **self.rest,
        }

    def __str__(self) -> str:
        none = f", none from {self.n_empty:,} of them" if self.n_empty else ""
        groups = count(self.n_groups, "group")
        return f"{self.n_chosen:,} of {self.n_rows:,} rows chosen from {groups}{none}"


def _select_here(
    table: Table,
    selector: TableSelector | None,
    columns: Columns,
    method: str | None,
    seed: int | None,
    out: Path,
    **how: Any,
) -> _Done:
    """Choose rows of a table, by a model or by a method, in this process."""
    from variegate.tables.untrained import select_untrained

    with stage_progress() as progress:
        how |= {"out": out, "progress": progress}
        if selector is not None:
            choices = selector.select(table, **how)
        else:
            how |= {"seed": seed or 0}
            choices = select_untrained(table, columns, str(method), **how)
    endings = [
        {"group": name, **ending}
        for name, ending in zip(choices.groups, choices.endings, strict=False)
    ]
    return _Done(
        len(choices.rank),
        len(choices.groups),
        # One row of every group that has any is the first.
        len(choices.groups) - int((choices.rank == 1).sum()),
        int(choices.selected.sum()),
        choices.unknown_levels,
        {"file": str(out), "endings": endings},
    )


def _select_on(
    cluster: Cluster,
    selector: TableSelector,
    folder: FolderTable,
    out: Path,
    **how: Any,
) -> _Done:
    """Choose rows of the files of a folder on a cluster."""
    how["skip_unreadable"] = cluster.skip_unreadable
    try:
        with cluster.engine() as (engine, progress):
            found = selector.select(
                folder, out=out, engine=engine, progress=progress, **how
            )
    except KeyboardInterrupt:
        raise Interrupted("run it again, and it does only what is missing") from None
    note_unreadable(found.unreadable)
    return _Done(
        found.n_rows,
        found.n_groups,
        found.n_empty,
        found.n_chosen,
        found.unknown_levels,
        {
            "folder": str(out),
            "files": found.n_files,
            "written": found.n_written,
            "unreadable": list(found.unreadable),
            "stop_reasons": dict(found.stop_reasons),
        },
    )


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
