"""Run store: finished steps of a run in an SQLite file, from which it resumes.

Runs are deterministic.  A run that was killed and is started again asks for the same
steps under the same keys, gets the stored values of those that were finished, and
computes the rest.  A step is on disk when :meth:`RunStore.put` returns.
"""

from __future__ import annotations

import io
import json
import sqlite3
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from variegate.files.atomic import as_plain_value
from variegate.files.locked_database import LockedDatabase

_HEADER = b"SQLite format 3\0"

#: Errors of SQLite for files that it did not write, or that were damaged since.
_DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class CheckpointError(ValueError):
    """A file is not a checkpoint of this run.

    ``differences`` are sentences on settings that differ, if it is another run's.
    """

    def __init__(self, message: str, differences: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.differences = differences


class StoreInUseError(CheckpointError):
    """Another process has the checkpoint open."""


class RunStore(LockedDatabase):
    """Values of finished steps by key, in a file or in memory.

    Parameters
    ----------
    path : str or Path, optional
        The file, created if it does not exist.  Without one, values are kept in memory.
    run : mapping, optional
        Settings and a description of the data, as values that JSON can hold, by which
        the file of another run is refused.

    Raises
    ------
    CheckpointError
        If the file is not a run store, belongs to a run with other settings or data, or
        is in use by another process.

    Examples
    --------
    >>> store = RunStore()
    >>> store.remember("1 + 1", lambda: b"2")
    b'2'
    >>> store.remember("1 + 1", lambda: b"is not computed again")
    b'2'
    """

    _application = 0x5667526E  # "VgRn"
    _schema = (
        "CREATE TABLE run (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE steps (key TEXT PRIMARY KEY, value BLOB NOT NULL, "
        "checksum INTEGER NOT NULL)",
    )
    _error = CheckpointError
    _not_ours = (
        "{} is not a checkpoint of variegate, or is damaged: delete it or name another "
        "file"
    )
    _other_version = "{} has format version {}, but this variegate reads {}"

    def __init__(
        self, path: str | Path | None = None, run: Mapping[str, Any] | None = None
    ) -> None:
        path = None if path is None else Path(path)
        if path is not None:
            _check_file(path)
        # Through JSON, so that tuples equal lists, and numbers of any type each other.
        self._run = json.loads(json.dumps(run or {}, default=as_plain_value))
        super().__init__(path)

    def _check_or_initialize(self, is_new: bool) -> None:
        """Write ``run`` to a new file; raise CheckpointError for another run's file."""
        if is_new:
            rows = [(name, json.dumps(value)) for name, value in self._run.items()]
            self._connection.executemany("INSERT INTO run VALUES (?, ?)", rows)
        try:
            there = {
                name: json.loads(value)
                for name, value in self._query_rows("SELECT name, value FROM run")
            }
        except ValueError:
            raise CheckpointError(self._not_ours.format(self.path)) from None
        self._check_run(there, self._run)

    def _check_run(self, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
        """Raise CheckpointError if settings differ between two runs; name these.

        ``there`` is the ``run`` of the file, ``here`` that of this process.
        """
        differences = [
            f"{name} was {there.get(name)!r} and is {here.get(name)!r}"
            for name in sorted(there.keys() | here.keys())
            # NaN equals itself as text.
            if there.get(name) != here.get(name)
            and json.dumps(there.get(name)) != json.dumps(here.get(name))
        ]
        if differences:
            raise CheckpointError(
                f"{self.path} is the checkpoint of another run "
                f"({'; '.join(differences)}): give the same arguments and data to "
                "resume it, or delete the file or name another to start a new run",
                differences,
            )

    def __len__(self) -> int:
        """Return the number of finished steps."""
        return len(self.keys())

    def keys(self) -> list[str]:
        """Return the keys of all finished steps, in the order in which they ended."""
        return [
            key for (key,) in self._query_rows("SELECT key FROM steps ORDER BY rowid")
        ]

    def get(self, key: str) -> bytes | None:
        """Return the value of a step; None if it is not finished, or is damaged."""
        found = self._query_rows("SELECT value, checksum FROM steps WHERE key = ?", key)
        if not found or zlib.crc32(found[0][0]) != found[0][1]:
            return None
        return bytes(found[0][0])

    def put(self, key: str, value: bytes) -> None:
        """Store the value of a step, in place of an earlier one."""
        self.put_all({key: value})

    def put_all(self, values: Mapping[str, bytes]) -> None:
        """Store the values of some steps, all or none."""
        rows = [(key, value, zlib.crc32(value)) for key, value in values.items()]
        with self._transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO steps VALUES (?, ?, ?)", rows
            )

    def remember(self, key: str, compute: Callable[[], bytes]) -> bytes:
        """Return the stored value of a step, or compute and store it."""
        value = self.get(key)
        if value is None:
            value = compute()
            self.put(key, value)
        return value

    def remove(self) -> None:
        """Close and delete the file, when the run is complete."""
        self.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _translate_error(self, error: sqlite3.Error, code: int) -> Exception:
        """Return the error for a file in use, or damaged, else an OSError."""
        if code == sqlite3.SQLITE_BUSY:
            return StoreInUseError(
                f"{self.path} is in use by another process, or its file system has "
                "no locks: wait until that process has ended, or name another file"
            )
        if code in _DAMAGE:
            return CheckpointError(self._not_ours.format(self.path))
        name = self.path or "the run store in memory"
        return OSError(f"cannot read or write {name}: {error}")


def arrays_to_bytes(**arrays: Any) -> bytes:
    """Return named arrays as the bytes of a compressed NPZ file, without loss."""
    content = io.BytesIO()
    # NumPy below 2.2 takes allow_pickle for the name of an array.
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def arrays_from_bytes(content: bytes) -> dict[str, Any]:
    """Return a dict of arrays by name from the bytes of :func:`arrays_to_bytes`."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return dict(file)


def _check_file(path: Path) -> None:
    """Raise an error for a path in a missing folder, or a file not of SQLite."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write the checkpoint {path}: there is no folder {path.parent}"
        )
    # SQLite takes a file shorter than a page for an empty database.  One beside which
    # a log lies is of a process that was killed, and SQLite repairs it.
    if path.is_file() and not path.with_name(f"{path.name}-wal").exists():
        with path.open("rb") as file:
            start = file.read(len(_HEADER))
        if start not in (b"", _HEADER):
            raise CheckpointError(RunStore._not_ours.format(path))
