"""``variegate describe``: what a model file holds."""

from __future__ import annotations

import json
from pathlib import Path

import click

from variegate.cli.paths import MODEL, OUTPUT, output
from variegate.cli.table_options import FORCE, refuse_existing


@click.command(epilog="\b\nvariegate describe model.json --png weights.png")
@click.argument("model", type=MODEL)
@click.option(
    "--png", callback=output, type=OUTPUT, metavar="FILE",
    help="Draw the weights and the kernel's coefficients.",
)  # fmt: skip
@FORCE
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def describe(model: Path, png: Path | None, force: bool, as_json: bool) -> None:
    """Say what a model was learned from, and what it learned.

    MODEL is a file that a fit command or model.save wrote, of tables, documents,
    videos or any ground sets.
    """
    from variegate.description import Description
    from variegate.persistence import load

    refuse_existing(force, png)
    description = Description.of(load(model))
    click.echo(
        json.dumps(description.as_dict(), indent=1, ensure_ascii=False)
        if as_json
        else str(description)
    )
    if png is not None:
        from variegate._files import write_atomic
        from variegate.experiments.plotting import to_png

        write_atomic(png, to_png(description.plot()))
        click.echo(f"written: {png}", err=True)
