"""Ground sets of which only the rows that ``Kernel.fit`` reads are in memory.

Where the others are on other machines, :meth:`Kernel.looks_at` names the rows to read,
and :class:`PartlyLoaded` stands for all ground sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate._typing import IntArray
from variegate.ground_set import GroundSet

#: From indices of ground sets in their list to the row numbers to read; None is all.
Looks = dict[int, "IntArray | None"]


class SomeRows:
    """The features of some rows of a ground set, asked for by row number."""

    def __init__(self, ground_set: GroundSet, rows: IntArray) -> None:
        self._size = len(ground_set)
        self._blocks = {
            name: _PartialMatrix((self._size, features.shape[1]), rows, features[rows])
            for name, features in ground_set.blocks.items()
        }

    def __len__(self) -> int:
        return self._size

    def features(self, block: str | None = None) -> _PartialMatrix:
        """Return the features of a block, or the only one, to index by known rows."""
        if block is None and len(self._blocks) == 1:
            block = next(iter(self._blocks))
        return self._blocks[block or ""]


@dataclass(frozen=True, eq=False)
class _PartialMatrix:
    """A matrix of some shape with known ``values`` of some sorted ``rows``."""

    shape: tuple[int, int]
    rows: IntArray
    values: Any

    def __getitem__(self, rows: IntArray) -> Any:
        """Return the values of rows by number; LookupError for an unknown row."""
        places = np.searchsorted(self.rows, rows)
        if not np.array_equal(self.rows[places], rows):
            raise LookupError("a kernel looks at rows that looks_at did not name")
        return self.values[places]


class PartlyLoaded(Sequence[Any]):
    """A list of ground sets of these ``sizes`` (n,), of which some are in memory.

    ``known`` has these, whole or some of their rows, by their index in the list.
    """

    def __init__(
        self, sizes: IntArray, known: Mapping[int, GroundSet | SomeRows]
    ) -> None:
        self.sizes = sizes
        self.known = dict(sorted(known.items()))

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, place: Any) -> Any:
        """Return the ground set of an index; LookupError if it is not in memory."""
        if place not in self.known:
            raise LookupError(
                f"a kernel looks at ground set {place}, which looks_at did not name"
            )
        return self.known[place]


def ground_set_sizes(ground_sets: Sequence[GroundSet]) -> IntArray:
    """Return the number of items of every ground set, in memory or not, as (n,)."""
    if isinstance(ground_sets, PartlyLoaded):
        return ground_sets.sizes
    return np.array([len(ground_set) for ground_set in ground_sets], dtype=np.int64)


def loaded_ground_sets(ground_sets: Sequence[GroundSet]) -> Iterable[tuple[int, Any]]:
    """Return (index, ground set) of all in memory, as ``SomeRows`` if not whole."""
    if isinstance(ground_sets, PartlyLoaded):
        return ground_sets.known.items()
    return enumerate(ground_sets)


def merge_looks(several: Iterable[Looks]) -> Looks:
    """Return the union of the rows to read of each ground set; None (all) prevails."""
    together: Looks = {}
    for looks in several:
        for place, rows in looks.items():
            there = together.get(place, np.zeros(0, dtype=np.int64))
            whole = rows is None or there is None
            together[place] = None if whole else np.union1d(there, rows)  # type: ignore[arg-type]
    return together
