"""ROUGE-N and ROUGE-SU: how much of reference summaries a summary has.

C.-Y. Lin, 2004, "ROUGE: a package for automatic evaluation of summaries".  Both count
how many units, n-grams or pairs of words, two texts share, as ROUGE-1.5.5 does.  With
the references pooled, a unit that a summary has c times and reference r has c_r times
gives Σ_r min(c, c_r) hits.  Recall is all hits over all units of all references,
precision all hits over the summary's units, counted once a reference.  Units run across
the ends of sentences.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from variegate._validation import check_choice, check_count
from variegate.text.rouge_tokens import (
    Tokenizer,
    Words,
    folded,
    mostly_beyond_ascii,
    read_exceptions,
)

__all__ = ["PreparedReferences", "Rouge", "Score", "mean_scores", "read_exceptions"]

Unit = Hashable


class Ratios(NamedTuple):
    """Precision and recall, 0 to 1; the best reference has the largest ``merit``."""

    precision: float
    recall: float
    merit: float


class Score(NamedTuple):
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f: float

    @classmethod
    def from_ratios(cls, ratios: Ratios, digits: int | None) -> Score:
        """Return a score; ``digits`` rounds precision and recall, then F of these."""
        precision, recall, _ = ratios
        if digits is not None:
            precision, recall = round(precision, digits), round(recall, digits)
        f = ratio(2.0 * precision * recall, precision + recall)
        return cls(precision, recall, f if digits is None else round(f, digits))


#: One measure's function from a summary's words to ratios over references together.
Pool = Callable[[Any], Ratios]


def ratio(part: float, whole: float) -> float:
    """Return ``part / whole``, or 0 where the whole is 0."""
    return part / whole if whole else 0.0


def mean_scores(scores: Iterable[Mapping[str, Score]]) -> dict[str, Score]:
    """Return the mean of every number over several summaries; F is the mean of F's.

    ROUGE-1.5.5 prints the mean of bootstrap samples, which varies around this mean.
    """
    rows = list(scores)
    if not rows:
        raise ValueError("no scores to take the mean of")
    for row in rows:
        if row.keys() != rows[0].keys():
            raise ValueError(
                f"scores of different measures: {', '.join(rows[0])} and "
                f"{', '.join(row)}; score all summaries with one Rouge object"
            )
    means = {}
    for name in rows[0]:
        columns = zip(*(row[name] for row in rows), strict=True)
        means[name] = Score(*(sum(column) / len(rows) for column in columns))
    return means


def _ngrams(n: int, words: Words) -> Iterable[Unit]:
    """Yield the runs of ``n`` neighbouring words, as tuples."""
    return zip(*(words[start:] for start in range(n)), strict=False)


def pairs_within(skip: int, words: Words) -> Iterable[Unit]:
    """Yield the pairs of words in order, at most ``skip`` words between them."""
    return (
        (first, second)
        for i, first in enumerate(words)
        for second in words[i + 1 : i + 2 + skip]
    )


def pairs_and_words(skip: int, words: Words) -> Iterable[Unit]:
    """Yield the pairs of words as :func:`pairs_within`, and all words but the last.

    ROUGE-1.5.5 counts a word together with the pairs it begins.
    """
    return chain(words[:-1], pairs_within(skip, words))


class CountPool:
    """Counts of each reference's ``units``; call it with a summary to score it."""

    def __init__(
        self, units: Callable[[Words], Iterable[Unit]], references: Sequence[Words]
    ) -> None:
        self._units = units
        self._counts = [Counter(units(reference)) for reference in references]

    def __call__(self, summary: Words) -> Ratios:
        """Return precision and recall over all references; merit is rounded recall."""
        count = Counter(self._units(summary))
        hits = sum((count & reference).total() for reference in self._counts)
        recall = ratio(hits, sum(reference.total() for reference in self._counts))
        precision = ratio(hits, len(self._counts) * count.total())
        return Ratios(precision, recall, round(recall, 5))


