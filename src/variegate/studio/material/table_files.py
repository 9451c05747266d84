"""Tables in files as material: types, groups and features where nobody names them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variegate._progress import Progress, ignore
from variegate.studio.material.base import MaterialError
from variegate.studio.material.cells import Shown
from variegate.studio.material.images import picture_columns
from variegate.studio.material.tables import TableMaterial
from variegate.tables.cells import Batch
from variegate.tables.columns import Columns, is_number, is_text, is_vector
from variegate.tables.selector import TableSelector
from variegate.tables.table import Table, as_table

__all__ = ["table_material"]

#: Rows that are held, at most, and rows on a page where there are no groups.
_MOST_ROWS = 1_000_000
_PAGE = 50

#: The column of pages, where there is no other group.
_PAGES = "page"


def table_material(
    path: Path,
    given: Mapping[str, Any],
    page: int | None = None,
    prior: TableSelector | None = None,
    progress: Progress = ignore,
) -> TableMaterial:
    """Open a table.

    What is not said is seen from the table: text that is all numbers is numbers,
    columns of vectors are the similarity, columns of numbers the quality; of a table
    without a group every 50 rows are a page, and pictures are looked at where there are
    no other features.  Empty cells count as the mean.
    """
    table = _typed(as_table(path))
    columns = Columns.of(**({"missing": "mean"} | dict(given)))
    if prior is not None:
        columns = prior.columns_.updated({"label": None, **given})
    if columns.group is None:
        table, name = _in_pages(table, page or _PAGE)
        columns = columns.updated({"group": name})
    if columns.label is not None:
        if columns.label in table.schema.names:
            table = table.drop_columns([columns.label])
        columns = Columns.of(**{**_parts(columns), "label": None})
    folder = path.parent if path.is_file() else path
    if prior is None:
        table, columns = _with_features(table, columns, folder, progress)
    return TableMaterial(table, columns, str(path), folder, prior)


def _parts(columns: Columns) -> dict[str, Any]:
    return {name: getattr(columns, name) for name in columns.__dataclass_fields__}


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
    full = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
    if full.null_count == len(full):
        return None
    for kind in (pa.int64(), pa.float64()):
        try:
            return pc.cast(full, kind)
        except pa.ArrowInvalid:
            continue
    return None


def _vectors_in(column: Any, name: str) -> Any:
    """Return text as vectors, or None where the first cell is none."""
    first = column[0].as_py()
    if not isinstance(first, str) or not first.lstrip().startswith("["):
        return None
    rows = pa.record_batch([column.combine_chunks()], names=[name])
    try:
        vectors = Batch(rows, 0, True)[name].vectors()
    except ValueError:
        return None
    return pa.FixedSizeListArray.from_arrays(
        pa.array(vectors.ravel()), vectors.shape[1]
    )


def _in_pages(table: pa.Table, page: int) -> tuple[pa.Table, str]:
    name = _PAGES
    while name in table.schema.names:
        name += "_"
    pages = [f"page {row // page + 1}" for row in range(table.num_rows)]
    return table.append_column(name, pa.array(pages)), name


def _with_features(
    table: pa.Table, columns: Columns, folder: Path, progress: Progress
) -> tuple[pa.Table, Columns]:
    """Return a table and columns of which there is a quality and, if any, vectors."""
    taken = set(columns.taken()) | {columns.relevance}
    if not columns.similarity:
        vectors = [f.name for f in table.schema if is_vector(f.type)]
        columns = columns.updated({"similarity": vectors})
    numbers = [
        f.name for f in table.schema if is_number(f.type) and f.name not in taken
    ]
    has_quality = bool(columns.quality or columns.categorical or numbers)
    if not has_quality or not columns.similarity:
        shown = Shown(table, columns, folder)
        paths = [shown.picture(row) for row in range(table.num_rows)]
        for name, values in picture_columns(paths, progress).items():
            if name not in table.schema.names:
                table = table.append_column(name, pa.array(values))
        added = [n for n in ("shapes", "palette") if n in table.schema.names]
        if not columns.similarity and any(path is not None for path in paths):
            columns = columns.updated({"similarity": added})
    if not has_quality and columns.similarity:
        some = [f.name for f in table.schema if is_number(f.type)]
        others = [n for n in some if n not in taken]
        columns = columns.updated({"quality": others or list(columns.similarity)})
    return table, columns
