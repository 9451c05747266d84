"""Similarity of candidates to given items: copies, the nearest one, and their span.

All rows have length one, those of candidates perhaps zero.  Thousands of given items
times many candidates make a large product; so only candidates that may be chosen are
compared with all given items.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.linalg.cosine import chunks, round_off
from variegate.linalg.limits import NOISE_SHARE

__all__ = ["COPY", "NEAR_COPY", "Nearest", "basis_of", "find_copies"]

#: Items are copies of each other from this cosine on, and near copies from the other.
COPY = 1.0 - 1e-9
NEAR_COPY = 0.9

#: Directions on which candidates and given items are compared before their cosine is
#: taken, the largest difference of copies there, and pairs that are compared at a time.
_N_DIRECTIONS = 3
_LARGEST_GAP = 5e-5
_PAIRS = 1_000_000

#: Candidates whose score is made exact before each step, so that others fall behind.
_FOREMOST = 64

#: Given items that candidates are compared with, step by step.
_STAGES = (64, 128, 256, 512)


def find_copies(F: FloatArray, given: FloatArray) -> BoolArray:
    """Return a mask (N,) of the rows of ``F`` that are copies of ``given`` rows."""
    found = np.zeros(len(F), dtype=bool)
    if 0 in given.shape:
        return found
    # Copies are close to each other in every direction.
    directions = np.random.default_rng(0).standard_normal((F.shape[1], _N_DIRECTIONS))
    directions /= np.linalg.norm(directions, axis=0)
    given = given[np.argsort(given @ directions[:, 0], kind="stable")]
    ours, theirs = F @ directions, given @ directions
    keys = np.append(theirs[:, 0], np.inf)
    first = np.searchsorted(keys, ours[:, 0] - _LARGEST_GAP)
    rows = np.flatnonzero(keys[first] <= ours[:, 0] + _LARGEST_GAP)
    first = first[rows]
    counts = np.searchsorted(keys, ours[rows, 0] + _LARGEST_GAP, side="right") - first
    ends = np.cumsum(counts)
    parts = np.searchsorted(ends, np.arange(_PAIRS, ends.max(initial=0), _PAIRS))
    for part in np.split(np.arange(len(rows)), parts):
        count = counts[part]
        ours_of = np.repeat(rows[part], count)
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        theirs_of = np.repeat(first[part], count) + within
        gap = np.abs(ours[ours_of, 1:] - theirs[theirs_of, 1:]).max(axis=1)
        is_close = gap <= _LARGEST_GAP
        ours_of, theirs_of = ours_of[is_close], theirs_of[is_close]
        cosine = np.einsum("ij,ij->i", F[ours_of], given[theirs_of])
        found[ours_of[round_off(cosine) >= COPY]] = True
    return found


def basis_of(rows: FloatArray) -> FloatArray:
    """Return an orthonormal basis (rank, D) of what ``rows`` (M, D) span.

    Directions in which they vary by no more than noise are left out.
    """
    if len(rows) > rows.shape[1]:
        squared, vectors = np.linalg.eigh(rows.T @ rows)
        return np.ascontiguousarray(vectors[:, squared > NOISE_SHARE].T)
    squared, vectors = np.linalg.eigh(rows @ rows.T)
    is_used = squared > NOISE_SHARE
    spanning = rows.T @ (vectors[:, is_used] / np.sqrt(squared[is_used]))
    return np.ascontiguousarray(np.linalg.qr(spanning)[0].T)


class Nearest:
    """The largest similarity (N,) of each candidate to given and to chosen items.

    ``values`` are lower bounds where not all given items have been compared; a score
    that falls with similarity is then an upper bound.
    """

    def __init__(self, F: FloatArray, given: FloatArray) -> None:
        self.F, self.given = F, given
        self.values = np.full(len(F), -1.0 if len(given) else -np.inf)
        n_given = len(given)
        self.ends = [*(end for end in _STAGES if end < n_given), n_given]
        self.n_compared = np.zeros(len(F), dtype=np.intp)

    def add_chosen(self, item: int) -> None:
        """Update the similarities for a candidate that is chosen."""
        np.maximum(self.values, round_off(self.F @ self.F[item]), out=self.values)

    def all_values(self) -> FloatArray:
        """Return the exact values (N,) of all candidates."""
        self._compare(np.arange(len(self.F)), len(self.given))
        return self.values

    def best_item(
        self,
        score_of: Callable[[IntArray | slice], FloatArray],
        available: BoolArray,
        limit: float,
    ) -> int | None:
        """Return the first item with the largest score; None if there is none.

        ``score_of`` returns scores of candidates by their ``values``.  Items are in the
        mask ``available`` (N,) and have a value below ``limit``.
        """

        def rank(rows: IntArray | slice) -> FloatArray:
            """Return scores of candidates, -inf of those left out."""
            may_be = available[rows] & (self.values[rows] < limit)
            return np.where(may_be, score_of(rows), -np.inf)

        score = rank(slice(None))
        is_exact = self.n_compared == len(self.given)
        if not is_exact.all():
            best = score[is_exact].max(initial=-np.inf)
            rest = np.flatnonzero(~is_exact & (score >= best) & (score > -np.inf))
            for end in self.ends:
                if len(rest) > _FOREMOST:
                    order = np.argpartition(-score[rest], _FOREMOST)
                    foremost = rest[order[:_FOREMOST]]
                    self._compare(foremost, len(self.given))
                    score[foremost] = rank(foremost)
                    best = max(best, score[foremost].max())
                    rest = rest[(score[rest] >= best) & (score[rest] > -np.inf)]
                self._compare(rest, end)
                score[rest] = rank(rest)
        item = int(np.argmax(score))
        return None if score[item] == -np.inf else item

    def _compare(self, rows: IntArray, end: int) -> None:
        """Compare candidates with the first ``end`` given items, at least."""
        for start in np.unique(self.n_compared[rows]):
            behind = rows[self.n_compared[rows] == start]
            if start >= end:
                continue
            for part in chunks(len(behind)):
                items: IntArray | slice = behind[part]
                if len(behind) == len(self.F):
                    items = part  # a view, not a copy
                cosines = self.F[items] @ self.given[start:end].T
                nearest = round_off(cosines.max(axis=1))
                self.values[items] = np.maximum(self.values[items], nearest)
            self.n_compared[behind] = end
