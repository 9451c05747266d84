"""``variegate reproduce``: the paper's experiments."""

from __future__ import annotations

import os
from pathlib import Path

import click

from variegate.cli.errors import Interrupted
from variegate.cli.progress import progress_bar


@click.group()
def reproduce() -> None:
    """Repeat an experiment of the paper: results, figures and a report."""


@reproduce.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder for results.json, report.md and the figures.",
)
@click.option("--quick", is_flag=True, help="A version that takes about a minute.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=None,
    help="Worker processes.  [default: one a core]",
)
def synthetic(out: Path, quick: bool, jobs: int | None) -> None:
    """Section 4.1: figures 1a, 1b and 1c on synthetic ground sets.

    Interrupted runs go on where they stopped when repeated with the same options.
    """
    # Imported here: the figures need packages that other commands do not.
    from variegate.experiments.plotting import new_figure
    from variegate.experiments.synthetic import Settings, report
    from variegate.experiments.synthetic import reproduce as run
    from variegate.experiments.tables import terminal_table

    new_figure()  # better to learn now than after the fits that matplotlib is missing
    settings = Settings.quick() if quick else Settings()
    command = f"variegate reproduce synthetic --out DIR{' --quick' * quick}"
    with progress_bar("fitting") as progress:
        try:
            outcome = run(out, settings, jobs or os.cpu_count() or 1, progress, command)
        except KeyboardInterrupt:
            raise Interrupted("the same command goes on where it stopped") from None
    rows = [(claim.paper, claim.measured, claim.holds) for claim in outcome.claims]
    click.echo(terminal_table(report.CLAIM_HEADER, rows, widths=(36, 48, 14)))
    click.echo("written: " + ", ".join(str(path) for path in outcome.files), err=True)
