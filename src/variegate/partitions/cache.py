"""Prepared partitions that a worker keeps for the next iteration.

"Work" is the key of one problem, whose entries are its prepared partitions.  Every
iteration asks for the same entries in the same order, so that dropping the least
recently used one would always drop the next to be asked for.  Here entries stay: later
ones go to a file when memory is full, and are made again each time when the file is
full, too.  Only entries of other work, unused for a while, make room; and all are
dropped after ten minutes without a request.

The file has no name and goes with the process, however that ends.
"""

from __future__ import annotations

import logging
import mmap
import pickle
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any, TypeVar, cast

logger = logging.getLogger(__name__)

V = TypeVar("V")

#: Arrays begin at multiples of this number of bytes.
_ALIGNED = 64

#: Requests after which unused work makes room for other work.
_UNUSED_FOR = 200

#: Seconds without a request after which nothing is kept: a worker may outlive by far
#: the learning that it was asked to help with.
_IDLE = 600.0


@dataclass(frozen=True)
class Limits:
    """Bytes that a worker may keep; sent with every call.

    Parameters
    ----------
    memory : int
        Bytes in memory.  With Python, its libraries and a partition that is being read
        (about 450 MB in all), the default keeps a worker well below 1 GB.
    disk : int
        Bytes in a file without a name, which is mapped into memory piece by piece: as
        long as the system has room to keep what was read from files, it is as fast.
    folder : str, optional
        The folder of this file; the system's for temporary files if not given.  It
        should be on a disk, and not in memory itself.
    """

    memory: int = 256 * 2**20
    disk: int = 16 * 2**30
    folder: str | None = None


#: An object in a file: its start, its length, and the bounds of its parts, in bytes.
_Place = tuple[int, int, list[tuple[int, int]]]


def _serialize_with_buffers(value: Any) -> list[memoryview]:
    """Return the pickle of an object without its arrays, then each array's bytes."""
    buffers: list[pickle.PickleBuffer] = []
    recipe = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return [memoryview(recipe), *(buffer.raw() for buffer in buffers)]


class _Spill:
    """A file without a name, to which objects are added.

    Reading maps the file into memory; nothing is held after the object is released.
    """

    def __init__(self, folder: str | None) -> None:
        self.size = 0
        self._folder = folder

    @cached_property
    def _file(self) -> IO[bytes]:
        """The temporary file, opened at first use."""
        file = cast("IO[bytes]", tempfile.TemporaryFile(dir=self._folder))  # noqa: SIM115
        weakref.finalize(self, file.close)
        return file

    def add(self, flat: list[memoryview]) -> _Place:
        """Append the buffers of a serialized object; return where they are."""
        start = _round_up(self.size, mmap.ALLOCATIONGRANULARITY)
        parts, at = [], 0
        for part in flat:
            self._file.seek(start + at)
            self._file.write(part)
            parts.append((at, at + part.nbytes))
            at = _round_up(at + part.nbytes, _ALIGNED)
        self._file.flush()
        self.size = start + at
        self._file.truncate(self.size)
        return start, at, parts

    def read(self, place: _Place) -> Any:
        """Unpickle the object at a place; its arrays are views of the mapped file."""
        # Writing to an array would change a private copy, not the file.
        number, (start, length, parts) = self._file.fileno(), place
        mapped = mmap.mmap(number, length, access=mmap.ACCESS_COPY, offset=start)
        recipe, *arrays = (memoryview(mapped)[a:b] for a, b in parts)
        return pickle.loads(recipe, buffers=arrays)


def _round_up(size: int, step: int) -> int:
    """Round ``size`` up to a multiple of ``step``."""
    return -(-size // step) * step


class _WorkEntries:
    """The entries of one work: in memory (``values``) or a file (``places``), by key.

    ``in_memory`` is the number of bytes of ``values``; ``last_used`` the number of the
    last request, counted over all work.
    """

    def __init__(self, folder: str | None) -> None:
        self.values: dict[Any, Any] = {}
        self.in_memory = 0
        self.places: dict[Any, _Place] = {}
        self.spill = _Spill(folder)
        self.last_used = 0


class Cache:
    """Entries by their work and a key; safe for threads, which make each one once."""

    def __init__(self) -> None:
        self._work: dict[str, _WorkEntries] = {}
        self._requests = 0
        self._lock = threading.Lock()
        self._making: dict[tuple[str, Any], threading.Lock] = {}
        self._last = 0.0
        self._is_watched = False

    def get(self, work: str, key: Any, make: Callable[[], V], limits: Limits) -> V:
        """Return the entry ``key`` of a work, or ``make()`` if none is kept.

        One thread at a time makes an entry; it is kept if it fits the ``limits``.
        """
        with self._lock:
            making = self._making.setdefault((work, key), threading.Lock())
        with making:
            try:
                found, value = self._look_up(work, key, limits)
                if not found:
                    value = make()
                    self._store_value(work, key, value, limits)
            finally:
                with self._lock:
                    self._making.pop((work, key), None)
                    self._last = time.monotonic()
                    if not self._is_watched:
                        self._is_watched = True
                        threading.Thread(
                            target=self._clear_when_idle, daemon=True
                        ).start()
        return cast("V", value)

    def clear(self) -> None:
        """Drop all entries."""
        with self._lock:
            self._work.clear()

    def bytes_kept(self) -> tuple[int, int]:
        """Return how many bytes all entries take: in memory, and in files."""
        with self._lock:
            return self._bytes_kept()

    def _bytes_kept(self) -> tuple[int, int]:
        """Return the bytes in memory and in files; called with the lock held."""
        kept = self._work.values()
        return sum(w.in_memory for w in kept), sum(w.spill.size for w in kept)

    def _clear_when_idle(self) -> None:
        """Drop all entries after ``_IDLE`` seconds without requests; then return."""
        while True:
            with self._lock:
                left = self._last + _IDLE - time.monotonic()
                if left <= 0.0 and not self._making:
                    self._work.clear()
                    self._is_watched = False
                    return
            time.sleep(max(left, 0.01 * _IDLE))

    def _look_up(self, name: str, key: Any, limits: Limits) -> tuple[bool, Any]:
        """Count a request; return whether an entry is kept, and its value or None."""
        with self._lock:
            self._requests += 1
            work = self._work.setdefault(name, _WorkEntries(limits.folder))
            work.last_used = self._requests
            if key in work.values:
                return True, work.values[key]
            place = work.places.get(key)
        return (False, None) if place is None else (True, work.spill.read(place))

    def _store_value(self, name: str, key: Any, value: Any, limits: Limits) -> None:
        """Keep an entry of work ``name`` in memory or a file, if the limits allow it.

        Other work is dropped first, if it was unused for ``_UNUSED_FOR`` requests.
        """
        flat = _serialize_with_buffers(value)
        # Small objects take more room in memory than in a recipe.
        n_bytes = flat[0].nbytes + sum(part.nbytes for part in flat)
        with self._lock:
            for other, work in list(self._work.items()):
                if other != name and self._requests - work.last_used > _UNUSED_FOR:
                    del self._work[other]
            work = self._work.setdefault(name, _WorkEntries(limits.folder))
            if key in work.values or key in work.places:
                return
            in_memory, on_disk = self._bytes_kept()
            if in_memory + n_bytes <= limits.memory:
                work.values[key] = value
                work.in_memory += n_bytes
            elif on_disk + n_bytes <= limits.disk:
                try:
                    work.places[key] = work.spill.add(flat)
                except OSError as error:  # made again each time, then
                    logger.warning("cannot keep what was prepared: %s", error)


#: The cache of this process.
CACHE = Cache()
