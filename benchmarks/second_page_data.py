"""Groups for ``second_page.py``: reviews of products, and news in seven languages."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from variegate.text import Budget, ClusterView, read_clusters
from variegate.text.languages import as_language
from variegate.text.training_set import oracle_summary
from variegate.text.word_vectors import load_word_vectors
from variegate.text.words import split_words

#: Of products, and of topics.
N_FOLDS, N_TOPIC_FOLDS = 5, 4
#: Words of a summary of the news, as the people who wrote them were told.
BUDGET = Budget.parse("250w")


@dataclass(frozen=True)
class Group:
    """Items to show page by page, as features, and the wanted ones.

    ``unit`` names the product or topic; groups of one unit are of one ``fold``.
    ``vectors`` have length one.  ``features`` are those that relevance is learned from,
    ``learned_features`` those that a learned model has besides relevance.
    """

    unit: str
    fold: int
    vectors: Any
    words: list[frozenset[str]]
    features: Any
    learned_features: Any
    wanted: list[Any]
    measure: Callable[[Any], dict[str, float]] = lambda pages: {}

    @property
    def share_wanted(self):
        """The share of annotators who want each item, (N,)."""
        counts = np.zeros(len(self.vectors))
        for wanted in self.wanted:
            counts[wanted] += 1.0
        return counts / len(self.wanted)


def unit_rows(V):
    """Return rows of length one; a row of zeros stays."""
    lengths = np.linalg.norm(V, axis=1, keepdims=True)
    return V / np.where(lengths > 0.0, lengths, 1.0)


def as_few_columns(V):
    """Return rows with the same inner products, and at most as many columns."""
    if V.shape[1] <= len(V):
        return V
    U, s, _ = np.linalg.svd(V, full_matrices=False)
    return unit_rows(U * s)


def standardize(X):
    """Return columns of mean 0 and deviation 1; a constant one is 0."""
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 1e-9, deviation, 1.0)


def common_features(V, words, document):
    """Return four features (N, 4): lengths, positions and nearness to other texts."""
    cosines = V @ V.T
    cosines[document[:, None] == document] = 0.0
    first = np.searchsorted(document, document)
    position = np.log1p(np.arange(len(V)) - first)
    columns = [np.log1p([len(one) for one in words]), position]
    columns += [cosines.mean(axis=1), cosines.max(axis=1)]
    return standardize(np.column_stack(columns))


def read_reviews(folder: Path) -> list[Group]:
    """Return the products of OpoSum, with vectors of the package wordllama."""
    lines = (folder / "evidence" / "oposum.jsonl").read_text("utf-8").splitlines()
    ignored = as_language("english").function_words  # type: ignore[union-attr]
    groups = []
    for number, record in enumerate(map(json.loads, lines)):
        texts = record["segments"]
        words = [frozenset(split_words(text.lower())) - ignored for text in texts]
        V = unit_rows(load_word_vectors().embed(texts))
        # Segments of a review are neighbours.
        names = record["review"]
        starts = [a != b for a, b in zip(names, [None, *names], strict=False)]
        common = common_features(V, words, np.cumsum(starts))
        groups.append(
            Group(
                record["id"],
                number % N_FOLDS,
                V,
                words,
                np.hstack([common, V]),
                common,
                [np.array(wanted) for wanted in record["wanted"]],
            )
        )
    return groups


def pairs_covered(view):
    """Return a measure: the share of the summaries' pairs of words that pages have."""
    references = [
        frozenset(pairwise(tokens))
        for tokens in (split_words(text.lower()) for text in view.cluster.references)
    ]
    pairs = [frozenset(one) for one in view.pairs]

    def measure(pages):
        told = frozenset().union(*(pairs[item] for item in pages.ravel()))
        return {"pairs": np.mean([len(one & told) / len(one) for one in references])}

    return measure


def read_news(folder: Path) -> list[Group]:
    """Return the topics of MultiLing in each language, with tf-idf vectors."""
    clusters = read_clusters(folder / "text" / "multiling2011.jsonl")
    topics = sorted({cluster.group or cluster.id for cluster in clusters})
    groups = []
    for cluster in clusters:
        view = ClusterView.from_cluster(cluster)
        language = as_language(cluster.language)
        ignored = language.function_words if language else frozenset()
        words = [frozenset(tokens) - ignored for tokens in view.words]
        vectors: Any = view.similarity()
        V = as_few_columns(vectors.toarray() if issparse(vectors) else vectors)
        topic = cluster.group or cluster.id
        groups.append(
            Group(
                topic,
                topics.index(topic) % N_TOPIC_FOLDS,
                V,
                words,
                view.quality("full"),
                common_features(V, words, view.document),
                [oracle_summary(view, BUDGET)],
                pairs_covered(view),
            )
        )
    return groups


COLLECTIONS = {"reviews": read_reviews, "news": read_news}
