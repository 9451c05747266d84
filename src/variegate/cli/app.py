"""The commands and how errors leave them."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module

import click

from variegate._version import __version__
from variegate.cli.results import Interrupted

#: The commands, and the modules of this package that they are in.
_COMMANDS = {
    "bench": "bench",
    "describe": "describe",
    "evaluate": "evaluate",
    "evaluate-keyframes": "evaluate_keyframes",
    "fit": "fit",
    "fit-keyframes": "fit_keyframes",
    "fit-summarizer": "summarize",
    "keyframes": "keyframes",
    "reproduce": "reproduce",
    "rouge": "rouge",
    "select": "select",
    "summarize": "summarize",
}


class _Commands(Mapping[str, click.Command]):
    """Commands by name, each imported with what it needs when it is asked for."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"variegate.cli.{_COMMANDS[name]}")
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


@click.group(
    commands=_Commands(),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="variegate")
def app() -> None:
    """Learn from good selections to pick subsets that are relevant and diverse."""


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
