"""The command line of the paper: ``python -m paper``."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from variegate.cli.app import run
from variegate.cli.options import FOLDER, Parsed
from variegate.cli.output import Interrupted, print_text
from variegate.cli.progress import show_progress
from variegate.cli.rouge import rouge, score_files


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def app() -> None:
    """Repeat an experiment of the paper: results, figures and a report."""


_out = click.option(
    "--out",
    type=FOLDER,
    required=True,
    help="Folder for results.json, report.md and the figures.",
)
_quick = click.option(
    "--quick", is_flag=True, help="A version that takes a minute or two."
)
_jobs = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Worker processes.  [default: one a core]",
)
_folder = click.Path(file_okay=False, exists=True, path_type=Path)
_data = click.option(
    "--data",
    type=_folder,
    help="Folder of the data.  [default: $VARIEGATE_DATA, or beside a checkout]",
)
_test_data = click.option(
    "--test-data",
    type=_folder,
    help="Learn from all of --data and report on this folder (same file names).",
)


_rows = click.option(
    "--row",
    "rows",
    metavar="NAME",
    multiple=True,
    help="Compute only this row of the tables, and the one that all are compared with; "
    "may be repeated.  Rows beyond the paper are computed where they are named.",
)

_duc = click.option(
    "--duc",
    type=_folder,
    help="Folder with duc2003 and duc2004: also run the paper's own protocol.",
)


def _add(name: str, label: str, what: str, *folders: Callable[[Any], Any]) -> None:
    """Add the command that runs an experiment; ``label`` is said of its progress."""

    def command(**options: Any) -> None:
        _run(name, label, **options)

    for option in (_jobs, _quick, *reversed(folders), _out):
        command = option(command)
    again = (
        "Interrupted runs go on where they stopped when repeated with the same options."
    )
    app.command(name, help=f"{what}\n\n{again}")(command)


def _run(
    name: str,
    label: str,
    out: Path,
    quick: bool,
    jobs: int | None,
    rows: tuple[str, ...] = (),
    **folders: Any,
) -> None:
    """Run an experiment; print its claims beside what was measured."""
    # The bar is there before the imports, which take a second or two.
    with show_progress(label, at_once=True) as progress:
        from paper.text_tables import ruled_columns
        from variegate.report.figures import new_figure

        experiment = import_module(f"paper.{name}")
        new_figure()  # better to fail now than after the fits if matplotlib is missing
        settings = experiment.Settings.quick() if quick else experiment.Settings()
        if rows:
            settings = replace(settings, rows=rows)
        try:
            outcome = experiment.reproduce(
                out,
                settings,
                command=_command_line(name, quick, rows, folders),
                jobs=jobs or os.cpu_count() or 1,
                progress=progress,
                **folders,
            )
        except KeyboardInterrupt:
            raise Interrupted("the same command goes on where it stopped") from None
    claims = [(claim.paper, claim.measured, claim.holds) for claim in outcome.claims]
    print_text(ruled_columns(outcome.claims_header, claims, widths=(36, 48, 14)))
    print_text("written: " + ", ".join(str(path) for path in outcome.files), err=True)


def _command_line(
    name: str, quick: bool, rows: tuple[str, ...], folders: dict[str, Any]
) -> str:
    """Return the command as the report shows it, with DIR for every folder."""
    command = f"python -m paper {name} --out DIR"
    command += " --data DIR" * ("data" in folders)
    command += " --test-data DIR" * (folders.get("test_data") is not None)
    command += " --duc DIR" * (folders.get("duc") is not None)
    command += "".join(f" --row {row!r}" for row in rows)
    return command + " --quick" * quick


_add(
    "synthetic",
    "fitting",
    "Section 4.1: figures 1a, 1b and 1c on synthetic ground sets.",
)
_add(
    "documents",
    "learning",
    "Section 4.2: summaries of clusters of documents, table 1.",
    *(_data, _test_data, _duc, _rows),
)
_add(
    "video",
    "learning",
    "Section 4.3: key frames of videos, table 2 and figures 2 and 3.",
    *(_data, _test_data, _rows),
)
_add(
    "evidence",
    "learning",
    "Beyond the paper: sentences that people marked for questions and in reviews.",
    *(_data, _test_data),
)


def _distance(value: str) -> float:
    if not value.isdecimal() and value != "unlimited":
        raise ValueError(f"{value!r} is not a whole number or 'unlimited'")
    return math.inf if value == "unlimited" else int(value)


@app.command(
    "rouge",
    params=[option for option in rouge.params if option.name != "su"],
)
@click.option("--lcs", is_flag=True, help="ROUGE-L too.")
@click.option("--w", type=float, help="ROUGE-W with this weight too, 1.2 by custom.")
@click.option(
    "--skip",
    type=Parsed("distance", _distance),
    metavar="N",
    help="ROUGE-S too: pairs with at most N words between; N may be 'unlimited'.",
)
@click.option(
    "--su",
    type=Parsed("distance", _distance),
    metavar="N",
    help="ROUGE-SU too: such pairs, and single words.",
)
def _rouge(**options: Any) -> None:
    """Score summaries as 'variegate rouge' does, by more measures."""
    from paper.rouge import FullRouge

    score_files(FullRouge, **options)


if __name__ == "__main__":
    run(app, "paper")
