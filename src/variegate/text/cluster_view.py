"""The candidate sentences of a cluster and their features.

The quality features ``"paper"`` are those of Kulesza and Taskar (2011): length,
position in the document, mean similarity to the cluster, LexRank, personal pronouns,
each also in bins where its effect is not linear.  The set ``"full"`` adds similarity to
words and pairs of words that many documents use, to their headlines and first
sentences.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
from scipy import sparse

from variegate._typing import FloatArray, IntArray
from variegate.text.documents import Cluster, Sentence
from variegate.text.languages import as_language
from variegate.text.sentences import split_cluster
from variegate.text.words import (
    WordCounts,
    count_words,
    tfidf,
    word_weights,
    words,
)

Embed = Callable[[list[str]], Any]  # from texts to an array with one vector each
Features = dict[str, FloatArray]  # from names to columns (N,) of N candidates

_SHORTEST = 4  # words of a candidate
_LENGTH_BINS = ((0, 8), (8, 15), (30, 45), (45, None))  # words; the rest is reference
_N_POSITIONS = 5  # first sentences with a bin of their own
_COMMON = 3  # documents that share a common pair of words
_QUOTES = '"“”«»„'

# LexRank (Erkan and Radev, 2004).
_THRESHOLD = 0.1  # similarity above which sentences are linked
_JUMP = 0.15  # probability of a jump to any sentence
_LARGEST_GRAPH = 4000  # sentences with links
_TOLERANCE = 1e-10
_MAX_STEPS = 200


@dataclass(frozen=True, eq=False)
class ClusterView:
    """The sentences of a cluster, its candidates, and their features.

    Attributes
    ----------
    cluster : Cluster
    sentences : list of Sentence, all in reading order
    candidates : list of int
        Numbers of the N sentences that can be chosen: of the body, of four words at
        least, and not a repetition of an earlier one, word for word.
    words : list of list of str
        The words of each candidate.
    counts : WordCounts of shape (N, W), how often each of W words is in candidates
    weights : array of shape (W,), inverse document frequencies of the words
    vectors : sparse array of shape (N, W)
        The tf-idf vectors of the candidates, of unit length.
    headlines : the words of the headlines of each document
    """

    cluster: Cluster
    sentences: list[Sentence]
    candidates: list[int]
    words: list[list[str]]
    counts: WordCounts
    weights: FloatArray
    vectors: sparse.csr_array
    headlines: list[list[str]]
    _quality: dict[str, FloatArray] = field(default_factory=dict, repr=False)

    @classmethod
    def from_cluster(cls, cluster: Cluster) -> ClusterView:
        """Return the view of a cluster: raise ValueError if it has no sentence."""
        sentences = split_cluster(cluster)
        if not sentences:
            name = f"{cluster.id}: " if cluster.id else ""
            raise ValueError(f"{name}no sentence was found in the documents")
        tokens = [words(sentence.text) for sentence in sentences]
        chosen = _find_candidates(sentences, tokens)
        kept = [tokens[i] for i in chosen]
        counts = count_words(kept)
        language = as_language(cluster.language)
        ignored = language.function_words if language else frozenset()
        weights = word_weights(counts, ignored)
        vectors = tfidf(counts, weights)
        headlines: list[list[str]] = [[] for _ in cluster.documents]
        for sentence, of_sentence in zip(sentences, tokens, strict=True):
            if sentence.kind == "headline":
                headlines[sentence.document] += of_sentence
        of_words = (kept, counts, weights, vectors, headlines)
        return cls(cluster, sentences, chosen, *of_words)

    def __len__(self) -> int:
        return len(self.candidates)

    def units(self) -> list[sparse.csr_array]:
        """Return the counts of words (N, W), and of pairs of words (N, P)."""
        return [self.counts.matrix, count_words(self.pairs).matrix]

    @property
    def candidate_sentences(self) -> list[Sentence]:
        """The sentences that can be chosen."""
        return [self.sentences[i] for i in self.candidates]

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the candidates, each on one line."""
        return [sentence.plain for sentence in self.candidate_sentences]

    @cached_property
    def pairs(self) -> list[list[tuple[str, str]]]:
        """The pairs of neighbouring words of each candidate."""
        return [list(pairwise(tokens)) for tokens in self.words]

    @property
    def document(self) -> IntArray:
        """The number of the document of each candidate, (N,)."""
        return np.array([one.document for one in self.candidate_sentences])

    @property
    def position(self) -> IntArray:
        """The position of each candidate among its document's body sentences, (N,)."""
        return np.array([one.position for one in self.candidate_sentences])

    @property
    def length(self) -> FloatArray:
        """The number of words of each candidate, (N,)."""
        return np.array([len(tokens) for tokens in self.words], dtype=np.float64)

    def quality(self, features: str) -> FloatArray:
        """Return a set of quality features, "paper" or "full", (N, d)."""
        if features not in self._quality:
            self._quality[features] = quality_features(self, features)[0]
        return self._quality[features]

    def similarity(self, embed: Embed | None = None) -> sparse.csr_array | FloatArray:
        """Return vectors (N, D) to compare candidates by, of unit length.

        They are tf-idf, or made by ``embed``.  For each row of zeros a column is added,
        in which that row alone has 1.
        """
        if embed is None:
            return _with_own_directions(self.vectors)
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
            return _with_own_directions(sparse.csr_array(unit))
        return np.asarray(unit)


