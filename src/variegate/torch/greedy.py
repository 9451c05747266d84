"""Greedy choice from a batch of kernels at once.

The kernel of a set is ``L = diag(exp u) S diag(exp u)`` and ``S`` has a unit diagonal.
The residual of an item is its squared distance from the span of the items taken: the
next squared pivot of a Cholesky factorisation of ``S``, which grows by a column an item
(Chen et al., 2018).

As in :mod:`variegate.decoding.greedy`, the next item is the one that raises the
probability most, while any does; with a budget, the one with the most gain for its cost
among the items that still fit.  Every round is a few operations on all sets; a set that
has ended is not ``active`` (B,) any more, and takes no item in later rounds.

Given items are taken first.  The residuals that they leave are the diagonal of the
Schur complement of their part of ``S``, the similarity of the conditional process.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor

from variegate.decoding.base import BUDGET_ROUNDING
from variegate.linalg.limits import RANK_TOLERANCE

#: A residual up to this is rounding: the item lies in the span of the items taken.
TOLERANCE = {torch.float64: RANK_TOLERANCE, torch.float32: 1e-5}

#: A residual below this proves a negative eigenvalue of the kernel.
LEAST = {torch.float64: -1e-6, torch.float32: -1e-3}

#: Columns to set memory aside for at first, where their number is not known.
FIRST_COLUMNS = 16

#: Gains that differ by no more than this are equal.
_TIE = {torch.float64: 1e-10, torch.float32: 1e-5}

#: Rounds between checks whether all sets have ended, which wait for the device.
_ROUNDS_UNASKED = 16


class Residuals(ABC):
    """Residuals of the items of ``B`` sets of ``N`` items, updated as items are taken.

    ``squared_lengths`` (B or 1, N) are the diagonal of the similarity before it was
    scaled to one, ``log_quality`` and ``mask`` are (B, N), and ``n_columns`` is the
    number of items that will be taken, for which memory is set aside, None if unknown.
    """

    _columns: Tensor

    def __init__(
        self,
        squared_lengths: Tensor,
        log_quality: Tensor,
        mask: Tensor,
        n_columns: int | None,
    ) -> None:
        sound = torch.isfinite(squared_lengths) & (squared_lengths >= 0)
        self._sound = (sound & torch.isfinite(log_quality) | ~mask).all(dim=1)
        present = (squared_lengths > 0) & mask
        safe = torch.where(present, squared_lengths, 1.0)
        self._over_length = torch.where(present, safe.rsqrt(), 0.0)
        #: (B, N): the logarithm of the diagonal of ``L``
        self.twice_log_scale = safe.log() + 2.0 * log_quality.where(present, 0.0)
        #: (B, N): zero where there is not an item, or it was taken
        self.residual = present.to(safe.dtype, copy=True)
        self.tolerance = TOLERANCE[self.residual.dtype]
        self._sets = torch.arange(len(self.residual), device=self.residual.device)
        self._capacity = FIRST_COLUMNS if n_columns is None else max(n_columns, 1)
        self.count = 0

    def is_sound(self) -> Tensor:
        """Return whether each set (B,) has finite input and no negative residual."""
        least = LEAST[self.residual.dtype]
        # False for NaN, too.
        return self._sound & (self.residual > least).all(dim=1)

    def gain(self) -> Tensor:
        """Return the rise in log-probability (B, N) by taking each item next.

        -inf for items that were taken, are padding, or lie in the span of those taken.
        """
        gain = self.residual.log().add_(self.twice_log_scale)
        return gain.masked_fill_(~(self.residual > self.tolerance), -torch.inf)

    def take(self, item: Tensor, active: Tensor) -> None:
        """Take one item (B,) of each ``active`` (B,) set; update residuals, columns."""
        usable = (self.residual > self.tolerance) & active[:, None]
        pivot = self.residual.gather(1, item[:, None])
        column = self._compute_column(item, pivot.where(active[:, None], 1.0), active)
        # Items in the span have entries of rounding, which must not add up.
        column = torch.where(usable, column, 0.0)
        if self._columns.shape[1]:
            self._columns = _reserve_row(self._columns, self.count)
            self._columns[:, self.count] = column
        self.residual.addcmul_(column, column, value=-1.0)
        left = torch.where(active[:, None], 0.0, pivot)
        self.residual.scatter_(1, item[:, None], left)
        self.count += 1

    def take_given(self, given: Tensor, n_given: int) -> None:
        """Take the ``given`` items (B, N) of every set, at most ``n_given`` of each.

        The next one is that with the largest residual; items in the span of others are
        not taken.
        """
        for _ in range(n_given):
            largest, item = self.residual.masked_fill(~given, 0.0).max(dim=1)
            self.take(item, largest > self.tolerance)

    @property
    def columns(self) -> Tensor:
        """Columns of ``S``'s factor, as rows (B, count, N); (B, 0, N) if not kept."""
        return self._columns[:, : self.count]

    @abstractmethod
    def _compute_column(self, item: Tensor, pivot: Tensor, active: Tensor) -> Tensor:
        """Return the next column (B, N) of ``S``'s Cholesky factor, for an item (B,).

        ``pivot`` (B, 1) is its residual; sets not ``active`` (B,) ignore the column.
        """


