"""The wanted subsets of a batch of ground sets, with the costs of errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

__all__ = ["Targets"]


@dataclass(frozen=True, eq=False)
class Targets:
    """The wanted subsets of a batch of ground sets, with the costs of errors.

    Attributes
    ----------
    indicator : boolean (B, N)
        Which items are wanted; False at padding.
    error_cost : (B, N)
        The cost of an error at an item: of choosing it if it is not wanted, of
        missing it if it is.  0 at padding.
    wrong : boolean (B,)
        Whether a subset names an item twice, or one that is not there.
    numbers : (B, k) or None
        Item numbers as they were given, -1 for padding, all others in range.
    """

    indicator: Tensor
    error_cost: Tensor
    wrong: Tensor
    numbers: Tensor | None = None

    @classmethod
    def of(
        cls,
        subsets: Tensor,
        n_items: int,
        *,
        false_positive: Tensor | float = 1.0,
        false_negative: Tensor | float = 1.0,
        mask: Tensor | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> Targets:
        """Collect subsets and costs.

        Parameters
        ----------
        subsets : boolean (B, N), or item numbers (B, k) padded with -1
        n_items : int
            ``N``.
        false_positive, false_negative : float, or tensor that broadcasts to (B, N)
            Costs of wrongly choosing and of missing each item.
        mask : boolean (B, N), optional
            True where there is an item.
        dtype : torch.dtype
            Of the costs.
        """
        numbers = None
        if subsets.dtype == torch.bool:
            indicator, wrong = subsets, subsets.new_zeros(len(subsets))
        else:
            numbers, indicator, wrong = _of_numbers(subsets, n_items)
        if mask is not None:
            wrong = wrong | (indicator & ~mask).any(dim=1)
            indicator = indicator & mask
        missing, wrongly = (
            given.to(dtype)
            if isinstance(given, Tensor)
            else torch.full((), given, dtype=dtype, device=indicator.device)
            for given in (false_negative, false_positive)
        )
        cost = torch.where(indicator, missing, wrongly)
        if mask is not None:
            cost = cost.masked_fill(~mask, 0.0)
        return cls(indicator, cost, wrong, numbers)

    @property
    def signs(self) -> Tensor:
        """``W``: costs of errors, negative for wanted items."""
        return torch.where(self.indicator, -self.error_cost, self.error_cost)

    @property
    def members(self) -> Tensor:
        """Item numbers (B, k), padded with 0 to the size of the largest subset."""
        return self._places[0]

    @property
    def present(self) -> Tensor:
        """Which entries of ``members`` are not padding."""
        return self._places[1]

    @cached_property
    def _places(self) -> tuple[Tensor, Tensor]:
        if self.numbers is not None:
            present = self.numbers >= 0
            return self.numbers.clamp(min=0), present
        n_sets, n_items = self.indicator.shape
        sizes = self.indicator.sum(dim=1)
        # How wide the result is must be known here: on a GPU, this waits for it.
        largest = int(sizes.max()) if self.indicator.numel() else 0
        place = self.indicator.cumsum(dim=1) - 1
        place = place.masked_fill(~self.indicator, largest)
        items = torch.arange(n_items, device=sizes.device).expand(n_sets, n_items)
        members = items.new_zeros(n_sets, largest + 1).scatter_(1, place, items)
        present = torch.arange(largest, device=sizes.device) < sizes[:, None]
        return members[:, :largest].masked_fill(~present, 0), present


def _of_numbers(subsets: Tensor, n_items: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return numbers that are in range, the indicator, and which sets are wrong."""
    numbers = subsets.long()
    outside = (numbers < -1) | (numbers >= n_items)
    numbers = numbers.masked_fill(outside, -1)
    # Padding is marked in a column of its own, which is cut off.
    marks = numbers.new_zeros(len(numbers), n_items + 1, dtype=torch.bool)
    column = numbers.masked_fill(numbers < 0, n_items)
    indicator = marks.scatter_(1, column, True)[:, :n_items]
    twice = indicator.sum(dim=1) < (numbers >= 0).sum(dim=1)
    return numbers, indicator, outside.any(dim=1) | twice
