"""Saving picks from a damaged file to a new one.

Rows that have their checksum are copied, as far as they are events or settings of the
studio; all others are dropped, and named.  A dropped event may have changed any group.
So groups that were not finished after it are open again, with the picks that are known,
for a person to look at.
"""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from variegate.files.path_lock import PathLock
from variegate.studio.events import Event, EventError, read_event, read_setting
from variegate.studio.history import History
from variegate.studio.store import Store, StoreError, missing_text


@dataclass(frozen=True)
class Repaired:
    """A new file of picks, and what was dropped from the damaged one."""

    path: Path
    n_events: int
    #: Sentences on damaged and missing rows.
    dropped: list[str]
    #: The keys of groups of which changes may be lost; they are not finished any more.
    doubtful: list[str]

    def notes(self) -> list[str]:
        """Return sentences on dropped rows, and on groups to look at again."""
        notes = [f"dropped: {problem}" for problem in self.dropped]
        if self.doubtful:
            notes.append(
                "picks of these groups may lack a change, so they are open again: look "
                f"at them, and press Done: {', '.join(map(repr, self.doubtful))}"
            )
        return notes


def repair(path: Path) -> Repaired:
    """Write all that can be read from a damaged file of picks to a new one beside it.

    Raises
    ------
    StoreError
        If there is nothing that can be read, nothing is damaged, the file is in use, or
        the new file is there already.
    """
    target = path.with_name(f"{path.stem}.repaired{path.suffix}")
    if not path.is_file():
        raise StoreError(f"there is no file of picks {path}: leave out --repair")
    if target.exists():
        raise StoreError(f"{target} exists already: use it with --store, or move it")
    with closing(_lock(path)), tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        for end in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{end}", f"{copy}{end}")
        damaged = _DamagedStore(copy)
    if not damaged.events and not damaged.settings:
        raise StoreError(
            f"nothing in {path} can be read: name another file with --store"
        )
    if damaged.is_sound:
        raise StoreError(f"{path} is not damaged: leave out --repair")
    events, doubtful = damaged.consistent_events()
    _write_new(target, events, damaged.settings)
    n_events = len(events) - len(doubtful)
    return Repaired(target, n_events, damaged.dropped, doubtful)


def _lock(path: Path) -> PathLock:
    """Return the lock on a file of picks; StoreError if a studio has it."""
    try:
        return PathLock(path)
    except sqlite3.Error:
        raise StoreError(f"a studio has {path} open: end it first") from None


def _write_new(path: Path, events: list[Event], settings: dict[str, Any]) -> None:
    """Write a file of picks, whole or not at all."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with Store(part, settings.get("data", "DATA of a damaged file")) as store:
            store.write(events, settings)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


class _DamagedStore:
    """The rows of a damaged file that can be read, and sentences on the others."""

    def __init__(self, path: Path) -> None:
        self.events: list[Event] = []
        self.settings: dict[str, Any] = {}
        self.dropped: list[str] = []
        self._is_intact = False
        #: The number of the last event of which something is lost.
        self._last_lost: float = 0
        with closing(sqlite3.connect(path)) as self._connection:
            self._connection.text_factory = partial(str, errors="surrogateescape")
            self._read_settings()
            self._read_events()
            with suppress(sqlite3.Error, UnicodeDecodeError):
                (found,) = self._connection.execute("PRAGMA integrity_check").fetchone()
                self._is_intact = found == "ok"

    @property
    def is_sound(self) -> bool:
        """Whether nothing is damaged."""
        return self._is_intact and not self.dropped

    def _read_settings(self) -> None:
        """Read all settings, and name damaged and missing ones."""
        for row in self._rows("SELECT name, value, checksum FROM settings"):
            try:
                name, value = read_setting(row)
                self.settings[name] = value
            except EventError as error:
                self.dropped.append(str(error))
        self.dropped += [
            f"the setting {name!r} is missing"
            for name in ("data", "runs", "n_events")
            if name not in self.settings
        ]

    def _read_events(self) -> None:
        """Read all events, and name damaged and missing ones."""
        query = "SELECT seq, time, kind, body, checksum FROM events"
        rows = {row[0]: row for row in self._rows(f"{query} ORDER BY seq")}
        rows |= {row[0]: row for row in self._rows(f"{query} ORDER BY seq DESC")}
        n_events = self.settings.get("n_events", 0)
        for seq in range(1, n_events + 1):
            if seq not in rows:
                rows |= {
                    row[0]: row for row in self._rows(f"{query} WHERE seq = {seq}")
                }
        for seq in sorted(rows):
            try:
                self.events.append(read_event(rows[seq]))
            except EventError as error:
                self._drop(seq, str(error))
        if "n_events" not in self.settings:
            self._last_lost = math.inf
        elif problem := missing_text(rows, n_events):
            missing = {*range(1, n_events + 1)} - rows.keys()
            self._drop(max(missing, default=n_events), problem)

    def _drop(self, seq: float, problem: str) -> None:
        """Note a problem of the event with a number."""
        self.dropped.append(problem)
        self._last_lost = max(self._last_lost, seq)

    def _rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query up to the first that SQLite cannot read."""
        with suppress(sqlite3.Error, UnicodeDecodeError):
            yield from self._connection.execute(query)

    def consistent_events(self) -> tuple[list[Event], list[str]]:
        """Return events, numbered anew, and the keys of groups that they reopen.

        Events that take back one that is not there are dropped.
        """
        history: History[str] = History()
        numbers: dict[int, int] = {}
        events: list[Event] = []
        for event in self.events:
            try:
                history.add(event)
            except EventError as error:
                self._drop(event.seq, str(error))
                continue
            body = dict(event.body)
            if event.kind == "undo":
                body["undone"] = numbers[body["undone"]]
            numbers[event.seq] = len(events) + 1
            events.append(Event(numbers[event.seq], event.kind, body))
        doubtful = [
            key for key in history.groups if self._last_lost > history.ended_at(key)
        ]
        for key in doubtful:
            events.append(Event(len(events) + 1, "reopen", {"group": key}))
        return events, doubtful
