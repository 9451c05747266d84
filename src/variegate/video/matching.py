"""Choose frames by the F-score of matches with sets of frames."""

from __future__ import annotations

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.decoding import Agreement
from variegate.video.evaluation import n_matches

__all__ = ["GrowingMatching", "MatchingAgreement"]


class MatchingAgreement(Agreement):
    """The F-score of matched frames.

    With ``h`` of its ``a`` frames matched with a set of ``b``, a choice scores
    ``(1 + β²) h / (a + β² b)``.

    Parameters
    ----------
    alike : array of shape (N, N)
        Which frames count as the same, and so can be matched.
    beta : float
        Above 1 recall counts for more.
    same : array of shape (N, N), optional
        Of which frames a search chooses only one: at least of each itself.
    """

    name = "F-score of matched frames"

    def __init__(
        self, alike: BoolArray, beta: float = 1.0, same: BoolArray | None = None
    ) -> None:
        self._alike = alike
        self._beta = beta
        self._same = np.eye(len(alike), dtype=bool) if same is None else same

    def gains(self, candidates: BoolArray, voters: BoolArray) -> FloatArray:
        """Return the F-score of each candidate matched with each voter."""
        others = [np.flatnonzero(row) for row in voters]
        values = np.zeros((len(candidates), len(voters)))
        square = self._beta**2
        for i, row in enumerate(candidates):
            one = np.flatnonzero(row)
            for j, other in enumerate(others):
                if len(one) and len(other):
                    matches = n_matches(self._alike[np.ix_(one, other)])
                    total = len(one) + square * len(other)
                    values[i, j] = (1.0 + square) * matches / total
        return values

    def growing(self, voters: BoolArray, votes: IntArray) -> GrowingMatching:
        """Return an empty choice that grows frame by frame."""
        return GrowingMatching(self._alike, self._same, voters, votes, self._beta)


class GrowingMatching:
    """A choice of frames that grows, and maximum matchings with some sets (T, N).

    Empty sets match nothing, and do not count.
    """

    def __init__(
        self,
        alike: BoolArray,
        same: BoolArray,
        sets: BoolArray,
        votes: FloatArray | IntArray,
        beta: float = 1.0,
    ) -> None:
        from variegate.compiled.arguments import read_only

        sets, votes = sets[sets.any(axis=1)], votes[sets.any(axis=1)]
        self._alike, self._same, self._beta = read_only(alike), same, beta
        self._weights = votes / votes.sum() if len(votes) else votes
        self._sizes = sets.sum(axis=1)
        self._members = np.zeros((len(sets), self._sizes.max(initial=0)), dtype=int)
        for row, (chosen, size) in enumerate(zip(sets, self._sizes, strict=True)):
            self._members[row, :size] = np.flatnonzero(chosen)
        self._owner = np.full(self._members.shape, -1, dtype=int)
        self._adds = np.ones((len(alike), len(sets)), dtype=bool)
        self._free = np.ones(len(alike), dtype=bool)
        self._hits = np.zeros(len(sets))
        self._size = 0

    def _shares(self, size: int) -> FloatArray:
        """Return the value of a match with each set, if ``size`` frames are chosen."""
        square = self._beta**2
        return np.asarray(
            (1.0 + square) * self._weights / np.maximum(size + square * self._sizes, 1)
        )

    @property
    def value(self) -> float:
        """The mean F-score of the choice."""
        return float(self._shares(self._size) @ self._hits)

    def gain(self) -> FloatArray:
        """Return what each frame adds, or for those that are not best a bound on it.

        Frames cost the same, so that the best gain is all that a search asks for.
        """
        from variegate.compiled.matching import matched_shares

        share = self._shares(self._size + 1)
        added = np.empty(len(self._free))
        sets = self._members, self._sizes, self._owner, self._adds
        matched_shares(self._alike, *sets, share, self._free, added)
        gain = added + (share @ self._hits - self.value)
        return np.where(self._free, gain, -np.inf)

    def add(self, item: int) -> None:
        """Add a frame; those that are the same are no longer free."""
        from variegate.compiled.matching import match

        sets = self._members, self._sizes, self._owner, self._adds
        match(item, self._alike, *sets)
        self._hits = self._hits + self._adds[item]
        self._free &= ~self._same[item]
        self._size += 1
