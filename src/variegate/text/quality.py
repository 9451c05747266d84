"""Quality features of sentences.

The features of Kulesza and Taskar (2011), which the paper uses: length, position in the
document, mean similarity to the cluster, LexRank, personal pronouns, each also in bins
where its effect is not a straight line.  The set ``"full"`` adds similarity to words
and pairs of words that many documents use, to their headlines and first sentences.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from variegate._typing import FloatArray, IntArray
from variegate.text.documents import Sentence
from variegate.text.languages import Language
from variegate.text.words import WordCounts, bigrams, count_words

__all__ = [
    "FEATURE_SETS",
    "Material",
    "feature_names",
    "lexrank",
    "quality_features",
]

#: Words from, and up to but not including; lengths between are the reference.
_LENGTH_BINS = ((0, 8), (8, 15), (30, 45), (45, None))

_N_POSITIONS = 5  # sentences from the beginning with a bin of their own
_COMMON = 3  # documents from which on a pair of words that they share is common
_QUOTES = '"“”«»„'

# LexRank (Erkan and Radev, 2004): the similarity above which sentences are linked, the
# chance of a jump to any sentence, the most sentences with links, and when to stop.
_THRESHOLD = 0.1
_JUMP = 0.15
_LARGEST_GRAPH = 4000
_TOLERANCE = 1e-10
_MAX_STEPS = 200


@dataclass(frozen=True, eq=False)
class Material:
    """The candidates and their words, for the features.

    ``weights`` are those of words, (W,); ``vectors`` are tf-idf vectors of unit length;
    ``headlines`` holds the words of the headlines of each document.
    """

    sentences: Sequence[Sentence]
    words: Sequence[Sequence[str]]
    counts: WordCounts
    weights: FloatArray
    vectors: sparse.csr_array
    headlines: Sequence[Sequence[str]]
    language: Language | None

    @cached_property
    def pairs(self) -> list[list[tuple[str, str]]]:
        """The pairs of neighbouring words of each sentence."""
        return [bigrams(tokens) for tokens in self.words]

    @property
    def document(self) -> IntArray:
        """The document of each sentence."""
        return np.array([sentence.document for sentence in self.sentences])

    @property
    def position(self) -> IntArray:
        """The position of each sentence in its document."""
        return np.array([sentence.position for sentence in self.sentences])

    @property
    def length(self) -> FloatArray:
        """The number of words of each sentence."""
        return np.array([len(tokens) for tokens in self.words], dtype=np.float64)

    def direction(self, weight: Mapping[str, float]) -> FloatArray:
        """Return a unit vector of weighted words; zero where none is known."""
        vector = np.zeros(len(self.weights))
        for word, value in weight.items():
            column = self.counts.vocabulary.get(word)
            if column is not None:
                vector[column] = value * self.weights[column]
        return _unit(vector)


Features = dict[str, FloatArray]


def quality_features(
    material: Material, features: str = "full"
) -> tuple[FloatArray, list[str]]:
    """Return features of every sentence, z-scored within the cluster, and their names.

    A feature that is the same for all sentences is zero.
    """
    columns: Features = {}
    for compute in FEATURE_SETS[features]:
        columns |= compute(material)
    X = np.column_stack(list(columns.values()))
    deviation = X.std(axis=0)
    # Values that differ by rounding only are the same.
    constant = deviation <= 1e-9 * (1.0 + np.abs(X).max(axis=0, initial=0.0))
    Z = (X - X.mean(axis=0)) / np.where(constant, 1.0, deviation)
    Z[:, constant] = 0.0
    return Z, list(columns)


def feature_names(features: str) -> list[str]:
    """Return the names of a set of features."""
    counts = count_words([["word"]])
    one, words = [Sentence(0, 0, 4, "word")], [["word"]]
    material = Material(one, words, counts, np.zeros(1), counts.matrix, [[]], None)
    return quality_features(material, features)[1]


def _length(material: Material) -> Features:
    length = material.length
    columns = {"length": np.log1p(length)}
    for low, high in _LENGTH_BINS:
        inside = (length >= low) & (length < (high or np.inf))
        columns[f"length {low}-{high or ''}"] = inside.astype(np.float64)
    return columns


def _position(material: Material) -> Features:
    position, document = material.position, material.document
    n_sentences = np.zeros(document.max() + 1)
    np.maximum.at(n_sentences, document, position + 1)
    columns = {
        "earliness": 1.0 / np.sqrt(1.0 + position),
        "depth": position / n_sentences[document],
    }
    for k in range(_N_POSITIONS):
        columns[f"position {k + 1}"] = (position == k).astype(np.float64)
    return columns


def _centrality(material: Material) -> Features:
    vectors = material.vectors
    total = np.asarray(vectors.sum(axis=0)).ravel()
    itself = vectors.multiply(vectors).sum(axis=1)  # 1, or 0 where no word counts
    others = max(1, vectors.shape[0] - 1)
    return {
        "mean similarity": (vectors @ total - itself) / others,
        "lexrank": np.log(lexrank(vectors)),
    }


def _pronouns(material: Material) -> Features:
    pronouns = material.language.pronouns if material.language else frozenset()
    share, first = [], []
    for tokens in material.words:
        share.append(sum(word in pronouns for word in tokens) / max(1, len(tokens)))
        first.append(any(word in pronouns for word in tokens[:2]))
    quotes = [any(q in s.text for q in _QUOTES) for s in material.sentences]
    return {
        "pronouns": np.array(share),
        "begins with a pronoun": np.array(first, dtype=np.float64),
        "quotation": np.array(quotes, dtype=np.float64),
    }


def _shared_words(material: Material) -> Features:
    """Measure how much of a sentence many documents say."""
    documents = material.document
    holders: dict[Any, set[int]] = defaultdict(set)
    for document, tokens, pairs in zip(
        documents.tolist(), material.words, material.pairs, strict=True
    ):
        for unit in (*tokens, *pairs):
            holders[unit].add(document)
    n_documents = max(1, len(set(documents.tolist())))
    spread = {unit: len(holding) for unit, holding in holders.items()}
    matrix = material.counts.matrix
    share = np.asarray(matrix.sum(axis=0)).ravel() / max(1.0, matrix.sum())
    length = np.maximum(material.length, 1.0)
    common_words, common_pairs, weight = [], [], []
    for tokens, pairs in zip(material.words, material.pairs, strict=True):
        # In the order of the text: sums must not depend on the order of a set.
        distinct, couples = dict.fromkeys(tokens), dict.fromkeys(pairs)
        common_words.append(_mean([spread[word] / n_documents for word in distinct]))
        common_pairs.append(_mean([spread[pair] >= _COMMON for pair in couples]))
        weight.append(sum(spread[p] / n_documents for p in couples if spread[p] > 1))
    return {
        "word probability": np.asarray(matrix @ (share * material.weights)) / length,
        "words of many documents": np.array(common_words),
        "pairs of many documents": np.array(common_pairs),
        "weight of shared pairs": np.array(weight) / np.sqrt(length),
    }


def _headlines(material: Material) -> Features:
    every = Counter(w for tokens in material.headlines for w in dict.fromkeys(tokens))
    documents = material.document
    similarity = np.zeros(len(documents))
    for number, tokens in enumerate(material.headlines):
        rows = np.flatnonzero(documents == number)
        direction = material.direction(dict.fromkeys(tokens, 1.0))
        similarity[rows] = material.vectors[rows] @ direction
    return {
        "like the headlines": material.vectors @ material.direction(every),
        "like its headline": similarity,
    }


def _leads(material: Material) -> Features:
    columns = {}
    for name, last in (("first sentences", 0), ("first three sentences", 2)):
        rows = np.flatnonzero(material.position <= last)
        mean = np.asarray(material.vectors[rows].sum(axis=0)).ravel()
        columns[f"like the {name}"] = material.vectors @ _unit(mean)
    return columns


def lexrank(vectors: sparse.csr_array) -> FloatArray:
    """Return the share of time that a random walk spends at each sentence.

    The sentences are rows of unit length or zero.  Links go from one to all whose
    cosine similarity exceeds 0.1.  Above 4000 sentences the walk goes along all
    similarities instead, in proportion to them (continuous LexRank), which takes no
    matrix of all pairs.
    """
    n = vectors.shape[0]
    if n <= _LARGEST_GRAPH:
        graph = sparse.csr_array(vectors @ vectors.T)
        graph.data = (graph.data > _THRESHOLD).astype(np.float64)
        graph.eliminate_zeros()
        left, right = graph, sparse.eye_array(n, format="csr")
    else:
        left, right = vectors, vectors.T.tocsr()
    degree = left @ (right @ np.ones(n))
    linked = degree > 0.0
    inverse = np.where(linked, 1.0 / np.where(linked, degree, 1.0), 0.0)
    rank = np.full(n, 1.0 / max(n, 1))
    for _ in range(_MAX_STEPS):
        # Symmetric links, so the walk against them is the walk along them.
        arrived = left @ (right @ (rank * inverse))
        lost = float(rank[~linked].sum())
        new = _JUMP / n + (1.0 - _JUMP) * (arrived + lost / n)
        change = float(np.abs(new - rank).sum())
        rank = new
        if change < _TOLERANCE:
            break
    return rank


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _unit(vector: FloatArray) -> FloatArray:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0.0 else vector


_PAPER = (_length, _position, _centrality, _pronouns)

#: The sets by name: that of the paper, and that with features of all documents.
FEATURE_SETS: Mapping[str, Sequence[Callable[[Material], Features]]] = {
    "paper": _PAPER,
    "full": (*_PAPER, _shared_words, _headlines, _leads),
}
