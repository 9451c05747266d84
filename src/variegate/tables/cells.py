"""From the cells of a column to numbers; messages count rows from 1 after a header."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.application.refusal import Setting
from variegate.files.json_text import load_json
from variegate.tables.columns import is_list, is_number, is_text, is_vector
from variegate.tables.errors import TableError

#: The longest text of a cell that is shown.
_LONGEST = 80

#: How a label may be written where cells are text.
_FLAGS = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "0.0": 0.0, "1.0": 1.0}

#: By role of a column of flags, the rows that are 1.
_MEANING_OF_1 = {
    "label": "labels must be 1 (or true) for chosen rows",
    "given": "it must be 1 (or true) for rows that are there already",
}


def null_where(empty: Any, text: Any) -> Any:
    """Return text with nulls where the mask ``empty`` is true or null; Arrow arrays."""
    # Up to pyarrow 23, a scalar null reads slices of text from the wrong place.
    return pc.if_else(empty, pa.nulls(len(text), text.type), text)


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table.

    ``numbers`` are those of scattered rows in the table.  Without them, rows follow one
    another and ``first`` is the first one's number from 0, in the file ``path`` of a
    folder or in the table.  A batch may be joined from ``parts``.
    """

    rows: pa.RecordBatch
    first: int = 0
    numbers: IntArray | None = None
    path: str = ""
    parts: tuple[Batch, ...] = ()

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def end(self) -> int:
        """The number of the row after the last of these, if they are consecutive."""
        return self.first + len(self)

    def __getitem__(self, name: str) -> Cells:
        return Cells(self.rows.column(name), name, self.row_name)

    def flags(self, label: str | None, labels: BoolArray | None) -> BoolArray | None:
        """Return which rows are labelled 1, (n_rows,); None without any labels.

        ``labels`` of all rows of the table come before the column named ``label``.
        """
        if labels is None:
            return None if label is None else self[label].flags()
        if self.numbers is not None:
            return labels[self.numbers]
        if len(labels) < self.end:
            raise TableError(f"{len(labels)} labels for a table of more rows")
        return labels[self.first : self.end]

    def row_name(self, place: int) -> str:
        """Return the row number for messages, "3" or "3 of FILE" at ``place`` 2."""
        for part in self.parts:
            if place < len(part):
                return part.row_name(place)
            place -= len(part)
        number = self.first + place if self.numbers is None else self.numbers[place]
        return f"{number + 1} of {self.path}" if self.path else f"{number + 1}"

    @classmethod
    def joined(cls, batches: Sequence[Batch]) -> Batch:
        """Return the rows of one or more batches in one; dictionaries become plain."""
        if len(batches) == 1:
            return batches[0]
        first = batches[0]
        columns = {
            name: pa.concat_arrays([batch[name].column for batch in batches])
            for name in first.rows.schema.names
        }
        numbers = None
        if first.numbers is not None:
            numbers = np.concatenate([np.asarray(b.numbers) for b in batches])
        rows = pa.RecordBatch.from_pydict(columns)
        parts = tuple(replace(batch, parts=()) for batch in batches)
        return cls(rows, first.first, numbers, parts=parts)


def no_value_error(name: str, row: str, n_empty: int, n_cells: int) -> TableError:
    """Return the error of a column with empty cells, the first of them in ``row``."""
    mean, indicator = Setting("missing", "mean"), Setting("missing", "indicator")
    return TableError(
        f"column {name!r} has no value in row {row} ({n_empty:,} of {n_cells:,} cells "
        f"{'is' if n_empty == 1 else 'are'} empty): correct it, or say what an empty "
        "cell means: ",
        mean,
        " (as the average row) or ",
        indicator,
        " (a kind of its own)",
        fixes=[mean],
    )


