"""From the columns of a table to features.

Numbers
    are centred by their mean over the training rows and divided by their standard
    deviation there (by one, where that is zero).  True and false are 1 and 0.
Categories
    become one feature for each value in the training rows, 1 in rows that have it and
    0 in others.  A cell may hold several: a list, or text such as ``Action|Comedy``.
    For quality, values in fewer than five rows, and one in a hundred, share one
    feature.  A value that was not there is 0 in all, and counted.
Vectors
    for similarity are scaled to unit length (those of zeros stay) and not centred: only
    directions matter, and a linear kernel is their cosine.  Each such column is a block
    of its own with kernels of its own.  Vectors for quality are treated as numbers.
Empty cells
    are an error by default.  With ``missing="mean"`` a number takes the training mean,
    and a category none of its values.  With ``missing="indicator"`` there is one more
    feature for each column that has empty cells in training, 1 where a cell is empty.
    Vectors can have none.

A column of times, or of text that is not categorical, is an error; see
:mod:`variegate.tables.derived` for ages, and for vectors of several columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from variegate._typing import BoolArray, FloatArray
from variegate.estimator import BoostedQuality
from variegate.linalg.cosine import unit_rows
from variegate.tables.categories import (
    arrange_levels,
    count_levels,
    feature_names,
    has_unknown,
    indicators,
    too_many_levels_error,
)
from variegate.tables.cells import Batch, Cells, holds_vectors, no_value_error
from variegate.tables.columns import Columns, is_vector
from variegate.tables.errors import TableError
from variegate.tables.moments import Moments

#: The name of the boosted log-odds among the quality features.
BOOSTED_SCORE = "boosted score"

#: The block of similarity columns that are not vectors.
NUMBERS = "columns"


@dataclass(frozen=True, eq=False)
class FeatureColumn:
    """One column as features; a direction is a vector scaled to unit length.

    Numbers and vectors have a mean and a scale, arrays of shape (size,); categories
    have levels, their values.
    """

    name: str
    #: "number", "category", "vector" or "direction".
    kind: str
    mean: FloatArray
    scale: FloatArray
    levels: tuple[str, ...] = ()
    #: Levels that share a feature after those of the others.
    rare: tuple[str, ...] = ()
    #: The training rows of each feature of a category.
    counts: tuple[int, ...] = ()
    #: Whether a last feature says that a cell is empty.
    has_indicator: bool = False
    #: Whether the column holds numbers of single precision.
    is_single: bool = False

    @property
    def names(self) -> list[str]:
        """Readable names of the features."""
        if self.kind == "category":
            names = feature_names(self.name, self.levels, self.rare)
        elif self.kind == "number":
            names = [self.name]
        else:
            names = [f"{self.name}[{k}]" for k in range(len(self.mean))]
        return names + [f"{self.name} is missing"] * self.has_indicator

    @property
    def size(self) -> int:
        """The number of features."""
        n_values = len(self.levels) + bool(self.rare)
        n_values = n_values if self.kind == "category" else len(self.mean)
        return n_values + self.has_indicator

    def encode(self, cells: Cells, missing: str) -> FloatArray:
        """Return features (n_rows, size), 0 where a cell is empty.

        Empty cells are refused if ``missing`` is "error".
        """
        if self.kind == "category":
            values, empty = indicators(cells, self.levels, self.rare)
        elif self.kind == "number":
            numbers = cells.numbers()
            empty = np.isnan(numbers)
            values = ((numbers - self.mean) / self.scale).reshape(-1, 1)
            values[empty] = 0.0
        else:
            vectors = cells.vectors()
            if len(vectors) and vectors.shape[1] != len(self.mean):
                raise cells.error(
                    f"holds vectors of {vectors.shape[1]} numbers, where "
                    f"{len(self.mean)} are expected"
                )
            if self.kind == "direction":
                return unit_rows(vectors)
            values = (vectors - self.mean) / self.scale
            empty = np.zeros(len(values), dtype=bool)
        if missing == "error" and empty.any():
            raise cells.no_value_error(empty)
        if self.has_indicator:
            values = np.column_stack([values, empty])
        return np.asarray(values, dtype=np.float64)

    def is_unknown(self, cells: Cells) -> BoolArray:
        """Return which rows have a category not in training; (0,) for other kinds."""
        if self.kind != "category":
            return np.zeros(0, dtype=bool)
        return has_unknown(cells, (*self.levels, *self.rare))


@dataclass(frozen=True, eq=False)
class Encoding:
    """All columns as features, of the quality and of blocks of the similarity by name.

    Without blocks, the quality columns are the similarity too.  Trees of ``boosting``
    make one more quality feature of those of the quality columns.
    """

    quality: tuple[FeatureColumn, ...]
    blocks: Mapping[str, tuple[FeatureColumn, ...]]
    missing: str
    boosting: BoostedQuality | None = None

    @property
    def names(self) -> list[str]:
        """Names of the quality features."""
        names = [name for column in self.quality for name in column.names]
        return names + [BOOSTED_SCORE] * (self.boosting is not None)

    @property
    def width(self) -> int:
        """The number of features of a row in both roles, without the boosted score."""
        return sum(column.size for column in self.columns())

    def columns(self) -> list[FeatureColumn]:
        """Return all columns that features are made of."""
        return [*self.quality, *(c for block in self.blocks.values() for c in block)]

    def fill_missing(self, name: str, numbers: FloatArray) -> FloatArray:
        """Return numbers of column ``name`` with NaN replaced by the training mean.

        Unchanged if empty cells are errors, or the column is not a quality number.
        """
        for column in self.quality if self.missing != "error" else ():
            if column.name == name and column.kind == "number":
                return np.where(np.isnan(numbers), column.mean, numbers)
        return numbers

    def encode(self, columns: Iterable[FeatureColumn], batch: Batch) -> FloatArray:
        """Return the features of some columns side by side, (n_rows, n_features)."""
        features = [
            column.encode(batch[column.name], self.missing) for column in columns
        ]
        return np.column_stack([np.zeros((len(batch), 0)), *features])


# Learning an encoding -------------------------------------------------------------


@dataclass
class _Column:
    """Statistics of one column: of numbers, of categories, or sizes of vectors."""

    moments: Moments | None = None
    levels: Counter[str] = field(default_factory=Counter)
    has_empty: bool = False
    n_cells: int = 0
    n_empty: int = 0
    #: Rows that are learned from.
    n_wanted: int = 0
    #: The row of the first empty cell, if it may not be empty.
    first_empty: str | None = None
    #: The numbers of a vector; 0 where vectors are known and their size is not.
    size: int | None = None
    #: The first problem of the column.
    problem: TableError | None = None

    def problem_of(self, name: str) -> TableError | None:
        """Return the column's first problem or None; empty cells count as the last."""
        if self.problem is None and self.first_empty is not None:
            return no_value_error(name, self.first_empty, self.n_empty, self.n_cells)
        return self.problem

    def merged(self, name: str, other: _Column) -> _Column:
        """Return the statistics of the rows of both; ``name`` is for messages."""
        moments = self.moments or other.moments
        if self.moments and other.moments:
            moments = self.moments.merged(other.moments)
        sizes = {one.size for one in (self, other) if one.size}
        both = _Column(
            moments,
            self.levels + other.levels,
            self.has_empty or other.has_empty,
            self.n_cells + other.n_cells,
            self.n_empty + other.n_empty,
            self.n_wanted + other.n_wanted,
            self.first_empty or other.first_empty,
            max(sizes, default=None),
            self.problem or other.problem,
        )
        if len(sizes) > 1:
            both.problem = both.problem or TableError(
                f"column {name!r} holds vectors of {min(sizes)} numbers in some rows "
                f"and of {max(sizes)} in others"
            )
        both.problem = both.problem or too_many_levels_error(name, both.levels)
        return both


