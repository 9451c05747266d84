"""``variegate describe``: what a model file holds."""

from __future__ import annotations

import json
from pathlib import Path

import click

from variegate.cli.paths import MODEL, OUTPUT, output, refuse_to_replace
from variegate.cli.table_options import FORCE, refuse_existing


@click.command(epilog="\b\nvariegate describe model.json --png weights.png")
@click.argument("model", type=MODEL)
@click.option(
    "--png", callback=output, type=OUTPUT, metavar="FILE",
    help="Draw the weights and the coefficients of the kernel.",
)  # fmt: skip
@FORCE
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def describe(model: Path, png: Path | None, force: bool, as_json: bool) -> None:
    """Say what a model was learned from, and what it learned.

    MODEL is a file that a fit command or model.save wrote, for tables, documents,
    videos or any ground sets.
    """
    from variegate._files import write_atomic
    from variegate.application.description import describe as describe_model
    from variegate.persistence import load
    from variegate.report.figures import to_png

    refuse_existing(force, png)
    if png is not None:
        refuse_to_replace(png, "--png", [model])
    description = describe_model(load(model))
    click.echo(
        json.dumps(description.numbers, indent=1, ensure_ascii=False)
        if as_json
        else str(description)
    )
    if png is not None:
        write_atomic(png, to_png(description.figure()))
        click.echo(f"written: {png}", err=True)
