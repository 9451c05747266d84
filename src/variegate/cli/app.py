"""The commands and how errors leave them."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise

import click

from variegate._memory import find_memory_error
from variegate._version import __version__
from variegate.application.refusal import RefusalError, Setting
from variegate.cli.interrupts import STATUS, InterruptWatch
from variegate.cli.output import Interrupted, print_text

#: Modules of this package by subject; the functions in them are named as the commands.
_SECTIONS = {
    "Picking": {"studio": "studio"},
    "Tables": {name: name for name in ("fit", "select", "evaluate", "gather")},
    "Documents": {
        "summarize": "summarize",
        "fit-summarizer": "summarize",
        "evidence": "evidence",
        "fit-evidence": "evidence",
        "rouge": "rouge",
    },
    "Video": {
        "keyframes": "keyframes",
        "fit-keyframes": "keyframes",
        "evaluate-keyframes": "evaluate_keyframes",
    },
    "Any model": {"describe": "describe"},
}
_COMMANDS = {name: at for names in _SECTIONS.values() for name, at in names.items()}


class _App(click.Group):
    """Imports a command when it is asked for, and lists all by subject."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, None if there is none."""
        return _import_command(cmd_name) if cmd_name in _COMMANDS else None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(_COMMANDS)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the commands and the first lines of their help, by subject."""
        spacing = max(map(len, _COMMANDS))
        for title, names in _SECTIONS.items():
            rows = [
                (
                    name.ljust(spacing),
                    _import_command(name).get_short_help_str(limit=200),
                )
                for name in names
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


def _import_command(name: str) -> click.Command:
    """Return the command of a name in ``_COMMANDS``, imported from its module."""
    module = import_module(f"variegate.cli.{_COMMANDS[name]}")
    command: click.Command = getattr(module, name.replace("-", "_"))
    return command


@click.group(cls=_App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="variegate")
def app() -> None:
    """Learn from good selections to pick subsets that are relevant and diverse."""


def run(command: click.Command = app, name: str = "variegate") -> None:
    """Run the arguments of this process as a command, and exit.

    Bad input ends with status 2 and one line, which ``name`` begins; an interrupt ends
    with status 130.
    """

    def fail(message: str, status: int = 2) -> None:
        """Print an error on standard error, and exit with ``status``."""
        print_text(f"{name}: {message}", err=True)
        sys.exit(status)

    for stream in (sys.stdout, sys.stderr):
        # A terminal or pipe that cannot show a symbol must not cost the result.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        with InterruptWatch():
            sys.exit(command.main(standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        print_text(error.format_message(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        hint = ""
        if isinstance(error, click.UsageError) and error.ctx is not None:
            hint = f" (see '{error.ctx.command_path} --help')"
        message = " ".join(error.format_message().split())
        fail(message + hint)
    except (KeyboardInterrupt, click.Abort) as error:
        fail(f"interrupted; {_how_to_resume(error)}", status=STATUS)
    except RefusalError as error:
        fail(refusal_message(error, sys.argv[1:]))
    except (OSError, ValueError, ImportError, RuntimeError, MemoryError) as error:
        lack = find_memory_error(error)
        if lack is not None:
            reason = f" ({' '.join(str(lack).split())})" if str(lack) else ""
            fail(f"there is not enough memory{reason}: free some, or raise its limit")
        if isinstance(error, RuntimeError):
            raise
        fail(" ".join(str(error).split()))


def _how_to_resume(error: BaseException | None) -> str:
    """Return how to resume: the text of an ``Interrupted``, which others wrap."""
    while error is not None:
        if isinstance(error, Interrupted):
            return str(error)
        error = error.__cause__ or error.__context__
    return "it must start again"


def refusal_message(error: RefusalError, arguments: Sequence[str]) -> str:
    """Return the message of an error, with settings as options of the command.

    It is one line, or one for each of several problems and, below them, the command
    line that solves all, if it is known.  ``arguments`` are those of this process
    (``sys.argv[1:]``).
    """
    from variegate.cli.options import ROLES

    called = arguments[0] if arguments else ""
    options = _import_command(called).params if called in _COMMANDS else ()
    known = {name for option in options for name in option.opts}

    def option_words(setting: Setting) -> list[str]:
        """Return the option of a setting, or --columns of a role, and any value."""
        name, value = setting.name, setting.value
        option = f"--{name.removesuffix('_fraction').replace('_', '-')}"
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        if option in known or name not in ROLES:
            return [option] if value is None else [option, text]
        return ["--columns", name if value is None else f"{name}={text}"]

    def as_text(setting: Setting) -> str:
        """Return an option and its value as text, and its command if it is another."""
        option, *value = option_words(setting)
        text = " ".join([option, *map(shlex.quote, value)])
        # Some problems are of the model, and are solved where it is fitted.
        is_own = called == "fit" or (option in known and option != "--columns")
        return text if is_own else f"{text} of 'variegate fit'"

    if len(error.problems) == 1:
        return " ".join(error.written(as_text).split())
    lines = [f"{len(error.problems)} problems:"]
    lines += [f"  - {' '.join(p.written(as_text).split())}" for p in error.problems]
    fixes = [(setting, option_words(setting)) for setting in error.fixes]
    if fixes and {option for _, (option, *_) in fixes} <= known:
        line = _apply_fixes(arguments, fixes)
        if line is not None:
            lines += ["this would work:", f"  {shlex.join(['variegate', *line])}"]
    return "\n".join(lines)


def _apply_fixes(
    arguments: Sequence[str], fixes: Sequence[tuple[Setting, list[str]]]
) -> list[str] | None:
    """Return ``arguments`` with options set or left out.

    ``fixes`` are pairs of a setting and its option, with the value if it has one.  None
    if a setting to leave out is not in the arguments but in a file.
    """
    line = [
        part
        for word in arguments
        for part in (word.split("=", 1) if word.startswith("--") else [word])
    ]
    for setting, (option, *value) in fixes:
        start = f"{setting.name}=" if option == "--columns" else ""
        found = [
            place
            for place, (word, after) in enumerate(pairwise(line))
            if word == option and after.startswith(start)
        ]
        for place in reversed(found):
            del line[place : place + 2]
        if setting.left_out and not found:
            return None  # a role that a file of columns has
        if setting.value is not None:
            line += [option, *value]
    return line
