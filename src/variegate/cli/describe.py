"""``variegate describe``: print the contents of a model file."""

from __future__ import annotations

from pathlib import Path

import click

from variegate.cli import options, output


@click.command(epilog="\b\nvariegate describe model.json --png weights.png")
@click.argument("model", type=options.FILE)
@options.output_option("--png FILE", "Draw the weights of quality and kernel.")
@options.FORCE
@options.JSON
def describe(model: Path, png: Path | None, force: bool, as_json: bool) -> None:
    """Describe a model: the data it learned from, its scores and weights.

    MODEL is a file that a fit command or model.save wrote, for tables, documents,
    videos or any ground sets.
    """
    from variegate.application.description import describe as describe_model
    from variegate.files.atomic import write_atomic
    from variegate.files.models import load
    from variegate.report.figures import to_png

    output.refuse_to_replace(png, "--png", [model], force)
    description = describe_model(load(model))
    output.print_result(as_json, description.numbers, lambda: str(description))
    if png is not None:
        write_atomic(png, to_png(description.figure()))
        output.print_written(png)