def _reserve_row(kept: Tensor, count: int) -> Tensor:
    """Return ``kept`` (B, capacity, D), or a copy of twice the capacity if it is full.

    It is full if ``count`` rows are in use; the new rows are not initialized.
    """
    if count < kept.shape[1]:
        return kept
    larger = kept.new_empty(kept.shape[0], 2 * kept.shape[1], kept.shape[2])
    larger[:, :count] = kept
    return larger


class DenseResiduals(Residuals):
    """Residuals from symmetric matrices (B, N, N), or (1, N, N) for all sets."""

    def __init__(
        self, matrix: Tensor, log_quality: Tensor, mask: Tensor, n_columns: int | None
    ) -> None:
        diagonal = torch.diagonal(matrix, dim1=1, dim2=2)
        super().__init__(diagonal, log_quality, mask, n_columns)
        n_sets, n_items = self.residual.shape
        self._matrix = matrix.expand(n_sets, n_items, n_items)
        self._columns = self.residual.new_empty(n_sets, self._capacity, n_items)

    def _compute_column(self, item: Tensor, pivot: Tensor, active: Tensor) -> Tensor:
        """Return the row of ``S`` less the part of earlier columns, over ``√pivot``."""
        own = self._over_length.gather(1, item[:, None])
        column = self._matrix[self._sets, item] * self._over_length * own
        if self.count:
            weights = self.columns[self._sets, :, item]
            column = column.unsqueeze(1)
            column = column.baddbmm(weights.unsqueeze(1), self.columns, alpha=-1.0)
            column = column.squeeze(1)
        return column * pivot.rsqrt()


class FactoredResiduals(Residuals):
    """Residuals from features (B, N, D), or (1, N, D) for all sets.

    ``S = F Fᵀ`` is never formed, and columns are kept only if they are asked for.
    """

    def __init__(
        self,
        features: Tensor,
        log_quality: Tensor,
        mask: Tensor,
        n_columns: int | None,
        keep_columns: bool = False,
    ) -> None:
        squared = torch.linalg.vector_norm(features, dim=2).square()
        super().__init__(squared, log_quality, mask, n_columns)
        n_sets, n_items = self.residual.shape
        self._features = features
        capacity, n_columns = self._capacity, self._capacity if keep_columns else 0
        self._directions = features.new_empty(n_sets, capacity, features.shape[2])
        self._columns = features.new_empty(n_sets, n_columns, n_items)

    def _compute_column(self, item: Tensor, pivot: Tensor, active: Tensor) -> Tensor:
        """Keep an item's residual direction; return its products with unit features."""
        shared = len(self._features) == 1
        new = self._features[0, item] if shared else self._features[self._sets, item]
        directions = self._directions[:, : self.count]
        for _ in range(2):  # once more, to be orthogonal to rounding
            inner = torch.bmm(directions, new.unsqueeze(2))
            new = new - torch.bmm(inner.mT, directions).squeeze(1)
        # An item that is not taken must not change later rounds of its set.
        new = torch.nn.functional.normalize(new, dim=1)
        new = torch.where(active[:, None], new, 0.0)
        self._directions = _reserve_row(self._directions, self.count)
        self._directions[:, self.count] = new
        if shared:
            along = new @ self._features[0].mT
        else:
            along = torch.bmm(self._features, new.unsqueeze(2)).squeeze(2)
        return along * self._over_length


