"""Roles of the columns of a table."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from variegate._validation import check_choice
from variegate.application.refusal import InPython, Setting
from variegate.application.table_defaults import MISSING
from variegate.report.wording import abbreviate_runs
from variegate.tables.errors import TableError

_LISTS = ("quality", "categorical", "similarity")

#: Derived columns; their sources and dates are learned from a table.
_MADE = ("vectors", "ages")

#: Roles that are no part of a model or of a file of roles.
_OF_A_CALL = ("subtopics", "per")


@dataclass(frozen=True)
class Columns:
    """Names of columns by their roles.

    Parameters
    ----------
    group, label, item, relevance, cost, given, segment : str, optional
    quality, categorical, similarity : tuple of str
    missing : {"error", "mean", "indicator"}
        As for :class:`variegate.tables.TableSelector`.  A categorical column that is
        neither quality nor similarity belongs to the quality.
    vectors : dict from str to tuple of str
        Vectors of several numeric columns, and these columns; ``embedding=e*`` among
        quality or similarity asks for one.
    subtopics : str, optional
        Subtopics of rows, to evaluate by; not part of a model.
    per : tuple of str
        Columns of which at most some rows with the same value are chosen; not part of a
        model.
    ages : dict from str to str
        Columns of dates whose ages are features, and the newest date in training;
        ``age:published`` among quality or similarity asks for one.
    """

    group: str | None = None
    label: str | None = None
    item: str | None = None
    quality: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    similarity: tuple[str, ...] = ()
    relevance: str | None = None
    cost: str | None = None
    given: str | None = None
    segment: str | None = None
    missing: str = MISSING[0]
    vectors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ages: Mapping[str, str] = field(default_factory=dict)
    subtopics: str | None = None
    per: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("treatment of missing values", self.missing, MISSING)

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Return checked columns from names by role; None stands for the default.

        A role of several columns takes a name, a sequence of names, or a dictionary of
        vectors: ``{"embedding": "e*"}`` is the same as ``"embedding=e*"``.
        """
        values: dict[str, Any] = {}
        for name, value in given.items():
            if value is None:
                continue
            if name in _MADE:
                values[name] = _check_derived(name, value)
                continue
            if name in _LISTS:
                value = _format_vectors(value) if isinstance(value, Mapping) else value
                value = (value,) if isinstance(value, str) else value
                value = tuple(value) if isinstance(value, Iterable) else value
            expected = value if isinstance(value, tuple) else (value,)
            if not all(isinstance(entry, str) for entry in expected):
                what = "names of columns" if name in _LISTS else "the name of a column"
                raise TableError(f"{name} must be {what}, got {value!r}")
            values[name] = value
        return cls(**values)

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Read columns from a TOML file, a line for each role: ``group = "query"``."""
        try:
            document = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise TableError(f"{path} is not TOML: {error}") from None
        known = [
            field.name
            for field in fields(cls)
            if field.name not in (*_MADE, *_OF_A_CALL)
        ]
        for name in document:
            if name not in known:
                raise TableError(
                    f"{path}: unknown key {name!r}{suggest_name(name, known)}; "
                    f"there are {', '.join(known)}"
                )
        try:
            return cls.of(**document)
        except (TypeError, ValueError) as error:
            raise TableError(f"{path}: {error}") from None

    def with_roles(self, given: Mapping[str, Any]) -> Self:
        """Return a copy in which every role given, and not None, is replaced."""
        given = {name: value for name, value in given.items() if value is not None}
        return type(self).of(**vars(self) | given)

    def resolve(self, schema: pa.Schema, *, needs_quality: bool = True) -> Self:
        """Return the columns with ``*`` expanded; refuse names that ``schema`` lacks.

        With ``needs_quality``, categorical columns without another role are quality,
        too, and if none is named, all numeric columns without another role.
        """
        names, taken = schema.names, self.excluded_from_features()
        for name in (*taken, self.relevance, self.subtopics, *self.per):
            if name is not None:
                check_column_exists(name, names)
        self.check_parts()
        spelt: dict[str, Any] = {
            part: match_columns(getattr(self, part), names, part, taken)
            for part in _LISTS
        }
        if not needs_quality:
            return replace(self, **spelt)
        named = set(spelt["quality"]) | set(spelt["similarity"])
        extra = tuple(name for name in spelt["categorical"] if name not in named)
        quality = spelt["quality"] + extra
        if not spelt["quality"]:
            quality += self._default_quality(schema, spelt)
        if not quality:
            raise TableError(
                "there is no column of numbers left for the quality: name some with ",
                Setting("quality"),
                f". The table has {_list_columns(names)}",
            )
        return replace(self, **(spelt | {"quality": quality}))

    def _default_quality(
        self, schema: pa.Schema, spelt: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Return numeric columns without a role; refuse a schema of text alone.

        ``spelt`` has the names of columns by the roles of features.
        """
        others = {*self.excluded_from_features(), *spelt["similarity"]}
        others |= {*spelt["categorical"], *chain.from_iterable(self.vectors.values())}
        free = [field for field in schema if field.name not in others]
        if free and all(is_text(field.type) for field in schema):
            raise TableError(
                "name the quality columns with ",
                Setting("quality"),
                ": nothing in this file says which columns are numbers. It has "
                f"{_list_columns(schema.names)}",
            )
        return tuple(field.name for field in free if is_number(field.type))

    def check_parts(self) -> None:
        """Refuse a column in two roles that exclude each other.

        The label is not group, item, cost or relevance; the item is not the group; the
        given column and the segment are neither of these three, nor the same.
        """
        pairs = [("group", "label"), ("group", "item"), ("label", "item")]
        pairs += [(role, "given") for role in ("group", "label", "item")]
        pairs += [(role, "segment") for role in ("group", "label", "item", "given")]
        pairs += [("label", "cost"), ("label", "relevance")]
        for one, other in pairs:
            name = getattr(self, one)
            if name is not None and name == getattr(self, other):
                raise TableError(f"column {name!r} cannot be both {one} and {other}")

    def excluded_from_features(self) -> list[str]:
        """Return the columns whose roles exclude them from the features."""
        # The relevance may be a quality, too.
        roles = ("group", "label", "item", "cost", "given", "segment")
        parts = [getattr(self, role) for role in roles]
        return [name for name in parts if name is not None]

    def features(self) -> tuple[str, ...]:
        """Return the quality columns, and then the similarity columns, each once."""
        return tuple(dict.fromkeys((*self.quality, *self.similarity)))


