"""The commands and how errors leave them."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module

import click

from variegate._version import __version__
from variegate.application.refusal import RefusalError
from variegate.cli.refusals import refused
from variegate.cli.results import Interrupted, say

#: The commands, by what they are about, and the modules of this package they are in.
_SECTIONS = {
    "Picking": {"studio": "studio"},
    "Tables": {
        "fit": "fit",
        "select": "select",
        "evaluate": "evaluate",
        "gather": "gather",
    },
    "Documents": {
        "summarize": "summarize",
        "fit-summarizer": "summarize",
        "rouge": "rouge",
    },
    "Video": {
        "keyframes": "keyframes",
        "fit-keyframes": "fit_keyframes",
        "evaluate-keyframes": "evaluate_keyframes",
    },
    "Any model": {"describe": "describe"},
}
_COMMANDS = {
    name: module for section in _SECTIONS.values() for name, module in section.items()
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


class _App(click.Group):
    """Lists the commands by what they are about, each with its whole sentence."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        spacing = max(map(len, _COMMANDS))
        for title, names in _SECTIONS.items():
            rows = [
                (name.ljust(spacing), self.commands[name].get_short_help_str(limit=200))
                for name in names
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(
    cls=_App,
    commands=_Commands(),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="variegate")
def app() -> None:
    """Learn from good selections to pick subsets that are relevant and diverse."""


def run(command: click.Command = app, name: str = "variegate") -> None:
    """Run a command line; bad input ends in one line and status 2.

    ``name`` stands before that line.
    """

    def fail(message: str, status: int = 2) -> None:
        say(f"{name}: {message}", err=True)
        sys.exit(status)

    for stream in (sys.stdout, sys.stderr):
        # A terminal or pipe that cannot show a symbol must not cost the result.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        sys.exit(command.main(standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        hint = ""
        if isinstance(error, click.UsageError) and error.ctx is not None:
            hint = f" (see '{error.ctx.command_path} --help')"
        message = " ".join(error.format_message().split())
        fail(message + hint)
    except (KeyboardInterrupt, click.Abort) as error:
        fail(f"interrupted; {_what_remains(error)}", status=130)
    except MemoryError as error:
        fail(f"there is not enough memory ({' '.join(str(error).split())})")
    except RefusalError as error:
        fail(refused(error, _called(command), sys.argv[1:]))
    except (OSError, ValueError, ImportError) as error:
        fail(" ".join(str(error).split()))


def _called(command: click.Command) -> click.Command | None:
    """Return the command that was called: of a group, the first argument names it."""
    if isinstance(command, click.Group):
        return command.commands.get(sys.argv[1] if len(sys.argv) > 1 else "")
    return command


def _what_remains(error: BaseException) -> str:
    """Return what becomes of the work: click makes an Abort of every interrupt."""
    for reason in (error, error.__cause__, error.__context__):
        if isinstance(reason, Interrupted):
            return str(reason)
    return "it must start again"
