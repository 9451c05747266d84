"""Find files in folders by their suffixes, and read them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path


def files_below(folder: Path, suffixes: Collection[str] = ()) -> list[Path]:
    """Return the files of a folder and below, or those with some suffixes, sorted.

    Hidden files, and those in hidden folders, are left out.
    """
    return sorted(
        file
        for file in folder.rglob("*")
        if (not suffixes or file.suffix.lower() in suffixes)
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and file.is_file()
    )


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file; an error says that it is missing or a folder."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    return path.read_bytes()
