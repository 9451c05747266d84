"""Greedy choices at every omega, from one run.

Where omega multiplies the odds of every item, it adds its logarithm to all gains: which
item is best does not change, only where it stops.  So what is chosen at one omega is
the beginning of what is chosen at a larger one, and a slider need not choose anew.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from variegate._typing import IntArray
from variegate.decoding.residuals import TIE, Residuals
from variegate.ensemble import LEnsemble

__all__ = ["GreedyOrder"]


class GreedyOrder:
    """Items in the order in which greedy decoding takes them, as far as it was asked.

    Parameters
    ----------
    ensemble : LEnsemble
        At omega 1.
    """

    def __init__(self, ensemble: LEnsemble) -> None:
        self._state = Residuals(ensemble.representation)
        self._gains: list[float] = []
        self._is_over = False
        self._lock = Lock()

    def chosen(self, omega: float) -> IntArray:
        """Return, sorted, what greedy decoding chooses where odds are ``omega`` times.

        That is every item until the first whose gain does not exceed ``-log(omega)``.
        """
        least = -float(np.log(omega))
        with self._lock:
            while not self._is_over and (not self._gains or self._gains[-1] > least):
                self._take_next()
            # Gains only fall, but for rounding.
            few = (gain <= least for gain in self._gains)
            count = next((n for n, is_low in enumerate(few) if is_low), None)
            return np.sort(np.array(self._state.chosen[:count], dtype=np.intp))

    def _take_next(self) -> None:
        """Take the item of the largest gain, whatever it is, if one is left."""
        gain = self._state.gain()
        best = gain.max(initial=-np.inf)
        if best == -np.inf:
            self._is_over = True
            return
        item = int(np.argmax(gain >= best - TIE))
        if not self._state.refuses(item):
            self._state.add(item)
            self._gains.append(float(gain[item]))
