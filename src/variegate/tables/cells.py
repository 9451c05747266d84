"""From cells of a column to numbers, with the row of whatever cannot be one.

Rows are counted from 1 in messages, as spreadsheets do, headers not counted.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.tables.columns import is_number, is_vector
from variegate.tables.table import TableError

__all__ = [
    "as_flags",
    "as_keys",
    "as_labels",
    "as_numbers",
    "as_texts",
    "as_vectors",
]

#: How a label may be written where cells are text.
_FLAGS = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "0.0": 0.0, "1.0": 1.0}


def as_numbers(
    column: Any, name: str, first_row: int, *, is_untyped: bool
) -> FloatArray:
    """Return numbers, NaN where a cell is empty.

    Parameters
    ----------
    column : pyarrow.Array
    name : str
        Of the column, for messages.
    first_row : int
        Number of rows before these.
    is_untyped : bool
        Whether text is to be read as numbers.
    """
    column = _plain(column)
    if is_untyped and _is_text(column.type):
        column = _parsed(column, name, first_row)
    if pa.types.is_null(column.type):  # a data frame knows no type of nothing
        column = column.cast(pa.float64())
    if not is_number(column.type):
        raise TableError(f"column {name!r} {_why_no_number(column.type)}")
    if pa.types.is_boolean(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    numbers = column.to_numpy(zero_copy_only=False).astype(np.float64)
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise TableError(
            f"column {name!r} holds {numbers[row]} in row {first_row + row + 1}: "
            "numbers must be finite"
        )
    return np.asarray(numbers)


def _why_no_number(kind: pa.DataType) -> str:
    if _is_text(kind):
        return (
            "holds text, not numbers: if its values are names of kinds, say that it "
            "is categorical"
        )
    if is_vector(kind):
        return "holds vectors, where one number is needed"
    if pa.types.is_temporal(kind):
        return (
            f"holds times ({kind}), not numbers: make a number of it first, such as "
            "an age in days"
        )
    return f"holds {kind} values, not numbers"


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
    )


def _plain(column: Any) -> Any:
    """Return a column without dictionaries and extensions."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())  # views lack most functions
    return column


def _parsed(column: Any, name: str, first_row: int) -> Any:
    """Read text as numbers; an empty cell is none."""
    text = pc.utf8_trim_whitespace(column)
    text = pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid:
        for row, cell in enumerate(text.to_pylist()):
            try:
                pa.array([cell], pa.string()).cast(pa.float64())
            except pa.ArrowInvalid:
                raise TableError(
                    f"column {name!r} holds {cell!r} in row {first_row + row + 1}, "
                    "which is not a number: correct it, leave the cell empty, or say "
                    "that the column is categorical"
                ) from None
        raise


def as_flags(
    column: Any, name: str, first_row: int, *, is_untyped: bool = False
) -> BoolArray:
    """Return which rows are labelled 1; everything must be 0 or 1."""
    column = _plain(column)
    if pa.types.is_boolean(column.type) and column.null_count == 0:
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=bool)
    cells = column.to_pylist()
    if is_number(column.type):
        numbers = as_numbers(column, name, first_row, is_untyped=False)
    elif is_untyped and _is_text(column.type):
        numbers = np.array(
            [
                _FLAGS.get(cell.strip().lower(), -1.0) if cell else np.nan
                for cell in cells
            ]
        )
    else:
        numbers = np.full(len(cells), -1.0)
    bad = (numbers != 0.0) & (numbers != 1.0)
    if bad.any():
        row = int(np.argmax(bad))
        found = "nothing" if cells[row] in (None, "") else repr(cells[row])
        raise TableError(
            f"column {name!r} holds {found} in row {first_row + row + 1}: labels must "
            "be 1 (or true) for chosen rows and 0 (or false) for the others"
        )
    return np.asarray(numbers == 1.0)