def _with_own_directions(vectors: sparse.csr_array) -> sparse.csr_array:
    """Return vectors with a new column for each row of zeros, 1 in that row alone."""
    # Items with vectors of zeros could never be chosen.
    zero = np.flatnonzero(vectors.multiply(vectors).sum(axis=1) == 0.0)
    if len(zero) == 0:
        return vectors
    own = sparse.eye_array(vectors.shape[0], format="csc")[:, zero]
    return sparse.csr_array(sparse.hstack([vectors, own]))


def _find_candidates(
    sentences: Sequence[Sentence], tokens: Sequence[Sequence[str]]
) -> list[int]:
    """Return the numbers of distinct body sentences of at least four words.

    Without a body all sentences are taken, and shorter ones if none is as long.
    ``tokens`` are the words of each sentence.
    """
    body = [i for i, sentence in enumerate(sentences) if sentence.kind == "body"]
    body = body or list(range(len(sentences)))
    first_with: dict[tuple[str, ...], int] = {}
    for i in body:
        first_with.setdefault(tuple(tokens[i]), i)
    distinct = list(first_with.values())
    return [i for i in distinct if len(tokens[i]) >= _SHORTEST] or distinct


def quality_features(
    view: ClusterView, features: str = "full"
) -> tuple[FloatArray, list[str]]:
    """Return features (N, d) of the candidates, z-scored, and their names.

    A feature that is constant in the cluster is zero.
    """
    columns = raw_features(view, features)
    X = np.column_stack(list(columns.values()))
    deviation = X.std(axis=0)
    # Values that differ by rounding only are the same.
    constant = deviation <= 1e-9 * (1.0 + np.abs(X).max(axis=0, initial=0.0))
    Z = (X - X.mean(axis=0)) / np.where(constant, 1.0, deviation)
    Z[:, constant] = 0.0
    return Z, list(columns)


def raw_features(view: ClusterView, features: str = "full") -> Features:
    """Return features (N,) of the candidates by their names, not standardized."""
    columns: Features = {}
    for compute in FEATURE_SETS[features]:
        columns |= compute(view)
    return columns


def feature_names(features: str) -> list[str]:
    """Return the names of the features in a set, "paper" or "full", in order."""
    one, counts = Sentence(0, 0, 4, "word"), count_words([["word"]])
    zero, matrix = np.zeros(1), counts.matrix
    view = ClusterView(Cluster([]), [one], [0], [["word"]], counts, zero, matrix, [[]])
    return quality_features(view, features)[1]


def _length_features(view: ClusterView) -> Features:
    """Return the logarithm of the number of words, and its bins as 0 or 1."""
    length = view.length
    bins = {
        f"length {low}-{high or ''}": (low <= length) & (length < (high or np.inf))
        for low, high in _LENGTH_BINS
    }
    return {"length": np.log1p(length), **_as_numbers(bins)}


def _position_features(view: ClusterView) -> Features:
    """Return earliness, depth (0 to 1) and bins (0 or 1) of positions in documents."""
    position, document = view.position, view.document
    n_sentences = np.zeros(document.max() + 1)
    np.maximum.at(n_sentences, document, position + 1)
    bins = {f"position {k + 1}": position == k for k in range(_N_POSITIONS)}
    return {
        "earliness": 1.0 / np.sqrt(1.0 + position),
        "depth": position / n_sentences[document],
        **_as_numbers(bins),
    }


def _centrality_features(view: ClusterView) -> Features:
    """Return the mean cosine to other candidates, and the logarithm of LexRank."""
    vectors = view.vectors
    total = np.asarray(vectors.sum(axis=0)).ravel()
    itself = vectors.multiply(vectors).sum(axis=1)  # 1, or 0 where no word counts
    others = max(1, vectors.shape[0] - 1)
    return {
        "mean similarity": (vectors @ total - itself) / others,
        "lexrank": np.log(lexrank(vectors)),
    }


