"""All problems of a table that was refused, with the settings that solve them.

The first problem may hide others.  So the survey of a table that is refused is made
again with the remedies of the problems found so far, until it finds no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from variegate._typing import BoolArray
from variegate.application.refusal import RefusalError, Setting
from variegate.partitions import PartitionError
from variegate.tables.cells import Cells
from variegate.tables.columns import (
    Columns,
    check_column_exists,
    closest_name,
    is_text,
    missing_label_error,
)
from variegate.tables.derived import AGE, Derivation, derive, parse_days
from variegate.tables.encoded import check_items_and_costs
from variegate.tables.encoding import ColumnStatistics
from variegate.tables.errors import TableError
from variegate.tables.rows import RowReader
from variegate.tables.survey import (
    Survey,
    column_statistics,
    survey_table,
    usable_groups,
)
from variegate.tables.table import Table, rows_of

#: Surveys that are made to find problems behind others.
_ROUNDS = 6

#: Cells that tell whether a column of text is one of numbers with some mistakes.
_TRIED = 200

_SINGLE = ("group", "label", "item", "relevance", "cost", "subtopics")
_LISTS = ("quality", "categorical", "similarity")
_NOTHING: dict[str, Any] = dict.fromkeys(_LISTS, ())


#: The counts of empty cells in a message.
_COUNTS = re.compile(r" \([\d,]+ of [\d,]+ cells (is|are) empty\)")


def _text(error: RefusalError) -> str:
    """Return the message without counts, which may be of a part of the table."""
    return _COUNTS.sub("", str(error))


@dataclass
class Inspection:
    """Collects the problems of a table, whose columns were given or are a model's."""

    table: Table
    given: Columns
    #: Labels of every row, in place of a column.
    labels: BoolArray | None = None
    #: The treatment of groups without chosen rows, if that is asked.
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
        names = self._check_model_columns if self.of_model else self._check_names
        with suppress(RefusalError, PartitionError):
            names()
        for _ in range(_ROUNDS):
            n_known = len(self.problems)
            with suppress(RefusalError, PartitionError):
                self._check_cells()
            if len(self.problems) == n_known:
                break
        found = self.problems
        if _text(error) not in map(_text, found):
            found = [error, *found]
        if len(found) == 1:
            return error if str(error) == str(found[0]) else found[0]
        is_solved = all(problem.fixes for problem in found)
        return TableError.of(found, self._settings_to_change() if is_solved else ())

    def _settings_to_change(self) -> list[Setting]:
        """Return the settings whose values changed while problems were solved."""
        found = []
        for part in (*_SINGLE, *_LISTS, "missing"):
            value = getattr(self.mended, part)
            if value != getattr(self.given, part):
                found.append(Setting(part, value, left_out=value is None))
        if self.mended_groups != self.empty_groups:
            found.append(Setting("empty_groups", self.mended_groups))
        return found

    def note_with_remedy(self, error: RefusalError, **parts: Any) -> None:
        """Record a problem, and go on with the roles ``parts`` that solve it."""
        fixes = [Setting(n, v, left_out=v is None) for n, v in parts.items()]
        self.problems.append(TableError(*error.parts, fixes=fixes))
        self.mended = replace(self.mended, **parts)

    def _ignore_names(self, part: str, value: Any) -> None:
        """Replace a role whose names cannot be corrected by ``value``."""
        self.mended = replace(self.mended, **{part: value})

    # Names ------------------------------------------------------------------------

    def _check_names(self) -> None:
        """Find columns that are not there, or have two parts."""
        for part in _SINGLE:
            self._check_column_name(part)
        for part in _LISTS:
            for entry in getattr(self.given, part):
                self._check_feature_entry(entry, part)
        try:
            self.mended.check_parts()
        except TableError as error:
            self.problems.append(error)
        if self.labels is None and self.given.label is None:
            flags = self._guess_columns("flags")
            self.note_with_remedy(
                missing_label_error(),
                **({"label": flags[0]} if len(flags) == 1 else {}),
            )
        if not self.given.quality and self.table.is_untyped:
            numbers = tuple(self._guess_columns("numbers"))
            try:
                nothing = replace(self.mended, **_NOTHING)
                nothing.resolve(self.table.schema, is_untyped=True)
            except TableError as error:
                self.note_with_remedy(
                    error, **({"quality": numbers} if numbers else {})
                )

    def _check_column_name(self, part: str, before: str = "") -> None:
        """Note a single column that the table lacks, and the most similar name."""
        name, names = getattr(self.given, part), self.table.schema.names
        if name is None or name in names:
            return
        try:
            check_column_exists(name, names)
        except TableError as error:
            meant = closest_name(name, names)
            self.note_with_remedy(
                error.within(before), **({part: meant} if meant else {})
            )
            if meant is None:
                self._ignore_names(part, None)

    def _check_feature_entry(self, entry: str, part: str) -> None:
        """Note an entry of a list of features that the table cannot resolve."""
        names, taken = self.table.schema.names, self.mended.excluded_from_features()
        alone = replace(self.mended, **_NOTHING | {part: (entry,)}, relevance=None)
        rest = tuple(n for n in getattr(self.mended, part) if n != entry)
        try:
            one = derive(self.table.schema, alone, lambda name: "1970-01-01")
            schema = Derivation(self.table.schema, one).schema
            one.resolve(schema, needs_quality=False)
        except TableError as error:
            meant = closest_name(entry, names)
            if entry in taken:
                self.note_with_remedy(error, **{part: rest})
            elif meant is not None and meant not in taken and entry not in names:
                self.note_with_remedy(error, **{part: (*rest, meant)})
            else:
                self.problems.append(error)
                self._ignore_names(part, rest)

    def _guess_columns(self, kind: str) -> list[str]:
        """Return columns without a role whose first rows are of a kind of cells."""
        columns = self.mended
        named = {
            *columns.excluded_from_features(),
            *columns.features(),
            *columns.categorical,
        }
        found = []
        for name in self.table.schema.names:
            cells = None if name in named else self._first_cells(name)
            with suppress(TableError):
                if cells is not None and getattr(cells, kind)() is not None:
                    found.append(name)
        return found

    def _first_cells(self, name: str) -> Cells | None:
        """Return the cells of a column in the first batch, None without rows."""
        for rows in rows_of(self.table):
            for batch in rows.batches([name]):
                return batch[name]
        return None

    def _check_model_columns(self) -> None:
        """Find columns of a model that are not there."""
        before = f"{self.table.name} does not fit the model: "
        for part in _SINGLE:
            self._check_column_name(part, before)
        names = self.table.schema.names
        columns = self.mended
        sources = {**columns.vectors, **{f"{AGE}{n}": (n,) for n in columns.ages}}
        missing = set()
        for feature in columns.features():
            for name in sources.get(feature, (feature,)):
                try:
                    check_column_exists(name, names)
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

    @contextmanager
    def _note_refusals(self) -> Iterator[None]:
        """Record a refusal that the block raises, and go on with its remedy."""
        try:
            yield
        except TableError as error:
            for problem in error.problems:
                self._note_error(problem)

    def _note_error(self, error: RefusalError) -> None:
        """Record an error once; go on with the settings that it proposes."""
        if str(error) in map(str, self.problems):
            return
        fixes = {setting.name: setting.value for setting in error.fixes}
        if "empty_groups" in fixes:
            self.problems.append(TableError(*error.parts, fixes=error.fixes))
            self.mended_groups = "drop"
        else:
            self.note_with_remedy(error, **({} if self.of_model else fixes))

    def _check_cells(self) -> None:
        """Make the survey by the columns so far, and note its problems."""
        schema, columns = self.table.schema, self.mended
        if not self.of_model:
            columns = derive(schema, columns, lambda name: "1970-01-01")
        has_quality = bool(columns.quality) or self.of_model
        columns = columns.resolve(
            Derivation(schema, columns).schema,
            is_untyped=self.table.is_untyped,
            needs_quality=not has_quality and not self.table.is_untyped,
        )
        columns = replace(columns, relevance=None, subtopics=None)
        found: Survey | None = None
        with self._note_refusals():
            found = survey_table(self.table, columns, self.labels)
        if found is None:
            self._check_without_groups(columns)
            return
        if self.mended_groups is not None and found.n_chosen is not None:
            with self._note_refusals():
                usable_groups(found, self.mended_groups)
        for partition in found.partitions:
            for error in check_items_and_costs(partition, found.reader):
                self._note_error(error)
        self._note_feature_problems(column_statistics(found, np.arange(len(found))))

    def _check_without_groups(self, columns: Columns) -> None:
        """Look at the features of a table whose groups cannot be told."""
        reader = RowReader(self.table.schema, columns, self.table.is_untyped)
        statistics = ColumnStatistics(columns, reader.derivation.schema)
        for batch in reader.batches(rows_of(self.table), *columns.features()):
            statistics.add(batch, np.ones(len(batch), dtype=bool))
        self._note_feature_problems(statistics)

    def _note_feature_problems(self, statistics: ColumnStatistics) -> None:
        """Note the problem of every feature column, with a role that solves it."""
        for name, error in statistics.problems.items():
            remedy = {} if self.of_model or error.fixes else self._suggest_role(name)
            if remedy and str(error) not in map(str, self.problems):
                self.note_with_remedy(error, **remedy)
            else:
                self._note_error(error)

    def _suggest_role(self, name: str) -> dict[str, Any]:
        """Return the roles by which a column that holds no numbers can be read."""
        cells = self._first_cells(name) if name in self.table.schema.names else None
        if cells is None or name in self.mended.categorical:
            return {}
        if _holds_dates(cells):
            return {
                part: tuple(
                    f"{AGE}{name}" if entry == name else entry
                    for entry in getattr(self.mended, part)
                )
                for part in ("quality", "similarity")
                if name in getattr(self.mended, part)
            }
        if is_text(cells.column.type) and not _holds_some_numbers(cells):
            return {"categorical": (*self.mended.categorical, name)}
        return {}


def _holds_dates(cells: Cells) -> bool:
    """Tell whether a column has dates, or text with some ISO 8601 dates."""
    kind = cells.column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return True
    try:
        return is_text(kind) and bool(np.isfinite(parse_days(cells)).any())
    except TableError:
        return False


def _holds_some_numbers(cells: Cells) -> bool:
    """Return whether half of some text are numbers: then the rest are mistakes."""
    some = [cell for cell in cells.column.to_pylist() if cell and cell.strip()][:_TRIED]
    numbers = []
    for cell in some:
        with suppress(ValueError):
            numbers.append(float(cell))
    return 2 * len(numbers) > len(some)
