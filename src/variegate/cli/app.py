"""The commands and how errors leave them."""

from __future__ import annotations

import io
import sys

import click

from variegate._version import __version__
from variegate.cli.bench import bench
from variegate.cli.describe import describe
from variegate.cli.errors import Interrupted
from variegate.cli.evaluate import evaluate
from variegate.cli.evaluate_keyframes import evaluate_keyframes
from variegate.cli.fit import fit
from variegate.cli.fit_keyframes import fit_keyframes
from variegate.cli.keyframes import keyframes
from variegate.cli.reproduce import reproduce
from variegate.cli.rouge import rouge
from variegate.cli.select import select
from variegate.cli.summarize import fit_summarizer, summarize


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="variegate")
def app() -> None:
    """Learn from good selections to pick subsets that are relevant and diverse."""


for command in (
    bench, describe, evaluate, evaluate_keyframes, fit, fit_keyframes, fit_summarizer,
    keyframes, reproduce, rouge, select, summarize,
):  # fmt: skip
    app.add_command(command)


def run() -> None:
    """Run the command line; bad input ends in one line and status 2."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal or pipe that cannot show a symbol must not cost the result.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        sys.exit(app.main(standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        hint = ""
        if isinstance(error, click.UsageError) and error.ctx is not None:
            hint = f" (see '{error.ctx.command_path} --help')"
        message = " ".join(error.format_message().split())
        _fail(message + hint)
    except (KeyboardInterrupt, click.Abort) as error:
        _fail(f"interrupted; {_what_remains(error)}", status=130)
    except MemoryError as error:
        _fail(f"there is not enough memory ({' '.join(str(error).split())})")
    except (OSError, ValueError, ImportError) as error:
        _fail(" ".join(str(error).split()))


def _what_remains(error: BaseException) -> str:
    """Return what becomes of the work: click makes an Abort of every interrupt."""
    for reason in (error, error.__cause__, error.__context__):
        if isinstance(reason, Interrupted):
            return str(reason)
    return "it must start again"


def _fail(message: str, status: int = 2) -> None:
    click.echo(f"variegate: {message}", err=True)
    sys.exit(status)
