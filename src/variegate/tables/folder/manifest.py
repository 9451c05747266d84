"""What has been chosen into a folder, so that a run that was stopped can go on.

``manifest.json`` says by which model and with which settings rows were chosen, from
which files as they were then, and what came of each.  Until a run has ended, whoever
finishes a file says so in a file of its own in the folder ``.finished``, whole or not
at all, so that no more is lost than what was being written.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from variegate._files import plain, write_atomic
from variegate.partitions import Partition
from variegate.tables.file_errors import TableFileError

__all__ = ["MANIFEST", "Manifest", "finish", "stamp"]

MANIFEST = "manifest.json"
FORMAT = "variegate-selection"
VERSION = 1

#: Where finished files are noted until the end.
_FINISHED = ".finished"


def stamp(partition: Partition) -> list[int]:
    """Return how a file looked when it was listed."""
    return [partition.n_bytes, partition.modified_ns]


def finish(folder: Path, run: str, name: str, entry: Mapping[str, Any]) -> None:
    """Note that a file is there, as it should be."""
    notes = folder / _FINISHED
    notes.mkdir(exist_ok=True)
    note = {"run": run, "name": name, "entry": dict(entry)}
    write_atomic(notes / f"{name}.json", json.dumps(note, default=plain))


@dataclass
class Manifest:
    """What is in a folder of chosen rows.

    Parameters
    ----------
    folder : Path
    model : str
        A hash of the model.
    settings : dict
        Plain values, by which choosing differs.
    inputs : dict
        Names of the files that rows are chosen from, and their stamps.
    unreadable : list of str
        Files that were left out.
    files : dict
        Names of the files that are there, and what each holds.
    """

    folder: Path
    model: str
    settings: dict[str, Any]
    inputs: dict[str, list[int]] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    def go_on(self) -> None:
        """Take over what an earlier run has done, if it was the same.

        Raises
        ------
        TableFileError
            If the folder holds something else, or rows that were chosen by another
            model, with other settings or from files that have changed.
        """
        if not self.folder.exists():
            return
        if not self.folder.is_dir():
            raise TableFileError(f"{self.folder} is a file; name a folder")
        path = self.folder / MANIFEST
        if not path.exists():
            others = sorted(p.name for p in self.folder.iterdir() if p.name[0] != ".")
            if others:
                raise TableFileError(
                    f"{self.folder} holds {others[0]!r} and no {MANIFEST}: name a "
                    "folder that is empty, or is not there yet"
                )
            return
        self._take_over(path)
        for name, entry in self._finished():
            self.files[name] = entry

    def _take_over(self, path: Path) -> None:
        there = _read(path)
        if there["model"] != self.model:
            raise TableFileError(
                f"the rows in {self.folder} were chosen by another model: name another "
                "folder, or remove that one"
            )
        settings = there["settings"]
        here = json.loads(json.dumps(self.settings, default=plain))
        for name in sorted(settings.keys() | here.keys()):
            if settings.get(name) != here.get(name):
                raise TableFileError(
                    f"the rows in {self.folder} were chosen with {name} "
                    f"{settings.get(name)!r}, not {here.get(name)!r}: name another "
                    "folder, or remove that one"
                )
        self.inputs, self.unreadable = there["inputs"], there["unreadable"]
        self.files = there["files"]

    def _finished(self) -> list[tuple[str, dict[str, Any]]]:
        """Return what is noted of this run and these files."""
        found = []
        for path in sorted((self.folder / _FINISHED).glob("*.json")):
            note = json.loads(path.read_bytes())
            name, entry = note["name"], note["entry"]
            if note["run"] == self.run and self.inputs.get(name) == entry["input"]:
                found.append((name, entry))
        return found

    @property
    def run(self) -> str:
        """What tells this run from others in notes about its files."""
        return json.dumps([self.model, self.settings], sort_keys=True, default=plain)

    def refuse_changes(self, partitions: Sequence[Partition]) -> None:
        """Refuse files that are not those that rows were chosen from."""
        listed = {Path(p.path).name: p for p in partitions}
        for name, known in self.inputs.items():
            if name not in listed:
                raise TableFileError(
                    f"{name} is gone, from which rows were chosen into {self.folder}: "
                    "name another folder, or remove that one"
                )
            if stamp(listed[name]) != known:
                raise TableFileError(
                    f"{listed[name].path} has changed since rows were chosen from it "
                    f"into {self.folder}: name another folder, or remove that one"
                )

    def has(self, name: str) -> bool:
        """Say whether the rows chosen from a file are there."""
        entry = self.files.get(name)
        path = self.folder / name
        return (
            entry is not None
            and path.is_file()
            and path.stat().st_size == entry["n_bytes"]
        )

    def write(self) -> None:
        """Write it, whole or not at all."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "model": self.model,
            "settings": self.settings,
            "inputs": self.inputs,
            "unreadable": self.unreadable,
            "files": dict(sorted(self.files.items())),
        }
        text = json.dumps(document, indent=1, default=plain)
        write_atomic(self.folder / MANIFEST, text + "\n")

    def end(self) -> None:
        """Write it with all files, which need no notes of their own any more."""
        self.write()
        shutil.rmtree(self.folder / _FINISHED, ignore_errors=True)


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
        is_known = document["format"] == FORMAT and document["version"] == VERSION
        for name in ("settings", "inputs", "files"):
            is_known &= isinstance(document[name], dict)
        is_known &= isinstance(document["unreadable"], list) and "model" in document
    except (ValueError, TypeError, KeyError):
        is_known = False
    if not is_known:
        raise TableFileError(
            f"{path} is not what this version of Variegate writes about chosen rows: "
            "name another folder, or remove that one"
        )
    return dict(document)
