"""``variegate describe``: what a model file holds."""

from __future__ import annotations

from pathlib import Path

import click

from variegate.cli.paths import (
    FORCE,
    MODEL,
    output_option,
    refuse_existing,
    refuse_to_replace,
)
from variegate.cli.results import echo_json, say, say_written
from variegate.cli.table_options import JSON


@click.command(epilog="\b\nvariegate describe model.json --png weights.png")
@click.argument("model", type=MODEL)
@output_option("--png", help="Draw the weights and the coefficients of the kernel.")
@FORCE
@JSON
def describe(model: Path, png: Path | None, force: bool, as_json: bool) -> None:
    """Say what a model was learned from, and what it learned.

    MODEL is a file that a fit command or model.save wrote, for tables, documents,
    videos or any ground sets.
    """
    from variegate.application.description import describe as describe_model
    from variegate.files.atomic import write_atomic
    from variegate.files.models import load
    from variegate.report.figures import to_png

    refuse_existing(force, png)
    refuse_to_replace(png, "--png", [model])
    description = describe_model(load(model))
    if as_json:
        echo_json(description.numbers)
    else:
        say(str(description))
    if png is not None:
        write_atomic(png, to_png(description.figure()))
        say_written(png)
