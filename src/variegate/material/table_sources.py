"""Table files and folders of pictures, opened as tables.

Types, groups and features are found where nothing names them.
"""

from __future__ import annotations

import hashlib
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

from variegate._progress import Progress
from variegate._typing import AnyArray
from variegate.files.folders import files_below
from variegate.material.base import MaterialError
from variegate.material.pictures import (
    PICTURE_NAMES,
    PICTURE_SUFFIXES,
    describe_picture,
    read_picture,
)
from variegate.material.row_display import RowDisplay
from variegate.material.tables import TableMaterial, TableSource, unused_name
from variegate.report.wording import count
from variegate.tables.cells import Cells, holds_vectors, null_where
from variegate.tables.columns import Columns, is_list, is_number, is_text, is_vector
from variegate.tables.rows import sortable_schema, unsortable_columns
from variegate.tables.selector import TableSelector
from variegate.tables.table import Table, as_table
from variegate.tables.writing import unwritable_columns
from variegate.video.picks import natural_key

#: The most rows and pictures to open; and those of a page, a group made of consecutive
#: ones where there are no groups.
_MOST_ROWS, _PAGE_ROWS = 1_000_000, 50
_MOST_PICTURES, _PAGE_PICTURES = 50_000, 20

#: Columns that describe pictures.
_COMPUTED = (*PICTURE_NAMES, "shapes", "palette")


def table_material(
    path: Path,
    given: Mapping[str, Any],
    show: Sequence[str],
    page: int | None,
    prior: TableSelector | None,
    progress: Progress,
) -> TableMaterial:
    """Return the material of a table file or folder.

    ``given`` are column roles, ``show`` the columns to show, ``page`` the rows of a
    page (None for 50, 0 for all): without a group column, pages are groups.  ``prior``,
    a model, sets the encoding.  By default, text of numbers is numbers, columns of
    vectors are the similarity, of numbers the quality.  Pictures are described where
    nothing else is a feature, or ``prior`` asks for it.  Empty cells count as the mean.
    """
    columns = Columns.of(**({"missing": "mean"} | dict(given)))
    if prior is not None:
        columns = prior.columns_.with_roles({"label": None, **given})
    opened = as_table(path)
    original = _read_table(opened)
    table, n_filled = _with_types(original, columns.missing != "error")
    pages = None
    if columns.group is None and page != 0:
        pages, page = unused_name("page", table), page or _PAGE_ROWS
        names = [f"page {row // page + 1}" for row in range(table.num_rows)]
        table = table.append_column(pages, pa.array(names))
        columns = columns.with_roles({"group": pages})
    if columns.label is not None:
        if columns.label in table.schema.names:
            table = table.drop_columns([columns.label])
            original = original.drop_columns([columns.label])
        columns = replace(columns, label=None)
    folder = path.parent if path.is_file() else path
    before = table.schema.names
    if prior is None:
        table, columns = _find_features(table, columns, folder, progress)
    elif set(columns.features()) & set(_COMPUTED) - set(before):
        table = _add_descriptions(table, columns, folder, progress)
    source = TableSource(
        table,
        columns,
        str(path),
        folder,
        computed=[name for name in table.schema.names if name not in before],
        original=original,
        pages=pages,
        show=show,
        is_named=bool({"quality", "similarity", "categorical"} & given.keys()),
    )
    material = TableMaterial(source, prior)
    notes = _note_on_left_out(opened.schema, table.schema)
    if columns.missing == "mean":
        notes += _note_on_empty_cells(table, material.columns, n_filled)
    material.notes = notes
    return material


def _note_on_left_out(schema: pa.Schema, kept: pa.Schema) -> list[str]:
    """Return remarks on columns that are not opened, and that exports leave out."""
    notes = []
    if gone := [field for field in schema if field.name not in kept.names]:
        notes.append(f"columns that Arrow cannot reorder are left out: {_typed(gone)}")
    for name in ("picks.csv", "picks.jsonl", "picks.parquet"):
        if columns := columns_left_out(name, kept):
            notes.append(f"{name} leaves out what it cannot hold: {_typed(columns)}")
    return notes


def columns_left_out(name: str, schema: pa.Schema) -> list[pa.Field]:
    """Return the columns that a file of picks, called ``name``, cannot hold.

    CSV holds lists as text, such as ``[0.1, 0.2]``.
    """
    as_json = {field.name for field in unwritable_columns("picks.jsonl", schema)}
    return [
        field
        for field in unwritable_columns(name, schema)
        if not (is_list(field.type) and field.name not in as_json)
    ]


def _typed(columns: Sequence[pa.Field]) -> str:
    """Return names and types of columns as text."""
    return ", ".join(f"{field.name!r} ({field.type})" for field in columns)


