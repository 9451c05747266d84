"""``variegate gather``: a folder of tables in which each group lies in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from variegate.cli import options, output
from variegate.cli.cluster import ClusterChoice, cluster_options, working
from variegate.report.wording import count


@click.command(
    epilog="\b\nvariegate gather logs/ -o gathered/ --group query\n"
    "variegate gather logs/ -o gathered/ --group query --rows 1000000 --memory 4GB\n"
    "variegate gather logs/ -o gathered/ --group query --workers 8"
)
@click.argument("folder", type=options.PATH, metavar="DIR")
@click.option(
    "-o", "--out", type=options.FOLDER, required=True, metavar="DIR",
    help="Folder to write; it appears when all of its files are there.",
)  # fmt: skip
@click.option(
    "--group", required=True, metavar="COLUMN",
    help="Column whose equal values form a group.",
)  # fmt: skip
@click.option(
    "--files", type=options.COUNT, metavar="N",
    help="Files to write.  [default: as many as are read]",
)  # fmt: skip
@click.option(
    "--rows", type=options.COUNT, metavar="N",
    help="Rows that a file should have about, in place of --files.",
)  # fmt: skip
@options.memory_option(help="Memory for rows, of each worker.")
@cluster_options(skip_unreadable=False)
@options.FORCE
@options.JSON
def gather(
    folder: Path,
    out: Path,
    files: int | None,
    rows: int | None,
    cluster: ClusterChoice | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Bring the rows of each group together in one file.

    The Parquet or Arrow files of a folder are written anew, in bounded memory. Rows of
    a group keep their order; groups are spread over the files as if at random, but
    always alike. Until the end there is a hidden folder beside that of -o, on a disk
    with room for the whole table; run again after an interruption, the command resumes
    from it.
    """
    options.need_tables()
    from variegate.tables.gathering import gather as gather_folder

    if files is not None and rows is not None:
        raise click.UsageError("give --files or --rows, one of the two")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise click.UsageError(
            f"{out} is not empty: name another folder, or replace its tables with "
            "--force"
        )
    given |= {"n_files": files, "rows_a_file": rows, "replace": force}
    with working(cluster, "run it again, and it resumes") as (engine, progress):
        gathered = gather_folder(folder, out, engine=engine, progress=progress, **given)
    n_rows, n_groups, written = gathered.n_rows, gathered.n_groups, gathered.files
    numbers = {"rows": n_rows, "groups": n_groups, "files": list(map(str, written))}
    text = (
        f"{count(n_rows, 'row')} of {count(n_groups, 'group')} gathered in "
        f"{count(len(written), 'file')}"
    )
    output.say_result(as_json, numbers, lambda: text, indent=None)
    output.say_written(out)
