"""The quality features of the sentences that may answer a question."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.linalg.cosine import unit_rows
from variegate.text.languages import LANGUAGES
from variegate.text.question_view import APART, QuestionView
from variegate.text.words import split_words

Features = dict[str, FloatArray]

_MOST_TITLES = 200  # distinct titles that are looked for in sentences

_ASKS_NUMBER = re.compile(r"\b(when|how (many|much|old|long|often)|what year)\b", re.I)
_ASKS_NAME = re.compile(r"\b(who|whom|whose|where|which)\b", re.I)
_ASKS_REASON = re.compile(r"\b(why|how)\b(?! (many|much|old|long|often))", re.I)
_BRACKETS = re.compile(r"\(.*?\)")
_PRONOUNS = LANGUAGES["english"].pronouns | {
    "this", "these", "that", "those", "his", "its",
}  # fmt: skip


def quality_features(view: QuestionView) -> Features:
    """Return the quality features of the sentences by name, each (N,).

    They say how much of the question a sentence covers, in absolute numbers, relative
    to the other sentences and by rank; how it is worded; and how well its neighbours
    and its document do.  Word vectors and embeddings, where there are any, add more.
    """
    features = _coverage_features(view) | _wording_features(view)
    features |= _position_features(view) | _title_features(view)
    if view.word_vectors is not None:
        features |= _vector_features(view)
    if view.embeddings is not None:
        features |= _embedding_features(view)
    return features


def _coverage_features(view: QuestionView) -> Features:
    """Return features of how much of the question's terms each sentence covers."""
    has, weights, matrix = view.has, view.weights, view.matrix
    total = max(1e-9, float(weights.sum()))
    best = int(view.bm25.argmax())
    like_best = matrix.cosines_to_row(best)
    like_best[best] = 0.0
    only = has * (has.sum(axis=0) == 1.0)
    asked = set(pairwise(view.question_terms))
    pairs = [len(asked.intersection(pairwise(one))) for one in view.sentence_terms]
    return {
        **_with_ranks("coverage", view.coverage),
        **_with_ranks("BM25", view.bm25),
        **_with_ranks("cosine", matrix.cosines(view.terms)),
        "pairs of terms": np.array(pairs, dtype=np.float64),
        "rarest term": (has * weights).max(axis=1, initial=0.0),
        "terms of no other": only @ weights / total,
        "terms beyond the best": (has * (1.0 - has[best])) @ weights / view.reachable,
        "like the best": like_best,
    }


def _wording_features(view: QuestionView) -> Features:
    """Return features of names, numbers, pronouns and length.

    A name is a word with a capital that is neither a function word nor the first.
    """
    asked = _names_in(view.question_words, view)
    digits = set(filter(str.isdigit, view.question_words))
    is_pronoun = _PRONOUNS.union(map(str.capitalize, _PRONOUNS))
    new, shared, pronouns = [], [], []
    for words, terms in zip(view.words, view.sentence_terms, strict=True):
        new.append(len(_names_in(words, view) - asked))
        shared.append(len(asked.intersection(terms)))
        pronouns.append(sum(map(is_pronoun.__contains__, words)))
    n_new = np.log1p(new)
    has_digit = _flags(map(re.compile(r"\d").search, view.sentences))
    length = np.log(np.maximum(1, list(map(len, view.words))))
    starts = (bool(words) and words[0] in is_pronoun for words in view.words)
    return {
        "names of the question": np.array(shared) / max(1, len(asked)),
        "numbers of the question": _flags(
            not digits.isdisjoint(words) for words in view.words
        ),
        "has a number": has_digit,
        "other names": n_new,
        "number, if one is asked": _asks(_ASKS_NUMBER, view) * has_digit,
        "names, if one is asked": _asks(_ASKS_NAME, view) * n_new,
        "begins with a pronoun": _flags(starts),
        "pronouns": np.array(pronouns, dtype=np.float64),
        "length": length,
        "length squared": length**2,
    }


def _position_features(view: QuestionView) -> Features:
    """Return features of positions in documents, and of the sentences beside each."""
    adjacent = np.diff(view.places) == 1.0
    before, after = np.zeros(len(view)), np.zeros(len(view))
    before[1:] = np.where(adjacent, view.coverage[:-1], 0.0)
    after[:-1] = np.where(adjacent, view.coverage[1:], 0.0)
    place = view.places % APART
    return {
        "coverage before": before,
        "coverage after": after,
        "coverage beside": np.maximum(before, after),
        "place": np.log1p(place),
        "first": _flags(place == 0.0),
        "coverage after, if a reason is asked": _asks(_ASKS_REASON, view) * after,
    }


