"""A folder of pictures as material: a table of what they look like."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from variegate._progress import Progress, ignore
from variegate.studio.material.base import MaterialError
from variegate.studio.material.pictures import (
    is_picture,
    look_at,
    picture_names,
    read_picture,
)
from variegate.studio.material.tables import TableMaterial
from variegate.tables.columns import Columns
from variegate.tables.selector import TableSelector

__all__ = ["PAGE", "image_material", "picture_columns", "pictures_in"]

#: Pictures on a page, where nothing else says what belongs together.
PAGE = 20

#: Pictures that are looked at, at most.
_MOST = 50_000


def pictures_in(folder: Path) -> list[Path]:
    """Return the pictures of a folder and those below, in the natural order of names.

    Links that lead out of the folder are left out.
    """
    root = folder.resolve()
    found = [
        path
        for path in folder.rglob("*")
        if is_picture(path)
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and path.is_file()
        and path.resolve().is_relative_to(root)
    ]
    if len(found) > _MOST:
        raise MaterialError(
            f"{folder} holds {len(found):,} pictures: give a folder of at most "
            f"{_MOST:,}"
        )
    return sorted(found, key=lambda path: _natural(path.relative_to(folder)))


def _natural(path: Path) -> Any:
    """Return a key by which numbers in names count as numbers."""
    parts = re.split(r"([0-9]+)", str(path).casefold())
    key = [int(part) if place % 2 else part for place, part in enumerate(parts)]
    return key, str(path)


def image_material(
    folder: Path,
    page: int = PAGE,
    prior: TableSelector | None = None,
    progress: Progress = ignore,
) -> TableMaterial:
    """Open a folder of pictures.

    Folders in it are groups; pictures that are in none come in pages, and so do those
    of a folder that has more than five pages.

    Parameters
    ----------
    folder : Path
    page : int
        Pictures on a page.
    prior : TableSelector, optional
        A model that was learned from such pictures.
    progress : callable, optional
    """
    paths = pictures_in(folder)
    looks = _looks(paths, progress)
    kept = [path for path, look in zip(paths, looks, strict=True) if look is not None]
    if not kept:
        raise MaterialError(f"there is no picture in {folder} that can be read")
    names = [path.relative_to(folder) for path in kept]
    columns: dict[str, Any] = {
        "image": [name.as_posix() for name in names],
        "page": _pages(names, page),
    }
    columns |= _columns([look for look in looks if look is not None])
    return TableMaterial(
        pa.table(columns),
        Columns.of(
            group="page",
            item="image",
            quality=list(picture_names()),
            similarity=["shapes", "palette"],
        ),
        "picks.parquet",
        folder,
        prior,
        "images",
        ("image", "images"),
        picture_names(),
    )


def _looks(paths: Sequence[Path], progress: Progress) -> list[Any]:
    """Look at pictures, several at a time; None stands for one that is damaged."""

    def look(path: Path) -> Any:
        try:
            return look_at(read_picture(path))
        except MaterialError:
            return None

    found = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, result in enumerate(pool.map(look, paths), 1):
            found.append(result)
            progress("opening", done, len(paths))
    return found


def picture_columns(paths: Sequence[Path | None], progress: Progress) -> dict[str, Any]:
    """Return columns of what pictures look like; zeros where there is none."""
    known = [path for path in paths if path is not None]
    looks = iter(_looks(known, progress))
    found = [None if path is None else next(looks) for path in paths]
    example = next((look for look in found if look is not None), None)
    if example is None:
        return {}
    nothing = tuple(np.zeros_like(part) for part in example)
    return _columns([nothing if look is None else look for look in found])


def _columns(looks: Sequence[Any]) -> dict[str, Any]:
    statistics, palettes, shapes = (np.array(part) for part in zip(*looks, strict=True))
    columns: dict[str, Any] = dict(zip(picture_names(), statistics.T, strict=True))
    for name, vectors in (("shapes", shapes), ("palette", palettes)):
        flat = pa.array(vectors.astype(np.float32).ravel())
        columns[name] = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
    return columns


def _pages(names: Sequence[Path], page: int) -> list[str]:
    """Return the group of every picture: its folder, or a page."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name.parent.as_posix()] = counts.get(name.parent.as_posix(), 0) + 1
    seen: dict[str, int] = {}
    groups = []
    for name in names:
        folder = name.parent.as_posix()
        number = seen[folder] = seen.get(folder, 0) + 1
        if folder != "." and counts[folder] <= 5 * page:
            groups.append(folder)
            continue
        before = "" if folder == "." else f"{folder}, "
        groups.append(f"{before}page {(number - 1) // page + 1}")
    return groups
