"""Columns of a table as titles, texts, fields and pictures of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from variegate._typing import IntArray
from variegate.material.base import Item
from variegate.material.pictures import is_picture
from variegate.tables.cells import abbreviate_value
from variegate.tables.columns import Columns, is_text, is_vector

#: A column of text of more characters than this on average is running text.
_RUNNING = 40

#: The most characters of a field and of a text, and the number of first rows by which
#: the use of a column is decided.
_LONGEST = 200
_LONGEST_TEXT = 20_000
_SAMPLED_ROWS = 200


class RowDisplay:
    """Shows rows of a table by some of its columns.

    The picture is a column of text with names of files in ``folder``; the title is the
    item, or the short text that differs most; the text is the longest of the ``shown``
    columns; the others are fields, but for vectors.
    """

    def __init__(
        self, table: pa.Table, columns: Columns, folder: Path, shown: Sequence[str] = ()
    ) -> None:
        self._table, self._folder = table, folder
        names = [f.name for f in table.schema if is_text(f.type)]
        cells = {n: table.column(n).slice(0, _SAMPLED_ROWS).to_pylist() for n in names}
        lengths = {n: np.mean([len(cell or "") for cell in cells[n]]) for n in names}
        self._picture = next((n for n in names if _names_pictures(cells[n])), None)
        running = [n for n in names if lengths[n] > _RUNNING and n != self._picture]
        among = [n for n in running if n in shown]
        self._text = max(among, key=lengths.__getitem__, default=None)
        short = [
            n
            for n in names
            if n not in running and n != columns.group and _has_words(cells[n])
        ]
        differing = max(short, key=lambda n: len({*cells[n]}), default=None)
        self._title = columns.item or differing
        others = {self._text, self._picture, columns.group, self._title}
        self._fields = [
            name
            for name in shown
            if name not in others and not is_vector(table.schema.field(name).type)
        ]

    def items(self, rows: IntArray) -> Sequence[Item]:
        """Return rows, by their positions in the table, as items in this order."""
        some = self._table.take(pa.array(rows)).to_pylist()
        return [
            self._item(row, cells)
            for row, cells in zip(rows.tolist(), some, strict=True)
        ]

    def _item(self, row: int, cells: dict[str | None, Any]) -> Item:
        """Return row number ``row`` as an item; ``cells`` are its values by column."""
        title, text = value_text(cells.get(self._title)), cells.get(self._text)
        if self._title == self._picture:
            title = Path(_as_path(title)).name
        return Item(
            title or f"row {row + 1}",
            None if text is None else str(text)[:_LONGEST_TEXT],
            tuple((name, value_text(cells[name])) for name in self._fields),
            bool(cells.get(self._picture)),
        )

    def picture(self, row: int) -> Path | None:
        """Return the picture file of a row, None if there is none in the folder."""
        if self._picture is None:
            return None
        cell = self._table.column(self._picture)[row].as_py()
        return None if not cell else _picture_in_folder(self._folder, _as_path(cell))


def value_text(value: Any) -> str:
    """Return the value of a cell as one line of text, "" for None and NaN.

    Long values are abbreviated; floats have 5 digits, and large ones no exponent.
    """
    if isinstance(value, float):
        if value != value:
            return ""
        is_large = 1e5 <= abs(value) < 1e15
        return f"{value:.0f}" if is_large else f"{value:.5g}"
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return abbreviate_value(value, _LONGEST)


def _has_words(cells: Sequence[str | None]) -> bool:
    """Return whether any cell has a letter, unlike numbers, dates and times."""
    return any(any(map(str.isalpha, cell or "")) for cell in cells)


def _names_pictures(cells: Sequence[str | None]) -> bool:
    """Return whether all cells that are not empty, at least one, name pictures."""
    names = [cell for cell in cells if cell]
    return bool(names) and all(is_picture(Path(_as_path(name))) for name in names)


def _picture_in_folder(folder: Path, name: str) -> Path | None:
    """Return the path of a picture in a folder, by name relative to the folder.

    None if there is no such picture, or the name leads out of the folder.
    """
    try:
        path = (folder / name).resolve()
        is_inside = path.is_relative_to(folder.resolve()) and path.is_file()
    except (OSError, ValueError):
        return None
    return path if is_inside and is_picture(path) else None


def _as_path(cell: str) -> str:
    """Return the path in a cell, which may be the URL of a local file."""
    return unquote(urlsplit(cell).path) if cell.startswith("file:") else cell