def _format_vectors(vectors: Mapping[str, Any]) -> list[Any]:
    """Return ``{name: pattern}`` as ``["name=pattern"]``; leave other types as is."""
    found: list[Any] = []
    for name, patterns in vectors.items():
        several = [patterns] if isinstance(patterns, str) else patterns
        if not isinstance(several, Iterable):
            return [vectors]  # which is refused
        found += [f"{name}={p}" if isinstance(p, str) else p for p in several]
    return found


def _check_derived(name: str, value: Any) -> dict[str, Any]:
    """Return a checked copy of the dictionary ``name``, "vectors" or "ages"."""
    if not isinstance(value, Mapping):
        raise TableError(f"{name} must be a dictionary, got {value!r}")
    if name == "vectors":
        for parts in value.values():
            is_several = isinstance(parts, list | tuple) and len(parts) > 1
            if not is_several or not all(isinstance(part, str) for part in parts):
                raise TableError(f"a vector must be of several columns, got {parts!r}")
        return {key: tuple(parts) for key, parts in value.items()}
    for date in value.values():
        try:
            datetime.fromisoformat(date)
        except (TypeError, ValueError):
            raise TableError(f"ages are counted up to a date, got {date!r}") from None
    return dict(value)


def check_column_exists(name: str, names: Sequence[str]) -> None:
    """Refuse a name that no column has, and suggest a similar one."""
    if name not in names:
        raise TableError(
            f"there is no column {name!r}{suggest_name(name, names)}; the table has "
            f"{_list_columns(names)}"
        )


def missing_label_error() -> TableError:
    """Return the error of a table without labels."""
    label = Setting("label")
    return TableError(
        "which rows were chosen? Name the label column with ",
        label,
        InPython(", or give y to fit"),
    )


def _list_columns(names: Sequence[str], most: int = 30) -> str:
    """Join up to ``most`` names for a message; numbered runs (e1, e2) count as one."""
    names = abbreviate_runs(names)
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return " (did you mean ...?)" with a similar name, or an empty string."""
    found = closest_name(name, names)
    return "" if found is None else f" (did you mean {found!r}?)"


def closest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of ``names``, ignoring case; None if all are unlike."""
    known = {known.casefold(): known for known in names}
    found = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.6)
    return known[found[0]] if found else None


def match_columns(
    patterns: Sequence[str], names: Sequence[str], part: str, taken: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the columns that ``patterns``, names or with ``*``, stand for, each once.

    ``names`` are all columns, ``part`` is a role such as "quality" for messages.
    Columns ``taken`` by other roles are not matched, and refused if named.
    """
    found: list[str] = []
    for pattern in patterns:
        if pattern in names:
            found.append(pattern)
        elif "*" in pattern:
            wanted = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.S)
            matches = [n for n in names if wanted.fullmatch(n) and n not in taken]
            if not matches:
                raise TableError(
                    f"no column matches {pattern!r}; "
                    f"the table has {_list_columns(names)}"
                )
            found.extend(matches)
        else:
            check_column_exists(pattern, names)
    for name in found:
        if name in taken:
            raise TableError(
                f"column {name!r} cannot be both the group, label, item, cost, given "
                f"or segment and part of {part}"
            )
    return tuple(dict.fromkeys(found))


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds numbers (or true and false)."""
    t = pa.types
    known = (t.is_integer, t.is_floating, t.is_boolean, t.is_decimal)
    return any(is_known(kind) for is_known in known)


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds text."""
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def is_list(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds lists."""
    t = pa.types
    known = (t.is_list, t.is_large_list, t.is_fixed_size_list)
    return any(is_known(kind) for is_known in known)


def is_vector(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds vectors of numbers."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return is_list(kind) and is_number(kind.value_type)
