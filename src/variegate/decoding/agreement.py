"""What a choice is worth where another subset is wanted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.decoding.growing import Growing
from variegate.metrics import mean_f_score

__all__ = ["Agreement", "Gains", "SetFScore", "as_agreement"]

#: From candidates (A, N) and voters (B, N), boolean, to the gain (A, B) of choosing the
#: one where the other is wanted.
Gains = Callable[[BoolArray, BoolArray], FloatArray]

#: Entries of a boolean array that are compared with voters at a time.
_AT_A_TIME = 2**22


class Agreement:
    """What minimum Bayes risk decoding maximizes the mean of.

    Of one's own, define :meth:`gains`, or :meth:`mean` where no pairs need be formed;
    and :meth:`growing` where a greedy search need not compute every mean anew.
    """

    #: What the mean is of, for ``stop_reason``.
    name = "gain"

    def gains(self, candidates: BoolArray, voters: BoolArray) -> FloatArray:
        """Return the gain (A, B) of choosing a candidate where a voter is wanted."""
        raise TypeError(f"{type(self).__name__} defines neither gains nor mean")

    def mean(
        self, candidates: BoolArray, voters: BoolArray, votes: IntArray
    ) -> FloatArray:
        """Return the mean gain (A,) of candidates, over voters with so many votes."""
        gains = np.asarray(self.gains(candidates, voters), dtype=np.float64)
        expected = (len(candidates), len(voters))
        if gains.shape != expected or not np.isfinite(gains).all():
            raise ValueError(
                f"gains must return finite numbers of shape {expected}, one for each "
                f"candidate and voter, got shape {gains.shape}"
            )
        return np.asarray(gains @ votes / votes.sum())

    def growing(self, voters: BoolArray, votes: IntArray) -> Growing:
        """Return an empty subset whose mean gain grows item by item."""
        return _ComputedAnew(self, voters, votes)


class SetFScore(Agreement):
    """The F-score of the chosen items, as the paper has it."""

    name = "F-score"

    def mean(
        self, candidates: BoolArray, voters: BoolArray, votes: IntArray
    ) -> FloatArray:
        """Return the mean F-score (A,) of candidates."""
        return mean_f_score(candidates, voters, votes)


class _FromFunction(Agreement):
    def __init__(self, compute: Gains) -> None:
        self._compute = compute

    def gains(self, candidates: BoolArray, voters: BoolArray) -> FloatArray:
        return self._compute(candidates, voters)


def as_agreement(agreement: Agreement | Gains | None) -> Agreement:
    """Return an agreement: by default the set F-score, or from gains of pairs."""
    if agreement is None:
        return SetFScore()
    return agreement if isinstance(agreement, Agreement) else _FromFunction(agreement)


class _ComputedAnew:
    """A growing subset that knows no shortcut: all larger ones are compared."""

    def __init__(self, agreement: Agreement, voters: BoolArray, votes: IntArray):
        self._mean = partial(agreement.mean, voters=voters, votes=votes)
        self._chosen: BoolArray = np.zeros(voters.shape[1], dtype=bool)

    def gain(self) -> FloatArray:
        gain = np.full(len(self._chosen), -np.inf)
        now = self._mean(self._chosen[None])[0]
        free = np.flatnonzero(~self._chosen)
        step = max(1, _AT_A_TIME // len(gain))
        for items in (free[i : i + step] for i in range(0, len(free), step)):
            larger = np.tile(self._chosen, (len(items), 1))
            larger[np.arange(len(items)), items] = True
            gain[items] = self._mean(larger) - now
        return gain

    def add(self, item: int) -> None:
        self._chosen[item] = True
