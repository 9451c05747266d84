"""The arguments of a decoder: an ensemble and a constraint on subsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator

from variegate._typing import BoolArray, FloatArray
from variegate._validation import check_number
from variegate.decoding.at_most import AtMost
from variegate.ground_set import check_costs
from variegate.selection import Ensemble, Selection

#: Costs add up with rounding; a budget is not broken by less than this share of it.
BUDGET_ROUNDING = 1e-9


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
    at_most : AtMost or None
        Limits on the number of items that share a label.
    """

    k: int | None
    budget: float | None
    costs: FloatArray
    at_most: AtMost | None = None

    @classmethod
    def of(
        cls,
        n_items: int,
        k: int | None,
        budget: float | None,
        costs: Any,
        at_most: Any = None,
        per: Any = None,
    ) -> Constraint:
        """Return the checked constraint of arguments as for ``LEnsemble.decode``.

        ``costs`` (N,) become ones if None; ``at_most`` items have one label of ``per``
        (see ``AtMost.of``).  ValueError if one is invalid, or if no ``k`` items fit.
        """
        check_k(k, n_items)
        if budget is not None:
            check_number("budget", budget, positive=True)
        if costs is not None and budget is None:
            raise ValueError("costs were given without a budget")
        array = np.ones(n_items) if costs is None else check_costs(costs, n_items)
        limits = AtMost.of(n_items, at_most, per)
        constraint = cls(None if k is None else int(k), budget, array, limits)
        if k is not None:
            constraint._check_feasible_k(int(k))
        return constraint

    def _check_feasible_k(self, k: int) -> None:
        """Raise ValueError if no ``k`` items are within both limits and budget."""
        if self.at_most is not None:
            check_size(self.at_most, k)
        cost = float(self.costs[self._limits().cheapest_items(self.costs, k)].sum())
        if not self.affords(cost):
            within = "" if self.at_most is None else " within at_most"
            raise ValueError(
                f"no {k} items fit the budget {self.budget:g}: the {k} cheapest"
                f"{within} cost {cost:g}"
            )

    @property
    def is_free(self) -> bool:
        """Tell whether every subset may be chosen."""
        return self.k is None and self.budget is None and self.at_most is None

    def affords(self, total: Any) -> Any:
        """Tell whether a total cost, or each one of an array, is within the budget."""
        return np.less_equal(total, self.largest_cost())

    def largest_cost(self) -> float:
        """Return the budget plus a margin for rounding; inf without a budget."""
        return np.inf if self.budget is None else self.budget * (1.0 + BUDGET_ROUNDING)

    def largest_size(self) -> int:
        """Return the largest size of a set within budget and limits; ignore ``k``."""
        if self.at_most is None:
            return int(self.affords(np.cumsum(np.sort(self.costs))).sum())
        fewest, most = 0, self.at_most.largest_size()
        middle = most  # which is nearly always right
        while fewest < most:
            cheapest = self.at_most.cheapest_items(self.costs, middle)
            if cheapest is not None and self.affords(self.costs[cheapest].sum()):
                fewest = middle
            else:
                most = middle - 1
            middle = (fewest + most + 1) // 2
        return fewest

    def _limits(self) -> AtMost:
        """Return the limits on labels; where there are none, one that allows all."""
        return self.at_most or AtMost.unlimited(len(self.costs))

    def leaves_room(self, chosen: list[int]) -> BoolArray:
        """Return a mask (N,) of the items that may be added to the feasible ``chosen``.

        Without ``k``, all within budget and limits; with ``k``, all beside which the
        cheapest ``k - |chosen| - 1`` further items are within them as well.
        """
        at_most = self.at_most
        room: BoolArray = np.ones(len(self.costs), dtype=bool)
        if self.k is None and self.budget is not None:
            room = np.asarray(self.affords(self.costs[chosen].sum() + self.costs))
        elif self.k is not None and (
            self.budget is not None or (at_most and len(at_most.labels) > 1)
        ):
            count, spent = self.k - len(chosen), float(self.costs[chosen].sum())
            least = self._limits().least_costs(self.costs, count, chosen)
            room = np.isfinite(least) & np.asarray(self.affords(spent + least))
        if at_most is not None:
            room &= at_most.open_items(chosen)
        room[chosen] = False
        return room

    def allows(self, subsets: BoolArray) -> BoolArray:
        """Return a mask (M,) of the feasible rows of a boolean array (M, N)."""
        feasible = np.ones(len(subsets), dtype=bool)
        if self.budget is not None:
            feasible = np.asarray(self.affords(subsets @ self.costs))
        if self.k is not None:
            feasible = feasible & (subsets.sum(axis=1) == self.k)
        if self.at_most is not None:
            feasible = feasible & self.at_most.allows(subsets)
        return feasible


def check_k(k: Any, n_items: int) -> None:
    """Raise ValueError unless ``k`` is None or an integer from 0 to ``n_items``."""
    if k is None:
        return
    if isinstance(k, bool) or not isinstance(k, Integral):
        raise ValueError(f"k must be a whole number, got {k!r}")
    if not 0 <= int(k) <= n_items:
        raise ValueError(f"k must be between 0 and {n_items} items, got {k}")


def check_size(at_most: AtMost, k: int, chosen: Sequence[int] = ()) -> None:
    """Raise ValueError if no ``k`` items, ``chosen`` among them, meet the limits."""
    most = at_most.largest_size()
    if k > most:
        raise ValueError(
            f"at_most allows no more than {most} items, and k is {k}: give a smaller "
            "k or a larger at_most"
        )
    free = np.ones(at_most.labels.shape[1])
    if at_most.cheapest_items(free, k - len(chosen), chosen) is None:
        raise ValueError(
            f"no {k} items meet all limits of at_most together: give a smaller k or a "
            "larger at_most"
        )


class Decoder(Protocol):
    """A function from an ensemble and a constraint to one subset."""

    def __call__(
        self, ensemble: Ensemble, constraint: Constraint, generator: Generator
    ) -> Selection:
        """Choose a subset; ``generator`` is for decoders that draw samples."""