def as_labels(y: Any) -> BoolArray:
    """Return labels that are given beside a table."""
    values: IntArray = np.asarray(y)
    if values.ndim != 1:
        raise TableError(f"y must have one label a row, got shape {values.shape}")
    try:
        column = pa.array(values.tolist(), from_pandas=True)
    except (pa.ArrowException, TypeError) as error:
        raise TableError(f"y must be 1 or 0 for every row: {error}") from None
    return as_flags(column, "y", 0)


def as_texts(column: Any) -> Any:
    """Return the values of a column as text, null where a cell is empty."""
    column = _plain(column)
    if pa.types.is_nested(column.type):
        raise TableError(f"holds {column.type} values, which are no names of kinds")
    try:
        text = column.cast(pa.string())
    except pa.ArrowInvalid:
        raise TableError(
            f"holds {column.type} values that are no text, and no names of kinds"
        ) from None
    # A float may be not a number, which no kind is.
    empty = pc.or_(pc.is_null(column, nan_is_null=True), pc.equal(text, ""))
    return pc.if_else(pc.fill_null(empty, True), pa.scalar(None, pa.string()), text)


def as_keys(column: Any, name: str, first_row: int) -> Any:
    """Return a column whose values tell groups or items apart; none may be empty."""
    column = _plain(column)
    if pa.types.is_nested(column.type):
        raise TableError(f"column {name!r} holds {column.type} values, no names")
    empty = pc.is_null(column, nan_is_null=True)
    if _is_text(column.type):
        empty = pc.or_(empty, pc.fill_null(pc.equal(column, ""), True))
    missing = np.flatnonzero(empty.to_numpy(zero_copy_only=False))
    if len(missing):
        raise TableError(
            f"column {name!r} is empty in row {first_row + int(missing[0]) + 1}: every "
            "row needs a value there"
        )
    return column


def as_vectors(
    column: Any, name: str, first_row: int, size: int | None, *, is_untyped: bool
) -> FloatArray:
    """Return the vectors of a column as rows, all of the same length.

    Parameters
    ----------
    size : int or None
        How long they are; None where the first of them says.
    """
    column = _plain(column)
    if is_untyped and _is_text(column.type):
        column = _vectors_in_text(column, name, first_row)
    if not is_vector(column.type):
        raise TableError(f"column {name!r} holds {column.type} values, not vectors")
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise TableError(
            f"column {name!r} has no vector in row {first_row + row + 1}: leave such "
            "rows out, or give them one"
        )
    lengths: IntArray = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    size = int(lengths[0]) if size is None and len(lengths) else size
    uneven = lengths != size
    if uneven.any():
        row = int(np.argmax(uneven))
        raise TableError(
            f"column {name!r} holds a vector of {lengths[row]} numbers in row "
            f"{first_row + row + 1}, but the others have {size}"
        )
    if not size:
        raise TableError(f"column {name!r} holds empty vectors")
    values = column.flatten().to_numpy(zero_copy_only=False)
    vectors = np.asarray(values, dtype=np.float64).reshape(len(column), size)
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise TableError(
            f"column {name!r} holds NaN, infinity or an empty cell in the vector of "
            f"row {first_row + row + 1}: every number must be finite"
        )
    return vectors


def _vectors_in_text(column: Any, name: str, first_row: int) -> Any:
    """Read vectors that are written as ``[0.1, 0.2]``."""
    vectors: list[list[float] | None] = []
    for row, cell in enumerate(column.to_pylist()):
        if not cell or not cell.strip():
            vectors.append(None)
            continue
        try:
            entries = json.loads(cell)
            if not isinstance(entries, list):
                raise TypeError
            vectors.append([float(number) for number in entries])
        except (TypeError, ValueError, OverflowError, RecursionError):
            raise TableError(
                f"column {name!r} holds {_short(cell)} in row {first_row + row + 1}, "
                "which is no vector: in text, vectors are written as [0.1, 0.2]"
            ) from None
    return pa.array(vectors, pa.list_(pa.float64()))


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else f"{cell[:37]}...")
