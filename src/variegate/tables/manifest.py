"""The run store of a folder of chosen rows, from which a run resumes.

``.manifest.sqlite`` in the folder holds the model and the settings of choosing, the
input files as they were then, and counts of each file that was written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from variegate.files.atomic import plain
from variegate.files.run_store import CheckpointError, RunStore, StoreInUseError
from variegate.partitions import Partition
from variegate.tables.errors import TableFileError

MANIFEST = ".manifest.sqlite"

_INPUTS = "inputs"
_REMEDY = "name another folder, or remove that one"


def stamp(partition: Partition) -> list[int]:
    """Return the size and the time of change of a file when it was listed."""
    return [partition.n_bytes, partition.modified_ns]


class Manifest:
    """Files that rows were chosen from, and files that were written.

    Parameters
    ----------
    folder : Path
    run : dict
        A hash of the model and all settings of choosing, as plain values.

    Attributes
    ----------
    inputs : dict
        Names of the files that rows are chosen from, and their stamps.
    unreadable : list of str
        Names of files that were left out.
    files : dict
        Names of the files that were written, and their counts.

    Raises
    ------
    TableFileError
        If the folder holds something else, or rows that were chosen by another model or
        with other settings.
    """

    def __init__(self, folder: Path, run: Mapping[str, Any]) -> None:
        self.folder, self._run = folder, run
        self._store: RunStore | None = None
        self.inputs: dict[str, list[int]] = {}
        self.unreadable: list[str] = []
        self.files: dict[str, dict[str, Any]] = {}
        if not folder.exists():
            return
        if not folder.is_dir():
            raise TableFileError(f"{folder} is a file; name a folder")
        if (folder / MANIFEST).exists():
            self._read()
        elif others := sorted(p.name for p in folder.iterdir() if p.name[0] != "."):
            raise TableFileError(
                f"{folder} holds {others[0]!r} and no {MANIFEST}: name a folder that "
                "is empty, or does not exist"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._store is not None:
            self._store.close()

    def _read(self) -> None:
        store = self._open()
        stored = {key: json.loads(store.get(key) or "{}") for key in store.keys()}  # noqa: SIM118
        inputs = stored.pop(_INPUTS, {})
        self.inputs = inputs.get("read", {})
        self.unreadable = inputs.get("unreadable", [])
        self.files = {
            name: entry
            for name, entry in stored.items()
            if entry and entry["input"] == self.inputs.get(name)
        }

    def _open(self) -> RunStore:
        if self._store is not None:
            return self._store
        try:
            self._store = RunStore(self.folder / MANIFEST, self._run)
        except StoreInUseError:
            raise TableFileError(
                f"{self.folder} is in use by another process: wait until that has "
                "ended, or name another folder"
            ) from None
        except CheckpointError as error:
            problem = f"the rows in {self.folder} were chosen "
            if not error.differences:
                problem = f"{self.folder / MANIFEST} is damaged, or not a manifest"
            elif any(one.startswith("model was") for one in error.differences):
                problem += "by another model"
            else:
                problem += f"with other settings ({'; '.join(error.differences)})"
            raise TableFileError(f"{problem}: {_REMEDY}") from None
        return self._store

    def refuse_changes(self, partitions: Sequence[Partition]) -> None:
        """Refuse input files that are gone or changed."""
        listed = {Path(p.path).name: p for p in partitions}
        for name, known in self.inputs.items():
            if name not in listed:
                raise TableFileError(
                    f"{name} is gone, from which rows were chosen into {self.folder}: "
                    f"{_REMEDY}"
                )
            if stamp(listed[name]) != known:
                raise TableFileError(
                    f"{listed[name].path} has changed since rows were chosen from it "
                    f"into {self.folder}: {_REMEDY}"
                )

    def is_complete(self, files: Sequence[Partition], skip_unreadable: bool) -> bool:
        """Return whether the rows of all of these files are written."""
        if self.unreadable and not skip_unreadable:
            return False
        names = {Path(one.path).name for one in files} - set(self.unreadable)
        return bool(names) and all(map(self.has, names))

    def begin(self, files: Sequence[Partition], unreadable: Sequence[str]) -> None:
        """Store the input files; make the folder if necessary."""
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise TableFileError(
                f"cannot make the folder {self.folder}: {error.strerror}"
            ) from None
        self.inputs = {Path(one.path).name: stamp(one) for one in files}
        self.unreadable = sorted(unreadable)
        self._put(_INPUTS, {"read": self.inputs, "unreadable": self.unreadable})

    def has(self, name: str) -> bool:
        """Return whether the rows of an input file are written."""
        path = self.folder / name
        n_bytes = path.stat().st_size if path.is_file() else None
        return name in self.files and self.files[name]["n_bytes"] == n_bytes

    def finish(self, name: str, entry: Mapping[str, Any]) -> None:
        """Store the counts of a file that was written."""
        self.files[name] = dict(entry)
        self._put(name, entry)

    def _put(self, key: str, value: Mapping[str, Any]) -> None:
        self._open().put(key, json.dumps(value, default=plain).encode())
