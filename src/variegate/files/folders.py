"""Find files in folders by their suffixes."""

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
