"""Files that commands read and write, checked before the work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

#: A file or folder that the command itself looks for.
PATH = click.Path(path_type=Path)

#: A file to read.
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

#: One that a fit command wrote.
MODEL = FILE

#: A folder to write into.
FOLDER = click.Path(file_okay=False, path_type=Path)


def _writable(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> Path | None:
    """Refuse now what would fail after the work."""
    if value is not None:
        check_writable(value)
    return value


def check_writable(
    path: Path, *, is_folder: bool = False, option: str | None = None
) -> None:
    """Refuse a file, or a folder, that could not be written."""
    if not path.parent.is_dir():
        raise click.BadParameter(
            f"cannot write {path}: there is no folder {path.parent}", param_hint=option
        )
    if path.exists() and not (path.is_dir() if is_folder else path.is_file()):
        wanted = "folder" if is_folder else "plain file"
        raise click.BadParameter(
            f"cannot write {path}: it is no {wanted}", param_hint=option
        )


#: An option that names a file to write.
output_option = partial(
    click.option,
    callback=_writable,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
)


#: What replaces files that exist; without it, no command does.
FORCE = click.option("--force", is_flag=True, help="Replace files that exist.")

#: An option that names the encoding of texts.
encoding_option = partial(
    click.option, "--encoding", default="utf-8", show_default=True
)


def refuse_existing(force: bool, *paths: Path | None) -> None:
    """Refuse to replace files, before the work."""
    for path in paths:
        if path is not None and path.exists() and not force:
            raise click.UsageError(
                f"{path} exists: name another file, or replace it with --force"
            )


def refuse_to_replace(
    target: Path | None, option: str, inputs: Sequence[str | Path]
) -> None:
    """Stop a file from being written over one that it is made from."""
    if target is None or not target.exists():
        return
    for name in inputs:
        source = Path(name)
        if source.exists() and source.samefile(target):
            raise click.UsageError(
                f"{target} is one of the files to read: name another for {option}"
            )
