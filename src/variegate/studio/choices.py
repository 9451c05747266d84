"""How items are chosen: before anything is learned, and greedily at every omega."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from threading import Lock
from typing import Any

import numpy as np

from variegate._typing import IntArray
from variegate.baselines import select
from variegate.baselines.learned import candidate_embeddings
from variegate.decoding import Constraint
from variegate.decoding.odds import greedy_steps
from variegate.decoding.residuals import Residuals
from variegate.ensemble import LEnsemble
from variegate.ground_set import GroundSet
from variegate.material.base import most_items

#: Items proposed before anything is picked: a share of the group, and a largest number.
_SHARE = 1 / 3
_MOST = 10


def usual_size(sizes: Iterable[int]) -> int | None:
    """Return the mean number of picks in groups, at least 1; None without ``sizes``."""
    several = list(sizes)
    return max(1, round(sum(several) / len(several))) if several else None


def untrained_choice(
    ground_set: GroundSet, k: int | None = None, **limits: Any
) -> IntArray:
    """Return the sorted item numbers that :func:`variegate.select` chooses, untrained.

    Without ``k``, a third of the group, at most ten.  ``limits`` are ``at_most`` and
    ``per`` of that function, of the candidates; ``k`` is cut to the number of items
    they allow.  Given items are not chosen, nor items like them.
    """
    features, given = candidate_embeddings(ground_set)
    n_items = len(features)
    if k is None:
        k = min(_MOST, max(1, round(_SHARE * n_items)))
    k = min(k, most_items(n_items, limits))
    if given is not None:
        limits["given"] = given
    return ground_set.candidates[np.sort(select(features, k=k, **limits))]


class GreedyOrder:
    """Items in the order in which greedy decoding takes them, as far as it was asked.

    Where omega multiplies the odds of every item, it adds its logarithm to all gains:
    which item is best does not change, only where it stops.  So the choice at one omega
    is the beginning of that at a larger one, and a slider need not choose anew.  The
    ensemble is that at omega 1; ``limits`` are ``at_most`` and ``per``.
    """

    def __init__(self, ensemble: LEnsemble, **limits: Any) -> None:
        within = Constraint.of(len(ensemble), None, None, None, **limits)
        self._items = ensemble.items
        self._steps = greedy_steps(Residuals(ensemble.representation), within, [])
        # Gain and item number of the steps that were computed so far.
        self._taken: list[tuple[float, int]] = []
        self._lock = Lock()

    def choose(self, omega: float) -> IntArray:
        """Return the sorted items that greedy decoding chooses at ``omega``.

        That is every item until the first whose gain does not exceed ``-log(omega)``.
        Steps are computed as far as needed, and kept for the next call.
        """
        least = -float(np.log(omega))
        with self._lock:
            while not self._taken or self._taken[-1][0] > least:
                step = next(self._steps, None)
                if step is None:
                    break
                self._taken.append(step)
            # Gains only fall, but for rounding.
            steps = takewhile(lambda step: step[0] > least, self._taken)
            chosen = np.array([item for _, item in steps], dtype=np.intp)
            return np.sort(self._items[chosen])
