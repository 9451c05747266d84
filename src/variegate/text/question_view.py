"""A question, the sentences to choose from, and their similarity.

Two sentences repeat each other here if they cover the same terms of the question, not
if they are alike as texts.  So besides the words of the sentences, the similarity has
blocks of the question's terms: the terms that a sentence has and, with word vectors,
the cosines of its words with each term.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.linalg.cosine import unit_rows
from variegate.text.languages import detect_language
from variegate.text.terms import (
    TermMatrix,
    Tokens,
    Vocabulary,
    as_term,
    rarity_of,
    vocabulary_of,
)
from variegate.text.word_vectors import WORDLLAMA, WordVectors
from variegate.text.words import split_words

#: Terms of a question in the similarity: the heaviest ones.
MOST_TERMS = 32
#: Distance between the places of sentences of two documents.
APART = 1000.0

_LEAST_WEIGHT = 0.05  # of a term that all sentences have
_SATURATION, _LENGTH = 1.2, 0.75  # BM25: of counts, and share of the length
_FIRST, _ENOUGH = 8, 1000  # sentences and characters that the language is detected from


@dataclass(frozen=True, eq=False)
class QuestionView:
    """A question and N sentences to choose from, with their terms.

    Attributes
    ----------
    question : str
    sentences : sequence of str
    titles : sequence of str
        Title of the document of each sentence, or the heading above it; "" if none.
    documents : array of shape (N,)
        Number of the document of each sentence.
    embeddings : array of shape (1 + N, D), optional
        Of the question and of the sentences.
    word_vectors : WordVectors, optional
    source : QuestionView, optional
        View of all sentences, of which these are some: terms are weighed by it.
    """

    question: str
    sentences: Sequence[str]
    titles: Sequence[str]
    documents: IntArray
    embeddings: FloatArray | None = None
    word_vectors: WordVectors | None = None
    source: QuestionView | None = None

    def __len__(self) -> int:
        return len(self.sentences)

    @property
    def kind_of_vectors(self) -> str:
        """Where vectors are from, "none", "given", or "wordllama" with word vectors."""
        if self.embeddings is None:
            return "none"
        return "given" if self.word_vectors is None else WORDLLAMA

    @property
    def vector_size(self) -> int:
        """The number D of columns of the embeddings, 0 without any."""
        return 0 if self.embeddings is None else self.embeddings.shape[1]

    def check_vectors(self, kind: str, size: int) -> None:
        """Raise ValueError unless vectors are of the kind and size of training."""
        if kind == self.kind_of_vectors and size == self.vector_size:
            return
        remedy = {
            "none": "without vectors: leave embed and embeddings out",
            WORDLLAMA: f'with vectors of wordllama: set embed="{WORDLLAMA}"',
            "given": f"with vectors of {size} numbers that were given: give "
            "embeddings, or set embed, as in training",
        }[kind]
        raise ValueError(f"this model was learned {remedy}")

    def take(self, rows: IntArray) -> QuestionView:
        """Return the view of some rows, with term weights and places as among all."""
        view = self._select_rows(rows, self)
        view.__dict__["places"] = self.places[rows]
        return view

    def leave_out(self, rows: IntArray) -> QuestionView:
        """Return the view without some sentences, as if they had never been there."""
        return self._select_rows(np.setdiff1d(np.arange(len(self)), rows), self.source)

    def _select_rows(self, rows: IntArray, source: QuestionView | None) -> QuestionView:
        """Return the view of the sentences at ``rows``, with their words and terms."""
        embeddings = self.embeddings
        view = replace(
            self,
            sentences=[self.sentences[row] for row in rows],
            titles=[self.titles[row] for row in rows],
            documents=self.documents[rows],
            embeddings=None if embeddings is None else embeddings[np.r_[0, rows + 1]],
            source=source,
        )
        view.__dict__["words"] = [self.words[row] for row in rows]
        view.__dict__["vocabulary"] = self.vocabulary
        return view

    def join(self, other: QuestionView) -> QuestionView:
        """Return the view with the sentences of another one after its own.

        They are of other documents.  Terms are weighed by the own sentences alone.
        """
        first = int(self.documents.max(initial=-1)) + 1
        embeddings = self.embeddings
        if embeddings is not None and other.embeddings is not None:
            embeddings = np.concatenate([embeddings, other.embeddings[1:]])
        joined = replace(
            self,
            sentences=[*self.sentences, *other.sentences],
            titles=[*self.titles, *other.titles],
            documents=np.concatenate([self.documents, other.documents + first]),
            embeddings=embeddings,
            source=self.source or self,
        )
        after = other.places + self.places.max(initial=0.0) + APART
        joined.__dict__["places"] = np.concatenate([self.places, after])
        joined.__dict__["words"] = self.words + other.words
        joined.__dict__["vocabulary"] = self.vocabulary
        return joined

    # Words and terms ----------------------------------------------------------------

    @cached_property
    def words(self) -> list[list[str]]:
        """The words of each sentence, as they are written."""
        return list(map(split_words, self.sentences))

    @cached_property
    def question_words(self) -> list[str]:
        """The words of the question, as they are written."""
        return split_words(self.question)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of the language of the texts, which is detected."""
        first = " ".join([self.question, *self.sentences[:_FIRST]])[:_ENOUGH]
        return vocabulary_of(detect_language(first))

    @cached_property
    def question_tokens(self) -> Tokens:
        """The words of the question, by number."""
        return Tokens.of(self.vocabulary, [self.question_words])

    @cached_property
    def tokens(self) -> Tokens:
        """The words of the sentences, by number."""
        return Tokens.of(self.vocabulary, self.words)

    @cached_property
    def content(self) -> Tokens:
        """The words of the sentences that are not function words or pronouns."""
        return self.tokens.content()

    @cached_property
    def question_terms(self) -> list[int]:
        """The question's terms, in order; of function words if it has only those."""
        found: list[int] = self.question_tokens.facts("term").tolist()
        every = map(as_term, self.question_words)
        return list(filter(None, found)) or list(
            map(self.vocabulary.number_of_term, every)
        )

    @cached_property
    def terms(self) -> list[int]:
        """The numbers of the T distinct terms of the question."""
        return list(dict.fromkeys(self.question_terms))

    @cached_property
    def matrix(self) -> TermMatrix:
        """The tf-idf vectors of the sentences."""
        return TermMatrix.of_tokens(self.content)

    @cached_property
    def counts(self) -> FloatArray:
        """How often each sentence has each term of the question, (N, T)."""
        return self.matrix.counts_of(self.terms)

    @cached_property
    def has(self) -> FloatArray:
        """1 where a sentence has a term of the question, else 0, (N, T)."""
        return np.asarray((self.counts > 0.0) * 1.0)

    def describe_shared_words(self, row: int) -> str:
        """Return the words of the question that a sentence or its heading has, as text.

        Empty if they share none.
        """
        found = self.question_tokens.facts("term").tolist()
        words = dict(zip(reversed(found), reversed(self.question_words), strict=True))
        title = Tokens.of(self.vocabulary, [split_words(self.titles[row])])
        heading = set(title.facts("term").tolist())
        shared = {
            "has": [self.terms[k] for k in np.flatnonzero(self.has[row])],
            "its heading has": [term for term in self.terms if term in heading],
        }
        texts = self.vocabulary.terms
        parts = [
            f"{verb} "
            + ", ".join(f'"{words.get(term, texts[term])}"' for term in terms)
            for verb, terms in shared.items()
            if terms
        ]
        return "; ".join(parts)

    @cached_property
    def weights(self) -> FloatArray:
        """The inverse document frequency of each term (T,), but at least 0.05."""
        if self.source is not None:
            return self.source.weights
        rarity = rarity_of(self.has.sum(axis=0), len(self))
        return np.asarray(np.maximum(rarity, _LEAST_WEIGHT))

    @cached_property
    def reachable(self) -> float:
        """The sum of the weights of the terms that any sentence has, above 0."""
        if self.source is not None:
            return self.source.reachable
        return max(1e-9, float(self.weights @ self.has.max(axis=0, initial=0.0)))

    @cached_property
    def coverage(self) -> FloatArray:
        """The share of the reachable weight that each sentence covers, (N,)."""
        return np.asarray(self.has @ self.weights / self.reachable)

    @cached_property
    def bm25(self) -> FloatArray:
        """The score of each sentence by BM25, (N,)."""
        lengths = np.maximum(1, self.content.count())
        share = 1.0 - _LENGTH + _LENGTH * lengths / lengths.mean()
        saturated = self.counts + _SATURATION * share[:, None]
        gains = self.counts * (1.0 + _SATURATION) / saturated
        return np.asarray(gains @ self.weights)

    def best_rows(self, most: int, wanted: IntArray | None = None) -> IntArray:
        """Return ``most`` sorted rows: all ``wanted`` ones, then the best by BM25."""
        if len(self) <= most:
            return np.arange(len(self))
        scores = self.bm25.copy()
        if wanted is not None:
            scores[wanted], most = np.inf, max(most, len(wanted))
        return np.sort(np.argsort(-scores, kind="stable")[:most])

    @cached_property
    def places(self) -> FloatArray:
        """Positions (N,) of sentences in documents, plus 1000 for each one before."""
        begins = np.r_[True, np.diff(self.documents) != 0]
        document = np.cumsum(begins) - 1
        first = np.flatnonzero(begins)[document]
        return np.asarray(np.arange(len(self)) - first + APART * document, float)

    @cached_property
    def nearness(self) -> FloatArray:
        """The largest cosine, or 0, of a word of each sentence and each term (N, T)."""
        if self.word_vectors is None:
            raise ValueError("nearness needs word vectors")
        near = np.zeros((len(self), len(self.terms)))
        if not len(self.content.words) or not self.terms:
            return near
        texts = list(chain.from_iterable(self.words))
        # One of the words with each lower-case form, and the forms of all words.
        _, first, columns = np.unique(
            self.content.facts("lower"), return_index=True, return_inverse=True
        )
        place = np.flatnonzero(self.tokens.facts("term") > 0)[first]
        distinct = [texts[k].lower() for k in place]
        word_of = {
            as_term(word): word.lower() for word in reversed(self.question_words)
        }
        asked = [word_of[self.vocabulary.terms[term]] for term in self.terms]
        unit = [unit_rows(self.word_vectors(words)) for words in (asked, distinct)]
        cosines = unit[0] @ unit[1].T
        lengths = self.content.count()
        starts = np.r_[0, np.cumsum(lengths)[:-1]][lengths > 0]
        best = np.maximum.reduceat(cosines[:, columns], starts, axis=1)
        near[lengths > 0] = np.maximum(best.T, 0.0)
        return near

    # Similarity -----------------------------------------------------------------------

    def blocks(self, names: Collection[str] | None = None) -> dict[str, FloatArray]:
        """Return the blocks of similarity features, by name, each (N, columns).

        All of them, or those of these names.

        "words" and "embedding" compare the sentences as texts, "terms" and "near terms"
        by the terms of the question, "place" by their distance.  Rows have length 1 or
        are zero, but for "place".
        """
        order = np.argsort(-self.weights, kind="stable")[:MOST_TERMS]
        root = np.sqrt(self.weights[order])
        makers: dict[str, Callable[[], FloatArray]] = {
            "words": self.matrix.hashed_vectors,
            "terms": lambda: _unit_padded(self.has[:, order] * root),
            "place": lambda: self.places[:, None],
        }
        if self.word_vectors is not None:
            makers["near terms"] = lambda: _unit_padded(
                self.nearness[:, order] ** 2 * root
            )
        if (embeddings := self.embeddings) is not None:
            makers["embedding"] = lambda: unit_rows(
                embeddings[1:] - embeddings[1:].mean(axis=0)
            )
        return {
            name: make()
            for name, make in makers.items()
            if names is None or name in names
        }


def _unit_padded(matrix: FloatArray) -> FloatArray:
    """Return rows of unit length or zero, with zeros up to ``MOST_TERMS`` columns."""
    padded = np.zeros((len(matrix), MOST_TERMS))
    padded[:, : matrix.shape[1]] = unit_rows(matrix)
    return padded
