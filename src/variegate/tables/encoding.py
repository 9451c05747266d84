"""From the columns of a table to features, by choices that are all stated here.

Numbers
    are centred by their mean over the training rows and divided by their standard
    deviation there (by one, where that is zero).  True and false are 1 and 0.
Categories
    become one feature for each value in the training rows, 1 in rows that have it and
    0 in others.  A value that was not there is 0 in all, and counted.
Vectors
    for similarity are scaled to unit length (those of zeros stay): only directions
    matter, and a linear kernel is their cosine.  Each such column is a block of its
    own with kernels of its own.  Vectors for quality are treated as so many numbers.
Empty cells
    are an error by default.  With ``missing="mean"`` a number takes the training mean,
    and a category none of its values.  With ``missing="indicator"`` there is one more
    feature for each column that has empty cells in training, 1 where a cell is empty.
    Vectors can have none.

A column of times, or of text that is not said to be categorical, is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate._typing import AnyArray, BoolArray, FloatArray, IntArray
from variegate.linalg.cosine import unit_rows
from variegate.tables.cells import as_numbers, as_texts, as_vectors
from variegate.tables.columns import Columns, is_vector
from variegate.tables.table import TableError

__all__ = ["Encoding", "FeatureColumn", "Surveyor"]

#: A column with more values than this holds no categories.
MAX_LEVELS = 1000

#: The block of similarity columns that are no vectors.
NUMBERS = "columns"


@dataclass(frozen=True, eq=False)
class FeatureColumn:
    """One column as features.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "vector", "direction"}
        A direction is a vector scaled to unit length.
    mean, scale : arrays of shape (size,)
        Of numbers and vectors.
    levels : tuple of str
        The values of a category.
    has_indicator : bool
        Whether a last feature says that a cell is empty.
    is_single : bool
        Whether the column holds numbers of single precision.
    """

    name: str
    kind: str
    mean: FloatArray
    scale: FloatArray
    levels: tuple[str, ...] = ()
    has_indicator: bool = False
    is_single: bool = False

    @property
    def names(self) -> list[str]:
        """Names of the features, as people read them."""
        if self.kind == "category":
            names = [f"{self.name} = {level}" for level in self.levels]
        elif self.kind == "number":
            names = [self.name]
        else:
            names = [f"{self.name}[{k}]" for k in range(len(self.mean))]
        return names + [f"{self.name} is missing"] * self.has_indicator

    @property
    def size(self) -> int:
        """The number of features."""
        n_values = len(self.levels) if self.kind == "category" else len(self.mean)
        return n_values + self.has_indicator

    def encode(
        self, column: Any, first_row: int, missing: str, *, is_untyped: bool
    ) -> FloatArray:
        """Return the features of some rows, one row each."""
        if self.kind == "category":
            values, empty = self._categories(column)
        elif self.kind == "number":
            numbers = as_numbers(column, self.name, first_row, is_untyped=is_untyped)
            empty = np.isnan(numbers)
            values = ((numbers - self.mean) / self.scale).reshape(-1, 1)
            values[empty] = 0.0
        else:
            vectors = as_vectors(
                column, self.name, first_row, None, is_untyped=is_untyped
            )
            self._check_size(vectors)
            if self.kind == "direction":
                return unit_rows(vectors)
            values = (vectors - self.mean) / self.scale
            empty = np.zeros(len(values), dtype=bool)
        if missing == "error" and empty.any():
            raise TableError(
                f"column {self.name!r} has no value in row "
                f"{first_row + int(np.argmax(empty)) + 1}: correct it, or say what an "
                "empty cell means: missing = 'mean' (as the average row) or "
                "'indicator' (a kind of its own)"
            )
        if self.has_indicator:
            values = np.column_stack([values, empty])
        return np.asarray(values, dtype=np.float64)

    def _check_size(self, vectors: FloatArray) -> None:
        if len(vectors) and vectors.shape[1] != len(self.mean):
            raise TableError(
                f"column {self.name!r} holds vectors of {vectors.shape[1]} numbers, "
                f"where {len(self.mean)} are expected"
            )

    def _categories(self, column: Any) -> tuple[FloatArray, AnyArray]:
        text = _texts(column, self.name)
        codes = pc.index_in(text, value_set=pa.array(self.levels, pa.string()))
        codes = codes.fill_null(-1).to_numpy(zero_copy_only=False)
        values = np.zeros((len(codes), len(self.levels)))
        known = np.flatnonzero(codes >= 0)
        values[known, codes[known]] = 1.0
        return values, np.asarray(text.is_null().to_numpy(zero_copy_only=False))

    def n_unknown(self, column: Any) -> int:
        """Return how many rows have a value that was not there in training."""
        if self.kind != "category":
            return 0
        text = _texts(column, self.name)
        found = pc.is_in(text, value_set=pa.array(self.levels, pa.string()))
        return int(pc.sum(pc.and_(pc.invert(found), pc.is_valid(text))).as_py() or 0)


def _texts(column: Any, name: str) -> Any:
    try:
        return as_texts(column)
    except TableError as error:
        raise TableError(f"column {name!r} {error}") from None


@dataclass(frozen=True, eq=False)
class Encoding:
    """All columns as features.

    Attributes
    ----------
    quality : tuple of FeatureColumn
    blocks : dict from the name of a block to a tuple of FeatureColumn
        The similarity; empty where the quality serves both purposes.
    missing : str
        What is done where a cell is empty.
    """

    quality: tuple[FeatureColumn, ...]
    blocks: Mapping[str, tuple[FeatureColumn, ...]]
    missing: str

    @property
    def names(self) -> list[str]:
        """Names of the quality features."""
        return [name for column in self.quality for name in column.names]

    def columns(self) -> list[FeatureColumn]:
        """Return all columns that features are made of."""
        return [*self.quality, *(c for block in self.blocks.values() for c in block)]

    def filled(self, name: str, numbers: FloatArray) -> FloatArray:
        """Return numbers of a column with the mean where a cell may be empty."""
        for column in self.quality if self.missing != "error" else ():
            if column.name == name and column.kind == "number":
                return np.where(np.isnan(numbers), column.mean, numbers)
        return numbers

    def quality_of(self, batch: Any, first_row: int, *, is_untyped: bool) -> FloatArray:
        """Return the quality features of some rows."""
        return self._stacked(self.quality, batch, first_row, is_untyped)

    def block_of(
        self, block: str, batch: Any, first_row: int, *, is_untyped: bool
    ) -> FloatArray:
        """Return the features of one block of the similarity."""
        return self._stacked(self.blocks[block], batch, first_row, is_untyped)

    def _stacked(
        self,
        columns: Iterable[FeatureColumn],
        batch: Any,
        first_row: int,
        is_untyped: bool,
    ) -> FloatArray:
        features = [
            column.encode(
                batch.column(column.name),
                first_row,
                self.missing,
                is_untyped=is_untyped,
            )
            for column in columns
        ]
        return np.column_stack([np.zeros((batch.num_rows, 0)), *features])


# Learning an encoding -------------------------------------------------------------


@dataclass
class _Moments:
    """Mean and spread of numbers that come in pieces (Chan, Golub and LeVeque).

    They are kept in a unit, the power of two above the largest number so far, so that
    no sum or square overflows or underflows.
    """

    count: FloatArray | float = 0.0
    mean: FloatArray | float = 0.0
    squares: FloatArray | float = 0.0
    exponent: IntArray | int = -1074
    has_empty: bool = False

    def add(self, values: FloatArray) -> None:
        present = ~np.isnan(values)
        self.has_empty |= not present.all()
        count = present.sum(axis=0)
        if not count.any():
            return
        largest = np.where(present, np.abs(values), 0.0).max(axis=0)
        exponent = np.maximum(self.exponent, np.frexp(largest)[1])
        self.mean = np.ldexp(self.mean, self.exponent - exponent)
        self.squares = np.ldexp(self.squares, 2 * (self.exponent - exponent))
        self.exponent = exponent
        # In two steps, as the whole power may not be a number.
        half = exponent // 2
        values = np.ldexp(np.ldexp(values, -half), half - exponent)
        safe = np.maximum(count, 1)
        mean = np.where(present, values, 0.0).sum(axis=0) / safe
        squares = (np.where(present, values - mean, 0.0) ** 2).sum(axis=0)
        total = self.count + count
        shift = mean - self.mean
        share = count / np.maximum(total, 1)
        self.squares = self.squares + squares + shift**2 * self.count * share
        self.mean = self.mean + shift * share
        self.count = total

    def settled(self) -> tuple[FloatArray, FloatArray]:
        spread = np.sqrt(self.squares / np.maximum(self.count, 1))
        # A constant column says nothing, however its mean was rounded.
        is_constant = spread <= 1e-12 * np.abs(self.mean)
        mean, scale = (
            np.ldexp(self.mean, self.exponent),
            np.ldexp(spread, self.exponent),
        )
        return np.atleast_1d(mean), np.atleast_1d(np.where(is_constant, 1.0, scale))


@dataclass
class Surveyor:
    """Learns an :class:`Encoding` from batches.

    Parameters
    ----------
    columns : Columns
        Resolved.
    schema : pyarrow.Schema
    is_untyped : bool
    """

    columns: Columns
    schema: pa.Schema
    is_untyped: bool
    _moments: dict[str, _Moments] = field(default_factory=dict)
    _levels: dict[str, set[str]] = field(default_factory=dict)
    _empty: set[str] = field(default_factory=set)
    _sizes: dict[str, int] = field(default_factory=dict)

    def kind_of(self, name: str, part: str) -> str:
        """Return what kind of features a column gives as ``part``."""
        if name in self.columns.categorical:
            return "category"
        if name in self._sizes or is_vector(self.schema.field(name).type):
            return "direction" if part == "similarity" else "vector"
        return "number"

    def add(self, batch: Any, first_row: int, is_wanted: BoolArray) -> None:
        """Take in some rows, and learn from those that are wanted."""
        for name in self.columns.features():
            column = batch.column(name)
            if first_row == 0 and self._is_vector_in_text(column, name):
                self._sizes[name] = 0
            if name in self.columns.categorical:
                self._add_categories(name, column, is_wanted)
            elif self.kind_of(name, "quality") == "vector":
                self._add_vectors(name, column, first_row, is_wanted)
            else:
                numbers = as_numbers(
                    column, name, first_row, is_untyped=self.is_untyped
                )
                self._moments.setdefault(name, _Moments()).add(numbers[is_wanted])

    def _is_vector_in_text(self, column: Any, name: str) -> bool:
        if not self.is_untyped or name in self.columns.categorical:
            return False
        cells = (cell for cell in column.to_pylist() if cell and cell.strip())
        return next(cells, "").lstrip().startswith("[")

    def _add_categories(self, name: str, column: Any, is_wanted: BoolArray) -> None:
        text = _texts(column, name).filter(pa.array(is_wanted))
        levels = self._levels.setdefault(name, set())
        levels.update(value for value in text.unique().to_pylist() if value is not None)
        if text.null_count:
            self._empty.add(name)
        if len(levels) > MAX_LEVELS:
            raise TableError(
                f"column {name!r} has more than {MAX_LEVELS:,} different values: too "
                "many for a category"
            )

    def _add_vectors(
        self, name: str, column: Any, first_row: int, is_wanted: BoolArray
    ) -> None:
        # Directions need no more than their length, which every row must share.
        size = self._sizes.get(name) or None
        vectors = as_vectors(column, name, first_row, size, is_untyped=self.is_untyped)
        if len(vectors):
            self._sizes[name] = vectors.shape[1]
        if name in self.columns.quality:
            self._moments.setdefault(name, _Moments()).add(vectors[is_wanted])

    def encoding(self) -> Encoding:
        """Return what was learned."""
        quality = tuple(self._column(n, "quality") for n in self.columns.quality)
        similarity = [self._column(n, "similarity") for n in self.columns.similarity]
        vectors = [column for column in similarity if column.kind == "direction"]
        numbers = tuple(column for column in similarity if column.kind != "direction")
        blocks: dict[str, tuple[FeatureColumn, ...]] = {
            column.name: (column,) for column in vectors
        }
        if numbers:
            name = NUMBERS if NUMBERS not in blocks else f"{NUMBERS} of numbers"
            blocks[name] = numbers
        return Encoding(quality, blocks, self.columns.missing)

    def _column(self, name: str, part: str) -> FeatureColumn:
        kind = self.kind_of(name, part)
        if kind == "direction":
            size = self._sizes[name]
            mean, scale = np.zeros(size), np.ones(size)
        elif kind == "category":
            mean = scale = np.zeros(0)
        else:
            mean, scale = self._moments[name].settled()
        has_empty = name in self._empty or (
            name in self._moments and self._moments[name].has_empty
        )
        return FeatureColumn(
            name,
            kind,
            mean,
            scale,
            tuple(sorted(self._levels.get(name, ()))),
            self.columns.missing == "indicator" and has_empty,
            _is_single(self.schema.field(name).type),
        )


def _is_single(kind: pa.DataType) -> bool:
    """Tell whether a column holds numbers of no more than single precision."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    value = kind.value_type if is_vector(kind) else kind
    return bool(pa.types.is_float32(value) or pa.types.is_float16(value))
