r"""What was computed, written down: a run that was killed goes on where it was.

Solvers are deterministic.  If every answer that they were given is written down, then
a run that starts again asks the same questions, has the known answers at once, and goes
on from there with the same bits.  No solver needs to know.

A journal is a file to which records are added, each with its checksum and on disk
before the run goes on.  What a killed run left half-written at the end is dropped when
the file is opened::

    {"format": "variegate-journal", "version": 1, "run": {...}}\n
    length of key, length of value (4 and 8 bytes), key, value, CRC-32 (4 bytes)
    ...
"""

from __future__ import annotations

import json
import logging
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self

from variegate._files import plain, writing_to
from variegate.solvers.checkpoint import CheckpointError, check_folder, check_run

try:
    import fcntl
except ImportError:  # not on Windows, where two runs on one journal are not refused
    fcntl = None  # type: ignore[assignment]

__all__ = ["Journal"]

logger = logging.getLogger(__name__)

FORMAT = "variegate-journal"
VERSION = 1

_LENGTHS = struct.Struct("<IQ")
_CHECKSUM = struct.Struct("<I")


class Journal:
    """Answers by their keys, in memory and in a file.

    Parameters
    ----------
    path : str or Path, optional
        The file, made if there is none.  Without one, answers are remembered as long
        as the journal lives.
    run : mapping
        What the run is, settings and data, as plain values.

    Raises
    ------
    CheckpointError
        If the file is something else, of another run, or in use by another process.

    Examples
    --------
    >>> journal = Journal()
    >>> journal.remember("one and one", lambda: b"two")
    b'two'
    >>> journal.remember("one and one", lambda: b"not asked again")
    b'two'
    """

    def __init__(
        self, path: str | Path | None = None, run: Mapping[str, Any] | None = None
    ) -> None:
        self.path = None if path is None else Path(path)
        self._answers: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        if self.path is not None:
            check_folder(self.path)
            self._open(self.path, run or {})

    def __len__(self) -> int:
        return len(self._answers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def remember(self, key: str, make: Callable[[], bytes]) -> bytes:
        """Return the answer that was written down, or make it and write it down."""
        if key not in self._answers:
            self._add(key, make())
        return self._answers[key]

    def close(self) -> None:
        """Close the file; what is written down stays there."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Close and delete the file, when all is done."""
        self.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    # The file ---------------------------------------------------------------------

    def _add(self, key: str, value: bytes) -> None:
        with self._lock:
            if self._file is not None and self.path is not None:
                with writing_to(self.path):
                    self._file.write(_record(key, value))
                    _put_on_disk(self._file)
            self._answers[key] = value

    def _open(self, path: Path, run: Mapping[str, Any]) -> None:
        with writing_to(path):
            # Not "a+b", which writes at the end of what is cut off.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            self._file = file = os.fdopen(descriptor, "r+b")
        try:
            _lock_file(file, path)
            content = file.read()
            header = _header(run)
            if header.startswith(content):  # new, or killed before it was written
                end, content = 0, b""
            else:
                end = _read_header(path, content, run)
            for key, value, after in _records(content, end):
                self._answers[key] = value
                end = after
            if end < len(content):
                logger.info("%s: dropped %d torn bytes", path, len(content) - end)
            with writing_to(path):
                file.seek(end)
                file.truncate()
                if end == 0:
                    file.write(header)
                _put_on_disk(file)
        except BaseException:
            self.close()
            raise


def _put_on_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _lock_file(file: IO[bytes], path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CheckpointError(
            f"{path} is in use by another process: wait until that has ended, or name "
            "another file"
        ) from None
    except OSError:  # a file system that has no locks
        logger.info("%s cannot be locked", path)


def _header(run: Mapping[str, Any]) -> bytes:
    document = {"format": FORMAT, "version": VERSION, "run": run}
    return json.dumps(document, default=plain, sort_keys=True).encode() + b"\n"


def _read_header(path: Path, content: bytes, run: Mapping[str, Any]) -> int:
    """Refuse what is not a journal of this run; return where its records begin."""
    line, newline, _ = content.partition(b"\n")
    try:
        document = json.loads(line) if newline else None
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} is not a journal of variegate, or is damaged: delete it, or name "
            "another file"
        )
    if document.get("version") != VERSION:
        raise CheckpointError(
            f"{path} has format version {document.get('version')!r}, but this "
            f"variegate reads {VERSION}"
        )
    there = document.get("run")
    check_run(path, there if isinstance(there, dict) else {}, run)
    return len(line) + 1


def _record(key: str, value: bytes) -> bytes:
    name = key.encode()
    content = _LENGTHS.pack(len(name), len(value)) + name + value
    return content + _CHECKSUM.pack(zlib.crc32(content))


def _records(content: bytes, start: int) -> Iterator[tuple[str, bytes, int]]:
    """Yield keys, values and where they end, up to the first that is not whole."""
    while start + _LENGTHS.size <= len(content):
        n_key, n_value = _LENGTHS.unpack_from(content, start)
        middle = start + _LENGTHS.size + n_key
        end = middle + n_value
        if end + _CHECKSUM.size > len(content):
            return
        if _CHECKSUM.unpack_from(content, end) != (zlib.crc32(content[start:end]),):
            return
        key = content[start + _LENGTHS.size : middle].decode()
        start, value = end + _CHECKSUM.size, content[middle:end]
        yield key, value, start
