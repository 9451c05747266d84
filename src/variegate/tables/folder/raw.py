"""Numbers of a folder's tables as features, just as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from variegate.partitions import Engine
from variegate.tables.encoding import Encoding, FeatureColumn
from variegate.tables.folder.files import FolderTable, as_folder
from variegate.tables.folder.groups import encoding_on
from variegate.tables.folder.parts import Reader
from variegate.tables.folder.scan import scan, split_by_file
from variegate.tables.folder.source import ExampleReader, FolderSource
from variegate.tables.selector import TableSelector
from variegate.tables.splitting import usable_groups
from variegate.tables.table import TableError

__all__ = ["raw_source"]


def raw_source(
    folder: str | Path | FolderTable,
    engine: Engine,
    *,
    group: str | None = None,
    label: str | None = None,
    quality: str | Sequence[str] | None = None,
    similarity: str | Sequence[str] | Mapping[str, Any] | None = None,
) -> FolderSource:
    """Return the groups of a folder as examples whose features are cells as they are.

    Numbers are neither centred nor scaled, and vectors keep their length; groups of
    which nothing was chosen are examples of that.

    Parameters
    ----------
    folder : str, Path or FolderTable
    engine : Engine
        Looks for the groups.
    group, label, quality, similarity
        Columns, as for :class:`variegate.tables.TableSelector`.
    """
    table = as_folder(folder, False)
    settings = TableSelector(
        group=group, label=label, quality=quality, similarity=similarity
    )
    columns = settings._columns_of(table, None)[1]
    found = scan(table, Reader(table.schema, columns), engine)
    numbers = usable_groups(found, "keep")
    encoding = _as_they_are(encoding_on(engine, found, numbers))
    return FolderSource(
        tuple(split_by_file(found.partitions, numbers)),
        ExampleReader(found.reader, encoding),
    )


def _as_they_are(encoding: Encoding) -> Encoding:
    blocks = {
        name: tuple(map(_unscaled, block)) for name, block in encoding.blocks.items()
    }
    return Encoding(tuple(map(_unscaled, encoding.quality)), blocks, encoding.missing)


def _unscaled(column: FeatureColumn) -> FeatureColumn:
    if column.kind == "category":
        raise TableError(f"column {column.name!r} holds no numbers")
    kind = "vector" if column.kind == "direction" else column.kind
    zeros = np.zeros_like(column.mean)
    return replace(column, kind=kind, mean=zeros, scale=zeros + 1.0)
