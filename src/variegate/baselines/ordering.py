"""Items in the order in which a method chooses them, within a budget if any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.baselines.selecting import select
from variegate.decoding import Constraint

__all__ = ["Ordering", "f_of_first"]

#: Methods whose first choices do not depend on how many are asked for.
_ONE_BY_ONE = ("dpp", "mmr", "max-min", "top")


@dataclass(frozen=True)
class Ordering:
    """A method of :func:`variegate.select` with its settings."""

    method: str
    trade_off: float = 0.5
    seed: int = 0

    def __call__(
        self,
        embeddings: FloatArray,
        relevance: FloatArray | None = None,
        k: int | None = None,
        limit: Constraint | None = None,
    ) -> IntArray:
        """Return at most ``k`` items, or all, in the order of choice.

        With a limit, those that it has no room for are passed over.  Of methods that
        choose one by one ("dpp", "mmr", "max-min" and "top"), fewer items are the first
        of more, with a limit too.
        """

        def order(items: IntArray, count: int) -> IntArray:
            if count == 0:
                return np.zeros(0, dtype=np.intp)
            chosen = select(
                embeddings[items],
                None if relevance is None else relevance[items],
                count,
                self.method,
                trade_off=self.trade_off,
                random_state=self.seed,
            )
            return items[chosen]

        n_items = len(embeddings)
        if limit is None:
            every = np.arange(n_items)
            return order(every, n_items if k is None else min(k, n_items))
        return self._affordable(order, k, limit)

    def _affordable(
        self,
        order: Callable[[IntArray, int], IntArray],
        k: int | None,
        limit: Constraint,
    ) -> IntArray:
        """Return items that can be paid for together, in the order of the method.

        As many are asked for as the budget has room for on average; methods that only
        go on where they stopped are asked for more, while any would fit.
        """
        costs = limit.costs
        items = np.flatnonzero(limit.affords(costs))
        if len(items) == 0:
            return items
        room = limit.largest_cost() / costs[items].mean()
        count = int(np.clip(room, 1, len(items)))
        while True:
            asked = order(items, count)
            taken = _filled(asked, k, limit)
            rest = np.setdiff1d(items, asked)
            if (
                self.method in _ONE_BY_ONE
                and len(taken) != k
                and len(rest)
                and limit.affords(costs[taken].sum() + costs[rest].min())
            ):
                count = min(2 * count, len(items))
            else:
                return taken


def _filled(order: IntArray, k: int | None, limit: Constraint) -> IntArray:
    """Take at most ``k`` items in turn, each if it fits the budget."""
    taken: list[int] = []
    spent = 0.0
    for item in order.tolist():
        if len(taken) == k:
            break
        if limit.affords(spent + limit.costs[item]):
            spent += float(limit.costs[item])
            taken.append(item)
    return np.array(taken, dtype=np.intp)


def f_of_first(wanted: BoolArray, order: IntArray, largest: int) -> FloatArray:
    """Return the F-score of the first 1, 2, ... items; past the last it stays."""
    n_wanted = int(wanted.sum())
    if len(order) == 0:
        return np.full(largest, float(n_wanted == 0))
    hits = np.cumsum(wanted[order])
    f = 2.0 * hits / (np.arange(1, len(order) + 1) + n_wanted)
    return np.pad(f, (0, largest - len(order)), mode="edge")
