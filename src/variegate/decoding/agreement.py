"""Agreement of candidates with voters, and subsets that are grown by it.

A candidate is a subset that may be chosen, a voter one that may be wanted, such as a
sample.  ``candidates`` (A, N) and ``voters`` (B, N) are boolean arrays with one subset
a row; ``votes`` (B,) is how often each voter was drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.decoding.base import Constraint
from variegate.decoding.residuals import gain_per_cost, no_room_reason, stop_reason
from variegate.metrics import mean_f_score

#: Gains up to this are none: agreements are sums of at most 1, with rounding.
_NONE = 1e-12


class GrowingSubset(Protocol):
    """A subset that is grown item by item, and the rise in its value by each."""

    def gain(self) -> FloatArray:
        """Return the rise (N,) in value by each item; -inf where it cannot be added."""

    def add(self, item: int) -> None:
        """Add an item to the subset, in place."""


class GrowingAgreement(GrowingSubset, Protocol):
    """A growing subset whose value is its mean gain over voters."""

    @property
    def value(self) -> float:
        """Return the mean gain of the subset over voters, weighted by votes."""


def grow_subset(
    state: GrowingSubset,
    constraint: Constraint,
    fill: bool = False,
    per_cost: bool = True,
) -> tuple[list[int], str]:
    """Add items greedily to the empty ``state``; return them, and the stop reason.

    Items are added while the value rises; with ``fill`` while one is within the
    constraint; with ``k`` until there are ``k``.  With a budget and ``per_cost``, gains
    are divided by costs.  Ties go to the smallest number.  Items are returned in the
    order of choice, and are in ``state`` at the end.
    """
    chosen: list[int] = []
    while len(chosen) != constraint.k:
        gain = np.where(constraint.leaves_room(chosen), state.gain(), -np.inf)
        score = gain_per_cost(gain, constraint) if per_cost else gain
        item = int(np.argmax(score))
        if gain[item] == -np.inf:
            is_free = constraint.budget is None and constraint.at_most is None
            why = no_room_reason(constraint)
            if is_free or len(chosen) == len(gain):
                why = "no further item can be added"
            return chosen, stop_reason(len(chosen), constraint.k, why)
        if not fill and constraint.k is None and gain[item] <= _NONE:
            return chosen, "no further item gains anything"
        state.add(item)
        chosen.append(item)
    return chosen, stop_reason(len(chosen), constraint.k)


#: From candidates (A, N) and voters (B, N) to the gain (A, B) of choosing a candidate
#: where the voter is wanted.
Gains = Callable[[BoolArray, BoolArray], FloatArray]

#: Entries of a boolean array that are compared with voters at a time.
_AT_A_TIME = 2**22


class Agreement:
    """The gain whose mean minimum Bayes risk decoding maximizes.

    Of one's own, define :meth:`gains`, or :meth:`mean` where no pairs need be formed;
    and :meth:`growing` where a greedy search need not compute every mean anew.
    """

    #: The name of the gain in ``stop_reason``.
    name = "gain"

    def gains(self, candidates: BoolArray, voters: BoolArray) -> FloatArray:
        """Return the gain (A, B) of each candidate where a voter is wanted.

        Raises TypeError unless overridden.
        """
        raise TypeError(f"{type(self).__name__} defines neither gains nor mean")

    def mean(
        self, candidates: BoolArray, voters: BoolArray, votes: IntArray
    ) -> FloatArray:
        """Return candidates' mean gain (A,) over voters, weighted by ``votes``."""
        gains = np.asarray(self.gains(candidates, voters), dtype=np.float64)
        expected = (len(candidates), len(voters))
        if gains.shape != expected or not np.isfinite(gains).all():
            raise ValueError(
                f"gains must return finite numbers of shape {expected}, one for each "
                f"candidate and voter, got shape {gains.shape}"
            )
        return np.asarray(gains @ votes / votes.sum())

    def growing(self, voters: BoolArray, votes: IntArray) -> GrowingAgreement:
        """Return an empty subset to be grown item by item for a larger mean gain."""
        return _RecomputedSubset(self, voters, votes)


class SetFScore(Agreement):
    """The F-score of the chosen items, as the paper has it."""

    name = "F-score"

    def mean(
        self, candidates: BoolArray, voters: BoolArray, votes: IntArray
    ) -> FloatArray:
        """Return the mean F-score (A,) of candidates with voters, weighted by votes."""
        return mean_f_score(candidates, voters, votes)


class _FunctionAgreement(Agreement):
    """An agreement by a function that computes the gains of pairs."""

    def __init__(self, compute: Gains) -> None:
        self._compute = compute

    def gains(self, candidates: BoolArray, voters: BoolArray) -> FloatArray:
        """Return the gains (A, B) of the function."""
        return self._compute(candidates, voters)


def as_agreement(agreement: Agreement | Gains | None) -> Agreement:
    """Return an ``Agreement``: as given, of a function, or ``SetFScore`` for None."""
    if agreement is None:
        return SetFScore()
    return (
        agreement if isinstance(agreement, Agreement) else _FunctionAgreement(agreement)
    )


class _RecomputedSubset:
    """A growing subset for any agreement, which computes each mean gain anew."""

    def __init__(self, agreement: Agreement, voters: BoolArray, votes: IntArray):
        self._mean = partial(agreement.mean, voters=voters, votes=votes)
        self._chosen: BoolArray = np.zeros(voters.shape[1], dtype=bool)

    @property
    def value(self) -> float:
        """Return the mean gain of the subset."""
        return float(self._mean(self._chosen[None])[0])

    def gain(self) -> FloatArray:
        """Return the rise (N,) in mean gain by each item; -inf for chosen ones."""
        gain = np.full(len(self._chosen), -np.inf)
        now = self.value
        free = np.flatnonzero(~self._chosen)
        step = max(1, _AT_A_TIME // len(gain))
        for items in (free[i : i + step] for i in range(0, len(free), step)):
            larger = np.tile(self._chosen, (len(items), 1))
            larger[np.arange(len(items)), items] = True
            gain[items] = self._mean(larger) - now
        return gain

    def add(self, item: int) -> None:
        """Add an item to the subset, in place."""
        self._chosen[item] = True
