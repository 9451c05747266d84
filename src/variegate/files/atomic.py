"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np


def write_atomic(path: str | Path, content: str | bytes) -> None:
    """Write ``content`` to ``path`` so that no reader ever sees a part of it."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with new_file(path) as file, name_path_in_errors(path):
        file.write(data)


def as_plain_value(value: Any) -> Any:
    """Return a NumPy number or array as plain values, or raise TypeError."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a plain value: {value!r}")


@contextmanager
def new_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that appears under its name when the block ends without an error.

    Where the system can, the file has no name until then, so that even a process
    that is killed leaves nothing behind; otherwise it has a hidden name, which is
    removed after an error.  A file that was there before stays until it is replaced.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {path}: there is no folder {path.parent}"
        )
    hidden = path.with_name(f".{path.name}.{os.getpid()}.{uuid4().hex[:8]}.tmp")
    with name_path_in_errors(path):
        nameless = _open_nameless(path.parent)
        file = open(hidden, "xb") if nameless is None else open(nameless, "wb")  # noqa: SIM115
    try:
        yield file
        with name_path_in_errors(path):
            file.flush()
            if nameless is not None:
                _link_at_path(nameless, path, hidden)
            else:
                file.close()
                os.replace(hidden, path)
    finally:
        # What could not be written before cannot be written now.
        with suppress(OSError):
            file.close()
        hidden.unlink(missing_ok=True)


@contextmanager
def name_path_in_errors(path: str | Path) -> Iterator[None]:
    """Raise errors of the system in the block as "cannot write PATH: reason"."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise type(error)(f"cannot write {path}: {reason}") from error


def _open_nameless(folder: Path) -> int | None:
    """Return the descriptor of a new nameless file on the disk of a folder, or None.

    None means that the system or its file system has no such files.
    """
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except OSError:
        # Not on this file system; other errors occur again under a name.
        return None
    if os.path.exists(f"/proc/self/fd/{descriptor}"):
        return descriptor
    os.close(descriptor)
    return None


def _link_at_path(descriptor: int, path: Path, hidden: Path) -> None:
    """Give a nameless file its path, replacing a file there by way of ``hidden``."""
    source = f"/proc/self/fd/{descriptor}"
    # With src_dir_fd (which an absolute source ignores), Python calls linkat, which
    # follows the symbolic link; plain link would link to the link itself.
    try:
        os.link(source, path, src_dir_fd=descriptor, follow_symlinks=True)
    except FileExistsError:
        os.link(source, hidden, src_dir_fd=descriptor, follow_symlinks=True)
        os.replace(hidden, path)