@dataclass(eq=False)
class Cells:
    """The cells of a column, an Arrow array, in some rows.

    ``row_name`` returns the number of a row in messages by its position in the array.
    Text is parsed where numbers, labels or vectors are needed.
    """

    column: Any
    name: str
    row_name: Callable[[int], str] = lambda place: f"{place + 1}"

    def __post_init__(self) -> None:
        if isinstance(self.column, pa.ExtensionArray):
            self.column = self.column.storage
        if isinstance(self.column, pa.DictionaryArray):
            self.column = self.column.dictionary_decode()
        if pa.types.is_string_view(self.column.type):
            self.column = self.column.cast(pa.large_string())  # views lack functions

    def row(self, bad: Any) -> str:
        """Return the number, as text, of the first row where ``bad`` is true."""
        return self.row_name(int(np.argmax(bad)))

    def error(self, *problem: str | Setting) -> TableError:
        """Return the error "column NAME", followed by the parts of ``problem``."""
        return TableError(f"column {self.name!r} ", *problem)

    def no_value_error(self, empty: BoolArray) -> TableError:
        """Return the error that names the first cell where the mask is true."""
        return no_value_error(self.name, self.row(empty), int(empty.sum()), len(empty))

    def numbers(self) -> FloatArray:
        """Return cells as numbers (n_rows,), NaN where empty; they must be finite."""
        column = self.column
        if is_text(column.type):
            column = self._parse_numbers()
        # A data frame has no type for empty cells alone.
        if not (is_number(column.type) or pa.types.is_null(column.type)):
            raise self.error(_not_numeric_message(column.type))
        column = column.cast(pa.float64(), safe=False)
        numbers = column.to_numpy(zero_copy_only=False)
        infinite = np.isinf(numbers)
        if infinite.any():
            raise self.error(
                f"holds {numbers[infinite][0]} in row {self.row(infinite)}: numbers "
                "must be finite"
            )
        return np.asarray(numbers)

    def _parse_numbers(self) -> Any:
        """Parse text as an Arrow array of numbers, null where empty; refuse words."""
        text = pc.utf8_trim_whitespace(self.column)
        text = null_where(pc.equal(text, ""), text)
        try:
            return text.cast(pa.float64())
        except pa.ArrowInvalid:  # does not name the row, which the next call does
            self.parse_texts(
                lambda cell: pa.scalar(cell).cast(pa.float64()),
                "not a number: correct it, leave the cell empty, or say that its "
                "values are names of kinds: ",
                Setting("categorical", self.name),
            )
            raise

    def flags(self, role: str = "label") -> BoolArray:
        """Return which rows are 1, (n_rows,); all cells must be 0 or 1.

        ``role`` is "label" or "given", for the message.
        """
        column = self.column
        if pa.types.is_boolean(column.type) and column.null_count == 0:
            return np.asarray(column.to_numpy(zero_copy_only=False), dtype=bool)
        cells = column.to_pylist()
        if is_number(column.type):
            numbers = self.numbers()
        elif is_text(column.type):
            known = [_FLAGS.get((cell or "").strip().lower(), -1.0) for cell in cells]
            numbers = np.array(known)
        else:
            numbers = np.full(len(cells), -1.0)
        bad = (numbers != 0.0) & (numbers != 1.0)
        if bad.any():
            cell = cells[int(np.argmax(bad))]
            found = "nothing" if cell in (None, "") else repr(cell)
            raise self.error(
                f"holds {found} in row {self.row(bad)}: {_MEANING_OF_1[role]} and 0 "
                "(or false) for the others"
            )
        return np.asarray(numbers == 1.0)

    def categories(self) -> tuple[Any, IntArray]:
        """Return the categories of all cells, and for each the position of its row.

        The first is an Arrow array of text, as long as the second.  A cell may hold
        several: a list or, in text, ``["a", "b"]`` or ``a|b``.  An empty cell has none.
        """
        lists = self.column
        if not is_list(lists.type):
            text = self._texts()
            if pc.any(pc.starts_with(text, "[")).as_py():
                lists = pa.array(self.names(), pa.list_(pa.string()))
            else:
                lists = pc.split_pattern(text, "|")
        elif not is_text(lists.type.value_type):
            raise self.error(f"holds {lists.type} values, which are not names of kinds")
        places = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
        values = pc.utf8_trim_whitespace(lists.flatten().cast(pa.string()))
        is_named = pc.fill_null(pc.not_equal(values, ""), False)
        return values.filter(is_named), places[is_named.to_numpy(zero_copy_only=False)]

    def _texts(self) -> Any:
        """Return the cells as an Arrow array of text, null where empty or NaN."""
        kind = self.column.type
        if pa.types.is_nested(kind):
            raise self.error(f"holds {kind} values, which are not names of kinds")
        try:
            text = self.column.cast(pa.string())
        except pa.ArrowInvalid:
            raise self.error(
                f"holds {kind} values, which are not text and not names of kinds"
            ) from None
        # NaN is empty, too.
        empty = pc.or_(pc.is_null(self.column, nan_is_null=True), pc.equal(text, ""))
        return null_where(pc.fill_null(empty, True), text)

    def names(self) -> list[tuple[str, ...]]:
        """Return the distinct names in each cell, in order; () for an empty cell.

        A cell may hold a list, in text written as ``["a", "b"]`` or ``a|b``.
        """
        found = []
        for place, cell in enumerate(self.column.to_pylist()):
            entries = cell
            if isinstance(cell, str):
                is_json = cell.strip().startswith("[")
                entries = _parse_json_list(cell) if is_json else cell.split("|")
            entries = entries if isinstance(entries, list | tuple) else [entries]
            known = [one for one in entries if one is not None and one == one]
            if any(isinstance(one, list | tuple | dict) for one in known):
                shown, row = abbreviate_value(cell, 40), self.row_name(place)
                raise self.error(
                    f"holds {shown!r} in row {row}, which is neither a name nor a list "
                    'of names such as ["a", "b"]'
                )
            names = (str(one).strip() for one in known)
            found.append(tuple(dict.fromkeys(name for name in names if name)))
        return found

    def keys(self) -> Any:
        """Return cells as names of groups or items, in Arrow; refuse empty ones."""
        kind = self.column.type
        if pa.types.is_nested(kind):
            raise self.error(f"holds {kind} values, no names")
        empty = pc.is_null(self.column, nan_is_null=True)
        if is_text(kind):
            empty = pc.or_(empty, pc.fill_null(pc.equal(self.column, ""), True))
        missing = empty.to_numpy(zero_copy_only=False)
        if missing.any():
            raise self.error(
                f"is empty in row {self.row(missing)}: every row needs a value there"
            )
        return self.column

    def vectors(self, size: int | None = None) -> FloatArray:
        """Return vectors (n_rows, size), by default as long as the first; or refuse."""
        column = self.column
        if is_text(column.type):
            vectors = self.parse_texts(
                _parse_vector,
                "not a vector: in text, vectors are written as [0.1, 0.2]",
            )
            column = pa.array(vectors, pa.list_(pa.float64()))
        if not is_vector(column.type):
            raise self.error(f"holds {column.type} values, not vectors")
        if column.null_count:
            row = self.row(column.is_null().to_numpy(zero_copy_only=False))
            raise self.error(
                f"has no vector in row {row}: leave such rows out, or give them one"
            )
        lengths: IntArray = pc.list_value_length(column).to_numpy(zero_copy_only=False)
        size = int(lengths[0]) if size is None and len(lengths) else size
        uneven = lengths != size
        if uneven.any():
            raise self.error(
                f"holds a vector of {lengths[uneven][0]} numbers in row "
                f"{self.row(uneven)}, but the others have {size}"
            )
        if not size:
            raise self.error("holds empty vectors")
        values = column.flatten().to_numpy(zero_copy_only=False)
        rows = np.asarray(values, dtype=np.float64).reshape(len(column), size)
        bad = ~np.isfinite(rows).all(axis=1)
        if bad.any():
            raise self.error(
                "holds NaN, infinity or an empty cell in the vector of row "
                f"{self.row(bad)}: every number must be finite"
            )
        return rows

    def parse_texts(
        self, parse: Callable[[str], Any], *problem: str | Setting
    ) -> list[Any]:
        """Return ``parse(text)`` of each text cell, None where empty.

        The error of a cell that fails names its row and ends with the parts of
        ``problem``, such as "not a date".
        """
        found: list[Any] = []
        for place, cell in enumerate(self.column.to_pylist()):
            text = (cell or "").strip()
            try:
                found.append(parse(text) if text else None)
            except (TypeError, ValueError, OverflowError):
                if is_date(text):
                    problem = (
                        f"a date and not a number: age:{self.name} makes days of it",
                    )
                short = cell if len(cell) <= 40 else f"{cell[:37]}..."
                there = f"holds {short!r} in row {self.row_name(place)}, which is "
                raise self.error(there, *problem) from None
        return found


