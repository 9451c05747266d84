"""Checkpoints: what a long run needs to go on after it was killed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from variegate._files import plain, write_atomic

FORMAT = "variegate-checkpoint"
VERSION = 1


class CheckpointError(ValueError):
    """A file is not a checkpoint of this run."""


def write_checkpoint(
    path: str | Path, run: Mapping[str, Any], state: Mapping[str, Any]
) -> None:
    """Write the state of a run, whole or not at all.

    ``run`` is what the run is, settings and a description of the data, and ``state``
    how far it got, both as plain values.
    """
    document = {"format": FORMAT, "version": VERSION, "run": run, "state": state}
    write_atomic(path, json.dumps(document, default=plain) + "\n")


def read_checkpoint(path: str | Path, run: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the state that was written by the same run; None if there is no file.

    Raises
    ------
    CheckpointError
        If the file is something else, or of a run with other settings or data.
    """
    path = Path(path)
    check_folder(path)
    if not path.exists():
        return None
    try:
        document = json.loads(path.read_bytes())
    except ValueError as error:
        raise CheckpointError(
            f"{path} is not a checkpoint, or is damaged: {error}"
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CheckpointError(f'{path} is not a checkpoint: "format" is not "{FORMAT}"')
    if document.get("version") != VERSION:
        raise CheckpointError(
            f"{path} has format version {document.get('version')!r}, but this "
            f"variegate reads {VERSION}"
        )
    there = document.get("run")
    state = document.get("state")
    if not isinstance(there, dict) or not isinstance(state, dict):
        raise CheckpointError(f'{path} is damaged: "run" or "state" is missing')
    check_run(path, there, run)
    return state


def check_folder(path: Path) -> None:
    """Say now, rather than when the first one is to be written, that it cannot be."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write the checkpoint {path}: there is no folder {path.parent}"
        )


def check_run(path: Path, there: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    """Refuse the checkpoint of another run than this."""
    # Through JSON, so that tuples and lists, and numbers of any kind, compare equal.
    here = json.loads(json.dumps(run, default=plain))
    differences = [
        f"{name} was {there.get(name)!r} and is {here.get(name)!r}"
        for name in sorted(there.keys() | here.keys())
        if there.get(name) != here.get(name)
    ]
    if differences:
        raise CheckpointError(
            f"{path} is the checkpoint of another run ({'; '.join(differences)}): "
            "give the same arguments and data to go on with that one, or delete the "
            "file, or name another, to begin a new one"
        )
