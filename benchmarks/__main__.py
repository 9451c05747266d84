"""The command line of the benchmarks: ``python -m benchmarks``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from benchmarks import BENCHMARKS, USUAL, load_benchmark
from variegate.cli.app import run
from variegate.cli.options import FOLDER
from variegate.cli.output import print_text
from variegate.files.atomic import write_atomic


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[NAME]...", type=click.Choice(BENCHMARKS))
@click.option(
    "--out",
    type=FOLDER,
    required=True,
    help="Folder for a JSON file, a table and a plot each.",
)
@click.option("--quick", is_flag=True, help="Smaller sizes, in seconds.")
def app(names: tuple[str, ...], out: Path, quick: bool) -> None:
    """Measure variegate against its peers, on one thread.

    NAME is "sampling", "decoding", "learning" or "text", all four if none is given,
    or "torch", for the loss on PyTorch's tensors, on a GPU where there is one. Peers
    that are not installed are left out: pip install 'variegate[bench]' brings all but
    PyTorch.
    """
    from threadpoolctl import threadpool_limits

    from benchmarks.report import plot, table
    from variegate.report.figures import new_figure, to_png

    new_figure()
    out.mkdir(parents=True, exist_ok=True)
    for name in names or USUAL:
        try:
            measure = load_benchmark(name)
        except ImportError as error:
            raise click.ClickException(str(error)) from None
        with threadpool_limits(limits=1):
            rows = measure(quick)
        text = table(rows)
        write_atomic(out / f"{name}.json", json.dumps(rows, indent=1) + "\n")
        write_atomic(out / f"{name}.md", text + "\n")
        write_atomic(out / f"{name}.png", to_png(plot(rows)))
        print_text(f"{name}\n\n{text}\n")


if __name__ == "__main__":
    run(app, "benchmarks")
