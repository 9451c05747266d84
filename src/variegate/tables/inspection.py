"""All that is wrong with a table, found in one more reading after something was.

What is refused first may hide what would be refused next.  So when a table is refused,
it is looked at once more, column by column: what is wrong with one does not keep others
from being looked at, and a problem with an obvious way out is taken to be solved in
that way, so that the ways out can be said together.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from variegate._typing import BoolArray
from variegate.application.refusal import RefusalError, Setting
from variegate.tables.cells import batches
from variegate.tables.columns import Columns, check_there, closest, no_label
from variegate.tables.derived import AGE, derive, derived
from variegate.tables.inspected_cells import CellReader
from variegate.tables.table import Table, TableError

__all__ = ["Inspection"]

_SINGLE = ("group", "label", "item", "relevance", "cost")
_LISTS = ("quality", "categorical", "similarity")


@dataclass
class Inspection:
    """Collects what is wrong with a table.

    Parameters
    ----------
    table : Table
    given : Columns
        Those that were asked for, or those of a model.
    labels : array of bool, optional
        Those of every row, in place of a column.
    empty_groups : str, optional
        What to do with groups of which nothing was chosen, if that is asked.
    of_model : bool, default=False
        Whether the features are those of a model, which no setting changes.
    """

    table: Table
    given: Columns
    labels: BoolArray | None = None
    empty_groups: str | None = None
    of_model: bool = False
    problems: list[TableError] = field(default_factory=list)
    #: Columns, and a treatment of groups, without the problems that can be solved.
    mended: Columns = field(init=False)
    mended_groups: str | None = field(init=False)

    def __post_init__(self) -> None:
        self.mended, self.mended_groups = self.given, self.empty_groups

    def of(self, error: TableError) -> TableError:
        """Return what was refused, or a refusal of all that is wrong."""
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
        """Return what the mended columns have that the given ones have not."""
        found = []
        for part in (*_SINGLE, *_LISTS, "missing"):
            value = getattr(self.mended, part)
            if value != getattr(self.given, part):
                found.append(Setting(part, value, left_out=value is None))
        if self.mended_groups != self.empty_groups:
            found.append(Setting("empty_groups", self.mended_groups))
        return found

    def mend(self, error: TableError, **parts: Any) -> None:
        """Note a problem, and what the columns would be without it."""
        fixes = [Setting(n, v, left_out=v is None) for n, v in parts.items()]
        self.problems.append(TableError(*error.parts, fixes=fixes))
        self.mended = replace(self.mended, **parts)

    def _leave(self, part: str, value: Any) -> None:
        """Look at the rest without what cannot be mended."""
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
        """Look for the one column that is a part."""
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
            wanted = replace(self.mended, **nothing)
            wanted.resolve(self.table.schema, is_untyped=True)
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
        """Read all columns that are there, and find what they may not hold."""
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
        reader = CellReader(self, table, columns)
        for batch in batches(table, *reader.names()):
            reader.look_at(batch)
        reader.end()
