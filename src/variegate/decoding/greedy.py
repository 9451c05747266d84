"""Greedy MAP: add the item that raises the probability most, while any does."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.random import Generator

from variegate.decoding.base import Constraint
from variegate.decoding.residuals import NO_GAIN, RANK_USED_UP, Residuals, stop_reason
from variegate.linalg.greedy import choose_rows
from variegate.linalg.representations import Factored
from variegate.selection import Ensemble, Selection


@dataclass(frozen=True)
class Greedy:
    """Greedy MAP by an incremental Cholesky factorisation (Chen et al., 2018).

    The gain of item ``j`` given the chosen ``y`` is ``log d_j²``, with
    ``d_j² = det L_{y∪j} / det L_y`` the squared residual of ``j``.  Adding an item
    updates all residuals in ``O(N |y|)``.

    Without ``k`` it stops when no gain is positive.  With a budget it maximizes gain
    for cost among the items that still fit.  It always stops when the rank is used up:
    with fewer than ``k`` items, the stop reason says so.  Ties go to the item with the
    smallest number.
    """

    def __call__(
        self, ensemble: Ensemble, constraint: Constraint, generator: Generator
    ) -> Selection:
        """Return the greedy selection; ``generator`` is not used."""
        kernel = ensemble.representation
        is_counted = constraint.budget is None and constraint.at_most is None
        if is_counted and isinstance(kernel, Factored):
            chosen, reason = _choose_from_factor(kernel, constraint.k)
        else:
            state = Residuals(kernel)
            reason = state.grow(constraint)
            chosen = state.chosen
        return Selection.from_items(ensemble, chosen, reason)


def _choose_from_factor(kernel: Factored, k: int | None) -> tuple[list[int], str]:
    """Choose ``k`` rows of a factor greedily; without ``k``, rows while that gains.

    Returns item numbers in the order of choice, and the stop reason.
    """
    rank = min(kernel.B.shape)
    B, norms, threshold = kernel.B, kernel.norms, 1.0
    largest = float(norms.max(initial=0.0))
    if not 1e-100 < largest < 1e100:  # squares would overflow, or be zero
        B = kernel._float64_rows(slice(None)) / largest
        norms, threshold = norms / largest, 0.0
        if k is None and largest < 1.0:
            return [], NO_GAIN
    squared = kernel.diagonal() * norms**2
    threshold = threshold if k is None else 0.0
    count = rank if k is None else min(k, rank)
    chosen, reached = choose_rows(B, squared, count, threshold)
    why = NO_GAIN if reached else RANK_USED_UP
    return chosen.tolist(), stop_reason(len(chosen), k, why)
