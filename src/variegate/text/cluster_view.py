"""A cluster as the learner sees it: candidate sentences and their features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from variegate._typing import FloatArray
from variegate.text.documents import Cluster, Sentence
from variegate.text.languages import as_language
from variegate.text.quality import Material, quality_features
from variegate.text.sentences import split_cluster
from variegate.text.words import (
    CorpusFrequencies,
    count_words,
    tfidf,
    word_weights,
    words,
)

__all__ = ["ClusterView", "Embed"]

#: From texts to one vector each.
Embed = Callable[[list[str]], Any]

_SHORTEST = 4  # words; a sentence of fewer says nothing on its own


@dataclass(frozen=True, eq=False)
class ClusterView:
    """The sentences of a cluster, those that may be chosen, and their features.

    Attributes
    ----------
    cluster : Cluster
    sentences : list of Sentence
        All of them, in reading order.
    candidates : list of int
        Which of them may be chosen: of the body, of four words at least, and not a
        repetition of an earlier one, word for word.
    material : Material
        The candidates, for features.
    """

    cluster: Cluster
    sentences: list[Sentence]
    candidates: list[int]
    material: Material
    _quality: dict[str, FloatArray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, cluster: Cluster, corpus: CorpusFrequencies | None = None
    ) -> ClusterView:
        """Split a cluster into sentences and count their words."""
        sentences = split_cluster(cluster)
        if not sentences:
            name = f"{cluster.id}: " if cluster.id else ""
            raise ValueError(f"{name}no sentence was found in the documents")
        tokens = [words(sentence.text) for sentence in sentences]
        candidates = _candidates(sentences, tokens)
        kept = [tokens[i] for i in candidates]
        counts = count_words(kept)
        language = as_language(cluster.language)
        ignored = language.function_words if language else frozenset()
        weights = word_weights(counts, corpus, ignored)
        headlines: list[list[str]] = [[] for _ in cluster.documents]
        for sentence, of_sentence in zip(sentences, tokens, strict=True):
            if sentence.kind == "headline":
                headlines[sentence.document] += of_sentence
        chosen, vectors = [sentences[i] for i in candidates], tfidf(counts, weights)
        material = Material(chosen, kept, counts, weights, vectors, headlines, language)
        return cls(cluster, sentences, candidates, material)

    def __len__(self) -> int:
        return len(self.candidates)

    def units(self, longest: int) -> list[sparse.csr_array]:
        """Return counts of words in the candidates, and of pairs of words if 2."""
        pairs = [count_words(self.material.pairs)] if longest > 1 else []
        return [one.matrix for one in (self.material.counts, *pairs)]

    @cached_property
    def texts(self) -> list[str]:
        """The candidates, each on one line."""
        return [sentence.plain for sentence in self.material.sentences]

    def quality(self, features: str) -> FloatArray:
        """Return the quality features of the candidates, (N, d)."""
        if features not in self._quality:
            self._quality[features] = quality_features(self.material, features)[0]
        return self._quality[features]

    def similarity(self, embed: Embed | None = None) -> sparse.csr_array | FloatArray:
        """Return the similarity features of the candidates, rows of unit length."""
        if embed is None:
            return with_own_directions(self.material.vectors)
        vectors = np.asarray(embed(self.texts), dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(self):
            raise ValueError(
                f"embed must return one vector for each of {len(self)} sentences, got "
                f"shape {vectors.shape}"
            )
        if not np.isfinite(vectors).all():
            raise ValueError("embed returned NaN or infinite values")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = vectors / np.where(lengths > 0.0, lengths, 1.0)
        if (lengths == 0.0).any():
            return with_own_directions(sparse.csr_array(unit))
        return np.asarray(unit)


def with_own_directions(vectors: sparse.csr_array) -> sparse.csr_array:
    """Give every row of zeros a direction of its own, similar to no other.

    A sentence of words that weigh nothing would else have no similarity to itself, and
    could never be chosen.
    """
    zero = np.flatnonzero(vectors.multiply(vectors).sum(axis=1) == 0.0)
    if len(zero) == 0:
        return vectors
    own = sparse.csr_array(
        (np.ones(len(zero)), (zero, np.arange(len(zero)))),
        shape=(vectors.shape[0], len(zero)),
    )
    return sparse.csr_array(sparse.hstack([vectors, own]))


def _candidates(
    sentences: Sequence[Sentence], tokens: Sequence[Sequence[str]]
) -> list[int]:
    body = [i for i, sentence in enumerate(sentences) if sentence.kind == "body"]
    body = body or list(range(len(sentences)))
    first_with: dict[tuple[str, ...], int] = {}
    for i in body:
        first_with.setdefault(tuple(tokens[i]), i)
    distinct = list(first_with.values())
    return [i for i in distinct if len(tokens[i]) >= _SHORTEST] or distinct
