"""All problems of a table that was refused, with the settings that solve them.

The first problem may hide others.  So a refused table is inspected again with the
remedies of the problems found so far, until it shows no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from variegate._typing import BoolArray
from variegate.application.refusal import RefusalError, Setting
from variegate.partitions import PartitionError
from variegate.tables.cells import Cells
from variegate.tables.checks import check_items_and_costs
from variegate.tables.columns import (
    Columns,
    check_column_exists,
    closest_name,
    is_text,
    missing_label_error,
)
from variegate.tables.derived import AGE, parse_days
from variegate.tables.encoding import ColumnStatistics
from variegate.tables.errors import TableError
from variegate.tables.rows import RowReader
from variegate.tables.survey import (
    Survey,
    resolve_columns,
    survey_table,
    usable_groups,
)
from variegate.tables.table import Table, first_cells, rows_of

#: Cells that tell whether a column of text is one of numbers with some mistakes.
_TRIED = 200

#: Roles of one column, and of several.
_SINGLE = (
    "group", "label", "item", "relevance", "cost", "given", "segment", "subtopics",
)  # fmt: skip
_LISTS = ("quality", "categorical", "similarity")
_NOTHING: dict[str, Any] = dict.fromkeys(_LISTS, ())

#: The counts of empty cells in a message, which may be of a part of the table.
_COUNTS = re.compile(r" \([\d,]+ of [\d,]+ cells (is|are) empty\)")


class Inspection:
    """Collects the problems of a table, whose columns were given or are a model's.

    Labels of every row may stand in place of a column.  ``empty_groups`` is the
    treatment of groups without chosen rows, if that is asked, and ``how`` arguments of
    :func:`survey_table`.  The columns of a model are features that nothing changes.
    """

    def __init__(
        self,
        table: Table,
        columns: Columns,
        labels: BoolArray | None = None,
        empty_groups: str | None = None,
        *,
        of_model: bool = False,
        **how: Any,
    ) -> None:
        self.table, self.labels, self.of_model = table, labels, of_model
        self._how = how
        self._given, self._given_groups = columns, empty_groups
        self._problems: list[RefusalError] = []
        #: Columns, and a treatment of groups, without the problems that can be solved.
        self._mended, self._groups = columns, empty_groups

    def list_problems(self, error: TableError) -> RefusalError:
        """Read the table again; return one error with all problems and ``error``."""
        with suppress(RefusalError, PartitionError):
            self._check_names()
        n_known = -1
        while n_known != len(self._problems):
            n_known = len(self._problems)
            with suppress(RefusalError, PartitionError):
                self._check_cells()
        known = [_COUNTS.sub("", str(one)) for one in self._problems]
        others = [p for p in error.problems if _COUNTS.sub("", str(p)) not in known]
        found = others + self._problems
        if len(found) == 1:
            return found[0]
        is_solved = all(problem.fixes for problem in found)
        fixes = self._settings_to_change() if is_solved else ()
        return TableError.from_problems(found, fixes)

    def _settings_to_change(self) -> list[Setting]:
        """Return the settings whose values changed while problems were solved."""
        found = []
        for part in (*_SINGLE, *_LISTS, "missing"):
            value = getattr(self._mended, part)
            if value != getattr(self._given, part):
                found.append(Setting(part, value, left_out=value is None))
        if self._groups != self._given_groups:
            found.append(Setting("empty_groups", self._groups))
        return found

    def _add_problem(
        self, error: RefusalError, remedy: Mapping[str, Any] | None = None
    ) -> None:
        """Record an error with its remedy once; mend the settings by the remedy.

        The remedy has new values by role (a field of ``Columns``) or "empty_groups",
        {} for none.  By default it is the error's fixes; of a model's columns, only
        that of "empty_groups".
        """
        if str(error) in map(str, self._problems):
            return
        if remedy is None:
            remedy = {one.name: one.value for one in error.fixes}
            if self.of_model:
                remedy = {n: v for n, v in remedy.items() if n == "empty_groups"}
        fixes = [Setting(n, v, left_out=v is None) for n, v in remedy.items()]
        self._problems.append(TableError(*error.parts, fixes=fixes))
        self._groups = remedy.get("empty_groups", self._groups)
        roles = {n: v for n, v in remedy.items() if n != "empty_groups"}
        self._mended = replace(self._mended, **roles)

    @contextmanager
    def _record_refusals(self) -> Iterator[None]:
        """Record the problems of a TableError in the block, and go on after it."""
        try:
            yield
        except TableError as error:
            for problem in error.problems:
                self._add_problem(problem)

    # Names ------------------------------------------------------------------------

    def _check_names(self) -> None:
        """Record unknown names, columns with two roles, and roles without a column."""
        for part in _SINGLE:
            self._check_column_name(part)
        with self._record_refusals():
            self._mended.check_parts()
        for part in _LISTS:
            for entry in getattr(self._given, part):
                self._check_feature_entry(entry, part)
        if self.of_model:
            return
        if self.labels is None and self._given.label is None:
            flags = self._guess_columns("flags")
            self._add_problem(
                missing_label_error(), {"label": flags[0]} if len(flags) == 1 else {}
            )
        if not self._given.quality:
            unnamed = replace(self._mended, quality=(), similarity=())
            try:
                unnamed.resolve(self.table.schema)
            except TableError as error:
                numbers = tuple(self._guess_columns("numbers"))
                self._add_problem(error, {"quality": numbers} if numbers else {})

    def _add_name_problem(self, error: TableError, remedy: Mapping[str, Any]) -> None:
        """Record an error about a column's name, with new values by role as remedy.

        If the columns are a model's, the message says that the table does not fit it.
        """
        before = f"{self.table.name} does not fit the model: " if self.of_model else ""
        self._add_problem(error.with_prefix(before), remedy)

    def _check_column_name(self, part: str) -> None:
        """Record a role whose column is missing; mend it by a similar name, or None."""
        name, names = getattr(self._given, part), self.table.schema.names
        try:
            if name is not None:
                check_column_exists(name, names)
        except TableError as error:
            meant = closest_name(name, names)
            if meant in self._mended.excluded_from_features():
                meant = None
            role: dict[str, Any] = {part: meant}
            self._add_name_problem(error, role if meant else {})
            self._mended = replace(self._mended, **role)

    def _check_feature_entry(self, entry: str, part: str) -> None:
        """Record a feature of role ``part`` that is not found; mend it or drop it."""
        names, taken = self.table.schema.names, self._mended.excluded_from_features()
        alone = replace(self._mended, **_NOTHING | {part: (entry,)}, relevance=None)
        rest = tuple(n for n in getattr(self._mended, part) if n != entry)
        try:
            resolve_columns(self.table, alone, _any_date, needs_quality=False)
        except TableError as error:
            meant = None if entry in names else closest_name(entry, names)
            remedy: dict[str, Any] = {}
            if entry in taken:
                remedy = {part: rest}
            elif not (meant is None or meant in taken or self.of_model):
                remedy = {part: (*rest, meant)}
            self._add_name_problem(error, remedy)
            self._mended = replace(self._mended, **(remedy or {part: rest}))

    def _guess_columns(self, kind: str) -> list[str]:
        """Return columns without a role whose first batch holds "flags" or "numbers".

        ``kind`` is one of these, the names of methods of ``Cells``.
        """
        columns = self._mended
        named = {
            *columns.excluded_from_features(),
            *columns.features(),
            *columns.categorical,
        }
        found = []
        for name in self.table.schema.names:
            cells = None if name in named else first_cells(self.table, name)
            with suppress(TableError):
                if cells is not None and getattr(cells, kind)() is not None:
                    found.append(name)
        return found

    # Cells ------------------------------------------------------------------------

    def _check_cells(self) -> None:
        """Read the table by the mended columns; record problems of its cells."""
        resolve = partial(resolve_columns, self.table, self._mended, _any_date)
        columns = resolve(needs_quality=False)
        with suppress(TableError):
            columns = columns if self.of_model else resolve()
        found: Survey | None = None
        reader = RowReader(self.table.schema, columns)
        parts = [rows_of(self.table)]
        with self._record_refusals():
            found = survey_table(self.table, columns, self.labels, **self._how)
        if found is not None:
            reader, parts = found.reader, [one.rows for one in found.partitions]
            if self._groups is not None and found.n_chosen is not None:
                with self._record_refusals():
                    usable_groups(found, self._groups)
            for partition in found.partitions:
                for error in check_items_and_costs(partition, reader):
                    self._add_problem(error)
        statistics = ColumnStatistics(columns, reader.derivation.schema)
        for rows in parts if columns.features() else ():
            for batch in reader.batches(rows, *columns.features()):
                statistics.add(batch, np.ones(len(batch), dtype=bool))
        for name, problem in statistics.problems.items():
            has_remedy = self.of_model or problem.fixes
            self._add_problem(problem, None if has_remedy else self._suggest_role(name))

    def _suggest_role(self, name: str) -> dict[str, Any]:
        """Return new roles that make a column without numbers readable, {} for none."""
        cells = first_cells(self.table, name)
        if cells is None or name in self._mended.categorical:
            return {}
        if _holds_dates(cells):
            return {
                part: tuple(
                    f"{AGE}{name}" if entry == name else entry
                    for entry in getattr(self._mended, part)
                )
                for part in ("quality", "similarity")
                if name in getattr(self._mended, part)
            }
        if is_text(cells.column.type) and not _holds_mostly_numbers(cells):
            return {"categorical": (*self._mended.categorical, name)}
        return {}


def _any_date(name: str) -> str:
    """Return a fixed date for any column, as no problem depends on the newest one."""
    return "1970-01-01"


def _holds_dates(cells: Cells) -> bool:
    """Tell whether a column has dates, or text with some ISO 8601 dates."""
    kind = cells.column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return True
    try:
        return is_text(kind) and bool(np.isfinite(parse_days(cells)).any())
    except TableError:
        return False


def _holds_mostly_numbers(cells: Cells) -> bool:
    """Return whether more than half of the first ``_TRIED`` texts are numbers."""
    some = [cell for cell in cells.column.to_pylist() if cell and cell.strip()][:_TRIED]
    numbers = []
    for cell in some:
        with suppress(ValueError):
            numbers.append(float(cell))
    return 2 * len(numbers) > len(some)
