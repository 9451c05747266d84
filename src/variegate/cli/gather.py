"""``variegate gather``: a folder of tables in which no group straddles files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from variegate.application import table_defaults
from variegate.cli.cluster_options import Cluster, cluster_options
from variegate.cli.paths import FOLDER, FORCE, PATH
from variegate.cli.progress import stage_progress
from variegate.cli.results import Interrupted, echo_json, say, say_written
from variegate.cli.table_options import JSON, need_tables
from variegate.cli.values import SIZE
from variegate.report.words import count

if TYPE_CHECKING:
    from variegate.tables.folder.gather import Gathered


@click.command(
    epilog="\b\nvariegate gather logs/ -o gathered/ --group query\n"
    "variegate gather logs/ -o gathered/ --group query --rows 1000000 --memory 4GB\n"
    "variegate gather logs/ -o gathered/ --group query --workers 8"
)
@click.argument("folder", type=PATH, metavar="DIR")
@click.option(
    "-o", "--out", type=FOLDER, required=True, metavar="DIR",
    help="The folder to write; it appears when all of its files are there.",
)  # fmt: skip
@click.option(
    "--group", required=True, metavar="COLUMN",
    help="Rows with the same value form a group, and go to one file.",
)  # fmt: skip
@click.option(
    "--files", type=click.IntRange(min=1), metavar="N",
    help="How many files to write; by default as many as are read.",
)  # fmt: skip
@click.option(
    "--rows", type=click.IntRange(min=1), metavar="N",
    help="In place of --files, how many rows a file should have about.",
)  # fmt: skip
@click.option(
    "--memory", type=SIZE, default=f"{table_defaults.MEMORY >> 20}MB",
    show_default=True, metavar="SIZE",
    help="Most memory for rows, of each worker; it is no bound for files or groups.",
)  # fmt: skip
@cluster_options(skip_unreadable=False)
@FORCE
@JSON
def gather(
    folder: Path,
    out: Path,
    group: str,
    files: int | None,
    rows: int | None,
    memory: int,
    cluster: Cluster | None,
    force: bool,
    as_json: bool,
) -> None:
    """Bring the rows of each group together in one file.

    The Parquet or Arrow files of a folder are written anew, in bounded memory. Rows of
    a group keep their order; groups are spread over the files as if at random, but
    always alike. Until the end there is a hidden folder beside that of -o, on a disk
    with room for the whole table; run again after an interruption, the command goes on
    from what is there.
    """
    need_tables()
    from variegate.tables.folder.gather import gather as gather_folder
    from variegate.tables.table import ignore

    if files is not None and rows is not None:
        raise click.UsageError("give --files or --rows, one of the two")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise click.UsageError(
            f"{out} is not empty: name another folder, or replace its tables with "
            "--force"
        )
    work = partial(
        gather_folder,
        folder,
        out,
        group=group,
        n_files=files,
        rows_a_file=rows,
        memory=memory,
        replace=force,
    )
    try:
        if cluster is None:
            with stage_progress() as progress:
                gathered = work(progress=progress or ignore)
        else:
            with cluster.engine() as (engine, told):
                gathered = work(engine=engine, progress=told)
    except KeyboardInterrupt:
        raise Interrupted("run it again, and it goes on from where it was") from None
    if as_json:
        echo_json(_numbers(gathered), indent=None)
    else:
        say(_as_text(gathered))
    say_written(out)


def _numbers(gathered: Gathered) -> dict[str, object]:
    return {
        "rows": gathered.n_rows,
        "groups": gathered.n_groups,
        "files": [str(path) for path in gathered.files],
    }


def _as_text(gathered: Gathered) -> str:
    return (
        f"{count(gathered.n_rows, 'row')} of {count(gathered.n_groups, 'group')} "
        f"gathered in {count(len(gathered.files), 'file')}"
    )
