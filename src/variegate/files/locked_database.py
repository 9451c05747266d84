"""SQLite files of one format, each open in one process at a time."""

from __future__ import annotations

import sqlite3
import weakref
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, Self

from variegate.files.path_lock import PathLock


class LockedDatabase(ABC):
    """An SQLite file that this process alone reads and writes, from any thread.

    A commit is on disk when it returns: the file has a write-ahead log, which is
    synchronized every time.  Without a path, the database is in memory.
    """

    #: Number that identifies the format among SQLite files ("PRAGMA application_id"),
    #: its version, and the SQL statements that create its tables.
    _application: ClassVar[int]
    _version: ClassVar[int] = 1
    _schema: ClassVar[tuple[str, ...]]
    #: Seconds to wait for another process to close the file.
    _patience: ClassVar[float] = 0.0
    #: The error for files of other programs and versions.  Its messages are templates:
    #: of the path, then of the versions of the file and of this class.
    _error: ClassVar[type[Exception]]
    _not_ours: ClassVar[str]
    _other_version: ClassVar[str]
    #: The message, of the path, where the file was deleted or replaced by another while
    #: it is open; None if that is not checked.  With a message, the path is locked as
    #: well, and every commit is copied from the log into the file at once.
    _vanished: ClassVar[str | None] = None

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = RLock()
        #: What identifies the file and its content; None before it is open.
        self._identity: tuple[Any, ...] | None = None
        self._path_lock: PathLock | None = None
        with self._translated_errors():
            if path is not None and self._vanished is not None:
                self._path_lock = PathLock(path, self._patience)
            self._connection = sqlite3.connect(
                path or ":memory:",
                timeout=self._patience,
                isolation_level=None,
                check_same_thread=False,
            )
        # Python 3.13 warns of connections that are collected open.
        weakref.finalize(self, self._connection.close)
        try:
            with self._translated_errors():
                # One process, so that no memory need be shared: the lock is kept.
                self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                is_new = self._check_format()
                # A commit then synchronizes one file, once.
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
            with self._transaction():
                if is_new:
                    self._create()
                self._check_or_initialize(is_new)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; its log is written into it."""
        with self._lock, self._translated_errors():
            self._close()

    def _close(self) -> None:
        """Close the connection, then release the lock on the path."""
        try:
            self._connection.close()
        finally:
            if self._path_lock is not None:
                self._path_lock.close()

    def check_file(self) -> None:
        """Raise ``_error`` if the file was deleted, or another is in its place."""
        with self._lock:
            if self.path is None or self._vanished is None or self._identity is None:
                return
            now = self._read_identity()
            if now[:2] == self._identity[:2] and now[2] != self._identity[2]:
                # The time alone may differ, as on a file system with another clock.
                if _checksum(self.path) == self._identity[3]:
                    self._identity = (*now, self._identity[3])
                    return
            elif now == self._identity[:3]:
                return
            raise self._error(self._vanished.format(self.path))

    def _read_identity(self) -> tuple[Any, ...]:
        """Return which files the database and its log are, and the size and time.

        Only this process writes to the database, when it copies commits from the log.
        """
        assert self.path is not None
        found: list[Any] = []
        for name in (self.path, f"{self.path}-wal"):
            try:
                status = Path(name).stat()
            except OSError:
                found.append(None)
            else:
                found.append((status.st_dev, status.st_ino))
                if name == self.path:
                    content = status.st_size, status.st_mtime_ns
        return *found, None if found[0] is None else content

    def _flush(self) -> None:
        """Copy commits from the log into the file, and note the state of the file."""
        if self.path is None or self._vanished is None:
            return
        # On a full disk they stay in the log, which is synchronized, until the next.
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        now = self._read_identity()
        if self._identity is None or now[:2] == self._identity[:2]:
            with suppress(OSError):
                self._identity = (*now, _checksum(self.path))

    def _check_format(self) -> bool:
        """Raise ``_error`` for files of other programs and of other versions.

        Return whether the file is new: it has no tables.
        """
        application, version, n_tables = (
            self._connection.execute(query).fetchone()[0]
            for query in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_schema",
            )
        )
        # Without tables, a process was killed while it made the file.
        if application == 0 and n_tables == 0:
            return True
        if application != self._application:
            raise self._error(self._not_ours.format(self.path))
        if version != self._version:
            text = self._other_version.format(self.path, version, self._version)
            raise self._error(text)
        return False

    def _create(self) -> None:
        """Create the tables, and mark the file as one of this application."""
        for statement in self._schema:
            self._connection.execute(statement)
        self._connection.execute(f"PRAGMA application_id = {self._application}")
        self._connection.execute(f"PRAGMA user_version = {self._version}")

    @abstractmethod
    def _check_or_initialize(self, is_new: bool) -> None:
        """Check the content of a file, or fill a new one; called in a transaction."""

    @abstractmethod
    def _translate_error(self, error: sqlite3.Error, code: int) -> Exception:
        """Return the error to raise in place of one of SQLite.

        ``code`` is its primary result code, such as ``sqlite3.SQLITE_BUSY``; 0 if none.
        """

    def _query_rows(self, query: str, *arguments: Any) -> list[Any]:
        """Return all rows, as tuples, of an SQL query with ``arguments`` for ``?``."""
        with self._lock, self._translated_errors():
            return self._connection.execute(query, arguments).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection; commit what the block changes, or nothing on error."""
        with self._lock, self._translated_errors():
            self._connection.execute("BEGIN EXCLUSIVE")
            try:
                yield self._connection
                self.check_file()
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite itself goes back after some errors, such as a full disk.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            self._flush()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Raise errors of SQLite in the block as errors of ``_translate_error``."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            raise self._translate_error(error, code) from error
        except UnicodeDecodeError as error:
            # The message of SQLite quotes damaged bytes.
            damage = sqlite3.DatabaseError("damaged text")
            raise self._translate_error(damage, sqlite3.SQLITE_CORRUPT) from error


def _checksum(path: Path) -> int:
    """Return a checksum of the content of a file."""
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(2**20):
            checksum = zlib.crc32(piece, checksum)
    return checksum
