"""Cells of a few rows as text, for people to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from variegate._typing import IntArray
from variegate.tables.cells import batches
from variegate.tables.table import Table

__all__ = ["RowTexts", "as_text", "row_texts"]

#: Called with sorted rows and names of columns; returns their cells as text by row.
RowTexts = Callable[[IntArray, Sequence[str]], dict[int, tuple[str, ...]]]

#: The longest text of a cell that is shown.
_LONGEST = 80


def row_texts(
    table: Table, rows: IntArray, show: Sequence[str]
) -> dict[int, tuple[str, ...]]:
    """Return the cells of some rows, which are sorted, by the number of the row.

    Without columns to show, their place in the table stands for them.
    """
    if not show:
        return {int(row): (f"row {row + 1}",) for row in rows}
    found: dict[int, tuple[str, ...]] = {}
    for batch in batches(table, *show):
        low, high = np.searchsorted(rows, [batch.first, batch.end])
        here = batch.rows.take(pa.array(rows[low:high] - batch.first))
        columns = [map(as_text, here.column(name).to_pylist()) for name in show]
        found |= zip(rows[low:high].tolist(), zip(*columns, strict=True), strict=True)
        if high == len(rows):
            break
    return found


def as_text(value: Any) -> str:
    """Return a value in one line that is not too long."""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
