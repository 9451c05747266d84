"""Run store: finished steps of a run in an SQLite file, from which it resumes.

Runs are deterministic.  A run that was killed and is started again asks for the same
steps under the same keys, gets the stored values of those that were finished, and
computes the rest.  A step is on disk when :meth:`RunStore.put` returns.
"""

from __future__ import annotations

import json
import sqlite3
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Self

from variegate.files.atomic import plain

#: Identifies run stores among SQLite files: "VgRn".
_APPLICATION = 0x5667526E
_VERSION = 1
_HEADER = b"SQLite format 3\0"

_SCHEMA = (
    "CREATE TABLE run (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE steps (key TEXT PRIMARY KEY, value BLOB NOT NULL, "
    "checksum INTEGER NOT NULL)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)
#: Errors of SQLite for files that it did not write, or that were damaged since.
_DAMAGE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class CheckpointError(ValueError):
    """A file is not a checkpoint of this run.

    ``differences`` are the settings that differ, if it is that of another run.
    """

    def __init__(self, message: str, differences: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.differences = differences


class StoreInUseError(CheckpointError):
    """Another process has the checkpoint open."""


class RunStore:
    """Values of finished steps by key, in a file or in memory.

    Parameters
    ----------
    path : str or Path, optional
        The file, created if it does not exist.  Without one, values are kept in memory.
    run : mapping
        Settings and a description of the data, as plain values.

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

    def __init__(
        self, path: str | Path | None = None, run: Mapping[str, Any] | None = None
    ) -> None:
        self.path = None if path is None else Path(path)
        self._lock = Lock()
        if self.path is not None:
            _check_file(self.path)
        with self._messages():
            self._connection = sqlite3.connect(
                self.path or ":memory:",
                timeout=0.0,
                isolation_level=None,
                check_same_thread=False,
            )
        # Python 3.13 warns of connections that are collected open.
        weakref.finalize(self, self._connection.close)
        try:
            self._open({} if run is None else run)
        except BaseException:
            self._connection.close()
            raise

    def _open(self, run: Mapping[str, Any]) -> None:
        # Through JSON, so that tuples equal lists, and numbers of any type each other.
        run = json.loads(json.dumps(run, default=plain))
        execute = self._connection.execute
        with self._messages():
            execute("PRAGMA locking_mode = EXCLUSIVE")
            is_new = self._is_new()
            # A commit then synchronizes one file, once.
            execute("PRAGMA journal_mode = WAL")
            execute("PRAGMA synchronous = FULL")
            execute("BEGIN EXCLUSIVE")
            if is_new:
                for statement in _SCHEMA:
                    execute(statement)
                for name, value in run.items():
                    execute("INSERT INTO run VALUES (?, ?)", (name, json.dumps(value)))
            rows = execute("SELECT name, value FROM run").fetchall()
            execute("COMMIT")
        try:
            there = {name: json.loads(value) for name, value in rows}
        except ValueError:
            raise CheckpointError(_NOT_A_STORE.format(self.path)) from None
        self._check_run(there, run)

    def _check_run(self, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
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

    def _is_new(self) -> bool:
        """Return whether the file is empty; refuse files of other programs."""

        def read(pragma: str) -> int:
            (value,) = self._connection.execute(f"PRAGMA {pragma}").fetchone()
            return int(value)

        (n_tables,) = self._connection.execute(
            "SELECT count(*) FROM sqlite_schema"
        ).fetchone()
        # Without tables, a process was killed while it made the file.
        if n_tables == 0 and read("application_id") == 0:
            return True
        if read("application_id") != _APPLICATION:
            raise CheckpointError(_NOT_A_STORE.format(self.path))
        if (version := read("user_version")) != _VERSION:
            raise CheckpointError(
                f"{self.path} has format version {version}, but this variegate reads "
                f"{_VERSION}"
            )
        return False

    def __len__(self) -> int:
        return len(self.keys())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def keys(self) -> list[str]:
        """Return the keys of all finished steps, in the order in which they ended."""
        with self._lock, self._messages():
            query = "SELECT key FROM steps ORDER BY rowid"
            return [key for (key,) in self._connection.execute(query)]

    def get(self, key: str) -> bytes | None:
        """Return the value of a step; None if it is not finished, or is damaged."""
        with self._lock, self._messages():
            query = "SELECT value, checksum FROM steps WHERE key = ?"
            row = self._connection.execute(query, (key,)).fetchone()
        if row is None or zlib.crc32(row[0]) != row[1]:
            return None
        return bytes(row[0])

    def put(self, key: str, value: bytes) -> None:
        """Store the value of a step, and replace one that is there."""
        self.put_all({key: value})

    def put_all(self, values: Mapping[str, bytes]) -> None:
        """Store the values of some steps, all or none."""
        rows = [(key, value, zlib.crc32(value)) for key, value in values.items()]
        with self._lock, self._messages():
            self._connection.execute("BEGIN")
            try:
                self._connection.executemany(
                    "INSERT OR REPLACE INTO steps VALUES (?, ?, ?)", rows
                )
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite itself goes back after some errors, such as a full disk.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def remember(self, key: str, compute: Callable[[], bytes]) -> bytes:
        """Return the stored value of a step, or compute and store it."""
        value = self.get(key)
        if value is None:
            value = compute()
            self.put(key, value)
        return value

    def close(self) -> None:
        """Close the file, which keeps all steps."""
        with self._lock, self._messages():
            self._connection.close()

    def remove(self) -> None:
        """Close and delete the file, when the run is complete."""
        self.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    @contextmanager
    def _messages(self) -> Iterator[None]:
        """Turn errors of SQLite into ours, with the name of the file."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_BUSY:
                raise StoreInUseError(
                    f"{self.path} is in use by another process, or its file system has "
                    "no locks: wait until that process has ended, or name another file"
                ) from None
            if code in _DAMAGE:
                raise CheckpointError(_NOT_A_STORE.format(self.path)) from None
            name = self.path or "the run store in memory"
            raise OSError(f"cannot read or write {name}: {error}") from error


_NOT_A_STORE = (
    "{} is not a checkpoint of variegate, or is damaged: delete it or name another file"
)


def _check_file(path: Path) -> None:
    """Refuse, before the work, a file that cannot be written or should not be."""
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
            raise CheckpointError(_NOT_A_STORE.format(path))
