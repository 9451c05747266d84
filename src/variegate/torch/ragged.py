"""Ground sets of different sizes, one after the other in memory, put into batches.

Sets of like sizes go together, padded to the largest of them: at most an eighth of a
row is padding, or seven items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from variegate._typing import IntArray

__all__ = ["Layout", "SizeGroup"]


@dataclass(frozen=True, eq=False)
class SizeGroup:
    """Sets of like sizes."""

    positions: Tensor  # (b,): their places among all sets
    width: int  # items of the largest
    # (b,): where the items of each begin, and the entries of its matrix
    starts: Tensor
    pair_starts: Tensor
    sizes: Tensor  # (b,)
    mask: Tensor | None  # boolean (b, width): true at items; None without padding

    def items(self, values: Tensor) -> Tensor:
        """Return values (total, ...) of items as (b, width, ...)."""
        item = torch.arange(self.width, device=values.device)
        return _taken(values, self.starts[:, None] + item)

    def pairs(self, values: Tensor) -> Tensor:
        """Return entries (total,) of matrices as (b, width, width)."""
        item = torch.arange(self.width, device=values.device)
        entry = item[:, None] * self.sizes[:, None, None] + item
        return _taken(values, self.pair_starts[:, None, None] + entry)


def _taken(values: Tensor, index: Tensor) -> Tensor:
    """Take rows; for padding, the rows that come next, so that none is taken often."""
    rows = values.index_select(0, index.reshape(-1).clamp_(max=len(values) - 1))
    return rows.view(*index.shape, *values.shape[1:])


@dataclass(frozen=True, eq=False)
class Layout:
    """Groups of sets that lie one after the other."""

    sizes: IntArray  # (B,)
    groups: list[SizeGroup]
    order: IntArray  # (B,): the set at each place, groups one after the other
    device: torch.device

    @classmethod
    def of(cls, offsets: Sequence[int] | Tensor, device: torch.device) -> Layout:
        """SizeGroup the sets between ``offsets`` (B + 1)."""
        ends = _checked(offsets)
        sizes = np.diff(ends)
        pair_ends = np.concatenate([[0], np.cumsum(sizes**2)])
        classes = _widths(sizes)
        order = np.argsort(classes, kind="stable")
        cuts = np.flatnonzero(np.diff(classes[order])) + 1
        made = cls(sizes, [], order, device)
        for positions in np.split(order, cuts):
            if len(positions):
                numbers = (positions, ends[positions], pair_ends[positions])
                made.groups.append(made._group(*numbers))
        return made

    def _group(
        self, positions: IntArray, starts: IntArray, pair_starts: IntArray
    ) -> SizeGroup:
        sizes = self.sizes[positions]
        width = int(sizes.max())
        place, start, pair_start, size = map(
            self._on_device, (positions, starts, pair_starts, sizes)
        )
        mask = None
        if (sizes < width).any():
            mask = torch.arange(width, device=self.device) < size[:, None]
        return SizeGroup(place, width, start, pair_start, size, mask)

    @property
    def n_sets(self) -> int:
        """``B``."""
        return len(self.sizes)

    @property
    def n_items(self) -> int:
        """Items of all sets."""
        return int(self.sizes.sum())

    @property
    def n_pairs(self) -> int:
        """Entries of all matrices."""
        return int((self.sizes**2).sum())

    def per_set(self, values: list[Tensor]) -> Tensor:
        """Put values of the sets, a tensor (b,) for each group, in their order."""
        if not values:
            return torch.zeros(0, device=self.device)
        back = np.empty_like(self.order)
        back[self.order] = np.arange(len(self.order))
        return torch.cat(values).index_select(0, self._on_device(back))

    def per_item(self, values: list[Tensor]) -> Tensor:
        """Put values of items, (b, width) for each group, one after the other."""
        if not values:
            return torch.zeros(0, device=self.device)
        widths = np.repeat(
            [group.width for group in self.groups],
            [len(group.positions) for group in self.groups],
        )
        starts = np.empty_like(self.order)
        starts[self.order] = np.cumsum(widths) - widths
        within = np.arange(self.n_items) - np.repeat(
            np.cumsum(self.sizes) - self.sizes, self.sizes
        )
        place = np.repeat(starts, self.sizes) + within
        flat = torch.cat([part.reshape(-1) for part in values])
        return flat.index_select(0, self._on_device(place))

    def _on_device(self, numbers: IntArray) -> Tensor:
        return torch.from_numpy(numbers).to(self.device, non_blocking=True)


def _widths(sizes: IntArray) -> IntArray:
    """Return the widths of padded rows: multiples of an eighth of them, or of eight."""
    exponents = np.frexp(sizes.astype(np.float64))[1]
    steps = np.maximum(8, 2 ** (np.maximum(exponents, 4) - 4))
    return np.asarray(-(-sizes // steps) * steps, dtype=np.int64)


def _checked(offsets: Any) -> IntArray:
    """Return offsets as numbers on the host."""
    if isinstance(offsets, Tensor):
        if offsets.device.type != "cpu":
            raise ValueError(
                "offsets must be a list or a tensor on the CPU: the sizes of the sets "
                "decide what is computed, and a tensor on a GPU must be waited for"
            )
        offsets = offsets.numpy()
    ends = np.asarray(offsets)
    if ends.ndim != 1 or len(ends) == 0 or ends.dtype.kind not in "iu":
        raise ValueError(
            "offsets must be whole numbers: where each set begins, and the last ends"
        )
    ends = ends.astype(np.int64)
    if ends[0] != 0 or (np.diff(ends) < 0).any():
        raise ValueError("offsets must begin with 0 and never decrease")
    return ends
