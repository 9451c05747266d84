"""``variegate reproduce``: the paper's experiments."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from variegate.cli.errors import Interrupted
from variegate.cli.progress import progress_bar

if TYPE_CHECKING:
    from variegate.experiments.outcome import Outcome


@click.group()
def reproduce() -> None:
    """Repeat an experiment of the paper: results, figures and a report."""


_out = click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for results.json, report.md and the figures.",
)
_quick = click.option(
    "--quick", is_flag=True, help="A version that takes a minute or two."
)
_jobs = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=None,
    help="Worker processes.  [default: one a core]",
)
_folder = click.Path(file_okay=False, exists=True, path_type=Path)
_data = click.option(
    "--data",
    type=_folder,
    default=None,
    help="Folder of the data.  [default: $VARIEGATE_DATA, or beside a checkout]",
)
_test_data = click.option(
    "--test-data",
    type=_folder,
    default=None,
    help="Learn from all of --data and report on this folder (same file names).",
)


@reproduce.command()
@_out
@_quick
@_jobs
def synthetic(out: Path, quick: bool, jobs: int | None) -> None:
    """Section 4.1: figures 1a, 1b and 1c on synthetic ground sets.

    Interrupted runs go on where they stopped when repeated with the same options.
    """
    # Imported here: the figures need packages that other commands do not.
    from variegate.experiments.synthetic import Settings, report
    from variegate.experiments.synthetic import reproduce as run
    from variegate.report.figures import new_figure

    new_figure()  # better to learn now than after the fits that matplotlib is missing
    settings = Settings.quick() if quick else Settings()
    command = f"variegate reproduce synthetic --out DIR{' --quick' * quick}"
    with progress_bar("fitting") as progress:
        try:
            outcome = run(out, settings, jobs or os.cpu_count() or 1, progress, command)
        except KeyboardInterrupt:
            raise Interrupted("the same command goes on where it stopped") from None
    _say(outcome, report.CLAIM_HEADER)


@reproduce.command()
@_out
@_data
@_test_data
@click.option(
    "--duc",
    type=_folder,
    default=None,
    help="Folder with duc2003 and duc2004: also run the paper's own protocol.",
)
@_quick
@_jobs
def documents(
    out: Path,
    data: Path | None,
    test_data: Path | None,
    duc: Path | None,
    quick: bool,
    jobs: int | None,
) -> None:
    """Section 4.2: summaries of clusters of documents, table 1.

    Interrupted runs go on where they stopped when repeated with the same options.
    """
    from variegate.experiments.documents import Settings, report
    from variegate.experiments.documents import reproduce as run
    from variegate.report.figures import new_figure

    new_figure()
    settings = Settings.quick() if quick else Settings()
    command = "variegate reproduce documents --out DIR --data DIR"
    command += " --test-data DIR" * (test_data is not None)
    command += " --duc DIR" * (duc is not None) + " --quick" * quick
    with progress_bar("learning") as progress:
        try:
            outcome = run(
                out,
                settings,
                data,
                test_data,
                duc,
                jobs or os.cpu_count() or 1,
                progress,
                command,
            )
        except KeyboardInterrupt:
            raise Interrupted("the same command goes on where it stopped") from None
    _say(outcome, report.CLAIM_HEADER)


@reproduce.command()
@_out
@_data
@_test_data
@_quick
@_jobs
def video(
    out: Path,
    data: Path | None,
    test_data: Path | None,
    quick: bool,
    jobs: int | None,
) -> None:
    """Section 4.3: key frames of videos, table 2 and figures 2 and 3.

    Interrupted runs go on where they stopped when repeated with the same options.
    """
    from variegate.experiments.video import Settings, report
    from variegate.experiments.video import reproduce as run
    from variegate.report.figures import new_figure

    new_figure()
    settings = Settings.quick() if quick else Settings()
    command = "variegate reproduce video --out DIR --data DIR"
    command += " --test-data DIR" * (test_data is not None) + " --quick" * quick
    with progress_bar("learning") as progress:
        try:
            outcome = run(
                out,
                settings,
                data,
                test_data,
                jobs or os.cpu_count() or 1,
                progress,
                command,
            )
        except KeyboardInterrupt:
            raise Interrupted("the same command goes on where it stopped") from None
    _say(outcome, report.CLAIM_HEADER)


def _say(outcome: Outcome, header: Sequence[str]) -> None:
    """Print the claims beside what was measured, and say what was written."""
    from variegate.report.markdown import terminal_table

    rows = [(claim.paper, claim.measured, claim.holds) for claim in outcome.claims]
    click.echo(terminal_table(header, rows, widths=(36, 48, 14)))
    click.echo("written: " + ", ".join(str(path) for path in outcome.files), err=True)