def _parse_json_list(text: str) -> list[Any]:
    """Parse a JSON list; return ``[[text]]``, which callers refuse, for other text."""
    try:
        entries = load_json(text)
    except ValueError:
        return [[text]]
    return entries if isinstance(entries, list) else [[text]]


def _parse_vector(text: str) -> list[float]:
    """Return the numbers of a JSON list, or raise a ValueError or TypeError."""
    entries = load_json(text)
    if not isinstance(entries, list):
        raise TypeError
    return [float(number) for number in entries]


def _not_numeric_message(kind: pa.DataType) -> str:
    """Return the problem and remedy of a column of a type that is not numeric."""
    if is_vector(kind):
        return "holds vectors, where one number is needed"
    if not pa.types.is_temporal(kind):
        return f"holds {kind} values, not numbers"
    is_date = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    remedy = "age: before its name makes days of it"
    remedy = remedy if is_date else "make a number of it first"
    return f"holds times ({kind}), not numbers: {remedy}"


def holds_vectors(column: Any) -> bool:
    """Return whether an Arrow array is text whose first filled cell begins with "["."""
    if not is_text(column.type):
        return False
    cells = (cell for cell in column.to_pylist() if cell and cell.strip())
    return next(cells, "").lstrip().startswith("[")


def is_date(text: str) -> bool:
    """Return whether text is an ISO 8601 date with hyphens, and perhaps a time."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return "-" in text  # 20240101 stays a number


def as_labels(y: Any) -> BoolArray | None:
    """Return labels ``y`` of all rows as booleans (n_rows,); None for None."""
    if y is None:
        return None
    values: IntArray = np.asarray(y)
    if values.ndim != 1:
        raise TableError(f"y must have one label a row, got shape {values.shape}")
    try:
        column = pa.array(values.tolist(), from_pandas=True)
    except (pa.ArrowException, TypeError) as error:
        raise TableError(f"y must be 1 or 0 for every row: {error}") from None
    return Cells(column, "y").flags()


def abbreviate_value(value: Any, longest: int = _LONGEST) -> str:
    """Return a value as a line of at most ``longest`` characters, "" for None."""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
