"""All problems of a table that was refused, found by reading it once more.

The first problem may hide others.  So a table that is refused is read once more, column
by column: a problem of one column does not keep others from being read, and a problem
with an obvious remedy is taken to be remedied, so that all remedies are named together.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from variegate._typing import BoolArray, IntArray
from variegate.application.refusal import RefusalError, Setting
from variegate.tables.cells import Batch, Cells, batches
from variegate.tables.columns import Columns, check_there, closest, is_text, no_label
from variegate.tables.derived import AGE, days, derive, derived
from variegate.tables.encoding import ColumnStatistics
from variegate.tables.groups import costs_of, repeated_item
from variegate.tables.survey import GroupIndex, Survey, flags_of, usable_groups
from variegate.tables.table import Table, TableError

#: Rows in which repeated items are looked for.
_MOST_ROWS = 1_000_000

#: Cells that tell whether a column of text is one of numbers with some mistakes.
_TRIED = 200

_SINGLE = ("group", "label", "item", "relevance", "cost")
_LISTS = ("quality", "categorical", "similarity")


@dataclass
class Inspection:
    """Collects the problems of a table whose columns were asked for, or are a model's.

    Labels of every row may be given in place of a column.
    """

    table: Table
    given: Columns
    labels: BoolArray | None = None
    #: The treatment of groups of which nothing was chosen, if that is asked.
    empty_groups: str | None = None
    #: Whether the features are those of a model, which no parameter changes.
    of_model: bool = False
    problems: list[TableError] = field(default_factory=list)
    #: Columns, and a treatment of groups, without the problems that can be solved.
    mended: Columns = field(init=False)
    mended_groups: str | None = field(init=False)

    def __post_init__(self) -> None:
        self.mended, self.mended_groups = self.given, self.empty_groups

    def of(self, error: TableError) -> TableError:
        """Return the error, or one that lists all problems."""
        names = self._look_for_features if self.of_model else self._look_at_names
        for look in (names, self._look_at_cells):
            with suppress(RefusalError):  # what cannot be looked at
                look()
        found = self.problems
        if str(error) not in map(str, found):
            found = [error, *found]
        if len(found) == 1:
            return error
        is_solved = all(problem.fixes for problem in found)
        return TableError.of(found, self._fixes() if is_solved else ())

    def _fixes(self) -> list[Setting]:
        """Return the parameters that remedy all problems."""
        found = []
        for part in (*_SINGLE, *_LISTS, "missing"):
            value = getattr(self.mended, part)
            if value != getattr(self.given, part):
                found.append(Setting(part, value, left_out=value is None))
        if self.mended_groups != self.empty_groups:
            found.append(Setting("empty_groups", self.mended_groups))
        return found

    def mend(self, error: TableError, **parts: Any) -> None:
        """Note a problem, and the columns that remedy it."""
        fixes = [Setting(n, v, left_out=v is None) for n, v in parts.items()]
        self.problems.append(TableError(*error.parts, fixes=fixes))
        self.mended = replace(self.mended, **parts)

    def _leave(self, part: str, value: Any) -> None:
        """Go on without names that cannot be mended."""
        self.mended = replace(self.mended, **{part: value})

    # Names ------------------------------------------------------------------------

    def _look_at_names(self) -> None:
        """Find columns that are not there, or have two parts."""
        for part in _SINGLE:
            self._look_for(part)
        for part in _LISTS:
            for entry in getattr(self.given, part):
                self._look_at_entry(entry, part)
        try:
            self.mended.check_parts()
        except TableError as error:
            self.problems.append(error)
        if self.labels is None and self.given.label is None:
            self._look_for_labels()
        if not self.given.quality and self.table.is_untyped:
            self._look_for_numbers()

    def _look_for(self, part: str, before: str = "") -> None:
        """Look for the one column of a role."""
        name, names = getattr(self.given, part), self.table.schema.names
        if name is None or name in names:
            return
        try:
            check_there(name, names)
        except TableError as error:
            meant = closest(name, names)
            if meant is None:
                self.problems.append(error.within(before))
                self._leave(part, None)
            else:
                self.mend(error.within(before), **{part: meant})

    def _look_at_entry(self, entry: str, part: str) -> None:
        """Look at one name or pattern of a list."""
        names, taken = self.table.schema.names, self.mended.taken()
        nothing: dict[str, Any] = dict.fromkeys(_LISTS, ())
        alone = replace(self.mended, **nothing | {part: (entry,)}, relevance=None)
        rest = tuple(n for n in getattr(self.mended, part) if n != entry)
        try:
            table, one = derive(self.table, alone)
            one.resolve(table.schema, needs_quality=False)
        except TableError as error:
            meant = closest(entry, names)
            if entry in taken:
                self.mend(error, **{part: rest})
            elif meant is not None and meant not in taken and entry not in names:
                self.mend(error, **{part: (*rest, meant)})
            else:
                self.problems.append(error)
                self._leave(part, rest)

    def _look_for_labels(self) -> None:
        """Guess the column of labels, if there is only one that it could be."""
        flags = [name for name in self._unnamed() if self._reads(name, "flags")]
        if len(flags) == 1:
            self.mend(no_label(), label=flags[0])
        else:
            self.problems.append(no_label())

    def _look_for_numbers(self) -> None:
        """Guess the columns of numbers in a file that knows no types."""
        names = [name for name in self._unnamed() if self._reads(name, "numbers")]
        nothing: dict[str, Any] = dict.fromkeys(_LISTS, ())
        try:
            replace(self.mended, **nothing).resolve(self.table.schema, is_untyped=True)
        except TableError as error:
            if names:
                self.mend(error, quality=tuple(names))
            else:
                self.problems.append(error)

    def _unnamed(self) -> list[str]:
        columns = self.mended
        named = {*columns.taken(), *columns.features(), *columns.categorical}
        return [name for name in self.table.schema.names if name not in named]

    def _reads(self, name: str, kind: str) -> bool:
        """Tell whether the first rows of a column can be read as a kind of cells."""
        for batch in batches(self.table, name):
            try:
                getattr(batch[name], kind)()
            except TableError:
                return False
            return True
        return False

    def _look_for_features(self) -> None:
        """Find columns of a model that are not there."""
        before = f"{self.table.name} does not fit the model: "
        for part in ("group", "label", "item", "cost", "relevance"):
            self._look_for(part, before)
        names = self.table.schema.names
        columns = self.mended
        sources = {**columns.vectors, **{f"{AGE}{n}": (n,) for n in columns.ages}}
        missing = set()
        for feature in columns.features():
            for name in sources.get(feature, (feature,)):
                try:
                    check_there(name, names)
                except TableError as error:
                    self.problems.append(error.within(before))
                    missing.add(feature)
        kept: dict[str, Any] = {
            part: tuple(n for n in getattr(columns, part) if n not in missing)
            for part in _LISTS
        }
        kept["vectors"] = {n: v for n, v in columns.vectors.items() if n not in missing}
        kept["ages"] = {
            n: v for n, v in columns.ages.items() if f"{AGE}{n}" not in missing
        }
        self.mended = replace(columns, **kept)

    # Cells ------------------------------------------------------------------------

    def _look_at_cells(self) -> None:
        """Read all columns, and find cells that they may not hold."""
        if self.of_model:
            table, columns = derived(self.table, self.mended), self.mended
        else:
            table, columns = derive(self.table, self.mended)
        has_quality = bool(columns.quality) or self.of_model
        columns = columns.resolve(
            table.schema,
            is_untyped=table.is_untyped,
            needs_quality=not has_quality and not table.is_untyped,
        )
        reader = _CellReader(self, table, columns)
        for batch in batches(table, *reader.names()):
            reader.look_at(batch)
        reader.end()


class _CellReader:
    """Reads resolved columns, each until a problem is found."""

    def __init__(self, inspection: Inspection, table: Table, columns: Columns) -> None:
        self._inspection = inspection
        self._columns = columns
        self._index = GroupIndex()
        self._n_rows, self._n_chosen = 0, self._index.sizes
        self._statistics = ColumnStatistics(columns, table.schema)
        self._groups: IntArray = np.zeros(0, dtype=np.int64)
        self._items: dict[tuple[int, str], int] = {}
        #: Columns that are not read any more, and how others are read instead.
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
        """Read a column as what it is, or as its remedy would have it."""
        cells = batch[name]
        is_wanted = np.ones(len(batch), dtype=bool)
        self._statistics.look_for_vectors(batch, name)
        kind = self._instead.get(name) or self._statistics.kind_of(name, "quality")
        if kind == "category":
            self._statistics.add_categories(cells, is_wanted)
            empty = cells.texts().is_null().to_numpy(zero_copy_only=False)
        elif kind == "vector":
            self._statistics.add_vectors(cells, is_wanted)
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
