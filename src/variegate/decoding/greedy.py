"""Greedy MAP: add the item that raises the probability most, while any does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate._typing import FloatArray
from variegate.decoding.base import Constraint, Ensemble
from variegate.linalg import RANK_TOLERANCE
from variegate.representations import Factored, Representation
from variegate.selection import Selection


@dataclass(frozen=True)
class Greedy:
    """Greedy MAP by an incremental Cholesky factorisation (Chen et al., 2018).

    The gain of item ``j`` given the chosen ``y`` is ``log d_j²``, with
    ``d_j² = det L_{y∪j} / det L_y`` the squared residual of ``j``.  Adding an item
    updates all residuals in ``O(N |y|)``.

    Without ``k`` it stops when no gain is positive.  With a budget it maximizes gain
    for cost among the items that still fit.  It always stops when the rank is used
    up.  Ties go to the item with the smallest number.
    """

    def __call__(
        self,
        ensemble: Ensemble,
        constraint: Constraint,
        generator: np.random.Generator,
    ) -> Selection:
        """Choose a subset."""
        kernel = ensemble.representation
        if constraint.budget is None and isinstance(kernel, Factored):
            chosen, reason = _choose_lazily(kernel, constraint.k)
        else:
            chosen, reason = self._choose(kernel, constraint)
        indices = np.sort(np.array(chosen, dtype=np.intp))
        return Selection(indices, ensemble.log_prob(indices), reason)

    def _choose(
        self, kernel: Representation, constraint: Constraint
    ) -> tuple[list[int], str]:
        state = _Residuals(kernel)
        while True:
            if len(state.chosen) == constraint.k:
                return state.chosen, _all_chosen(constraint.k)
            gain = state.gain()
            allowed = constraint.leaves_room(state.chosen)
            score = np.where(allowed, _score(gain, constraint), -np.inf)
            best = score.max(initial=-np.inf)
            if best == -np.inf:
                usable = state.available & (state.residual > RANK_TOLERANCE)
                why = _BUDGET_SPENT if usable.any() else _RANK_USED_UP
                return state.chosen, _nothing_left(len(state.chosen), constraint.k, why)
            # Of all that are equal to rounding, the smallest number.
            item = int(np.argmax(score >= best - _TIE))
            if constraint.k is None and gain[item] <= 0:
                return state.chosen, _NO_GAIN
            state.add(item)


#: Gains that differ by no more than this are equal.
_TIE = 1e-10

_NO_GAIN = "no further item raises the probability"
_RANK_USED_UP = "the rank of L is used up"
_BUDGET_SPENT = "no further item fits the budget"


def _all_chosen(k: int) -> str:
    return f"chose the {k} items that were asked for"


def _choose_lazily(kernel: Factored, k: int | None) -> tuple[list[int], str]:
    """Choose from a factor: see :mod:`variegate.compiled.lazy_greedy`."""
    from variegate.compiled.lazy_greedy import lazy_greedy

    rank = min(kernel.B.shape)
    chosen = np.empty(rank if k is None else min(k, rank), dtype=np.int64)
    squared = kernel.diagonal() * kernel.norms**2
    threshold = 1.0 if k is None else 0.0
    count, reached = lazy_greedy(kernel.B, squared, RANK_TOLERANCE, threshold, chosen)
    taken = chosen[:count].tolist()
    if count == k:
        return taken, _all_chosen(k)
    return taken, _NO_GAIN if reached else _nothing_left(count, k, _RANK_USED_UP)


def _score(gain: FloatArray, constraint: Constraint) -> FloatArray:
    if constraint.budget is None:
        return gain
    # Dividing a loss by its cost would favour dear items.
    with np.errstate(invalid="ignore"):
        return np.where(gain > 0, gain / constraint.costs, gain * constraint.costs)


def _nothing_left(count: int, k: int | None, why: str) -> str:
    if k is not None:
        raise ValueError(f"no subset of {k} items was found: after {count}, {why}")
    return why


class _Residuals:
    """What each item adds to those chosen: the running Cholesky factorisation."""

    def __init__(self, kernel: Representation) -> None:
        self.kernel = kernel
        self.residual = kernel.diagonal().copy()
        self.available = np.ones(len(kernel), dtype=bool)
        self.chosen: list[int] = []
        self._columns: list[FloatArray] = []

    def gain(self) -> FloatArray:
        """Return the rise in log-probability by each item; -inf where impossible."""
        usable = self.available & (self.residual > RANK_TOLERANCE)
        log_residual = np.log(np.where(usable, self.residual, 1.0))
        return np.where(usable, log_residual + 2.0 * self.kernel.log_scale, -np.inf)

    def add(self, item: int) -> None:
        """Take an item and update what the others still add."""
        column = self.kernel.column(item).copy()
        for earlier in self._columns:
            column -= earlier * earlier[item]
        column /= np.sqrt(self.residual[item])
        self._columns.append(column)
        self.residual -= column**2
        self.available[item] = False
        self.chosen.append(item)
