"""ROUGE-L and ROUGE-W: the longest common subsequences of sentences.

Both go through a reference sentence by sentence.  A sentence's longest common
subsequence with each sentence of the summary marks words in it; the marks of all
sentences of the summary are united.  A marked word is a hit as long as summary and
reference have occurrences of it left; each hit uses one up in both.

ROUGE-W gives a run of k words the weight f(k) = k^w, both in finding the
subsequences and in counting the hits.  ROUGE-1.5.5 counts in an own way, kept here:

- only neighbours in the reference make a run, wherever the summary has the words;
- a run ends at the first hit whose right neighbour is not marked; one that ends in a
  marked word without occurrences left goes on with the next hit of the sentence, and is
  lost where there is none;
- a reference of sentences of lengths l_1, l_2, ... weighs f(Σ f(l_i)), a summary of n
  words f(n), so that even a perfect recall stays below 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate

import numpy as np

from paper.rouge.texts import TokenizedText, Words
from variegate.text.rouge import Ratios, ratio

__all__ = ["common_positions", "longest_common", "weighted_longest_common"]

#: Pairs of words of two texts from which on compiled loops compare them.
_MANY_PAIRS = 1_000_000


def longest_common() -> Callable[[Sequence[TokenizedText]], SequencePool]:
    """Return ROUGE-L."""
    return partial(SequencePool, w=1.0, weigh=_count_hits)


def weighted_longest_common(
    w: float,
) -> Callable[[Sequence[TokenizedText]], SequencePool]:
    """Return ROUGE-W with the weight ``k ** w`` of a run of k words."""
    return partial(SequencePool, w=w, weigh=partial(_weigh_hits, w))


def _count_hits(marked: list[bool], hit: list[bool]) -> float:
    return float(sum(hit))


def _weigh_hits(w: float, marked: list[bool], hit: list[bool]) -> float:
    weight = 0.0
    run = 0
    for is_hit, goes_on in zip(hit, [*marked[1:], False], strict=True):
        run += is_hit
        if is_hit and not goes_on:
            weight += float(run**w)
            run = 0
    return weight


class SequencePool:
    """References for ROUGE-L (``w`` = 1) or ROUGE-W."""

    def __init__(
        self,
        references: Sequence[TokenizedText],
        w: float,
        weigh: Callable[[list[bool], list[bool]], float],
    ) -> None:
        self._references = references
        self._w = w
        self._weigh = weigh
        self._sizes = [
            float(sum(len(words) ** w for words in reference.sentences))
            for reference in references
        ]

    def __call__(self, summary: TokenizedText) -> Ratios:
        """Return the precision and recall of a summary."""
        hits = sum(self._hits(reference, summary) for reference in self._references)
        offered = len(self._references) * float(len(summary) ** self._w)
        wanted = sum(float(size**self._w) for size in self._sizes)
        return Ratios(
            precision=float(ratio(hits, offered) ** (1.0 / self._w)),
            recall=float(ratio(hits, wanted) ** (1.0 / self._w)),
            merit=ratio(hits, sum(self._sizes)),
        )

    def _hits(self, reference: TokenizedText, summary: TokenizedText) -> float:
        left = Counter(reference) & Counter(summary)
        total = 0.0
        # A sentence marks the same words each time.
        others = tuple(dict.fromkeys(summary.sentences))
        is_long = len(reference) * sum(map(len, others)) > _MANY_PAIRS
        mark = marks_of_long if is_long else marks
        for sentence, marked in zip(
            reference.sentences, mark(reference.sentences, others, self._w), strict=True
        ):
            hit = [False] * len(sentence)
            for position, word in enumerate(sentence):
                if marked[position] and left[word] > 0:
                    left[word] -= 1
                    hit[position] = True
            total += self._weigh(marked, hit)
        return total


def marks(
    sentences: Sequence[Words], others: Sequence[Words], w: float
) -> Iterator[list[bool]]:
    """Yield, for every sentence, which words are in subsequences with the others."""
    for sentence in sentences:
        marked = [False] * len(sentence)
        for other in others:
            for position in common_positions(sentence, other, w):
                marked[position] = True
        yield marked


def marks_of_long(
    sentences: Sequence[Words], others: Sequence[Words], w: float
) -> Iterator[list[bool]]:
    """Yield what :func:`marks` does, by compiled loops."""
    from paper.rouge.subsequences import mark_common

    numbers: defaultdict[str, int] = defaultdict(lambda: len(numbers))
    words = np.array([numbers[word] for other in others for word in other], dtype=int)
    starts = np.cumsum([0, *map(len, others)])
    longest = max(map(len, sentences), default=0)
    weights = np.array([float(k**w) for k in range(longest + 1)])
    for sentence in sentences:
        marked = np.zeros(len(sentence), dtype=bool)
        own = np.array([numbers[word] for word in sentence], dtype=int)
        mark_common(own, words, starts, weights, marked)
        yield marked.tolist()


def common_positions(sentence: Words, other: Words, w: float = 1.0) -> list[int]:
    """Return where a longest common subsequence lies in ``sentence``, last first.

    Of several, the one found by going back from the ends of both sentences, over a
    word of ``sentence`` first where either may be left out.  With ``w`` above 1,
    words in a row that are in a row in both count more.
    """
    weights = [float(k**w) for k in range(min(len(sentence), len(other)) + 1)]
    table = _best_weights(sentence, other, weights)
    positions = []
    i, j = len(sentence), len(other)
    while i and j:
        if sentence[i - 1] == other[j - 1]:
            i, j = i - 1, j - 1
            positions.append(i)
        elif table[i - 1][j] >= table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return positions


def _best_weights(
    sentence: Words, other: Words, weights: list[float]
) -> list[list[float]]:
    """Return the weight of the best subsequence of every pair of beginnings."""
    vocabulary = set(other)
    row = [0.0] * (len(other) + 1)
    runs = no_runs = [0] * (len(other) + 1)
    table = [row]
    for word in sentence:
        above, runs_above = row, runs
        if word not in vocabulary:
            row, runs = list(accumulate(above, max)), no_runs
        else:
            row, runs = [0.0], no_runs.copy()
            for j, candidate in enumerate(other):
                if candidate == word:
                    run = runs_above[j]
                    row.append(above[j] + weights[run + 1] - weights[run])
                    runs[j + 1] = run + 1
                else:
                    row.append(max(above[j + 1], row[j]))
        table.append(row)
    return table