def _pronoun_features(view: ClusterView) -> Features:
    """Return the share of pronouns, and 0 or 1 for one at the start and for quotes."""
    language = as_language(view.cluster.language)
    pronouns = language.pronouns if language else frozenset()
    found = [[word in pronouns for word in tokens] for tokens in view.words]
    quotes = [any(q in s.text for q in _QUOTES) for s in view.candidate_sentences]
    begins = {
        "begins with a pronoun": [any(one[:2]) for one in found],
        "quotation": quotes,
    }
    return {"pronouns": np.array(list(map(_mean, found))), **_as_numbers(begins)}


def _as_numbers(columns: Mapping[str, Any]) -> Features:
    """Return columns, sequences of numbers or booleans by name, as arrays of floats."""
    return {name: np.array(v, dtype=np.float64) for name, v in columns.items()}


def _shared_word_features(view: ClusterView) -> Features:
    """Return features of words and pairs of words that are frequent in the cluster."""
    units: dict[int, set[Any]] = defaultdict(set)
    sentences = zip(view.document.tolist(), view.words, view.pairs, strict=True)
    for document, tokens, pairs in sentences:
        units[document].update(tokens, pairs)
    n_documents = max(1, len(units))
    spread = Counter(chain.from_iterable(units.values()))
    matrix = view.counts.matrix
    share = np.asarray(matrix.sum(axis=0)).ravel() / max(1.0, matrix.sum())
    length = np.maximum(view.length, 1.0)
    common_words, common_pairs, weight = [], [], []
    for tokens, pairs in zip(view.words, view.pairs, strict=True):
        # In the order of the text: sums must not depend on the order of a set.
        distinct, couples = dict.fromkeys(tokens), dict.fromkeys(pairs)
        common_words.append(_mean([spread[word] / n_documents for word in distinct]))
        common_pairs.append(_mean([spread[pair] >= _COMMON for pair in couples]))
        weight.append(sum(spread[p] / n_documents for p in couples if spread[p] > 1))
    return {
        "word probability": np.asarray(matrix @ (share * view.weights)) / length,
        "words of many documents": np.array(common_words),
        "pairs of many documents": np.array(common_pairs),
        "weight of shared pairs": np.array(weight) / np.sqrt(length),
    }


def _headline_features(view: ClusterView) -> Features:
    """Return cosines to the headlines of all documents, and of the candidate's own."""
    every = Counter(w for tokens in view.headlines for w in dict.fromkeys(tokens))
    documents = view.document
    similarity = np.zeros(len(documents))
    for number, tokens in enumerate(view.headlines):
        rows = np.flatnonzero(documents == number)
        direction = _unit_tfidf(view, dict.fromkeys(tokens, 1.0))
        similarity[rows] = view.vectors[rows] @ direction
    return {
        "like the headlines": view.vectors @ _unit_tfidf(view, every),
        "like its headline": similarity,
    }


def _lead_features(view: ClusterView) -> Features:
    """Return cosines to the sum of the first one or three sentences of documents."""
    columns = {}
    for name, last in (("first sentences", 0), ("first three sentences", 2)):
        rows = np.flatnonzero(view.position <= last)
        mean = np.asarray(view.vectors[rows].sum(axis=0)).ravel()
        columns[f"like the {name}"] = view.vectors @ _scale_to_unit(mean)
    return columns


def lexrank(vectors: sparse.csr_array) -> FloatArray:
    """Return the share of time (N,) that a random walk spends at each sentence.

    Sentences are rows of unit length or zero, linked where their cosine similarity
    exceeds 0.1.  Above 4000 sentences the walk follows all similarities instead, in
    proportion to them (continuous LexRank), without a matrix of all pairs.
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


def _unit_tfidf(view: ClusterView, weight: Mapping[str, float]) -> FloatArray:
    """Return the tf-idf vector (W,), of unit length, of a text with counts ``weight``.

    Words that no candidate has do not count; without any other, the vector is zero.
    """
    vector = np.zeros(len(view.weights))
    for word, value in weight.items():
        column = view.counts.vocabulary.get(word)
        if column is not None:
            vector[column] = value * view.weights[column]
    return _scale_to_unit(vector)


def _mean(values: Sequence[float]) -> float:
    """Return the mean of numbers, 0 if there are none."""
    return sum(values) / max(1, len(values))


def _scale_to_unit(vector: FloatArray) -> FloatArray:
    """Return a vector scaled to length 1; zeros stay."""
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0.0 else vector


_PAPER = (_length_features, _position_features, _centrality_features, _pronoun_features)

FEATURE_SETS: Mapping[str, Sequence[Callable[[ClusterView], Features]]] = {
    "paper": _PAPER,
    "full": (*_PAPER, _shared_word_features, _headline_features, _lead_features),
}
