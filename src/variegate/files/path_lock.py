"""Locks on paths, which outlast the files there."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
import weakref
from pathlib import Path


class PathLock:
    """A lock on a path, whether or not there is a file; one process has it at a time.

    A lock on the file itself ends where the file is deleted or replaced.  This one is
    an empty SQLite database, locked, in a folder of this user for temporary files.  It
    has a name computed from the path, and ends with the process.  Without such a
    folder, nothing is locked.

    Raises
    ------
    sqlite3.OperationalError
        With the code ``SQLITE_BUSY`` if another process has the lock after ``patience``
        seconds.
    """

    def __init__(self, path: Path, patience: float = 0.0) -> None:
        name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            lock = _own_folder() / f"{name}.lock"
            self._connection.close()
            self._connection = sqlite3.connect(
                lock, timeout=patience, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("BEGIN EXCLUSIVE")
        except (OSError, sqlite3.Error) as error:
            self.close()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise
        weakref.finalize(self, self._connection.close)

    def close(self) -> None:
        """Release the lock."""
        self._connection.close()


def _own_folder() -> Path:
    """Return a folder for locks that belongs to this user, made if it is missing."""
    user = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    folder = Path(tempfile.gettempdir()) / f"variegate-locks-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and folder.lstat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    return folder
