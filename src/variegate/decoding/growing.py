"""A subset that grows by the item that gains most, whatever the gain is in."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from variegate._typing import FloatArray
from variegate.decoding.base import Constraint
from variegate.decoding.residuals import BUDGET_SPENT, all_chosen, nothing_left

__all__ = ["Growing", "grow"]

#: Gains up to this are none: agreements are sums of at most 1, with rounding.
_NONE = 1e-12


class Growing(Protocol):
    """A subset, and what each further item would gain."""

    def gain(self) -> FloatArray:
        """Return the gain of each item, (N,); ``-inf`` where it cannot be added."""
        ...

    def add(self, item: int) -> None:
        """Add an item."""
        ...


def grow(
    state: Growing, constraint: Constraint, fill: bool = False, per_cost: bool = True
) -> tuple[list[int], str]:
    """Add items greedily to an empty subset.

    Parameters
    ----------
    state : Growing
    constraint : Constraint
    fill : bool
        Whether to go on while anything fits, or to stop where nothing gains; ``k``
        items are chosen either way.
    per_cost : bool
        Whether to compare gains for their cost.

    Returns
    -------
    chosen : items in the order of choice; among equals the smallest number
    reason : why the search ended
    """
    chosen: list[int] = []
    costs = constraint.costs
    while len(chosen) != constraint.k:
        gain = np.where(constraint.leaves_room(chosen), state.gain(), -np.inf)
        # Dividing a loss by its cost would favour dear items.
        score = np.where(gain > 0.0, gain / costs, gain * costs) if per_cost else gain
        item = int(np.argmax(score))
        if gain[item] == -np.inf:
            spent = constraint.budget is not None and len(chosen) < len(costs)
            why = BUDGET_SPENT if spent else "no further item can be added"
            return chosen, nothing_left(len(chosen), constraint.k, why)
        if not fill and constraint.k is None and gain[item] <= _NONE:
            return chosen, "no further item gains anything"
        state.add(item)
        chosen.append(item)
    return chosen, all_chosen(len(chosen))
