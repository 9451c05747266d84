"""The arguments of a decoder: an ensemble and a constraint on subsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator

from variegate._typing import BoolArray, FloatArray
from variegate._validation import check_number
from variegate.ground_set import check_costs
from variegate.selection import Ensemble, Selection

#: Costs add up with rounding; a budget is not broken by less than this share of it.
_BUDGET_ROUNDING = 1e-9


@dataclass(frozen=True)
class Constraint:
    """Which subsets may be chosen.

    Attributes
    ----------
    k : int or None
        The exact number of items.
    budget : float or None
        The largest sum of costs.
    costs : array of shape (N,)
        Ones where none were given.
    """

    k: int | None
    budget: float | None
    costs: FloatArray

    @classmethod
    def of(
        cls, n_items: int, k: int | None, budget: float | None, costs: Any
    ) -> Constraint:
        """Check the arguments of ``LEnsemble.decode``."""
        if k is not None:
            if isinstance(k, bool) or not isinstance(k, int | np.integer):
                raise ValueError(f"k must be a whole number, got {k!r}")
            if not 0 <= k <= n_items:
                raise ValueError(f"k must be between 0 and {n_items} items, got {k}")
        if budget is not None:
            check_number("budget", budget, positive=True)
        if costs is not None and budget is None:
            raise ValueError("costs were given without a budget")
        array = np.ones(n_items) if costs is None else check_costs(costs, n_items)
        constraint = cls(None if k is None else int(k), budget, array)
        if k is not None and budget is not None:
            cheapest = float(np.sort(array)[:k].sum())
            if not constraint.affords(cheapest):
                raise ValueError(
                    f"no {k} items fit the budget {budget:g}: the {k} cheapest cost "
                    f"{cheapest:g}"
                )
        return constraint

    def affords(self, total: Any) -> Any:
        """Whether a total cost, or each of an array of them, is within the budget."""
        return np.less_equal(total, self.largest_cost())

    def largest_cost(self) -> float:
        """Return the largest total cost that counts as within the budget."""
        return np.inf if self.budget is None else self.budget * (1.0 + _BUDGET_ROUNDING)

    def leaves_room(self, chosen: list[int]) -> BoolArray:
        """Return which items can be added so that the rest of ``k`` still fits.

        After an item, ``k - |chosen| - 1`` more are to come, at the least the cheapest.
        """
        spent = float(self.costs[chosen].sum())
        room = np.ones(len(self.costs), dtype=bool)
        if self.budget is not None:
            later = 0 if self.k is None else self.k - len(chosen) - 1
            free = np.ones(len(self.costs), dtype=bool)
            free[chosen] = False
            cheapest = np.flatnonzero(free)[np.argsort(self.costs[free], kind="stable")]
            among = np.zeros(len(self.costs), dtype=bool)
            among[cheapest[: later + 1]] = True
            # One of the cheapest is counted once, anything else comes on top of them.
            with_one = spent + self.costs[cheapest[: later + 1]].sum()
            others = spent + self.costs[cheapest[:later]].sum()
            total = np.where(among, with_one, others + self.costs)
            room = np.asarray(self.affords(total))
        room[chosen] = False
        return room

    def allows(self, subsets: BoolArray) -> BoolArray:
        """Return which rows of a boolean array (M, N) are feasible."""
        feasible = np.ones(len(subsets), dtype=bool)
        if self.budget is not None:
            feasible = np.asarray(self.affords(subsets @ self.costs))
        if self.k is not None:
            feasible = feasible & (subsets.sum(axis=1) == self.k)
        return feasible


class Decoder(Protocol):
    """From an ensemble and a constraint to one subset."""

    def __call__(
        self, ensemble: Ensemble, constraint: Constraint, generator: Generator
    ) -> Selection:
        """Choose a subset."""
