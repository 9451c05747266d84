"""Errors that are want of memory, whatever their type."""

from __future__ import annotations

import errno
import re

#: Messages of a loader of libraries, and of Python where a thread cannot start.
_MESSAGE = re.compile(
    r"failed to map segment|cannot map|cannot allocate(?!.*static TLS)|out of memory"
    r"|paging file is too small|can't start new thread",
    re.IGNORECASE,
)


def find_memory_error(error: BaseException | None) -> BaseException | None:
    """Return the first error of a chain of causes that is want of memory, or None."""
    while error is not None:
        if isinstance(error, MemoryError):
            return error
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return error
        # Other errors quote names of files and columns.
        if isinstance(error, ImportError | RuntimeError) and _MESSAGE.search(
            str(error)
        ):
            return error
        error = error.__cause__ or error.__context__
    return None
