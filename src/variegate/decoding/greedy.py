"""Greedy MAP: add the item that raises the probability most, while any does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate.decoding.base import Constraint, Ensemble
from variegate.linalg import RANK_TOLERANCE, split_scale
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
        S, log_scale = split_scale(ensemble.L)
        n_items = len(S)
        residual = np.diagonal(S).copy()
        factor = np.zeros((n_items, n_items))
        available = np.ones(n_items, dtype=bool)
        chosen: list[int] = []
        spent = 0.0
        while True:
            if constraint.k is not None and len(chosen) == constraint.k:
                reason = f"chose the {constraint.k} items that were asked for"
                break
            candidates = available & (residual > RANK_TOLERANCE)
            if not candidates.any():
                if constraint.k is not None:
                    raise ValueError(
                        f"no subset of {constraint.k} items has positive probability: "
                        f"the rank of L is used up after {len(chosen)}"
                    )
                reason = "the rank of L is used up"
                break
            affordable = candidates & constraint.affords(spent + constraint.costs)
            if not affordable.any():
                reason = "no further item fits the budget"
                break
            gain = np.full(n_items, -np.inf)
            gain[affordable] = (
                np.log(residual[affordable]) + 2.0 * log_scale[affordable]
            )
            score = gain
            if constraint.budget is not None:
                # Dividing a loss by its cost would favour dear items.
                score = np.where(
                    gain > 0, gain / constraint.costs, gain * constraint.costs
                )
            item = int(np.argmax(score))
            if constraint.k is None and gain[item] <= 0:
                reason = "no further item raises the probability"
                break
            pivot = np.sqrt(residual[item])
            column = (
                S[:, item] - factor[:, : len(chosen)] @ factor[item, : len(chosen)]
            ) / pivot
            factor[:, len(chosen)] = column
            residual -= column**2
            available[item] = False
            spent += constraint.costs[item]
            chosen.append(item)
        indices = np.sort(np.array(chosen, dtype=np.intp))
        return Selection(indices, ensemble.log_prob(indices), reason)
