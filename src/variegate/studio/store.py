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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from variegate.files.locked_database import LockedDatabase


class StoreError(OSError):
    """Picks cannot be kept or found, for a reason that the message says."""


class StoreFullError(StoreError):
    """An event does not fit on the disk; nothing of it was kept."""


@dataclass(frozen=True)
class Event:
    """An event: its number, kind and details; see :mod:`variegate.studio.history`."""

    seq: int
    kind: str
    body: Mapping[str, Any]


#: Messages by code of SQLite, with the path and the error to fill in.
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


class Store(LockedDatabase):
    """The events and settings of one file, opened or created.

    All methods may be called from several threads.  Picks of data with another
    ``fingerprint`` are refused; ``data`` is the name of DATA, for messages.
    """

    path: Path
    _application = 0x56675374  # "VgSt"
    _schema = (
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, time TEXT NOT NULL, "
        "kind TEXT NOT NULL, body TEXT NOT NULL)",
    )
    _patience = 1.0
    _error = StoreError
    _not_ours = _REASONS[sqlite3.SQLITE_NOTADB]
    _other_version = (
        "{} was written by another version of the studio (format {}, this one knows "
        "{}): name another with --store"
    )

    def __init__(self, path: str | Path, fingerprint: str, data: str) -> None:
        path = Path(path)
        if not path.parent.is_dir():
            raise StoreError(
                f"picks cannot be kept in {path}: there is no folder {path.parent}"
            )
        self._fingerprint, self._data = fingerprint, data
        super().__init__(path)

    def _check_or_initialize(self, is_new: bool) -> None:
        """Raise StoreError for picks of other data; else count this run as settings."""
        known = self.settings()
        if known.get("fingerprint", self._fingerprint) != self._fingerprint:
            raise StoreError(
                f"{self.path} holds picks from other data ({known['data']}), or from "
                "before it was changed: name another file with --store"
            )
        runs = known.get("runs", 0) + 1
        self._write_settings(
            {"fingerprint": self._fingerprint, "data": self._data, "runs": runs}
        )

    def record(
        self,
        kind: str,
        body: Mapping[str, Any],
        settings: Mapping[str, Any] | None = None,
    ) -> Event:
        """Write an event, and settings with it; return the event, with its number.

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
            self._write_settings(settings or {})
        assert cursor.lastrowid is not None
        return Event(cursor.lastrowid, kind, body)

    def events(self) -> list[Event]:
        """Return all events, in order."""
        rows = self._query_rows("SELECT seq, kind, body FROM events ORDER BY seq")
        return [Event(seq, kind, json.loads(body)) for seq, kind, body in rows]

    def settings(self) -> dict[str, Any]:
        """Return the values of all settings by name."""
        rows = self._query_rows("SELECT name, value FROM settings")
        return {name: json.loads(value) for name, value in rows}

    def set(self, **settings: Any) -> None:
        """Write settings, all of them or, on an error, none."""
        with self._transaction():
            self._write_settings(settings)

    def _write_settings(self, settings: Mapping[str, Any]) -> None:
        """Write settings within the current transaction."""
        rows = [(name, json.dumps(value)) for name, value in settings.items()]
        self._connection.executemany(
            "INSERT OR REPLACE INTO settings VALUES (?, ?)", rows
        )

    def _translate_error(self, error: sqlite3.Error, code: int) -> StoreError:
        """Return the StoreError, with a remedy, for an error of SQLite and its code."""
        is_full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
        reason = _REASONS.get(code, "{} cannot be used ({})").format(self.path, error)
        return (StoreFullError if is_full else StoreError)(reason)
