"""Weights of words, and sentences as vectors of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from variegate._typing import FloatArray
from variegate.files.model_format import COUNT
from variegate.files.models import ModelFileError
from variegate.files.schema import MapOf, Record
from variegate.text.words import WordCounts, unit_rows, words

__all__ = ["CORPUS", "CorpusFrequencies", "tfidf", "word_weights"]

#: What a model file holds of a corpus.
CORPUS = Record({"n_texts": COUNT, "counts": MapOf(COUNT)})


@dataclass(frozen=True)
class CorpusFrequencies:
    """How many of a corpus's texts hold each word."""

    n_texts: int
    counts: Mapping[str, int]

    @classmethod
    def of(cls, texts: Iterable[str]) -> CorpusFrequencies:
        """Count the words of texts."""
        of_texts = [set(words(text)) for text in texts]
        if not of_texts:
            raise ValueError("the corpus for word weights holds no texts")
        return cls(len(of_texts), dict(Counter(chain.from_iterable(of_texts))))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a file."""
        return {"n_texts": self.n_texts, "counts": dict(self.counts)}

    @classmethod
    def from_dict(cls, section: Mapping[str, Any]) -> CorpusFrequencies:
        """Read what :meth:`to_dict` wrote: a section of the shape ``CORPUS``."""
        n_texts, counts = section["n_texts"], dict(section["counts"])
        if n_texts < 1 or not all(0 <= count <= n_texts for count in counts.values()):
            raise ModelFileError('"corpus" holds counts that cannot be')
        return cls(n_texts, counts)


def word_weights(
    counts: WordCounts,
    corpus: CorpusFrequencies | None = None,
    ignored: Collection[str] = (),
) -> FloatArray:
    """Return the inverse document frequency of each word.

    ``log((n + 1) / (df + 1)) + 1`` of a corpus, so that words it lacks have a weight
    too; ``log(n / df)`` of the sentences themselves where there is none.  Words that
    are ignored, because they say nothing, weigh zero.
    """
    if corpus is None:
        n_sentences = max(1, counts.matrix.shape[0])
        frequency = np.maximum(counts.document_frequency(), 1.0)
        weights = np.log(n_sentences / frequency)
    else:
        weights = np.ones(counts.matrix.shape[1])
        for word, column in counts.vocabulary.items():
            known = corpus.counts.get(word, 0)
            weights[column] += np.log((corpus.n_texts + 1) / (known + 1))
    for word in ignored:
        if word in counts.vocabulary:
            weights[counts.vocabulary[word]] = 0.0
    return np.asarray(weights)


def tfidf(counts: WordCounts, weights: FloatArray) -> sparse.csr_array:
    """Return sentences as vectors of weighted word counts, of unit length."""
    return unit_rows(sparse.csr_array(counts.matrix @ sparse.diags_array(weights)))
