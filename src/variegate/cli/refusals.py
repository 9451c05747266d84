"""Refusals in the words of a command: options, and a command line that would work."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

from variegate.application.refusal import RefusalError, Setting

__all__ = ["refused"]

#: Options that are called otherwise than the parameters of the library.
_OPTIONS = {"validation_fraction": "--validation"}


def refused(
    error: RefusalError, command: click.Command | None, arguments: Sequence[str]
) -> str:
    """Return what a command says: a line, or one for each of several problems.

    Under several stands the command line that has none of them, if it is known.
    """
    options = command.params if command else ()
    known = {name for option in options for name in option.opts}

    def write(setting: Setting) -> str:
        text = " ".join([_option(setting), *_value(setting)])
        # Some problems are of the model, and have been of the table it was fitted on.
        return text if _option(setting) in known else f"{text} of 'variegate fit'"

    if len(error.problems) == 1:
        return " ".join(error.written(write).split())
    lines = [f"{len(error.problems)} problems:"]
    lines += [f"  - {' '.join(p.written(write).split())}" for p in error.problems]
    left_out = {_option(setting) for setting in error.fixes if setting.left_out}
    # What a file of columns says cannot be left out here.
    can_be_left_out = left_out <= {word.partition("=")[0] for word in arguments}
    can_be_given = {_option(setting) for setting in error.fixes} <= known
    if error.fixes and can_be_given and can_be_left_out:
        line = _with_options(arguments, error.fixes)
        lines += ["this would work:", f"  {shlex.join(['variegate', *line])}"]
    return "\n".join(lines)


def _option(setting: Setting) -> str:
    return _OPTIONS.get(setting.name) or f"--{setting.name.replace('_', '-')}"


def _value(setting: Setting) -> list[str]:
    value = setting.value
    if value is None:
        return []
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    return [shlex.quote(text)]


def _with_options(arguments: Sequence[str], settings: Sequence[Setting]) -> list[str]:
    """Return arguments with these options in place of what was said about them."""
    given = {_option(setting) for setting in settings}
    line: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in given:
            next(words, None)
        elif word.partition("=")[0] not in given:
            line.append(word)
    for setting in settings:
        if setting.value is not None:
            value = setting.value
            text = ",".join(value) if isinstance(value, tuple) else str(value)
            line += [_option(setting), text]
    return line