class ColumnStatistics:
    """Statistics of resolved columns, for an :class:`Encoding`, and their problems.

    Those of several partitions can be :meth:`merged`.  A problem of one column does not
    keep others from being read.
    """

    def __init__(self, columns: Columns, schema: pa.Schema) -> None:
        self.columns, self.schema = columns, schema
        self._found = {name: _Column() for name in columns.features()}

    @property
    def problems(self) -> dict[str, TableError]:
        """The first problem of every column that has one."""
        found = {name: one.problem_of(name) for name, one in self._found.items()}
        return {name: problem for name, problem in found.items() if problem}

    def add(self, batch: Batch, is_wanted: BoolArray) -> None:
        """Check all rows, keep problems, and learn from the rows ``is_wanted``."""
        for name, found in self._found.items():
            try:
                empty = self._add_column(batch, name, is_wanted)
                found.has_empty |= bool(empty[is_wanted].any())
                found.n_cells += len(batch)
                found.n_wanted += int(is_wanted.sum())
                if self.columns.missing == "error" and empty.any():
                    found.n_empty += int(empty.sum())
                    found.first_empty = found.first_empty or batch[name].row(empty)
            except TableError as error:
                found.problem = found.problem or error

    def _add_column(self, batch: Batch, name: str, is_wanted: BoolArray) -> BoolArray:
        """Learn from wanted rows of one column; return a mask of all empty cells."""
        cells, found = batch[name], self._found[name]
        if name in self.columns.categorical:
            levels, empty = count_levels(cells, is_wanted)
            found.levels = found.levels + levels
            if problem := too_many_levels_error(name, found.levels):
                raise problem
            return empty
        if holds_vectors(cells.column):
            found.size = found.size or 0
        if self._feature_kind(name, "quality") == "vector":
            # Directions need no more than their length, which every row must share.
            numbers = cells.vectors(found.size or None)
            found.size = numbers.shape[1] if len(numbers) else found.size
            empty = np.zeros(len(batch), dtype=bool)
            if name not in self.columns.quality:
                return empty
        else:
            numbers = cells.numbers()
            empty = np.isnan(numbers)
        more = Moments.of(numbers[is_wanted])
        found.moments = (found.moments or Moments()).merged(more)
        return empty

    def _feature_kind(self, name: str, part: str) -> str:
        """Return ``FeatureColumn.kind`` of a column as "quality" or as "similarity"."""
        if name in self.columns.categorical:
            return "category"
        is_sized = self._found[name].size is not None
        if is_sized or is_vector(self.schema.field(name).type):
            return "direction" if part == "similarity" else "vector"
        return "number"

    def merged(self, other: ColumnStatistics) -> ColumnStatistics:
        """Return the statistics of the rows of both; neither changes."""
        both = ColumnStatistics(self.columns, self.schema)
        both._found = {n: o.merged(n, other._found[n]) for n, o in self._found.items()}
        return both

    def encoding(self) -> Encoding:
        """Return the encoding, each similarity vector a block, or raise a problem."""
        for error in self.problems.values():
            raise error
        quality = tuple(
            self._feature_column(n, "quality") for n in self.columns.quality
        )
        similarity = [
            self._feature_column(n, "similarity") for n in self.columns.similarity
        ]
        blocks: dict[str, tuple[FeatureColumn, ...]] = {
            c.name: (c,) for c in similarity if c.kind == "direction"
        }
        numbers = tuple(c for c in similarity if c.kind != "direction")
        if numbers:
            name = NUMBERS if NUMBERS not in blocks else f"{NUMBERS} of numbers"
            blocks[name] = numbers
        return Encoding(quality, blocks, self.columns.missing)

    def _feature_column(self, name: str, part: str) -> FeatureColumn:
        """Return a column as features for its role, "quality" or "similarity"."""
        found, kind = self._found[name], self._feature_kind(name, part)
        if kind == "direction":
            assert found.size is not None
            mean, scale = np.zeros(found.size), np.ones(found.size)
        elif kind == "category":
            mean = scale = np.zeros(0)
        else:
            assert found.moments is not None
            mean, scale = found.moments.mean_and_scale()
        # Rows of different rare levels are not alike.
        pools = part == "quality"
        return FeatureColumn(
            name,
            kind,
            mean,
            scale,
            *arrange_levels(found.levels, found.n_wanted, pools),
            self.columns.missing == "indicator" and found.has_empty,
            _is_single(self.schema.field(name).type),
        )


def _is_single(kind: pa.DataType) -> bool:
    """Tell whether a type is numbers or vectors of at most single precision."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    value = kind.value_type if is_vector(kind) else kind
    return bool(pa.types.is_float32(value) or pa.types.is_float16(value))
