"""One reading of all columns of a table, each until something is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from variegate._typing import IntArray
from variegate.tables.cells import Batch, Cells
from variegate.tables.columns import Columns, is_text
from variegate.tables.dates import days
from variegate.tables.derived import AGE
from variegate.tables.encoding import Surveyor
from variegate.tables.groups import costs_of, repeated_item
from variegate.tables.survey import GroupIndex, Survey, flags_of, usable_groups
from variegate.tables.table import Table, TableError

if TYPE_CHECKING:
    from variegate.tables.inspection import Inspection

__all__ = ["CellReader"]

#: Rows in which repeated items are looked for.
_MOST_ROWS = 1_000_000

#: Cells that tell whether a column of text is one of numbers with some mistakes.
_TRIED = 200


class CellReader:
    """Tells an inspection what is wrong with the cells of resolved columns."""

    def __init__(self, inspection: Inspection, table: Table, columns: Columns) -> None:
        self._inspection = inspection
        self._columns = columns
        self._index = GroupIndex()
        self._n_rows, self._n_chosen = 0, self._index.sizes
        self._surveyor = Surveyor(columns, table.schema)
        self._groups: IntArray = np.zeros(0, dtype=np.int64)
        self._items: dict[tuple[int, str], int] = {}
        #: What is not looked at any more, and how columns would be read instead.
        self._wrong: set[str] = set()
        self._instead: dict[str, str] = {}

    def names(self) -> list[str | None]:
        """Return the columns to read."""
        columns = self._columns
        label = columns.label if self._inspection.labels is None else None
        parts = [columns.group, label, columns.item, columns.cost]
        return [*parts, *columns.features()]

    def look_at(self, batch: Batch) -> None:
        """Look at some rows of every column."""
        columns = self._columns
        self._try("group", partial(self._look_at_groups, batch))
        if "group" not in self._wrong:
            self._try("label", partial(self._look_at_labels, batch))
            if columns.item is not None and batch.end <= _MOST_ROWS:
                self._try("item", partial(self._look_at_items, batch, columns.item))
        if columns.cost is not None:
            self._try("cost", partial(costs_of, batch[columns.cost]))
        for name in columns.features():
            self._try(f"feature {name}", partial(self._look_at_feature, batch, name))
        self._n_rows = batch.end

    def end(self) -> None:
        """Find groups of which nothing was chosen."""
        inspection = self._inspection
        has_labels = self._columns.label is not None or inspection.labels is not None
        if inspection.empty_groups is None or not has_labels or not self._n_rows:
            return
        if self._wrong & {"group", "label"}:
            return
        found = Survey(self._columns, self._index, self._n_rows, self._n_chosen)
        try:
            usable_groups(found, inspection.empty_groups)
        except TableError as error:
            inspection.problems.append(error)
            if error.fixes:
                inspection.mended_groups = "drop"

    def _try(self, what: str, look: Callable[[], Any]) -> None:
        if what in self._wrong:
            return
        try:
            look()
        except TableError as error:
            self._wrong.add(what)
            if error.fixes and not self._inspection.of_model:
                parts = {setting.name: setting.value for setting in error.fixes}
                self._inspection.mend(error, **parts)
            else:
                self._inspection.problems.append(error)

    def _look_at_groups(self, batch: Batch) -> None:
        self._groups = self._index.add(batch, self._columns.group)

    def _look_at_labels(self, batch: Batch) -> None:
        flags = flags_of(batch, self._columns.label, self._inspection.labels)
        if flags is not None:
            chosen = self._groups[flags]
            self._n_chosen = self._index.counted(self._n_chosen, chosen)

    def _look_at_items(self, batch: Batch, item: str) -> None:
        keys = map(repr, batch[item].keys().to_pylist())
        rows = enumerate(zip(self._groups.tolist(), keys, strict=True), batch.first + 1)
        for row, key in rows:
            before = self._items.setdefault(key, row)
            if before != row:
                raise repeated_item(before, row, self._index.names[key[0]], item)

    def _look_at_feature(self, batch: Batch, name: str) -> None:
        """Read a column as what it is, or as what it would have to be."""
        cells = batch[name]
        is_wanted = np.ones(len(batch), dtype=bool)
        kind = self._instead.get(name) or self._kind(name, batch)
        if kind == "category":
            self._surveyor.add_categories(cells, is_wanted)
            empty = cells.texts().is_null().to_numpy(zero_copy_only=False)
        elif kind == "vector":
            self._surveyor.add_vectors(cells, is_wanted)
            return
        elif kind == "age":
            empty = np.isnan(days(cells))
        else:
            try:
                empty = np.isnan(cells.numbers())
            except TableError as error:
                if not self._is_mended(error, cells):
                    raise
                return self._look_at_feature(batch, name)
        if self._columns.missing == "error" and empty.any():
            raise cells.no_value(empty)

    def _kind(self, name: str, batch: Batch) -> str:
        if batch.first == 0:
            self._surveyor.look_for_vectors(batch, name)
        return self._surveyor.kind_of(name, "quality")

    def _is_mended(self, error: TableError, cells: Cells) -> bool:
        """Tell whether a column that holds no numbers can be read as something else."""
        if self._inspection.of_model:
            return False
        mended, name = self._inspection.mended, cells.name
        if _holds_dates(cells):
            parts: dict[str, Any] = {
                part: tuple(
                    f"{AGE}{name}" if entry == name else entry
                    for entry in getattr(mended, part)
                )
                for part in ("quality", "similarity")
                if name in getattr(mended, part)
            }
            kind = "age"
        elif is_text(cells.column.type) and not _holds_some_numbers(cells):
            parts = {"categorical": (*mended.categorical, name)}
            kind = "category"
        else:
            return False
        if not parts:  # it is there by a pattern
            return False
        self._inspection.mend(error, **parts)
        self._instead[name] = kind
        return True


def _holds_dates(cells: Cells) -> bool:
    kind = cells.column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return True
    try:
        return is_text(kind) and bool(np.isfinite(days(cells)).any())
    except TableError:
        return False


def _holds_some_numbers(cells: Cells) -> bool:
    """Tell whether half of some text are numbers: then the rest are mistakes."""
    some = [cell for cell in cells.column.to_pylist() if cell and cell.strip()][:_TRIED]
    n_numbers = 0
    for cell in some:
        try:
            float(cell)
        except ValueError:
            continue
        n_numbers += 1
    return 2 * n_numbers > len(some)
