"""Events in an SQLite file, none of which is ever changed.

An event is in the file before :meth:`Store.record` returns, whatever happens to the
process, the machine or the disk afterwards: a commit is synchronized to a write-ahead
log, and copied from there into the file at once.  The picks follow from the events
(:mod:`~variegate.studio.history`); to undo is an event, too.

One process writes at a time; a second one is refused when it opens the file, even where
the file was deleted or replaced meanwhile.  Every row has a checksum, and events are
numbered: a file with a damaged or missing row is refused
(:mod:`~variegate.studio.repair` saves the others).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from variegate.files.locked_database import LockedDatabase
from variegate.studio.events import (
    Event,
    EventError,
    checksum,
    read_event,
    read_setting,
)
from variegate.studio.history import History


class StoreError(OSError):
    """Picks cannot be kept or found, for a reason that the message says."""


class StoreFullError(StoreError):
    """An event does not fit on the disk; nothing of it was kept."""


#: Bytes of the smallest page of a database.
_SMALLEST_PAGE = 512

_DAMAGED = (
    "{} is damaged ({}): add --repair to save the picks that can be read, or name "
    "another file with --store"
)

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
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_ERROR: _DAMAGED,
}


class Store(LockedDatabase):
    """The events and settings of one file, opened or created.

    All methods may be called from several threads.  ``data`` is the name of DATA, of
    which the setting "data" of a new file is a copy.
    """

    path: Path
    _application = 0x56675374  # "VgSt"
    _schema = (
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL, "
        "checksum INTEGER NOT NULL)",
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, time TEXT NOT NULL, "
        "kind TEXT NOT NULL, body TEXT NOT NULL, checksum INTEGER NOT NULL)",
    )
    _patience = 1.0
    _error = StoreError
    _not_ours = _REASONS[sqlite3.SQLITE_NOTADB]
    _other_version = (
        "{} was written by another version of the studio (format {}, this one knows "
        "{}): name another with --store"
    )
    _vanished = (
        "{} was deleted, moved or replaced while the studio has it open, and no more "
        "picks are kept: put the file back; or export the picks, end the studio and "
        "start it again"
    )

    def __init__(self, path: str | Path, data: str) -> None:
        path = Path(path)
        if not path.parent.is_dir():
            raise StoreError(
                f"picks cannot be kept in {path}: there is no folder {path.parent}"
            )
        # SQLite takes a file shorter than a page for an empty database.
        if path.is_file() and 0 < path.stat().st_size < _SMALLEST_PAGE:
            raise StoreError(self._not_ours.format(path))
        self._data = data
        super().__init__(path)

    def _check_or_initialize(self, is_new: bool) -> None:
        """Check the file; count this run, and the events, in its settings."""
        if is_new:
            self._write_settings({"data": self._data, "runs": 0, "n_events": 0})
        found = self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise StoreError(_DAMAGED.format(self.path, " ".join(found.split())))
        known = self.settings()
        for name in ("data", "runs", "n_events"):
            if name not in known:
                raise self.damaged(f"the setting {name!r} is missing")
        self.events()
        self._write_settings({"runs": known["runs"] + 1})

    @property
    def problem(self) -> str | None:
        """The message that no more picks are kept, or None while they are."""
        try:
            self.check_file()
        except StoreError as error:
            return str(error)
        return None

    def record(
        self,
        kind: str,
        body: Mapping[str, Any],
        settings: Mapping[str, Any] | None = None,
    ) -> Event:
        """Write an event, and settings with it; return the event, with its number.

        Raises :class:`~variegate.studio.store.StoreFullError` where the disk is full;
        nothing of the event is in the file then, and the next one is kept as soon as
        there is room.  It is a StoreError where the file is not there any more.
        """
        with self._transaction() as connection:
            last = connection.execute("SELECT max(seq) FROM events").fetchone()[0]
            seq = (last or 0) + 1
            self._write_events([(seq, kind, body)])
            self._write_settings({**(settings or {}), "n_events": seq})
        return Event(seq, kind, body)

    def write(self, events: Iterable[Event], settings: Mapping[str, Any]) -> None:
        """Write the events and settings of another file to this one, which is new."""
        rows = [(event.seq, event.kind, event.body) for event in events]
        with self._transaction():
            self._write_events(rows)
            self._write_settings({**settings, "n_events": len(rows)})

    def events(self) -> list[Event]:
        """Return all events, in order; StoreError for damaged or missing ones."""
        rows = self._query_rows(
            "SELECT seq, time, kind, body, checksum FROM events ORDER BY seq"
        )
        n_events = self.settings()["n_events"]
        try:
            events = [read_event(row) for row in rows]
            if problem := missing_text([e.seq for e in events], n_events):
                raise EventError(problem)
            History(events)
        except EventError as error:
            raise self.damaged(str(error)) from None
        return events

    def settings(self) -> dict[str, Any]:
        """Return the values of all settings by name; StoreError for damaged ones."""
        rows = self._query_rows("SELECT name, value, checksum FROM settings")
        try:
            return dict(map(read_setting, rows))
        except EventError as error:
            raise self.damaged(str(error)) from None

    def set(self, **settings: Any) -> None:
        """Write settings, all of them or, on an error, none."""
        with self._transaction():
            self._write_settings(settings)

    def damaged(self, problem: str) -> StoreError:
        """Return the error for a file with a problem that the message names."""
        return StoreError(_DAMAGED.format(self.path, problem))

    def _write_events(self, events: Iterable[tuple[int, str, Any]]) -> None:
        """Write events, as number, kind and body, within the current transaction."""
        time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        rows = [(seq, time, kind, json.dumps(body)) for seq, kind, body in events]
        self._connection.executemany(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
            [(*row, checksum(*row)) for row in rows],
        )

    def _write_settings(self, settings: Mapping[str, Any]) -> None:
        """Write settings within the current transaction."""
        rows = [(name, json.dumps(value)) for name, value in settings.items()]
        self._connection.executemany(
            "INSERT OR REPLACE INTO settings VALUES (?, ?, ?)",
            [(*row, checksum(*row)) for row in rows],
        )

    def _translate_error(self, error: sqlite3.Error, code: int) -> StoreError:
        """Return the StoreError, with a remedy, for an error of SQLite and its code."""
        is_full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
        # SQLite has no code for text that is not UTF-8.
        code = code or sqlite3.SQLITE_CORRUPT
        reason = _REASONS.get(code, "{} cannot be used ({})").format(self.path, error)
        return (StoreFullError if is_full else StoreError)(reason)


def missing_text(found: Iterable[int], n_events: int) -> str | None:
    """Return text on the events from 1 to ``n_events`` that are not ``found``.

    It names unknown numbers as well; None if all are found, and no others.
    """
    numbers = {*found}
    missing = [n for n in range(1, n_events + 1) if n not in numbers]
    if missing:
        one = f"{len(missing)} events are" if len(missing) > 1 else "1 event is"
        return f"{one} missing, of numbers {missing[0]} to {missing[-1]}"
    unknown = sorted(numbers - {*range(1, n_events + 1)})
    return f"event {unknown[0]} is one too many" if unknown else None