def _note_on_empty_cells(
    table: pa.Table, columns: Columns, n_filled: Mapping[str, int]
) -> list[str]:
    """Return a list of one remark on empty cells and ``n_filled`` by column, or []."""
    empty = {}
    for name in columns.features():
        if name in table.schema.names:
            column = table.column(name)
            n_empty = n_filled.get(name, 0) + column.null_count
            if pa.types.is_floating(column.type):
                n_empty += pc.sum(pc.is_nan(column)).as_py() or 0
            elif is_text(column.type):
                trimmed = pc.utf8_trim_whitespace(column)
                n_empty += pc.sum(pc.equal(trimmed, "")).as_py() or 0
            if n_empty:
                empty[name] = n_empty
    if not empty:
        return []
    cells = ", ".join(f"{n:,} of {name!r}" for name, n in empty.items())
    return [
        f"empty cells count as the mean of their column: {cells} (of "
        f"{count(table.num_rows, 'row')}); --missing says otherwise"
    ]


def _read_table(source: Table) -> pa.Table:
    """Return a table in memory; MaterialError for no or over ``_MOST_ROWS`` rows."""
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
    table = pa.Table.from_batches(batches)
    unsortable = [column.name for column in unsortable_columns(table.schema)]
    table = table.drop_columns(unsortable)
    return table.cast(sortable_schema(table.schema)).combine_chunks()


def _with_types(table: pa.Table, fills: bool) -> tuple[pa.Table, dict[str, int]]:
    """Return a table with types, and the number of filled empty vectors by column.

    If all columns are text, those of numbers or vectors get that type.  Empty cells of
    vectors are filled by the mean vector if ``fills``.
    """
    n_filled = {}
    is_untyped = all(is_text(field.type) for field in table.schema)
    for place, name in enumerate(table.schema.names):
        column = table.column(name)
        if is_untyped:
            full = null_where(pc.equal(pc.utf8_trim_whitespace(column), ""), column)
            found = _as_numbers(full)
            column = _as_vectors(full, name) if found is None else found
        if column is not None and is_vector(column.type) and fills:
            n_filled[name] = column.null_count
            column = _fill_empty_vectors(column)
        if column is not None:
            table = table.set_column(place, name, column)
    return table, n_filled


def _as_numbers(column: Any) -> Any:
    """Return an Arrow column of text as numbers, None where it is not all numbers."""
    if column.null_count == len(column):
        return None
    for kind in (pa.int64(), pa.float64()):
        try:
            return pc.cast(pc.utf8_trim_whitespace(column), kind)
        except pa.ArrowInvalid:
            continue
    return None


def _as_vectors(column: Any, name: str) -> Any:
    """Return text as an Arrow column of vectors; None if a cell is not a vector."""
    full = column.drop_null()
    if not holds_vectors(full):
        return None
    try:
        vectors = _vector_column(Cells(full.combine_chunks(), name).vectors())
    except ValueError:
        return None
    places = pc.cumulative_sum(pc.cast(pc.is_valid(column), pa.int64()))
    return vectors.take(pc.if_else(pc.is_valid(column), pc.subtract(places, 1), None))


def _fill_empty_vectors(column: Any) -> Any:
    """Return vectors with empty cells filled by the mean, if all have one length."""
    full = column.drop_null()
    lengths = pc.unique(pc.list_value_length(full))
    if not column.null_count or len(lengths) != 1:
        return column
    values = pc.list_flatten(full).to_numpy(zero_copy_only=False)
    vectors = np.zeros((len(column), lengths[0].as_py()))
    is_full = column.is_valid().to_numpy()
    vectors[is_full] = values.reshape(len(full), -1)
    vectors[~is_full] = vectors[is_full].mean(axis=0)
    return _vector_column(vectors)


def _vector_column(vectors: AnyArray) -> Any:
    """Return vectors (N, d) as an Arrow column."""
    return pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1])


def _find_features(
    table: pa.Table, columns: Columns, folder: Path, progress: Progress
) -> tuple[pa.Table, Columns]:
    """Return a table and its roles, with columns for quality and similarity.

    Where no role names them, they are columns of numbers and of vectors; where there
    are none, columns are added that describe the pictures in ``folder``.
    """
    taken = set(columns.excluded_from_features()) | {columns.relevance}
    if not columns.similarity:
        vectors = [f.name for f in table.schema if is_vector(f.type)]
        columns = columns.with_roles({"similarity": vectors})
    has_quality = bool(
        columns.quality or columns.categorical or _numeric_columns(table, taken)
    )
    if not has_quality or not columns.similarity:
        table = _add_descriptions(table, columns, folder, progress)
        added = [n for n in ("shapes", "palette") if n in table.schema.names]
        if not columns.similarity and added:
            columns = columns.with_roles({"similarity": added})
    if not has_quality and columns.similarity:
        quality = _numeric_columns(table, taken) or list(columns.similarity)
        columns = columns.with_roles({"quality": quality})
    return table, columns


