"""Events and settings as they stand in a file, each with a checksum.

Groups are named by keys, and items by their identities: texts that stay the same when
DATA is in another order (:mod:`~variegate.studio.matching`).

======  ========================================================================
pick    a person took an item, or took it away: ``group``, ``item``, ``picked``;
        the first one in a group has the proposal it was made on, ``base``
base    a group in which items were picked has another proposal: ``group``, ``base``
done    a group is finished: ``group``, ``picks``, the ``proposal``, and the ``next``
go      another group is shown: ``group``
undo    the pick or the end of ``group`` numbered ``undone`` never was; ``base``, where
        the picks of that group were a proposal
moved   ``picks`` of the group ``source`` are in ``group`` now
reopen  ``group`` is not finished any more: a change of it may be lost
======  ========================================================================

Events that pick have the ``names`` of items for messages as well, and in ``content`` a
digest of all items of the group.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from variegate.files.schema import (
    FLAG,
    ListOf,
    Maybe,
    Number,
    Record,
    SchemaError,
    Shape,
    String,
)

_TEXT, _TEXTS = String(), ListOf(String())

#: The shape of the body of every kind of event.
_BODIES = {
    "pick": Record(
        {
            "group": _TEXT,
            "content": _TEXT,
            "item": _TEXT,
            "name": _TEXT,
            "picked": FLAG,
        },
        {"base": _TEXTS},
    ),
    "base": Record({"group": _TEXT, "content": _TEXT, "base": _TEXTS}),
    "done": Record(
        {
            "group": _TEXT,
            "content": _TEXT,
            "picks": _TEXTS,
            "names": _TEXTS,
            "proposal": _TEXTS,
            "next": _TEXT,
        }
    ),
    "go": Record({"group": _TEXT}),
    "undo": Record(
        {"group": _TEXT, "undone": Number(1, is_whole=True)}, {"base": _TEXTS}
    ),
    "moved": Record(
        {
            "group": _TEXT,
            "content": _TEXT,
            "source": _TEXT,
            "picks": _TEXTS,
            "names": _TEXTS,
        }
    ),
    "reopen": Record({"group": _TEXT}),
}

#: The orders of groups: that of least confidence next, or as in DATA.
ORDERS = ("unsure", "given")

#: The most starts of the studio on one file, from each of which the page counts on, and
#: the most events.
_MOST_RUNS, _MOST_EVENTS = 1_000_000, 10_000_000

_SHARE = Number(0, is_above=True, most=1)
_TARGET = Shape(
    'such as {"recall": 0.9} or {"precision": 0.9}',
    lambda value: (
        isinstance(value, dict)
        and len(value) == 1
        and all(
            name in ("precision", "recall") and _SHARE.admits(share)
            for name, share in value.items()
        )
    ),
)

#: The shape of every setting.
_SETTINGS: Mapping[str, Shape] = {
    "data": _TEXT,
    "runs": Number(0, is_whole=True, most=_MOST_RUNS),
    "n_events": Number(0, is_whole=True, most=_MOST_EVENTS),
    "omega": Number(0, is_above=True),
    "target": Maybe(_TARGET),
    "order": String(ORDERS),
}


class EventError(ValueError):
    """An event or setting of a file cannot be used, for a reason in the message."""


@dataclass(frozen=True)
class Event:
    """An event: its number, kind and details."""

    seq: int
    kind: str
    body: Mapping[str, Any]


def checksum(*values: Any) -> int:
    """Return the checksum of the values of a row of a file."""
    return zlib.crc32(json.dumps(values).encode())


def read_event(row: tuple[Any, ...]) -> Event:
    """Return the event in a row: number, time, kind, body and checksum.

    EventError if the row is damaged, or the event is not one of the studio.
    """
    seq, _, kind, _, _ = row
    body = _read_value(row, f"event {seq}", 3)
    if kind not in _BODIES:
        raise EventError(f"event {seq} is of the unknown kind {kind!r}")
    try:
        _BODIES[kind].check(body, kind)
    except SchemaError as error:
        raise EventError(f"event {seq}: {error}") from None
    return Event(seq, kind, body)


def read_setting(row: tuple[Any, ...]) -> tuple[str, Any]:
    """Return the name and value of a setting in a row: name, value and checksum.

    EventError if the row is damaged, or there is no such setting or value.
    """
    name = row[0]
    value = _read_value(row, f"the setting {name!r}", 1)
    if name not in _SETTINGS:
        raise EventError(f"there is no setting {name!r}")
    try:
        _SETTINGS[name].check(value, name)
    except SchemaError as error:
        raise EventError(f"the setting {error}") from None
    return name, value


def _read_value(row: tuple[Any, ...], words: str, place: int) -> Any:
    """Return the value of JSON at a place of a row whose last value is the checksum.

    EventError, which calls the row ``words``, if it does not have this checksum.
    """
    *values, expected = row
    try:
        if checksum(*values) != expected:
            raise EventError(f"{words} does not have its checksum")
        return json.loads(values[place])
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, EventError):
            raise
        raise EventError(f"{words} is not JSON") from None
