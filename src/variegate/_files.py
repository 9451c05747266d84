"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4


def write_atomic(path: str | Path, content: str | bytes) -> None:
    """Write ``content`` to ``path`` so that no reader ever sees a part of it."""
    path = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {path}: there is no folder {path.parent}"
        )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{uuid4().hex[:8]}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError as error:
        raise type(error)(f"cannot write {path}: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)
