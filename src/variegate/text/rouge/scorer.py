"""ROUGE as ROUGE-1.5.5 computes it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from variegate.text.rouge.counts import ngrams, skip_bigrams
from variegate.text.rouge.score import Measure, Pool, Score
from variegate.text.rouge.tokens import (
    Reader,
    Text,
    folded,
    mostly_beyond_ascii,
)

__all__ = ["PreparedReferences", "Rouge"]


@dataclass(frozen=True, kw_only=True)
class Rouge:
    """Overlap of a summary with reference summaries, like ROUGE-1.5.5's.

    Parameters
    ----------
    n : int or several
        Lengths of n-grams: scores ``rouge-1``, ``rouge-2``, ...
    su : int or None
        Most words between the two of a pair of words, which count beside single words:
        ``rouge-su4``.
    stem : bool
        Whether to compare the stems of English words.
    exceptions : mapping or None
        Base forms of irregular words, looked up before stemming; see
        :func:`~variegate.text.rouge.read_exceptions`.  ROUGE-1.5.5 has WordNet's.
    max_bytes, max_words : int or None
        Limit of summaries and references alike.
    references : "average" or "best"
        Whether hits and counts of all references are pooled, or the reference with
        the best recall alone decides, for each measure.
    stop_words : iterable of words or None
        Words that do not count.
    unicode : bool
        Whether letters outside ASCII are letters.  ROUGE-1.5.5 takes them for spaces.
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
    stem: bool = False
    exceptions: Mapping[str, str] | None = field(default=None, repr=False)
    max_bytes: int | None = None
    max_words: int | None = None
    references: Literal["average", "best"] = "average"
    stop_words: Iterable[str] | None = field(default=None, repr=False)
    unicode: bool = False
    digits: int | None = 5

    def __post_init__(self) -> None:
        n = (self.n,) if isinstance(self.n, int) else tuple(self.n)
        object.__setattr__(self, "n", tuple(dict.fromkeys(n)))
        if isinstance(self.stop_words, str):
            raise ValueError("stop_words is one text; give a list of words")
        fold = folded if self.unicode else str.lower
        stop_words = frozenset(map(fold, self.stop_words or ()))
        object.__setattr__(self, "stop_words", stop_words)
        self._validate(n)

    def _validate(self, n: Sequence[int]) -> None:
        for length in n:
            if length < 1:
                raise ValueError(f"an n-gram has at least one word, got n={length}")
        self._check_measures()
        for name, limit in (("bytes", self.max_bytes), ("words", self.max_words)):
            if limit is not None and limit < 1:
                raise ValueError(f"max_{name} must be at least 1, got {limit}")
        if self.max_bytes is not None and self.max_words is not None:
            raise ValueError("a limit of bytes and one of words; give only one")
        if self.references not in ("average", "best"):
            raise ValueError(
                f"references must be 'average' or 'best', got {self.references!r}"
            )
        if not self.measures:
            raise ValueError("nothing to measure; give n or su")

    def _check_measures(self) -> None:
        su = self.su
        if su is not None and not (su >= 0 and float(su).is_integer()):
            raise ValueError(f"su must be a whole number from 0, got {su}")

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures asked for, in the order of the scores."""
        lengths = self.n if isinstance(self.n, tuple) else ()
        measures = [ngrams(length) for length in lengths]
        if self.su is not None:
            measures.append(skip_bigrams(int(self.su)))
        return tuple(measures)

    @property
    def reader(self) -> Reader:
        """How texts become words."""
        return Reader(
            max_bytes=self.max_bytes,
            max_words=self.max_words,
            stem=self.stem,
            exceptions=self.exceptions,
            stop_words=frozenset(self.stop_words or ()),
            unicode=self.unicode,
        )

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
    """References that are read and counted.

    Made by :meth:`variegate.text.Rouge.prepare`.
    """

    def __init__(self, rouge: Rouge, references: Sequence[str]) -> None:
        self._reader = rouge.reader
        self._digits = rouge.digits
        texts = [self._reader.read(text) for text in references]
        groups = (
            [texts] if rouge.references == "average" else [[text] for text in texts]
        )
        self._pools: dict[str, list[Pool]] = {
            measure.name: [measure.pool(group) for group in groups]
            for measure in rouge.measures
        }

    def read(self, text: str) -> Text:
        """Return the words of a text, as :meth:`score` reads it."""
        return self._reader.read(text)

    def score(self, summary: str) -> dict[str, Score]:
        """Return the scores of a summary, by the names of the measures."""
        return self.score_text(self.read(summary))

    def score_text(self, summary: Text) -> dict[str, Score]:
        """Return the scores of a summary that is read already.

        To try many summaries made of the same sentences, read each sentence once and
        put them together by :meth:`Text.join`; limits then apply to each sentence.
        """
        scores = {}
        for name, pools in self._pools.items():
            ratios = [pool.ratios(summary) for pool in pools]
            best = max(ratios, key=attrgetter("merit"))
            scores[name] = Score.of(best, self._digits)
        return scores
