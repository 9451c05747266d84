"""Results on standard output, messages on standard error, and files to write."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

#: Control characters of a terminal; line breaks and tabs are not among them.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Interrupted(KeyboardInterrupt):
    """The user interrupted a command; the message says how to resume it."""


def print_text(text: str, err: bool = False) -> None:
    """Print text, its control characters as U+FFFD; on standard error if ``err``."""
    click.echo(_CONTROL.sub("\ufffd", text), err=err)


def print_json(result: Any, **options: Any) -> None:
    """Print a result as JSON; ``options`` are those of ``json.dumps``."""
    text = json.dumps(result, ensure_ascii=False, **{"indent": 1, **options})
    click.echo(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_result(
    as_json: bool, numbers: Any, text: Callable[[], str], **options: Any
) -> None:
    """Print a result as JSON, with ``options`` of ``json.dumps``, or as text.

    The text is made when it is needed: it may take packages that JSON does not.
    """
    if as_json:
        print_json(numbers, **options)
    else:
        print_text(text())


def print_written(*paths: Path | None) -> None:
    """Print the names of files that were written, on standard error; skip None."""
    for path in paths:
        if path is not None:
            print_text(f"written: {path}", err=True)


def print_note(text: str) -> None:
    """Print a note on standard error, in one line."""
    print_text(f"variegate: note: {' '.join(text.split())}", err=True)


@contextmanager
def print_warnings_as_notes(*whole: type[Warning]) -> Iterator[None]:
    """Print warnings as notes at the end, unless the work fails.

    Only the first sentence, except of the categories ``whole``: the second advises
    parameters that commands have no option for.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = [
        str(one.message)
        if issubclass(one.category, whole)
        else str(one.message).split(". ")[0]
        for one in caught
    ]
    for text in dict.fromkeys(texts):
        print_note(text)


def abbreviate_names(names: Sequence[str], most: int) -> str:
    """Return text such as "a, b and 3 more", with the first ``most`` names."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def check_writable(
    path: Path, *, is_folder: bool = False, option: str | None = None
) -> Path:
    """Return the path of a file or folder; raise BadParameter if not writable.

    ``option`` is its name in the message, by default that of click's parameter.
    """
    reason = ""
    if not path.parent.is_dir():
        reason = f"there is no folder {path.parent}"
    elif path.exists() and not (path.is_dir() if is_folder else path.is_file()):
        reason = f"it is not a {'folder' if is_folder else 'plain file'}"
    if reason:
        raise click.BadParameter(f"cannot write {path}: {reason}", param_hint=option)
    return path


def refuse_to_replace(
    target: Path | None, option: str, inputs: Sequence[str | Path], force: bool
) -> None:
    """Raise UsageError if ``target`` is one of the ``inputs``, or exists without force.

    ``option`` is the one that names the target.
    """
    if target is None or not target.exists():
        return
    for source in map(Path, inputs):
        if source.exists() and source.samefile(target):
            raise click.UsageError(
                f"{target} is one of the files to read: name another for {option}"
            )
    if not force:
        raise click.UsageError(
            f"{target} exists: name another file, or replace it with --force"
        )
