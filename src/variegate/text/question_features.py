"""The quality features of the sentences that may answer a question."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from variegate._typing import BoolArray, FloatArray, IntArray
from variegate.linalg.cosine import unit_rows
from variegate.text.question_view import APART, QuestionView
from variegate.text.terms import TermMatrix, Tokens
from variegate.text.words import split_words

Features = dict[str, FloatArray]

_MOST_TITLES = 200  # distinct titles that are looked for in sentences

_ASKS_NUMBER = re.compile(r"\b(when|how (many|much|old|long|often)|what year)\b", re.I)
_ASKS_NAME = re.compile(r"\b(who|whom|whose|where|which)\b", re.I)
_ASKS_REASON = re.compile(r"\b(why|how)\b(?! (many|much|old|long|often))", re.I)
_BRACKETS = re.compile(r"\(.*?\)")


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
    ranked = {
        "coverage": view.coverage,
        "BM25": view.bm25,
        "cosine": matrix.cosines(view.terms),
    }
    return {
        **_with_ranks(ranked),
        "pairs of terms": _count_pairs(view),
        "rarest term": (has * weights).max(axis=1, initial=0.0),
        "terms of no other": only @ weights / total,
        "terms beyond the best": (has * (1.0 - has[best])) @ weights / view.reachable,
        "like the best": like_best,
    }


def _count_pairs(view: QuestionView) -> FloatArray:
    """Return the number (N,) of distinct pairs of terms shared with the question.

    A pair is two content words without another between them.
    """
    texts, terms = view.content.texts, view.content.facts("term")
    base = len(view.vocabulary.terms)
    pairs = np.where(texts[1:] == texts[:-1], terms[:-1] * base + terms[1:], -1)
    asked = {one * base + other for one, other in pairwise(view.question_terms)}
    found = np.zeros(len(view))
    for pair in asked:
        found[texts[:-1][pairs == pair]] += 1.0
    return found


def _wording_features(view: QuestionView) -> Features:
    """Return features of names, numbers, pronouns and length.

    A name is a word with a capital that is neither a function word nor the first.
    """
    tokens = view.tokens
    is_first = np.diff(tokens.texts, prepend=-1) > 0
    asked = list({*view.question_tokens.facts("name")[1:].tolist()} - {0})
    shared = view.has[:, [view.terms.index(name) for name in asked]]
    digits = [view.vocabulary[word] for word in view.question_words if word.isdigit()]
    has_digit = tokens.has(tokens.facts("digit") > 0)
    is_pronoun = tokens.facts("pronoun") > 0
    n_new = np.log1p(_count_names(tokens, is_first, asked))
    length = np.log(np.maximum(1, tokens.count()))
    return {
        "names of the question": shared.sum(axis=1) / max(1, len(asked)),
        "numbers of the question": tokens.has(_equals_any(tokens.words, digits)),
        "has a number": has_digit,
        "other names": n_new,
        "number, if one is asked": _asks(_ASKS_NUMBER, view) * has_digit,
        "names, if one is asked": _asks(_ASKS_NAME, view) * n_new,
        "begins with a pronoun": tokens.has(is_first & is_pronoun),
        "pronouns": tokens.count(is_pronoun).astype(np.float64),
        "length": length,
        "length squared": length**2,
    }


def _count_names(tokens: Tokens, is_first: BoolArray, known: list[int]) -> IntArray:
    """Return the number (N,) of distinct names in texts, without ``known`` ones."""
    names = tokens.facts("name")
    is_new = (names > 0) & ~is_first & ~_equals_any(names, known)
    names, texts = names[is_new], tokens.texts[is_new]
    base = len(tokens.vocabulary.terms)
    cells = np.unique(texts * base + names)
    return np.bincount(cells // base, minlength=tokens.n_texts)


def _equals_any(values: IntArray, few: list[int]) -> BoolArray:
    """Return whether each value is one of a few."""
    found = np.zeros(len(values), dtype=bool)
    for one in few:
        found |= values == one
    return found


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
    _, document, sizes = np.unique(
        view.documents, return_inverse=True, return_counts=True
    )
    order, starts = np.argsort(document, kind="stable"), np.cumsum(sizes) - sizes
    covered = np.maximum.reduceat(view.has[order], starts, axis=0)
    of_document = covered @ view.weights / view.reachable
    best = np.maximum.reduceat(view.coverage[order], starts)[document]
    worth = of_document[document]
    number_of = {title: k for k, title in enumerate(dict.fromkeys(view.titles))}
    titles, of = list(number_of), np.array([number_of[one] for one in view.titles])
    words = Tokens.of(view.vocabulary, list(map(split_words, titles)))
    terms = TermMatrix.of_tokens(words.content())
    has = (terms.counts_of(view.terms) > 0.0) * 1.0
    n_terms = np.bincount(terms.rows, minlength=len(titles))
    share = (has.sum(axis=1) / np.maximum(1, n_terms))[of]
    with_title = np.maximum(has[of], view.has) @ view.weights
    asked, mentioned, mentions = _find_mentions(view, titles, of, worth)
    first = _flags(view.places % APART == 0.0)
    ranks = _ranks(of_document[None])[:, document]
    return {
        **_with_ranks({"coverage of the document": worth}, ranks),
        "best coverage in the document": best,
        "is best in the document": _flags(view.coverage >= best),
        "share of the title": share,
        "coverage with the title": with_title / max(1e-9, float(view.weights.sum())),
        "coverage with the title, standardized": _standardized(with_title[None])[0],
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
    if not 1 < len(titles) <= _MOST_TITLES:
        return np.zeros(len(view)), np.zeros(len(view)), np.zeros(len(view))
    names = [split_words(_BRACKETS.sub("", title)) for title in titles]
    has_name = find_phrases(view.tokens, names)
    has_name[of, np.arange(len(view))] = False
    worth_of_title = np.zeros(len(titles))
    np.maximum.at(worth_of_title, of, worth)
    mentioned = (has_name * view.coverage).max(axis=1)
    mentions = (has_name * worth_of_title[:, None]).max(axis=0)
    question = f" {' '.join(view.question_words)} ".lower()
    asked = [
        bool(words) and f" {' '.join(words)} ".lower() in question for words in names
    ]
    return _flags(np.array(asked))[of], mentioned[of], mentions


def find_phrases(tokens: Tokens, phrases: list[list[str]]) -> BoolArray:
    """Return whether each phrase is in each text, (phrases, N), in upper or lower case.

    A phrase is a list of words; one without words is in no text.
    """
    words = Tokens.of(tokens.vocabulary, phrases)
    lengths, lower = words.count(), tokens.facts("lower")
    # Row k of the table is phrase k, then -1.
    table = np.full((len(phrases), int(lengths.max(initial=0)) + 1), -1)
    starts = np.cumsum(lengths) - lengths
    table[words.texts, np.arange(len(words.words)) - starts[words.texts]] = words.facts(
        "lower"
    )
    phrase, place = np.nonzero(table[:, :1] == lower)
    for step in range(1, table.shape[1] - 1):
        after = np.minimum(place + step, len(lower) - 1)
        is_same = (lower[after] == table[phrase, step]) & (after == place + step)
        is_same &= tokens.texts[after] == tokens.texts[place]
        kept = is_same | (lengths[phrase] <= step)
        phrase, place = phrase[kept], place[kept]
    found = np.zeros((len(phrases), tokens.n_texts), dtype=bool)
    found[phrase, tokens.texts[place]] = True
    return found


def _vector_features(view: QuestionView) -> Features:
    """Return features of cosines of sentences' words with the question's terms."""
    near, total = view.nearness, max(1e-9, float(view.weights.sum()))
    powers = ((1, "near terms"), (2, "nearer terms"), (4, "nearest terms"))
    features = _with_ranks(
        {name: near**power @ view.weights / total for power, name in powers}
    )
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
        **_with_ranks({"cosine of embeddings": cosine}),
        "embedding like the best": like_best,
        "cosine beside": np.maximum(np.r_[0.0, cosine[:-1]], np.r_[cosine[1:], 0.0]),
        "embedding like the mean": sentences @ mean,
    }


def _asks(pattern: re.Pattern[str], view: QuestionView) -> float:
    """Return 1 if a pattern matches in the question, else 0."""
    return float(pattern.search(view.question) is not None)


def _flags(values: BoolArray) -> FloatArray:
    """Return 1 for true values, 0 for others."""
    return values.astype(np.float64)


def _ranks(rows: FloatArray) -> FloatArray:
    """Return the rank of each value in its row, 0 for the largest; ties in order."""
    ranks = np.empty(rows.shape)
    places = np.argsort(-rows, axis=1, kind="stable")
    ranks[np.arange(len(rows))[:, None], places] = np.arange(rows.shape[1])
    return ranks


def _standardized(rows: FloatArray) -> FloatArray:
    """Return rows with mean 0 and variance 1, zeros where all values are equal."""
    size = rows.shape[1]
    centred = rows - np.add.reduce(rows, axis=1, keepdims=True) / size
    deviations = np.sqrt(np.add.reduce(centred**2, axis=1, keepdims=True) / size)
    return np.asarray(centred / np.where(deviations > 1e-12, deviations, np.inf))


def _with_ranks(features: Features, ranks: FloatArray | None = None) -> Features:
    """Return each feature, the same standardized, and log(1 + its ``ranks``)."""
    rows = np.array(list(features.values()))
    ranks = np.log1p(_ranks(rows) if ranks is None else ranks)
    found = Features()
    for name, values, standard, rank in zip(
        features, rows, _standardized(rows), ranks, strict=True
    ):
        found[name] = values
        found[f"{name}, standardized"] = standard
        found[f"{name}, rank"] = rank
    return found
