"""ROUGE-S and ROUGE-SU with any number of words between.

A text of n words has up to n (n - 1) / 2 pairs.  With many words between, pairs are
counted word by word, not listed: how often a word comes before each other within reach
is a difference of running counts, so that all pairs that begin with one word take time
and memory proportional to n.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.text.rouge import (
    CountPool,
    Pool,
    Ratios,
    pairs_and_words,
    pairs_within,
    ratio,
)
from variegate.text.rouge_tokens import Words

__all__ = ["WidePairPool", "skip_bigrams"]

#: Words between the two of a pair beyond which a list of all pairs is too long.
_WIDE = 30


def skip_bigrams(skip: float, *, unigrams: bool) -> Callable[[Sequence[Words]], Pool]:
    """Return ROUGE-S: pairs of words in order, at most ``skip`` words between them.

    ``skip`` may be ``math.inf``.  With ``unigrams`` (ROUGE-SU) single words count too,
    all but the last.
    """
    if skip > _WIDE:
        return partial(WidePairPool, skip, unigrams)
    units = pairs_and_words if unigrams else pairs_within
    return partial(CountPool, partial(units, int(skip)))


class WidePairPool:
    """References for ROUGE-S or ROUGE-SU; hits are those of a table of all pairs.

    Parameters
    ----------
    skip : float
        Most words between the two of a pair.
    unigrams : bool
        Whether single words count too, all but the last.
    references : sequence of words
    """

    def __init__(
        self, skip: float, unigrams: bool, references: Sequence[Words]
    ) -> None:
        self._skip = skip
        self._unigrams = unigrams
        self._references = references

    def __call__(self, words: Words) -> Ratios:
        """Return the precision and recall of a summary."""
        hits = sum(self._hits(words, reference) for reference in self._references)
        recall = ratio(hits, sum(map(self._n_units, self._references)))
        return Ratios(
            precision=ratio(hits, len(self._references) * self._n_units(words)),
            recall=recall,
            merit=round(recall, 5),
        )

    def _n_units(self, words: Words) -> int:
        n, reach = len(words), self._reach(words)
        n_pairs = n * reach - reach * (reach + 1) // 2
        return n_pairs + self._unigrams * max(0, n - 1)

    def _reach(self, words: Words) -> int:
        """Return how far apart the two words of a pair are at most."""
        return int(min(self._skip + 1, max(0, len(words) - 1)))

    def _hits(self, summary: Words, reference: Words) -> int:
        shared = sorted(set(summary) & set(reference))
        numbers = {word: number for number, word in enumerate(shared)}
        texts = [
            _Numbered.of(words, numbers, self._reach(words))
            for words in (summary, reference)
        ]
        hits = 0
        for first in range(len(shared)):
            counts = [text.pairs_from(first) for text in texts]
            hits += int(np.minimum(*counts).sum())
        if self._unigrams:
            hits += (Counter(summary[:-1]) & Counter(reference[:-1])).total()
        return hits


class _Numbered:
    """The shared words of a text: what they are and where they stand."""

    def __init__(self, numbers: IntArray, places: IntArray, n: int, reach: int) -> None:
        self._numbers = numbers
        self._n_shared = n
        #: Of shared words, how many stand before the reach of each.
        self._beyond = np.searchsorted(places, places - reach)
        self._order = np.argsort(numbers, kind="stable")
        self._starts = np.searchsorted(numbers[self._order], np.arange(n + 1))

    @classmethod
    def of(cls, words: Words, numbers: dict[str, int], reach: int) -> _Numbered:
        """Keep the words that have a number."""
        places = [place for place, word in enumerate(words) if word in numbers]
        kept = np.array([numbers[words[place]] for place in places], dtype=np.intp)
        return cls(kept, np.array(places, dtype=np.intp), len(numbers), reach)

    def pairs_from(self, first: int) -> FloatArray:
        """Return how often each word follows ``first`` within reach."""
        own = self._order[self._starts[first] : self._starts[first + 1]]
        start = own[0]  # nothing before it follows it
        is_first = np.zeros(len(self._numbers) - start, dtype=np.intp)
        is_first[own - start] = 1
        seen = np.cumsum(is_first)
        # One less at each place of its own: a word does not follow itself there.
        within = seen - is_first
        if self._beyond[-1] > start:
            gone = self._beyond[start:] - start - 1
            within -= np.where(gone >= 0, seen[gone], 0)
        counts = np.bincount(self._numbers[start:], within, minlength=self._n_shared)
        return np.asarray(counts, dtype=np.float64)