class RemainingBudget:
    """The part of a budget (B,) that each set has left.

    Costs (B, N) are positive, ``present`` (B, N) are the items that there are, and
    ``k`` is the number of items to take, if it is known.
    """

    def __init__(
        self, costs: Tensor, budget: Tensor, present: Tensor, k: int | None
    ) -> None:
        self._costs = torch.where(present, costs.double(), torch.inf)
        self._limit = budget.double() * (1.0 + BUDGET_ROUNDING)
        self._spent = torch.zeros_like(self._limit)
        self._free = present.clone()
        self._k = k

    def affords(self) -> Tensor:
        """Return whether each set (B,) affords its ``k`` cheapest items (None: all)."""
        cheapest = self._costs.sort(dim=1).values[:, : self._k]
        return cheapest.sum(dim=1) <= self._limit

    def score(self, gain: Tensor, count: int) -> Tensor:
        """Return gains (B, N) divided by costs, negative ones multiplied by them.

        -inf unless the item, the ``count`` items taken, and the cheapest others that
        make ``k`` of them fit the budget.
        """
        # Dividing a loss by its cost would favour expensive items.
        costs = self._costs.to(gain.dtype)
        score = torch.where(gain > 0, gain / costs, gain * costs)
        fits = self._least_totals(count) <= self._limit[:, None]
        return torch.where(fits, score, -torch.inf)

    def _least_totals(self, count: int) -> Tensor:
        """Return the least total cost (B, N) of ``k`` items if each one is taken next.

        ``count`` are taken already; without ``k``, the cost of these and the next.
        """
        spent = self._spent[:, None]
        if self._k is None:
            return spent + self._costs
        costs = self._costs.where(self._free, torch.inf)
        cheapest = costs.topk(self._k - count, largest=False).values
        # One of the cheapest is counted once; any other item is added to all but one.
        others = cheapest[:, :-1].sum(dim=1, keepdim=True)
        return spent + others + self._costs.maximum(cheapest[:, -1:])

    def spend(self, item: Tensor, active: Tensor) -> None:
        """Pay for one item (B,) of each set that is ``active`` (B,)."""
        cost = self._costs.gather(1, item[:, None]).squeeze(1)
        self._spent += torch.where(active, cost, 0.0)
        still_free = self._free.gather(1, item[:, None]) & ~active[:, None]
        self._free.scatter_(1, item[:, None], still_free)


def choose_items(
    residuals: Residuals,
    rounds: int,
    *,
    above: float = -math.inf,
    budget: RemainingBudget | None = None,
    open_ended: bool = False,
) -> tuple[Tensor, Tensor]:
    """Take up to ``rounds`` items from every set, the best first.

    The best item has the largest gain, or score with a ``budget``.  A set ends where no
    gain exceeds ``above``: 0 where the probability must rise.  If sets may end long
    before ``rounds`` (``open_ended``), every few rounds a check waits for the device to
    see whether all have ended.  ``residuals`` and ``budget`` are updated.

    Returns item numbers (B, rounds), -1 after the last, and their rises in
    log-probability (B, rounds), -inf after the last; fewer columns if all ended before.
    """
    n_sets = len(residuals.residual)
    tie = _TIE[residuals.residual.dtype]
    active = residuals.residual.new_ones(n_sets, dtype=torch.bool)
    items, gains = [], []
    for count in range(rounds):
        asked = open_ended and count > 0 and count % _ROUNDS_UNASKED == 0
        if asked and not bool(active.any()):
            break
        gain = residuals.gain()
        score = gain if budget is None else budget.score(gain, count)
        best = score.amax(dim=1, keepdim=True)
        # The smallest number of all items with the same score, to rounding.
        item = (score >= best - tie).to(torch.uint8).argmax(dim=1)
        own = gain.gather(1, item[:, None]).squeeze(1)
        active = active & (best.squeeze(1) > -torch.inf) & (own > above)
        residuals.take(item, active)
        if budget is not None:
            budget.spend(item, active)
        items.append(torch.where(active, item, -1))
        gains.append(torch.where(active, own, -torch.inf))
    if not items:
        empty = residuals.residual.new_empty(n_sets, 0)
        return empty.long(), empty
    return torch.stack(items, dim=1), torch.stack(gains, dim=1)
