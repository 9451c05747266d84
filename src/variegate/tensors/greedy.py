"""Greedy choice from a batch of kernels at once.

As :mod:`variegate.decoding.greedy` does it for one: the item that raises the
probability most, while any does; with a budget, the most gain for its cost among the
items that still fit.  Every round is a few operations on all sets, and a set that has
ended waits for the others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from variegate.tensors.residuals import Residuals

__all__ = ["Picks", "Room", "choose"]

#: Gains that differ by no more than this are equal.
_TIE = {torch.float64: 1e-10, torch.float32: 1e-5}

#: Rounds after which it is asked whether any set goes on, which waits for the device.
_ROUNDS_UNASKED = 16

#: Costs add up with rounding; a budget is not broken by less than this share of it.
_BUDGET_ROUNDING = 1e-9


class Picks(NamedTuple):
    """What was taken, in the order in which it was.

    Attributes
    ----------
    items : tensor of shape (B, rounds)
        Item numbers, -1 after the last.
    gains : tensor of shape (B, rounds)
        By how much each raised the log-probability; -inf after the last.
    """

    items: Tensor
    gains: Tensor


class Room:
    """What each set may still spend.

    Parameters
    ----------
    costs : tensor of shape (B, N)
        Positive.
    budget : tensor of shape (B,)
    present : boolean tensor of shape (B, N)
        Which items there are.
    k : int, optional
        How many items are to be taken in all.
    """

    def __init__(
        self, costs: Tensor, budget: Tensor, present: Tensor, k: int | None
    ) -> None:
        self._costs = torch.where(present, costs.double(), torch.inf)
        self._limit = budget.double() * (1.0 + _BUDGET_ROUNDING)
        self._spent = torch.zeros_like(self._limit)
        self._free = present.clone()
        self._k = k
        self._order = self._costs.argsort(dim=1, stable=True) if k is not None else None

    def affords(self) -> Tensor:
        """Return which sets can have ``k`` items within the budget at all."""
        cheapest = self._costs.sort(dim=1).values[:, : self._k]
        return cheapest.sum(dim=1) <= self._limit

    def score(self, gain: Tensor, count: int) -> Tensor:
        """Return gains for their cost, -inf where the rest of ``k`` would not fit."""
        # Dividing a loss by its cost would favour dear items.
        costs = self._costs.to(gain.dtype)
        score = torch.where(gain > 0, gain / costs, gain * costs)
        fits = self._totals(count) <= self._limit[:, None]
        return torch.where(fits, score, -torch.inf)

    def _totals(self, count: int) -> Tensor:
        """Return what is spent in the end, at the least, if an item is taken now."""
        spent = self._spent[:, None]
        if self._k is None or self._order is None:
            return spent + self._costs
        later = self._k - count - 1
        free = self._free.gather(1, self._order)
        ranked = self._costs.gather(1, self._order)
        number = free.cumsum(dim=1)
        among = free & (number <= later + 1)
        before = torch.where(free & (number <= later), ranked, 0.0)
        with_one = torch.where(among, ranked, 0.0).sum(dim=1, keepdim=True)
        # One of the cheapest is counted once, anything else comes on top of them.
        total = torch.where(among, with_one, before.sum(dim=1, keepdim=True) + ranked)
        return spent + torch.empty_like(total).scatter_(1, self._order, total)

    def spend(self, item: Tensor, active: Tensor) -> None:
        """Pay for one item of each active set."""
        cost = self._costs.gather(1, item[:, None]).squeeze(1)
        self._spent += torch.where(active, cost, 0.0)
        still_free = self._free.gather(1, item[:, None]) & ~active[:, None]
        self._free.scatter_(1, item[:, None], still_free)


def choose(
    residuals: Residuals,
    rounds: int,
    *,
    above: float = -math.inf,
    room: Room | None = None,
    open_ended: bool = False,
) -> Picks:
    """Take items from every set, the best first.

    Parameters
    ----------
    residuals : Residuals, advanced
    rounds : int
        The most items of a set.
    above : float
        A set ends where no gain exceeds this: 0 where the probability must rise.
    room : Room, optional
        What may be spent, advanced.
    open_ended : bool
        Whether sets may end long before ``rounds``.  Then it is asked, now and then,
        whether all have, which waits for the device; otherwise nothing does.

    Returns
    -------
    Picks
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
        score = gain if room is None else room.score(gain, count)
        best = score.amax(dim=1, keepdim=True)
        # Of all that are equal to rounding, the smallest number.
        item = (score >= best - tie).to(torch.uint8).argmax(dim=1)
        own = gain.gather(1, item[:, None]).squeeze(1)
        active = active & (best.squeeze(1) > -torch.inf) & (own > above)
        residuals.take(item, active)
        if room is not None:
            room.spend(item, active)
        items.append(torch.where(active, item, -1))
        gains.append(torch.where(active, own, -torch.inf))
    if not items:
        empty = residuals.residual.new_empty(n_sets, 0)
        return Picks(empty.long(), empty)
    return Picks(torch.stack(items, dim=1), torch.stack(gains, dim=1))
