"""SQLite files of one format, each open in one process at a time."""

from __future__ import annotations

import sqlite3
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, Self


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

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = RLock()
        with self._translated_errors():
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
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; its log is written into it."""
        with self._lock, self._translated_errors():
            self._connection.close()

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
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite itself goes back after some errors, such as a full disk.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

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