@dataclass(frozen=True, kw_only=True)
class Rouge(Tokenizer):
    """Overlap of a summary with reference summaries, like ROUGE-1.5.5's.

    Parameters
    ----------
    n : int or several
        Lengths of n-grams: scores ``rouge-1``, ``rouge-2``, ...
    su : int or None
        Most words between the two words of a pair; pairs count beside single words:
        ``rouge-su4``.
    stem : whether to compare the stems of English words
    exceptions : mapping or None
        Base forms of irregular words, looked up before stemming; see
        :func:`~variegate.text.rouge.read_exceptions`.  ROUGE-1.5.5 has WordNet's.
    max_bytes, max_words : limit of summaries and references alike, or None
    references : "average" or "best"
        Whether all references are pooled, or only the reference with the best recall
        counts, for each measure.
    stop_words : iterable of words that do not count, or None
    unicode : bool
        Whether letters outside ASCII are letters; in ROUGE-1.5.5 they are spaces.
    digits : int or None
        Decimals kept.  ROUGE-1.5.5 rounds precision and recall to five before it
        computes F; ``None`` rounds nothing.

    Examples
    --------
    >>> rouge = Rouge(n=1)
    >>> rouge.score("the cat sat", ["a cat sat down"])
    {'rouge-1': Score(precision=0.66667, recall=0.5, f=0.57143)}
    """

    n: int | Iterable[int] = (1, 2)
    su: float | None = None
    references: Literal["average", "best"] = "average"
    digits: int | None = 5

    def __post_init__(self) -> None:
        """Check the parameters; ``n`` becomes a tuple, ``stop_words`` a folded set."""
        n = (self.n,) if isinstance(self.n, int) else tuple(self.n)
        object.__setattr__(self, "n", tuple(dict.fromkeys(n)))
        if isinstance(self.stop_words, str):
            raise ValueError("stop_words is one text; give a list of words")
        fold = folded if self.unicode else str.lower
        stop_words = frozenset(map(fold, self.stop_words or ()))
        object.__setattr__(self, "stop_words", stop_words)
        for length in n:
            check_count("n", length)
        self._check_measures()
        for name in ("max_bytes", "max_words"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.max_bytes is not None and self.max_words is not None:
            raise ValueError("a limit of bytes and one of words; give only one")
        check_choice("references", self.references, ("average", "best"))
        if not self.measures:
            raise ValueError("nothing to measure; give n or su")

    def _check_measures(self) -> None:
        """Raise ValueError for an invalid ``su``; subclasses check more."""
        if self.su is not None:
            check_count("su", self.su, least=0)

    @property
    def measures(self) -> dict[str, Callable[[Sequence[Any]], Pool]]:
        """Functions from references' words to a ``Pool``, by the names of measures."""
        lengths = self.n if isinstance(self.n, tuple) else ()
        units = {f"rouge-{length}": partial(_ngrams, length) for length in lengths}
        if self.su is not None:
            units[f"rouge-su{self.su:.0f}"] = partial(pairs_and_words, int(self.su))
        return {name: partial(CountPool, one) for name, one in units.items()}

    def prepare(self, references: Sequence[str]) -> PreparedReferences:
        """Return the references, ready to score many summaries."""
        if isinstance(references, str):
            raise ValueError("references is one text; give a list of texts")
        if not references:
            raise ValueError("no references to compare with")
        for number, text in enumerate(references, start=1):
            if not self.unicode and mostly_beyond_ascii(text):
                warnings.warn(
                    f"most letters of reference {number} are not ASCII and do not "
                    "count; unicode=True compares them",
                    stacklevel=2,
                )
        return PreparedReferences(self, references)

    def score(self, summary: str, references: Sequence[str]) -> dict[str, Score]:
        """Return the scores of a summary, by the names of the measures."""
        return self.prepare(references).score(summary)


class PreparedReferences:
    """Tokenized and counted references: see :meth:`variegate.text.Rouge.prepare`."""

    def __init__(self, rouge: Rouge, references: Sequence[str]) -> None:
        self._rouge = rouge
        texts = [rouge.read(text) for text in references]
        groups = [texts]
        if rouge.references == "best":
            groups = [[text] for text in texts]
        self._pools: dict[str, list[Pool]] = {
            name: [pool(group) for group in groups]
            for name, pool in rouge.measures.items()
        }

    def score(self, summary: str) -> dict[str, Score]:
        """Return the scores of a summary, by the names of the measures."""
        words, scores = self._rouge.read(summary), {}
        for name, pools in self._pools.items():
            best = max((pool(words) for pool in pools), key=attrgetter("merit"))
            scores[name] = Score.from_ratios(best, self._rouge.digits)
        return scores
