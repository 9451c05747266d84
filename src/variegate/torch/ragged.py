"""Sets that lie one after the other, without padding, in groups of like sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from variegate._typing import IntArray


class SizeGroup(NamedTuple):
    """Sets of like sizes, to be padded to the largest of them."""

    positions: Tensor  # (b,): their places among all sets
    sizes: Tensor  # (b,)
    index: Tensor  # (b, width): the places of their items among those of all sets
    pair_starts: Tensor  # (b,): where the entries of their matrices begin
    mask: Tensor | None  # boolean (b, width): true at items; None without padding

    def items(self, values: Tensor) -> Tensor:
        """Return values (total, ...) of items as (b, width, ...)."""
        return _take_rows(values, self.index)

    def pairs(self, values: Tensor) -> Tensor:
        """Return entries (total,) of matrices as (b, width, width)."""
        item = torch.arange(self.index.shape[1], device=values.device)
        entry = item[:, None] * self.sizes[:, None, None] + item
        return _take_rows(values, self.pair_starts[:, None, None] + entry)


def _take_rows(values: Tensor, index: Tensor) -> Tensor:
    """Take rows ``index`` of ``values``; padding takes the rows that come next.

    So no row is taken often, which would slow the gradient down.
    """
    rows = values.index_select(0, index.reshape(-1).clamp(max=len(values) - 1))
    return rows.view(*index.shape, *values.shape[1:])


class Layout:
    """Sets between ``offsets`` (B + 1), in groups of like sizes.

    Of a padded row of a group at most an eighth is padding, or seven items.
    """

    def __init__(self, offsets: Sequence[int] | Tensor, device: torch.device) -> None:
        ends = _checked_offsets(offsets)
        sizes = np.diff(ends)
        pair_ends = np.concatenate([[0], np.cumsum(sizes**2)])
        # Multiples of an eighth of the size, or of eight.
        exponents = np.frexp(sizes.astype(np.float64))[1]
        steps = np.maximum(8, 2 ** (np.maximum(exponents, 4) - 4))
        classes = -(-sizes // steps) * steps
        order = np.argsort(classes, kind="stable")
        cuts = np.flatnonzero(np.diff(classes[order])) + 1
        self.device, self.n_sets = device, len(sizes)
        self.n_items, self.n_pairs = int(ends[-1]), int(pair_ends[-1])
        self.groups: list[SizeGroup] = []
        for places in np.split(order, cuts) if len(order) else ():
            position, start, pair_start, size = (
                torch.from_numpy(numbers).to(device, non_blocking=True)
                for numbers in (places, ends[places], pair_ends[places], sizes[places])
            )
            width = int(sizes[places].max())
            item = torch.arange(width, device=device)
            is_padded = bool((sizes[places] < width).any())
            mask = item < size[:, None] if is_padded else None
            index = start[:, None] + item
            self.groups.append(SizeGroup(position, size, index, pair_start, mask))

    def concat_per_set(self, values: list[Tensor]) -> Tensor:
        """Put values (b,) of the sets of each group into the order of the sets."""
        if not values:
            return torch.zeros(0, device=self.device)
        places = torch.cat([group.positions for group in self.groups])
        return torch.cat(values).index_select(0, places.argsort())

    def concat_per_item(self, values: list[Tensor]) -> Tensor:
        """Put values (b, width) of the items of each group one after the other."""
        if not values:
            return torch.zeros(0, device=self.device)
        n, flat = self.n_items, torch.cat([part.flatten() for part in values])
        # Padding goes to one more place at the end.
        places = [
            index if mask is None else index.where(mask, n)
            for _, _, index, _, mask in self.groups
        ]
        index = torch.cat([part.flatten() for part in places])
        return flat.new_zeros(n + 1).scatter(0, index, flat)[:n]


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
