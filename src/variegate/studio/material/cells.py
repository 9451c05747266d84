"""What is shown of the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from variegate._typing import IntArray
from variegate.studio.material.base import Item
from variegate.studio.material.pictures import is_picture
from variegate.tables.columns import Columns, is_list, is_text

__all__ = ["Shown", "within"]

#: A column of text this long on average is running text.
_RUNNING = 40

#: The longest value that is shown as a field, and the longest text.
_LONGEST = 200
_LONGEST_TEXT = 20_000

#: Rows that are looked at to see what a column holds.
_LOOKED_AT = 200


class Shown:
    """Which columns of a table are shown as what.

    The picture is a column of text with names of files in ``folder``; the title is the
    item, or the first short text; the text is the longest; all else are fields, but for
    vectors and what is ``hidden``.
    """

    def __init__(
        self,
        table: pa.Table,
        columns: Columns,
        folder: Path | None,
        hidden: Sequence[str] = (),
    ) -> None:
        self._table, self._folder = table, folder
        names = [f.name for f in table.schema if is_text(f.type)]
        lengths = {name: self._mean_length(name) for name in names}
        self._picture = next(filter(self._names_pictures, names), None)
        running = [n for n in names if lengths[n] > _RUNNING and n != self._picture]
        self._text = max(running, key=lengths.__getitem__, default=None)
        short = [n for n in names if n not in (self._text, columns.group)]
        self._title = columns.item or next(iter(short), None)
        self._item = columns.item
        elsewhere = {self._text, self._picture, columns.group, self._title, *hidden}
        self._fields = [
            field.name
            for field in table.schema
            if field.name not in elsewhere and not is_list(field.type)
        ]

    def _mean_length(self, name: str) -> float:
        cells = self._table.column(name).slice(0, _LOOKED_AT).to_pylist()
        return float(np.mean([len(cell or "") for cell in cells])) if cells else 0.0

    def _names_pictures(self, name: str) -> bool:
        cells = self._table.column(name).slice(0, _LOOKED_AT).to_pylist()
        cells = [cell for cell in cells if cell]
        return bool(cells) and all(is_picture(Path(_as_path(c))) for c in cells)

    def items(self, rows: IntArray) -> Sequence[Item]:
        """Return what is shown of some rows."""
        some = self._table.take(pa.array(rows))
        cells = {name: some.column(name).to_pylist() for name in some.schema.names}
        return [
            self._item_of(int(row), {name: cells[name][place] for name in cells})
            for place, row in enumerate(rows)
        ]

    def _item_of(self, row: int, cells: dict[str, Any]) -> Item:
        key = f"{row + 1}" if self._item is None else as_text(cells[self._item])
        title = "" if self._title is None else as_text(cells[self._title])
        if self._title is not None and self._title == self._picture:
            title = Path(_as_path(title)).name
        text = None if self._text is None else cells[self._text]
        return Item(
            key,
            title or f"row {row + 1}",
            None if text is None else str(text)[:_LONGEST_TEXT],
            tuple((name, as_text(cells[name])) for name in self._fields),
            self._picture is not None and bool(cells[self._picture]),
        )

    def picture(self, row: int) -> Path | None:
        """Return the file with the picture of a row, if it is one of the folder."""
        if self._picture is None or self._folder is None:
            return None
        cell = self._table.column(self._picture)[row].as_py()
        return None if not cell else within(self._folder, _as_path(cell))


def within(folder: Path, name: str) -> Path | None:
    """Return a file of a folder, or None where the name leads out of it."""
    try:
        path = (folder / name).resolve()
        is_inside = path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError):
        return None
    return path if is_inside and is_picture(path) else None


def _as_path(cell: str) -> str:
    """Return the path in a cell, which may be the URL of a local file."""
    if not cell.startswith("file:"):
        return cell
    return unquote(urlsplit(cell).path)


def as_text(value: Any) -> str:
    """Return a cell as people read it, in one line that is not too long."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
