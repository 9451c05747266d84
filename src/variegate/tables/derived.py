"""Columns that are made of others: a vector of several numbers, the age of a date.

Two forms of names ask for them where quality or similarity columns are named:

``embedding=e*``
    is a vector with the name "embedding", whose numbers are in the columns that the
    pattern matches, in the order of the training table.
``age:published``
    is a number: the days from a date to the newest one in the training table.

A time without a zone is in UTC, and a date is the first instant of its day in UTC.  In
text, dates are in ISO 8601.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from variegate._typing import FloatArray
from variegate.partitions import Engine, Serial
from variegate.tables.cells import Batch, Cells
from variegate.tables.columns import (
    Columns,
    check_column_exists,
    is_text,
    match_columns,
)
from variegate.tables.errors import UNREADABLE, TableError

if TYPE_CHECKING:
    from variegate.tables.rows import Rows

#: What the name of an age begins with.
AGE = "age:"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)


def parse_days(cells: Cells) -> FloatArray:
    """Return days from 1970 to each time (n_rows,), with fractions; NaN where empty."""
    column, kind = cells.column, cells.column.type
    if is_text(kind):
        days = cells.parse_texts(
            days_from_iso,
            "not a date: dates are written as 2026-01-31 or 2026-01-31T12:00+01:00",
        )
        return np.array(days, dtype=np.float64)
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        raise cells.error(f"holds {kind} values, no dates, so that there is no age")
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    try:
        instants = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise cells.error(f"holds dates that are out of range: {error}") from None
    numbers = instants.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(numbers / 86_400e6)


def days_from_iso(text: str) -> float:
    """Return the days from 1970 to a date in ISO 8601."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return (instant - _EPOCH) / _DAY


def iso_from_days(number: float) -> str:
    """Return the instant that is some days after the start of 1970, in ISO 8601."""
    return (_EPOCH + number * _DAY).isoformat()


def newest_date(rows: Sequence[Rows], name: str, engine: Engine | None = None) -> str:
    """Return the newest date of a column in ISO 8601; refuse a column without dates."""
    work = partial(_newest_day, name=name)
    latest = max((engine or Serial()).map(work, rows), default=-np.inf)
    if latest == -np.inf:
        raise TableError(f"column {name!r} holds no dates, so that there is no age")
    try:
        return iso_from_days(latest)
    except OverflowError:
        raise TableError(
            f"column {name!r} holds a date after the year 9999, before which ages "
            "would be counted"
        ) from None


def _newest_day(rows: Rows, name: str) -> float:
    """Return the last of all dates in days from 1970, minus infinity without any.

    A file that cannot be read has none; the survey refuses it.
    """
    latest = -np.inf
    with suppress(*UNREADABLE):
        for batch in rows.batches([name]):
            found = parse_days(batch[name])
            latest = max(latest, np.max(found, initial=-np.inf, where=~np.isnan(found)))
    return float(latest)


class Derivation:
    """Computes the vectors and ages that are features; columns of a table go in.

    ``schema`` has the columns of the table, followed by those that are computed.
    """

    def __init__(self, schema: pa.Schema, columns: Columns) -> None:
        used = columns.features()
        self._vectors = {n: p for n, p in columns.vectors.items() if n in used}
        self._ages = {
            f"{AGE}{n}": (n, days_from_iso(date))
            for n, date in columns.ages.items()
            if f"{AGE}{n}" in used
        }
        self._sources = {name: list(parts) for name, parts in self._vectors.items()}
        self._sources |= {age: [name] for age, (name, _) in self._ages.items()}
        for name in (name for several in self._sources.values() for name in several):
            check_column_exists(name, schema.names)
        made = [pa.field(n, _vector_type(p, schema)) for n, p in self._vectors.items()]
        made += [pa.field(name, pa.float64()) for name in self._ages]
        kept = [field for field in schema if field.name not in self._sources]
        self.schema = pa.schema([*kept, *made], schema.metadata)

    def source_columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns of the table, each once, that columns ``names`` need."""
        read = (part for name in names for part in self._sources.get(name, [name]))
        return list(dict.fromkeys(read))

    def derive_columns(self, batch: Batch, names: Sequence[str]) -> Batch:
        """Compute columns ``names`` from their sources; return those alone."""
        if not self._sources.keys() & set(names):
            return batch
        arrays = [self._column_array(name, batch) for name in names]
        return replace(batch, rows=pa.RecordBatch.from_arrays(arrays, list(names)))

    def _column_array(self, name: str, batch: Batch) -> Any:
        """Return a column as an Arrow array, computed if it is an age or a vector."""
        if name in self._ages:
            source, last = self._ages[name]
            return pa.array(last - parse_days(batch[source]), from_pandas=True)
        if name not in self._vectors:
            return batch.rows.column(name)
        parts = self._vectors[name]
        numbers = np.column_stack([batch[part].numbers() for part in parts])
        kind = self.schema.field(name).type
        values = pa.array(numbers.ravel()).cast(kind.value_type)
        return pa.FixedSizeListArray.from_arrays(values, len(parts))


def _vector_type(parts: Sequence[str], schema: pa.Schema) -> pa.DataType:
    """Return the type of vectors of columns ``parts``, single precision if all are."""
    kinds = {schema.field(part).type for part in parts}
    number = pa.float32() if kinds == {pa.float32()} else pa.float64()
    return pa.list_(number, len(parts))


def resolve_derived(
    schema: pa.Schema, columns: Columns, newest: Callable[[str], str]
) -> Columns:
    """Return the roles of columns, with the vectors and ages that entries ask for.

    ``embedding=e*`` becomes ``embedding``, and ``vectors`` has its source columns; for
    ``age:published``, ``ages`` has the date that ``newest`` returns for the column, as
    ISO text.  Ages that ``columns`` already has, as of a model, keep their dates.
    """
    vectors = {name: list(parts) for name, parts in columns.vectors.items()}
    ages = dict(columns.ages)
    named: dict[str, Any] = {}
    for part in ("quality", "similarity"):
        names = []
        for entry in getattr(columns, part):
            is_there = entry in schema.names
            if not is_there and entry.startswith(AGE):
                date = entry.removeprefix(AGE)
                check_column_exists(date, schema.names)
                ages[date] = ages.get(date) or newest(date)
            elif not is_there and "=" in entry:
                entry, parts = _resolve_vector(entry, part, columns, schema.names)
                vectors.setdefault(entry, []).extend(parts)
            names.append(entry)
        named[part] = tuple(dict.fromkeys(names))
    for name, several in vectors.items():
        if len(set(several)) < 2:
            raise TableError(
                f"vector {name!r} would have a single number, of column "
                f"{several[0]!r}: name that column itself"
            )
    found = {name: tuple(dict.fromkeys(several)) for name, several in vectors.items()}
    return replace(columns, **named, vectors=found, ages=ages)


def _resolve_vector(
    entry: str, part: str, columns: Columns, names: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """Parse an entry ``name=pattern``; return the name and the columns of the vector.

    ``part`` is its role, for messages, and ``names`` are the columns of the table.
    """
    name, _, pattern = entry.partition("=")
    name, pattern = name.strip(), pattern.strip()
    if not name or not pattern:
        raise TableError(
            f"{entry!r} is not a vector: write embedding=e*, its name before and its "
            "columns after the sign"
        )
    if name in names:
        raise TableError(
            f"vector {name!r} has the name of a column: give it another one"
        )
    return name, match_columns([pattern], names, part, columns.excluded_from_features())
