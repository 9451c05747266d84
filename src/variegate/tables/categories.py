"""Categories: the levels of a column, their counts, and the features made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variegate._typing import BoolArray, FloatArray
from variegate.tables.cells import Cells
from variegate.tables.errors import TableError

#: A column with more values than this holds no categories.
MAX_LEVELS = 1000

#: A level of a quality column is rare in fewer training rows than this, if these are
#: less than one in a hundred.  On a table of films, pooling levels of fewer than five
#: rows left the F-score as it was, or raised it by 0.005; from twenty on it fell.
_RARE_ROWS = 5
_RARE_SHARE = 0.01


class Levels(NamedTuple):
    """The levels (distinct values) with a feature each, and rare ones that share one.

    ``counts`` are the training rows of each feature; the last one is of the rare
    levels, if there are any.
    """

    names: tuple[str, ...]
    rare: tuple[str, ...]
    counts: tuple[int, ...]


def count_levels(cells: Cells, is_wanted: BoolArray) -> tuple[Counter[str], BoolArray]:
    """Return counts of wanted rows by level, and a mask of empty cells (n_rows,)."""
    values, places = cells.categories()
    empty = np.ones(len(cells.column), dtype=bool)
    empty[places] = False
    encoded = values.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    # A level that is named twice in a cell counts once.
    pairs = np.unique(np.stack([places, codes])[:, is_wanted[places]], axis=1)
    counts = np.bincount(pairs[1], minlength=len(encoded.dictionary)).tolist()
    named = zip(encoded.dictionary.to_pylist(), counts, strict=True)
    return Counter({level: n for level, n in named if n}), empty


def too_many_levels_error(name: str, levels: Collection[str]) -> TableError | None:
    """Return the error of a category with more than ``MAX_LEVELS`` levels, or None."""
    if len(levels) <= MAX_LEVELS:
        return None
    return TableError(
        f"column {name!r} has more than {MAX_LEVELS:,} different values: too many for "
        "a category"
    )


def arrange_levels(counts: Counter[str], n_rows: int, pools: bool) -> Levels:
    """Return the levels of a column, sorted, from the number of rows of each.

    ``n_rows`` are all training rows.  With ``pools``, two or more rare levels share a
    feature.
    """
    least = min(_RARE_ROWS, _RARE_SHARE * n_rows) if pools else 0
    rare = tuple(sorted(level for level, n in counts.items() if n < least))
    rare = rare if len(rare) > 1 else ()
    names = tuple(sorted(set(counts).difference(rare)))
    numbers = [counts[level] for level in names]
    numbers += [sum(counts[level] for level in rare)] * bool(rare)
    return Levels(names, rare, tuple(numbers))


def feature_names(column: str, names: Sequence[str], rare: Sequence[str]) -> list[str]:
    """Return feature names of a column: one for each level, a last one for all rare."""
    found = [f"{column} = {level}" for level in names]
    return found + [f"{column} = one of {len(rare)} rare values"] * bool(rare)


def indicators(
    cells: Cells, names: Sequence[str], rare: Sequence[str]
) -> tuple[FloatArray, BoolArray]:
    """Return indicators (n_rows, n_features), and which cells are empty (n_rows,).

    Features are the levels ``names`` and, if there are ``rare`` ones, a last for these.
    A row has 1 for each of its levels, and 0 for levels in neither list.
    """
    values, places = cells.categories()
    codes = _index_levels(values, names)
    found = np.zeros((len(cells.column), len(names) + bool(rare)))
    known = codes >= 0
    found[places[known], codes[known]] = 1.0
    if rare:
        found[places[_index_levels(values, rare) >= 0], -1] = 1.0
    empty = np.ones(len(found), dtype=bool)
    empty[places] = False
    return found, empty


def has_unknown(cells: Cells, levels: Sequence[str]) -> BoolArray:
    """Return which rows have a value that is not among the levels, (n_rows,)."""
    values, places = cells.categories()
    found = np.zeros(len(cells.column), dtype=bool)
    found[places[_index_levels(values, levels) < 0]] = True
    return found


def _index_levels(values: Any, levels: Sequence[str]) -> Any:
    """Return the index of each value of an Arrow array in ``levels``, else -1."""
    codes = pc.index_in(values, value_set=pa.array(levels, pa.string()))
    return codes.fill_null(-1).to_numpy(zero_copy_only=False)
