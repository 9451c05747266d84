"""Wanted subsets of a batch of ground sets, costs of errors, settings of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["LossSettings", "Targets"]


class LossSettings(NamedTuple):
    """The settings of a loss."""

    lam: float  # ``λ``
    hinge: bool  # whether a loss below zero counts as zero
    jitter: float = 0.0  # ridge on the kernel, relative to its diagonal
    # A subset has probability zero where a squared pivot is at most this share of the
    # diagonal; by default, where the pivot is in doubt.
    tolerance: float | None = None


@dataclass(frozen=True, eq=False)
class Targets:
    """The wanted subsets of a batch of ground sets, with the costs of errors.

    Nothing is computed before it is asked for: on a GPU, each step is a launch.
    """

    # boolean (B, N), or item numbers (B, k) padded with -1: as they were given
    subsets: Tensor
    n_items: int  # ``N``
    # (B, N) or float: costs of wrongly choosing and of missing each item
    false_positive: Tensor | float = 1.0
    false_negative: Tensor | float = 1.0
    mask: Tensor | None = None  # boolean (B, N): true where there is an item
    dtype: torch.dtype = torch.float64  # of the costs

    @property
    def indicator(self) -> Tensor:
        """Which items (B, N) are wanted; False at padding."""
        return self._marks[1]

    @property
    def wrong(self) -> Tensor:
        """Whether a subset (B,) names an item twice, or one that is not there."""
        return self._marks[2]

    @property
    def numbers(self) -> Tensor | None:
        """Item numbers (B, k) if such were given, -1 for all that is not in range."""
        return self._marks[0]

    @cached_property
    def _marks(self) -> tuple[Tensor | None, Tensor, Tensor]:
        numbers = None
        if self.subsets.dtype == torch.bool:
            indicator = self.subsets
            wrong = indicator.new_zeros(len(indicator))
        else:
            numbers, indicator, wrong = _of_numbers(self.subsets, self.n_items)
        if self.mask is not None:
            wrong = wrong | (indicator & ~self.mask).any(dim=1)
            indicator = indicator & self.mask
        return numbers, indicator, wrong

    @cached_property
    def error_cost(self) -> Tensor:
        """The cost (B, N) of an error at an item, 0 at padding.

        Of choosing it if it is not wanted, of missing it if it is.
        """
        missing, wrongly = (
            given.to(self.dtype)
            if isinstance(given, Tensor)
            else torch.full((), given, dtype=self.dtype, device=self.subsets.device)
            for given in (self.false_negative, self.false_positive)
        )
        cost = torch.where(self.indicator, missing, wrongly)
        return cost if self.mask is None else cost.masked_fill(~self.mask, 0.0)

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
