"""Greedy search by a running factorisation, and the order that it gives items."""

from __future__ import annotations

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.decoding.base import Constraint
from variegate.linalg.limits import RANK_TOLERANCE
from variegate.linalg.representations import Graded, Representation
from variegate.selection import Ensemble, check_found_enough

#: Gains that differ by no more than this are equal.
TIE = 1e-10

#: A squared residual above this is not rounding, in any order of items.
_SURELY_LEFT = 1e-8

#: Reasons to end a greedy search.
NO_GAIN = "no further item raises the probability"
RANK_USED_UP = "the rank of L is used up"
BUDGET_SPENT = "no further item fits the budget"
LIMITS_REACHED = "no further item is within at_most"


def stop_reason(count: int, k: int | None, why: str = "") -> str:
    """Return why a search ended at ``count`` items: ``k`` were chosen, or ``why``."""
    if count == k:
        return f"chose the {k} items that were asked for"
    return why if k is None else f"after {count} of {k} items, {why}"


def no_room_reason(constraint: Constraint) -> str:
    """Return a stop reason: no item fits the budget, ``at_most``, or both."""
    if constraint.at_most is None:
        return BUDGET_SPENT
    if constraint.budget is None:
        return LIMITS_REACHED
    return f"{BUDGET_SPENT} and at_most"


def gain_per_cost(gain: FloatArray, constraint: Constraint) -> FloatArray:
    """Return gains (N,); with a budget gains over costs, and losses times costs."""
    if constraint.budget is None:
        return gain
    # Dividing a loss by its cost would favour dear items.
    with np.errstate(invalid="ignore"):
        return np.where(gain > 0, gain / constraint.costs, gain * constraint.costs)


class Residuals:
    """Squared residuals of items given the chosen ones, updated with each choice.

    ``residual`` (N,) is ``det S_{y∪j} / det S_y`` for the ``chosen`` items ``y``, in
    the order of choice, and the similarity ``S``; ``available`` (N,) is a mask of items
    neither chosen nor excluded.
    """

    def __init__(self, kernel: Representation) -> None:
        self.kernel = kernel
        self.residual = kernel.diagonal().copy()
        self.available = np.ones(len(kernel), dtype=bool)
        self.chosen: list[int] = []
        self._columns: list[FloatArray] = []
        self._rows = kernel.rows.copy() if isinstance(kernel, Graded) else None
        self._floor: FloatArray | float = RANK_TOLERANCE
        if isinstance(kernel, Graded):
            self._floor = kernel.floor
            self.residual = np.einsum("ij,ij->i", kernel.rows, kernel.rows)

    def gain(self) -> FloatArray:
        """Return rises (N,) in log-probability; -inf for chosen or dependent items."""
        usable = self.available & (self.residual > self._floor)
        log_residual = np.log(np.where(usable, self.residual, 1.0))
        return np.where(usable, log_residual + 2.0 * self.kernel.log_scale, -np.inf)

    def grow(self, constraint: Constraint, among: BoolArray | None = None) -> str:
        """Choose the best item of the mask ``among`` (N,), or of all, while one gains.

        Returns the stop reason.  With ``k``, items that lose are chosen, too, up to
        ``k`` items; with a budget, gains are compared by :func:`gain_per_cost`.  Ties
        go to the smallest number.
        """
        k = constraint.k
        while len(self.chosen) != k:
            gain = self.gain()
            allowed = constraint.leaves_room(self.chosen)
            if among is not None:
                allowed &= among
            score = np.where(allowed, gain_per_cost(gain, constraint), -np.inf)
            best = score.max(initial=-np.inf)
            if best == -np.inf:
                is_left = (gain > -np.inf).any()
                why = no_room_reason(constraint) if is_left else RANK_USED_UP
                return stop_reason(len(self.chosen), k, why)
            item = int(np.argmax(score >= best - TIE))
            if k is None and gain[item] <= 0:
                return NO_GAIN
            self.add_if_possible(item)
        return stop_reason(len(self.chosen), k)

    def add_if_possible(self, item: int) -> bool:
        """Choose an item, unless the subset with it has determinant zero.

        Then the item becomes unavailable.  The kernel, which takes items in the order
        of their numbers, may find zero where a residual here is small but positive.
        Returns whether the item was chosen.
        """
        if self.residual[item] <= _SURELY_LEFT:
            members = np.array([*self.chosen, item])
            if self.kernel.log_det(members) == -np.inf:
                self.available[item] = False
                return False
        self.add(item)
        return True

    def add(self, item: int) -> None:
        """Choose an item of positive residual, and update the residuals of all."""
        self.available[item] = False
        self.chosen.append(item)
        if self._rows is not None:
            direction = self._rows[item] / np.sqrt(self.residual[item])
            for _ in range(2):
                self._rows -= np.outer(self._rows @ direction, direction)
            self.residual = np.einsum("ij,ij->i", self._rows, self._rows)
            return
        column = self.kernel.column(item).copy()
        for earlier in self._columns:
            column -= earlier * earlier[item]
        column /= np.sqrt(self.residual[item])
        self._columns.append(column)
        self.residual -= column**2


def cheapest_possible_subset(
    kernel: Representation, constraint: Constraint, why_fewer: str
) -> IntArray:
    """Return the cheapest ``k`` items of positive determinant, sorted.

    Independent rows are a matroid: taking the cheapest item that is independent of
    those before it, again and again, leads to the cheapest set of its size.  So where
    this set is above the budget, every set of ``k`` possible items is.  The ValueError
    then raised ends with ``why_fewer``, the stop reason of an earlier search.  With
    limits on labels, only items beside which the rest of ``k`` fits are taken, and the
    error does not prove that there are no ``k`` possible items.
    """
    state = Residuals(kernel)
    while len(state.chosen) != constraint.k:
        is_possible = state.gain() > -np.inf
        if constraint.at_most is not None:
            is_possible &= constraint.leaves_room(state.chosen)
        possible = np.flatnonzero(is_possible)
        if len(possible) == 0:
            break
        item = int(possible[np.argmin(constraint.costs[possible])])
        state.add_if_possible(item)
    members = np.sort(np.array(state.chosen, dtype=np.intp))
    affordable = bool(constraint.affords(constraint.costs[members].sum()))
    check_found_enough(len(members) if affordable else 0, constraint.k, why_fewer)
    return members


def rank_members(
    ensemble: Ensemble, members: IntArray, most: int | None = None
) -> IntArray:
    """Return members in greedy order: each has the largest gain given those before it.

    At most ``most`` item numbers, by default all: the pivots of a Cholesky
    factorisation of ``L`` on the members.
    """
    most = len(members) if most is None else min(most, len(members))
    if len(members) < 2:
        return members[:most]
    kernel = ensemble.representation
    u = kernel.log_scale[members]
    S = kernel.submatrix(members)
    left, factor = np.diag(S).copy(), np.zeros((len(members), most))
    # Below this, the rest of a unit after the subtractions is rounding.
    floor = len(members) * np.finfo(np.float64).eps
    is_left = np.ones(len(members), dtype=bool)
    order: list[int] = []
    for step in range(most):
        # In logarithms, as qualities differ by more than a number can hold.
        gains = 2.0 * u + np.log(np.maximum(left, floor))
        pivot = int(np.argmax(np.where(is_left, gains, -np.inf)))
        order.append(pivot)
        is_left[pivot] = False
        if left[pivot] > floor:
            column = S[:, pivot] - factor[:, :step] @ factor[pivot, :step]
            factor[:, step] = column / np.sqrt(left[pivot])
            left -= factor[:, step] ** 2
    return np.asarray(members[order])
