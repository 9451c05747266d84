"""Order items as a method chooses them, within a budget if any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.baselines.selecting import select
from variegate.decoding import Constraint


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
        if k == 0:
            return np.zeros(0, dtype=np.intp)
        return select(
            embeddings,
            relevance,
            len(embeddings) if k is None else k,
            self.method,
            trade_off=self.trade_off,
            budget=None if limit is None else limit.budget,
            costs=None if limit is None else limit.costs,
            random_state=self.seed,
        )


def f_of_first(wanted: BoolArray, order: IntArray, largest: int) -> FloatArray:
    """Return the F-score of the first 1, 2, ... items; past the last it stays."""
    n_wanted = int(wanted.sum())
    if len(order) == 0:
        return np.full(largest, float(n_wanted == 0))
    hits = np.cumsum(wanted[order])
    f = 2.0 * hits / (np.arange(1, len(order) + 1) + n_wanted)
    return np.pad(f, (0, largest - len(order)), mode="edge")
