"""Table files and folders of pictures, opened as tables.

Types, groups and features are found where nothing names them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate._progress import Progress, ignore
from variegate._typing import AnyArray
from variegate.files.folders import files_below
from variegate.studio.material.base import MaterialError
from variegate.studio.material.pictures import (
    PICTURE_NAMES,
    PICTURE_SUFFIXES,
    describe_picture,
    read_picture,
)
from variegate.studio.material.tables import RowDisplay, TableMaterial, unused_name
from variegate.tables.cells import Batch, null_where
from variegate.tables.columns import Columns, is_number, is_text, is_vector
from variegate.tables.selector import TableSelector
from variegate.tables.table import Table, as_table
from variegate.video.picks import natural_key

#: Rows and pictures at most, and on a page, where there are no groups.
_MOST_ROWS, _PAGE_ROWS = 1_000_000, 50
_MOST_PICTURES, _PAGE_PICTURES = 50_000, 20


def table_material(
    path: Path,
    given: Mapping[str, Any],
    page: int | None,
    prior: TableSelector | None,
    progress: Progress,
) -> TableMaterial:
    """Open a table.

    By default, text that is all numbers is numbers, columns of vectors are the
    similarity, columns of numbers the quality; of a table without a group every 50 rows
    are a page, and pictures are described where there are no other features.  Empty
    cells count as the mean.
    """
    table = _typed(as_table(path))
    columns = Columns.of(**({"missing": "mean"} | dict(given)))
    if prior is not None:
        columns = prior.columns_.with_roles({"label": None, **given})
    if columns.group is None:
        name, page = unused_name("page", table), page or _PAGE_ROWS
        pages = [f"page {row // page + 1}" for row in range(table.num_rows)]
        table = table.append_column(name, pa.array(pages))
        columns = columns.with_roles({"group": name})
    if columns.label is not None:
        if columns.label in table.schema.names:
            table = table.drop_columns([columns.label])
        columns = replace(columns, label=None)
    folder = path.parent if path.is_file() else path
    if prior is None:
        table, columns = _with_features(table, columns, folder, progress)
    return TableMaterial(table, columns, str(path), folder, prior)


def _typed(source: Table) -> pa.Table:
    """Return a table in memory, text that is numbers or vectors turned into them."""
    batches, n_rows = [], 0
    for batch in source.batches():
        n_rows += batch.num_rows
        if n_rows > _MOST_ROWS:
            raise MaterialError(
                f"{source.name} has more than {_MOST_ROWS:,} rows: give the studio a "
                "part of it"
            )
        batches.append(batch)
    if not n_rows:
        raise MaterialError(f"{source.name} has no rows")
    table = pa.Table.from_batches(batches).combine_chunks()
    if not source.is_untyped:
        return table
    for place, name in enumerate(table.schema.names):
        column = _numbers_in(table.column(name))
        if column is None:
            column = _vectors_in(table.column(name), name)
        if column is not None:
            table = table.set_column(place, name, column)
    return table


def _numbers_in(column: Any) -> Any:
    """Return text as numbers, or None where it is not all numbers."""
    if not is_text(column.type):
        return None
    trimmed = pc.utf8_trim_whitespace(column)
    full = null_where(pc.equal(trimmed, ""), trimmed)
    if full.null_count == len(full):
        return None
    for kind in (pa.int64(), pa.float64()):
        try:
            return pc.cast(full, kind)
        except pa.ArrowInvalid:
            continue
    return None


def _vectors_in(column: Any, name: str) -> Any:
    """Return text as vectors, or None where the first cell is not one."""
    first = column[0].as_py()
    if not isinstance(first, str) or not first.lstrip().startswith("["):
        return None
    rows = pa.record_batch([column.combine_chunks()], names=[name])
    try:
        return _as_column(Batch(rows, 0, True)[name].vectors())
    except ValueError:
        return None


def _as_column(vectors: AnyArray) -> Any:
    return pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1])


def _with_features(
    table: pa.Table, columns: Columns, folder: Path, progress: Progress
) -> tuple[pa.Table, Columns]:
    """Return a table and columns with a quality and, if there are any, vectors."""
    taken = set(columns.excluded_from_features()) | {columns.relevance}
    if not columns.similarity:
        vectors = [f.name for f in table.schema if is_vector(f.type)]
        columns = columns.with_roles({"similarity": vectors})
    has_quality = bool(columns.quality or columns.categorical or _numbers(table, taken))
    if not has_quality or not columns.similarity:
        display = RowDisplay(table, columns, folder)
        paths = [display.picture(row) for row in range(table.num_rows)]
        for name, values in _columns(_descriptions(paths, progress)).items():
            if name not in table.schema.names:
                table = table.append_column(name, pa.array(values))
        added = [n for n in ("shapes", "palette") if n in table.schema.names]
        if not columns.similarity and any(path is not None for path in paths):
            columns = columns.with_roles({"similarity": added})
    if not has_quality and columns.similarity:
        quality = _numbers(table, taken) or list(columns.similarity)
        columns = columns.with_roles({"quality": quality})
    return table, columns


def _numbers(table: pa.Table, taken: set[str | None]) -> list[str]:
    return [f.name for f in table.schema if is_number(f.type) and f.name not in taken]


def image_material(
    folder: Path,
    page: int | None = None,
    prior: TableSelector | None = None,
    progress: Progress = ignore,
) -> TableMaterial:
    """Open a folder of pictures.

    Folders in it are groups; pictures that are in none come in pages of 20 by default,
    and so do those of a folder that has more than five pages.
    """
    paths = _pictures_in(folder)
    found = dict(zip(paths, _descriptions(paths, progress), strict=True))
    kept = {path: one for path, one in found.items() if one is not None}
    if not kept:
        raise MaterialError(f"there is no picture in {folder} that can be read")
    names = [path.relative_to(folder) for path in kept]
    columns = {
        "image": [name.as_posix() for name in names],
        "page": _pages(names, page or _PAGE_PICTURES),
        **_columns(list(kept.values())),
    }
    return TableMaterial(
        pa.table(columns),
        Columns.of(
            group="page",
            item="image",
            quality=list(PICTURE_NAMES),
            similarity=["shapes", "palette"],
        ),
        "picks.parquet",
        folder,
        prior,
        "images",
        ("image", "images"),
        PICTURE_NAMES,
    )


def _pictures_in(folder: Path) -> list[Path]:
    """Return the pictures of a folder and below, in the natural order of names."""
    root, paths = folder.resolve(), files_below(folder, PICTURE_SUFFIXES)
    # Links may lead out of the folder.
    found = [path for path in paths if path.resolve().is_relative_to(root)]
    if len(found) > _MOST_PICTURES:
        raise MaterialError(
            f"{folder} holds {len(found):,} pictures: give a folder of at most "
            f"{_MOST_PICTURES:,}"
        )
    return sorted(found, key=lambda path: natural_key(str(path.relative_to(folder))))


def _descriptions(paths: Sequence[Path | None], progress: Progress) -> list[Any]:
    """Describe pictures, several at a time; None for none and for a damaged one."""

    def describe(path: Path | None) -> Any:
        try:
            return None if path is None else describe_picture(read_picture(path))
        except MaterialError:
            return None

    found = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, result in enumerate(pool.map(describe, paths), 1):
            found.append(result)
            progress("opening", done, len(paths))
    return found


def _columns(descriptions: Sequence[Any]) -> dict[str, Any]:
    """Return columns that describe pictures; zeros where there is none."""
    known = [one for one in descriptions if one is not None]
    if not known:
        return {}
    nothing = tuple(map(np.zeros_like, known[0]))
    rows = zip(*(one or nothing for one in descriptions), strict=True)
    statistics, palettes, shapes = map(np.array, rows)
    columns: dict[str, Any] = dict(zip(PICTURE_NAMES, statistics.T, strict=True))
    columns["shapes"] = _as_column(shapes.astype(np.float32))
    columns["palette"] = _as_column(palettes.astype(np.float32))
    return columns


def _pages(names: Sequence[Path], page: int) -> list[str]:
    """Return the group of every picture: its folder, or a page."""
    counts = Counter(name.parent.as_posix() for name in names)
    seen: Counter[str] = Counter()
    groups = []
    for name in names:
        folder = name.parent.as_posix()
        seen[folder] += 1
        if folder != "." and counts[folder] <= 5 * page:
            groups.append(folder)
            continue
        before = "" if folder == "." else f"{folder}, "
        groups.append(f"{before}page {(seen[folder] - 1) // page + 1}")
    return groups