def _add_descriptions(
    table: pa.Table, columns: Columns, folder: Path, progress: Progress
) -> pa.Table:
    """Return a table with columns added that describe the pictures its rows name."""
    display = RowDisplay(table, columns, folder)
    paths = [display.picture(row) for row in range(table.num_rows)]
    for name, values in _description_columns(
        _describe_pictures(paths, progress)
    ).items():
        if name not in table.schema.names:
            table = table.append_column(name, pa.array(values))
    return table


def _numeric_columns(table: pa.Table, taken: set[str | None]) -> list[str]:
    """Return the names of the numeric columns that are not in ``taken``."""
    return [f.name for f in table.schema if is_number(f.type) and f.name not in taken]


def image_material(
    folder: Path,
    page: int | None,
    prior: TableSelector | None,
    progress: Progress,
) -> TableMaterial:
    """Return the material of a folder of pictures, as a table with a row for each.

    Each folder in it is a group.  Pictures outside folders, and folders of more than
    ``5 * page`` pictures, are cut into pages of ``page`` pictures (None for 20); with 0
    nothing is cut.  ``prior`` is a model whose encoding is used.  MaterialError if no
    picture can be read.
    """
    paths = _pictures_in(folder)
    found = dict(zip(paths, _describe_pictures(paths, progress), strict=True))
    kept = {path: one for path, one in found.items() if one is not None}
    if not kept:
        raise MaterialError(f"there is no picture in {folder} that can be read")
    names = [path.relative_to(folder) for path in kept]
    page = _PAGE_PICTURES if page is None else page
    groups = _groups_by_page(names, page) if page else _groups_by_folder(names, folder)
    columns = {
        "group": groups,
        "file": [name.as_posix() for name in names],
        **_description_columns(list(kept.values())),
    }
    original = pa.table({"content": [_file_digest(path) for path in kept]})
    roles = Columns.of(quality=list(PICTURE_NAMES), similarity=["shapes", "palette"])
    if prior is not None:
        roles = replace(prior.columns_, label=None, cost=None, given=None)
    source = TableSource(
        pa.table(columns),
        replace(roles, group="group", item="file"),
        "picks.parquet",
        folder,
        computed=_COMPUTED,
        original=original,
        pages="group",
        is_named=True,
    )
    return TableMaterial(source, prior, "images", ("image", "images"))


def _pictures_in(folder: Path) -> list[Path]:
    """Return paths of pictures in and below a folder, "2" before "10", by name."""
    root, paths = folder.resolve(), files_below(folder, PICTURE_SUFFIXES)
    # Links may lead out of the folder.
    found = [path for path in paths if path.resolve().is_relative_to(root)]
    if len(found) > _MOST_PICTURES:
        raise MaterialError(
            f"{folder} holds {len(found):,} pictures: give a folder of at most "
            f"{_MOST_PICTURES:,}"
        )
    return sorted(found, key=lambda path: natural_key(str(path.relative_to(folder))))


def _describe_pictures(paths: Sequence[Path | None], progress: Progress) -> list[Any]:
    """Return statistics, palette and shapes of each picture; None if unreadable."""

    def describe(path: Path | None) -> Any:
        """Return the three vectors of a picture; None without a readable one."""
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


def _file_digest(path: Path) -> str:
    """Return a digest of the bytes of a file, by which it is known under any name."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _description_columns(descriptions: Sequence[Any]) -> dict[str, Any]:
    """Return columns by name from ``describe_picture`` of each row; zeros for None."""
    known = [one for one in descriptions if one is not None]
    if not known:
        return {}
    nothing = tuple(map(np.zeros_like, known[0]))
    rows = zip(*(one or nothing for one in descriptions), strict=True)
    statistics, palettes, shapes = map(np.array, rows)
    columns: dict[str, Any] = dict(zip(PICTURE_NAMES, statistics.T, strict=True))
    columns["shapes"] = _vector_column(shapes.astype(np.float32))
    columns["palette"] = _vector_column(palettes.astype(np.float32))
    return columns


def _groups_by_folder(names: Sequence[Path], folder: Path) -> list[str]:
    """Return the folder of each picture as group: below ``folder``, or its own name."""
    own = folder.resolve().name
    return [own if str(n.parent) == "." else n.parent.as_posix() for n in names]


def _groups_by_page(names: Sequence[Path], page: int) -> list[str]:
    """Return the group of every picture: its folder, or a page of ``page`` pictures.

    Pages are for pictures in no folder, or in one of more than five pages.
    """
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
