"""``variegate gather``: a folder of tables in which each group lies in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from variegate.cli import options, output
from variegate.cli.cluster import Cluster, cluster_options
from variegate.cli.options import COUNT, option
from variegate.report.wording import count


@click.command(
    epilog="\b\nvariegate gather logs/ -o gathered/ --group query\n"
    "variegate gather logs/ -o gathered/ --group query --rows 1000000 --memory 4GB\n"
    "variegate gather logs/ -o gathered/ --group query --workers 8"
)
@click.argument("folder", type=options.PATH, metavar="DIR")
@option(
    "-o --out DIR", "Folder to write; it appears when all of its files are there.",
    options.FOLDER, required=True,
)  # fmt: skip
@option("--group COLUMN", "Column whose equal values form a group.", required=True)
@option("--files N", "Files to write.  [default: as many as are read]", COUNT)
@option("--rows N", "Rows that a file should have about, in place of --files.", COUNT)
@options.memory_option("Memory for rows, of each worker.")
@cluster_options(skip_unreadable=False)
@options.FORCE
@options.JSON
def gather(
    folder: Path,
    out: Path,
    files: int | None,
    rows: int | None,
    cluster: Cluster,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Bring the rows of each group together in one file.

    The Parquet or Arrow files of a folder are written anew, in bounded memory. Groups
    are in the order of their first rows, and rows of a group keep their order. Until
    the end there is a hidden folder beside that of -o, on a disk with room for the
    whole table; run again after an interruption, the command resumes from it.
    """
    from variegate.tables.gathering import gather as gather_folder

    if files is not None and rows is not None:
        raise click.UsageError("give --files or --rows, one of the two")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise click.UsageError(
            f"{out} is not empty: name another folder, or replace its tables with "
            "--force"
        )
    given |= {"n_files": files, "rows_a_file": rows, "replace": force}
    with cluster.engine_and_progress("run it again, and it resumes") as (
        engine,
        progress,
    ):
        made = gather_folder(folder, out, engine=engine, progress=progress, **given)
    numbers = {
        "rows": made.n_rows,
        "groups": made.n_groups,
        "files": list(map(str, made.files)),
    }
    text = (
        f"{count(made.n_rows, 'row')} of {count(made.n_groups, 'group')} gathered in "
        f"{count(len(made.files), 'file')}"
    )
    output.print_result(as_json, numbers, lambda: text, indent=None)
    output.print_written(out)
