"""Sets that lie one after the other, without padding, in groups of like sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from variegate._typing import IntArray


class SizeGroup(NamedTuple):
    """Sets of like sizes."""

    width: int  # items of the largest
    positions: Tensor  # (b,): their places among all sets
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
    """Groups of like sizes of sets that lie one after the other.

    Sets are padded to the largest of their group: at most an eighth of a row is
    padding, or seven items.
    """

    sizes: IntArray  # (B,)
    groups: list[SizeGroup]
    order: IntArray  # (B,): the set at each place, groups one after the other
    device: torch.device

    @classmethod
    def of(cls, offsets: Sequence[int] | Tensor, device: torch.device) -> Layout:
        """Group the sets between ``offsets`` (B + 1)."""
        ends = _checked_offsets(offsets)
        sizes = np.diff(ends)
        pair_ends = np.concatenate([[0], np.cumsum(sizes**2)])
        # Multiples of an eighth of the size, or of eight.
        exponents = np.frexp(sizes.astype(np.float64))[1]
        steps = np.maximum(8, 2 ** (np.maximum(exponents, 4) - 4))
        classes = -(-sizes // steps) * steps
        order = np.argsort(classes, kind="stable")
        made = cls(sizes, [], order, device)
        cuts = np.flatnonzero(np.diff(classes[order])) + 1
        for places in np.split(order, cuts) if len(order) else ():
            own, width = sizes[places], int(sizes[places].max())
            numbers = (places, ends[places], pair_ends[places], own)
            place, start, pair_start, size = map(made._sent, numbers)
            mask = None
            if (own < width).any():
                mask = torch.arange(width, device=device) < size[:, None]
            group = SizeGroup(width, place, start, pair_start, size, mask)
            made.groups.append(group)
        return made

    def per_set(self, values: list[Tensor]) -> Tensor:
        """Put values of the sets, a tensor (b,) for each group, in their order."""
        if not values:
            return torch.zeros(0, device=self.device)
        return torch.cat(values).index_select(0, self._sent(np.argsort(self.order)))

    def per_item(self, values: list[Tensor]) -> Tensor:
        """Put values of items, (b, width) for each group, one after the other."""
        if not values:
            return torch.zeros(0, device=self.device)
        widths = np.concatenate([[part.shape[1]] * len(part) for part in values])
        starts = np.empty_like(self.order)
        starts[self.order] = np.cumsum(widths) - widths
        firsts = np.cumsum(self.sizes) - self.sizes
        place = np.arange(self.sizes.sum()) + np.repeat(starts - firsts, self.sizes)
        flat = torch.cat([part.reshape(-1) for part in values])
        return flat.index_select(0, self._sent(place))

    def _sent(self, numbers: IntArray) -> Tensor:
        return torch.from_numpy(numbers).to(self.device, non_blocking=True)


def _checked_offsets(offsets: Any) -> IntArray:
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
