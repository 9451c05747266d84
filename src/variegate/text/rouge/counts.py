"""ROUGE-N and ROUGE-SU: how many units, n-grams or pairs, two texts share.

With the references pooled, a unit that a summary has c times and reference r has
c_r times gives Σ_r min(c, c_r) hits.  Recall is all hits over all units of all
references, precision all hits over the summary's units, counted once a reference.
Units run across the ends of sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import chain

from variegate.text.rouge.score import Measure, Ratios, ratio
from variegate.text.rouge.tokens import Text

__all__ = ["CountPool", "ngrams", "pairs_within", "skip_bigrams"]

Unit = Hashable
Words = tuple[str, ...]


def ngrams(n: int) -> Measure:
    """Return ROUGE-N: runs of ``n`` words."""
    return Measure(f"rouge-{n}", partial(CountPool, partial(_runs, n)))


def skip_bigrams(skip: int) -> Measure:
    """Return ROUGE-SU: pairs of words in order, at most ``skip`` words between them.

    Single words count too, all but the last: ROUGE-1.5.5 counts a word together with
    the pairs it begins.
    """
    return Measure(f"rouge-su{skip}", partial(CountPool, partial(_with_words, skip)))


def _runs(n: int, words: Words) -> Iterable[Unit]:
    if n == 1:
        return words
    return zip(*(words[start:] for start in range(n)), strict=False)


def pairs_within(skip: int, words: Words) -> Iterable[Unit]:
    """Yield the pairs of words in order, at most ``skip`` words between them."""
    return (
        (first, second)
        for i, first in enumerate(words)
        for second in words[i + 1 : i + 2 + skip]
    )


def _with_words(skip: int, words: Words) -> Iterable[Unit]:
    return chain(words[:-1], pairs_within(skip, words))


class CountPool:
    """The units of all references in one table.

    The table holds, for a unit, the hits of a summary that has it 0, 1, 2, ... times,
    so that scoring looks up each unit once, however many references there are.
    """

    def __init__(
        self, units: Callable[[Words], Iterable[Unit]], references: Sequence[Text]
    ) -> None:
        counts = [Counter(units(reference.words)) for reference in references]
        self._units = units
        self._n_references = len(counts)
        self._n_units = sum(count.total() for count in counts)
        self._hits = {unit: _hits(unit, counts) for unit in set(chain(*counts))}

    def ratios(self, summary: Text) -> Ratios:
        """Return the precision and recall of a summary."""
        count = Counter(self._units(summary.words))
        table = self._hits
        hits = 0
        for unit in count.keys() & table.keys():
            row = table[unit]
            times = count[unit]
            hits += row[times] if times < len(row) else row[-1]
        recall = ratio(hits, self._n_units)
        return Ratios(
            precision=ratio(hits, self._n_references * count.total()),
            recall=recall,
            merit=round(recall, 5),
        )


def _hits(unit: Unit, counts: list[Counter[Unit]]) -> tuple[int, ...]:
    times = [count[unit] for count in counts]
    return tuple(
        sum(min(summary, reference) for reference in times)
        for summary in range(max(times) + 1)
    )