def _title_features(view: QuestionView) -> Features:
    """Return features of the document and the title or heading of each sentence."""
    numbers, document = np.unique(view.documents, return_inverse=True)
    covered = np.zeros((len(numbers), len(view.terms)))
    np.maximum.at(covered, document, view.has)
    of_document = covered @ view.weights / view.reachable
    best = np.zeros(len(numbers))
    np.maximum.at(best, document, view.coverage)
    best, worth = best[document], of_document[document]
    number_of = {title: k for k, title in enumerate(dict.fromkeys(view.titles))}
    titles, of = list(number_of), np.array([number_of[one] for one in view.titles])
    terms = list(map(view.terms_in, map(split_words, titles)))
    has = (view.count_terms(terms) > 0.0) * 1.0
    share = (has.sum(axis=1) / [max(1, len(set(one))) for one in terms])[of]
    with_title = np.maximum(has[of], view.has) @ view.weights
    asked, mentioned, mentions = _find_mentions(view, titles, of, worth)
    first = _flags(view.places % APART == 0.0)
    return {
        **_with_ranks("coverage of the document", worth, _ranks(of_document)[document]),
        "best coverage in the document": best,
        "is best in the document": _flags(view.coverage >= best),
        "share of the title": share,
        "coverage with the title": with_title / max(1e-9, float(view.weights.sum())),
        "coverage with the title, standardized": _standardized(with_title),
        "title in the question": asked,
        "title in other documents": mentioned,
        "other title": mentions,
        "first, title in the question": first * asked,
        "first, title in other documents": first * mentioned,
        "first, share of the title": first * share,
    }


def _find_mentions(
    view: QuestionView, titles: list[str], of: IntArray, worth: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Find titles in the question and in sentences of documents with other titles.

    ``of`` is the position in ``titles`` of each sentence's title, and ``worth`` the
    coverage of its document.  Returns, each (N,): whether the question has the title;
    the coverage of the best other sentence that has it; and the coverage of the best
    document whose title the sentence has.
    """
    asked, mentioned = np.zeros(len(titles)), np.zeros(len(titles))
    mentions = np.zeros(len(view))
    if 1 < len(titles) <= _MOST_TITLES:
        texts = [f" {' '.join(words)} ".lower() for words in view.words]
        question = f" {' '.join(view.question_words)} ".lower()
        names = [split_words(_BRACKETS.sub("", title)) for title in titles]
        for k, words in enumerate(names):
            name = f" {' '.join(words)} ".lower()
            if not words:
                continue
            asked[k] = name in question
            rows = [i for i, text in enumerate(texts) if name in text and of[i] != k]
            if rows:
                mentioned[k] = view.coverage[rows].max()
                mentions[rows] = np.maximum(mentions[rows], worth[of == k].max())
    return asked[of], mentioned[of], mentions


def _vector_features(view: QuestionView) -> Features:
    """Return features of cosines of sentences' words with the question's terms."""
    near, total = view.nearness, max(1e-9, float(view.weights.sum()))
    features = Features()
    for power, name in ((1, "near terms"), (2, "nearer terms"), (4, "nearest terms")):
        features |= _with_ranks(name, near**power @ view.weights / total)
    best = near[int(features["nearer terms"].argmax())]
    beyond = near**2 * (1.0 - best) @ view.weights / total
    return {**features, "near terms beyond the best": beyond}


def _embedding_features(view: QuestionView) -> Features:
    """Return cosines of embeddings: with the question, its nearest, and the mean."""
    if view.embeddings is None:
        raise ValueError("there are no embeddings")
    unit = unit_rows(view.embeddings)
    sentences, cosine = unit[1:], unit[1:] @ unit[0]
    best = int(cosine.argmax())
    like_best = sentences @ sentences[best]
    like_best[best] = 0.0
    mean = unit_rows(sentences.mean(axis=0)[None])[0]
    return {
        **_with_ranks("cosine of embeddings", cosine),
        "embedding like the best": like_best,
        "cosine beside": np.maximum(np.r_[0.0, cosine[:-1]], np.r_[cosine[1:], 0.0]),
        "embedding like the mean": sentences @ mean,
    }


def _asks(pattern: re.Pattern[str], view: QuestionView) -> float:
    """Return 1 if a pattern matches in the question, else 0."""
    return float(pattern.search(view.question) is not None)


def _names_in(words: list[str], view: QuestionView) -> set[str]:
    """Return the terms of words with a capital, without the first word."""
    return set(map(view.term_of.names.__getitem__, words[1:])) - {""}


def _flags(values: Iterable[object]) -> FloatArray:
    """Return 1 for true values, 0 for others."""
    return np.array([bool(value) for value in values], dtype=np.float64)


def _ranks(values: FloatArray) -> FloatArray:
    """Return the rank of each value, 0 for the largest; the first of equal ones."""
    ranks = np.empty(len(values))
    ranks[np.argsort(-values, kind="stable")] = np.arange(len(values))
    return ranks


def _standardized(values: FloatArray) -> FloatArray:
    """Return values with mean 0 and variance 1, zeros if all are equal."""
    deviation = float(values.std())
    spread = deviation if deviation > 1e-12 else np.inf
    return np.asarray((values - values.mean()) / spread)


def _with_ranks(
    name: str, values: FloatArray, ranks: FloatArray | None = None
) -> Features:
    """Return values by name, the same standardized, and log(1 + their ``ranks``)."""
    ranks = _ranks(values) if ranks is None else ranks
    return {
        name: values,
        f"{name}, standardized": _standardized(values),
        f"{name}, rank": np.log1p(ranks),
    }
