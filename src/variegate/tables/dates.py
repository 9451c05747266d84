"""Dates and times as days, for ages.

A time with a zone is that instant; without one it is taken as UTC, and a date as the
first instant of its day in UTC.  In text, dates are written as ISO 8601 has them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from variegate._typing import FloatArray
from variegate.tables.cells import Cells, batches
from variegate.tables.columns import is_text
from variegate.tables.table import Table, TableError

__all__ = ["as_newest", "date_of", "days", "days_of", "last_day", "newest"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)


def days(cells: Cells) -> FloatArray:
    """Return the days from 1970 to each of the dates, NaN where a cell is empty."""
    column, kind = cells.column, cells.column.type
    if is_text(kind):
        return _days_in_text(cells)
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


def _days_in_text(cells: Cells) -> FloatArray:
    found = []
    for row, cell in enumerate(cells.column.to_pylist(), cells.first + 1):
        if cell is None or not cell.strip():
            found.append(np.nan)
            continue
        try:
            found.append(days_of(cell.strip()))
        except ValueError:
            short = cell if len(cell) <= 40 else f"{cell[:37]}..."
            raise cells.error(
                f"holds {short!r} in row {row}, which is no date: dates are written as "
                "2026-01-31 or 2026-01-31T12:00+01:00"
            ) from None
    return np.array(found, dtype=np.float64)


def days_of(text: str) -> float:
    """Return the days from 1970 to a date that is written as ISO 8601 has it."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return (instant - _EPOCH) / _DAY


def date_of(number: float) -> str:
    """Return the instant that is some days after 1970 began, as ISO 8601 has it."""
    return (_EPOCH + number * _DAY).isoformat()


def newest(table: Table, name: str) -> str:
    """Return the last of all dates in a column."""
    return as_newest(last_day(table, name), name)


def last_day(table: Table, name: str) -> float:
    """Return the last of all dates in days from 1970, minus infinity without any."""
    latest = -np.inf
    for batch in batches(table, name):
        found = days(batch[name])
        latest = max(latest, np.max(found, initial=-np.inf, where=~np.isnan(found)))
    return float(latest)


def as_newest(latest: float, name: str) -> str:
    """Return the last of all dates as text, if there is any."""
    if latest == -np.inf:
        raise TableError(f"column {name!r} holds no dates, so that there is no age")
    try:
        return date_of(latest)
    except OverflowError:
        raise TableError(
            f"column {name!r} holds a date after the year 9999, before which ages "
            "would be counted"
        ) from None
