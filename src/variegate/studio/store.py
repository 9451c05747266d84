"""Events in an SQLite file, none of which is ever changed.

An event is in the file before :meth:`Store.record` returns, whatever happens to the
process, the machine or the disk afterwards: the file has a write-ahead log, which is
synchronized at every commit.  The picks follow from the events
(:mod:`~variegate.studio.history`); to undo is an event, too.

One process writes at a time; a second one is refused when it opens the file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Self

#: Marks files of the studio among those of SQLite: "VgSt".
_APPLICATION = 0x56675374
_VERSION = 1

#: Seconds to wait for another process to let go of the file.
_PATIENCE = 1.0

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
COMMIT;
"""


class StoreError(OSError):
    """Picks cannot be kept or found, for a reason that the message says."""


class StoreFullError(StoreError):
    """An event does not fit on the disk; nothing of it was kept."""


@dataclass(frozen=True)
class Event:
    """An event: its number, kind and details."""

    seq: int
    kind: str
    body: Mapping[str, Any]


class Store:
    """The events and settings of one file; made by :meth:`open`.

    All methods may be called from several threads.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = Lock()

    @classmethod
    def open(cls, path: str | Path, fingerprint: str, data: str) -> Self:
        """Open a file of picks, or make it.

        Parameters
        ----------
        path : str or Path
        fingerprint : str
            Of DATA: picks of other data are refused.
        data : str
            The name of DATA, for messages.
        """
        path = Path(path)
        if not path.parent.is_dir():
            raise StoreError(
                f"picks cannot be kept in {path}: there is no folder {path.parent}"
            )
        options: Any = {"isolation_level": "IMMEDIATE", "check_same_thread": False}
        with _translated(path):
            connection = sqlite3.connect(path, timeout=_PATIENCE, **options)
        store = cls(path, connection)
        try:
            store._prepare(fingerprint, data)
        except BaseException:
            connection.close()
            raise
        return store

    def _prepare(self, fingerprint: str, data: str) -> None:
        with _translated(self.path):
            # One process, so that no memory need be shared: the lock is kept.
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            if self._is_new():
                self._connection.executescript(_SCHEMA)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
        known = self.settings()
        if known.get("fingerprint", fingerprint) != fingerprint:
            raise StoreError(
                f"{self.path} holds picks from other data ({known['data']}), or from "
                "before it was changed: name another file with --store"
            )
        runs = known.get("runs", 0) + 1
        self.set(fingerprint=fingerprint, data=data, runs=runs)

    def _is_new(self) -> bool:
        """Return whether the file is empty; refuse files that are not of the studio."""
        application, version, tables = (
            self._connection.execute(question).fetchone()[0]
            for question in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_schema",
            )
        )
        if application == 0 and tables == 0:
            return True
        if application != _APPLICATION:
            raise StoreError(
                f"{self.path} is not a file of the studio: name another with --store"
            )
        if version != _VERSION:
            raise StoreError(
                f"{self.path} was written by another version of the studio (format "
                f"{version}, this one knows {_VERSION}): name another with --store"
            )
        return False

    def record(
        self,
        kind: str,
        body: Mapping[str, Any],
        settings: Mapping[str, Any] | None = None,
    ) -> Event:
        """Keep an event, and settings with it; return when they are in the file.

        Raises :class:`~variegate.studio.store.StoreFullError` where the disk is full;
        nothing of the event is in the file then, and the next one is kept as soon as
        there is room.
        """
        with self._transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO events (time, kind, body) "
                "VALUES (strftime('%Y-%m-%dT%H:%M:%fZ'), ?, ?)",
                (kind, json.dumps(body)),
            )
            _keep(connection, settings or {})
        assert cursor.lastrowid is not None
        return Event(cursor.lastrowid, kind, body)

    def events(self) -> list[Event]:
        """Return all events, in order."""
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT seq, kind, body FROM events ORDER BY seq"
            ).fetchall()
        return [Event(seq, kind, json.loads(body)) for seq, kind, body in rows]

    def settings(self) -> dict[str, Any]:
        """Return all settings by name."""
        with self._transaction() as connection:
            rows = connection.execute("SELECT name, value FROM settings")
            return {name: json.loads(value) for name, value in rows.fetchall()}

    def set(self, **settings: Any) -> None:
        """Keep settings, all of them or none."""
        with self._transaction() as connection:
            _keep(connection, settings)

    def close(self) -> None:
        """Close the file; its log is written into it."""
        with self._lock, _translated(self.path):
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _translated(self.path), self._connection as connection:
            yield connection


def _keep(connection: sqlite3.Connection, settings: Mapping[str, Any]) -> None:
    connection.executemany(
        "INSERT INTO settings VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [(name, json.dumps(value)) for name, value in settings.items()],
    )


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as errors with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        is_full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
        reason = _REASONS.get(code, "{} cannot be used ({})").format(path, error)
        raise (StoreFullError if is_full else StoreError)(reason) from error


_REASONS = {
    sqlite3.SQLITE_FULL: "the disk of {} is full, and this was not kept: make room, "
    "and do it again",
    sqlite3.SQLITE_IOERR: "{} cannot be written ({}), and this was not kept: is there "
    "room on its disk?",
    sqlite3.SQLITE_BUSY: "another studio has {} open: end it, or name another file "
    "with --store",
    sqlite3.SQLITE_CANTOPEN: "{} cannot be opened ({}): name another file with --store",
    sqlite3.SQLITE_READONLY: "{} cannot be written to: name another file with --store",
    sqlite3.SQLITE_PERM: "{} cannot be written to: name another file with --store",
    sqlite3.SQLITE_NOTADB: "{} is not a file of the studio: name another with --store",
    sqlite3.SQLITE_CORRUPT: "{} is damaged ({}): name another file with --store",
}
