"""Views of questions, from the arguments of ``EvidenceSelector``, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from variegate._typing import FloatArray, IntArray
from variegate.subsets import as_members
from variegate.text.cluster_view import Embed
from variegate.text.documents import Document
from variegate.text.languages import language_of
from variegate.text.passages import Passages, section_numbers
from variegate.text.question_view import QuestionView
from variegate.text.word_vectors import WORDLLAMA, load_word_vectors


@dataclass(frozen=True)
class ViewBuilder:
    """Makes the views of questions, with vectors by ``embed``."""

    embed: str | Embed | None

    def views(
        self,
        questions: Sequence[str],
        sentences: Sequence[Sequence[str]],
        titles: Sequence[Sequence[str]] | None,
        embeddings: Sequence[Any] | None,
    ) -> list[QuestionView]:
        """Return the view of each question; errors begin with its number, from 0.

        Each has a list of sentences, one of titles unless None, and an array of
        embeddings (1 + N, D), the question's first; None for vectors by ``embed``.
        """
        if isinstance(questions, str):
            raise TypeError("questions must be a list of questions, not one text")
        if not len(questions):
            raise ValueError("there are no questions")
        lists = {"sentences": sentences, "titles": titles, "embeddings": embeddings}
        for name, values in lists.items():
            if values is not None and len(values) != len(questions):
                raise ValueError(
                    f"{len(questions)} questions, but {name} has {len(values)} entries"
                )
        views = []
        for number, question in enumerate(questions):
            known = None if titles is None else titles[number]
            vectors = None if embeddings is None else embeddings[number]
            try:
                texts, known = as_sentences(sentences[number], known)
                sections = section_numbers(known)
                views.append(self.view(question, texts, known, sections, vectors))
            except (TypeError, ValueError) as error:
                raise type(error)(f"question {number}: {error}") from error
            if views[-1].vector_size != views[0].vector_size:
                raise ValueError(
                    f"question {number}: embeddings have {views[-1].vector_size} "
                    f"columns, but those of question 0 have {views[0].vector_size}"
                )
        return views

    def view(
        self,
        question: str,
        texts: list[str],
        titles: list[str],
        sections: IntArray,
        embeddings: Any = None,
    ) -> QuestionView:
        """Return the view of a question and N texts with titles, "" for none, checked.

        ``sections`` (N,) are the numbers of their documents, or parts under a heading;
        ``embeddings`` (1 + N, D), the question's first, are by default by ``embed``.
        """
        if not isinstance(question, str):
            raise TypeError(
                f"a question is a text, not of the type {type(question).__name__}"
            )
        if not any(map(str.isalnum, question)):
            raise ValueError("the question is empty: give at least one word")
        if not texts:
            raise ValueError("there are no sentences to choose from")
        words = load_word_vectors() if self.embed == WORDLLAMA else None
        if embeddings is not None:
            words = None
        elif words is not None:
            embeddings = words.embed([question, *texts])
        elif callable(self.embed):
            embeddings = np.asarray(self.embed([question, *texts]))
        if embeddings is not None:
            embeddings = _as_embeddings(embeddings, 1 + len(texts))
        return QuestionView(question, texts, titles, sections, embeddings, words)

    def prompt_view(
        self, view: QuestionView, given: Sequence[str], language: str | None
    ) -> QuestionView | None:
        """Return the view of the prompt's sentences, for the question of ``view``.

        They are those of running text in ``given``; None without any.
        """
        passages = Passages.from_documents(list(map(Document, given)), language)
        if not passages.texts:
            return None
        prompt = self.view(
            view.question, passages.texts, passages.titles, passages.sections
        )
        if prompt.vector_size != view.vector_size:
            raise ValueError(
                "embeddings have no rows for the sentences of given texts: set embed, "
                "from which they get vectors of the same length"
            )
        return prompt


def as_passages(
    texts: Sequence[str] | Sequence[Document],
    titles: Sequence[str] | None,
    language: str | None,
    given: Sequence[str] = (),
) -> Passages:
    """Return the passages of sentences or documents; ``titles`` has one for each.

    Sentences that stand in a text of ``given`` are left out.
    """
    if isinstance(texts, str | Document):
        raise TypeError("texts must be a list of sentences, or of documents")
    documents = [one for one in texts if isinstance(one, Document)]
    if not documents or len(documents) < len(texts):
        passages = Passages.from_sentences(*as_sentences(texts, titles))
        return passages.leave_out(_as_texts("given", given))
    if titles is not None and len(_as_texts("titles", titles)) != len(documents):
        raise ValueError(f"{len(documents)} documents, but {len(titles)} titles")
    language = language_of(documents, language)
    passages = Passages.from_documents(documents, language, titles)
    return passages.leave_out(_as_texts("given", given))


def as_sentences(
    texts: Sequence[Any], titles: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Return a list of sentences and their titles, "" if there are none, checked."""
    checked = _as_texts("sentences", texts)
    named = [""] * len(checked) if titles is None else _as_texts("titles", titles)
    if len(named) != len(checked):
        raise ValueError(f"{len(checked)} sentences, but {len(named)} titles")
    return checked, named


def _as_texts(name: str, texts: Sequence[Any]) -> list[str]:
    """Return a list of texts, checked; ``name`` is its name in messages."""
    if isinstance(texts, str):
        raise TypeError(f"{name} must be a list of texts, not one text")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"{name} must be texts, but number {number} has the type "
                f"{type(text).__name__}"
            )
    return list(texts)


def _as_embeddings(vectors: Any, n_rows: int) -> FloatArray:
    """Return finite vectors (n_rows, D), checked."""
    try:
        array = np.asarray(vectors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "embeddings must be numbers, one row for the question and one for each "
            "sentence"
        ) from error
    if array.ndim != 2 or len(array) != n_rows:
        raise ValueError(
            f"embeddings must have one row for the question and one for each of "
            f"{n_rows - 1} sentences, got an array of shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise ValueError("embeddings must be finite numbers")
    return array


def as_wanted(number: int, members: Any, n_sentences: int) -> IntArray:
    """Return a mask or positions, of question ``number``, as sorted positions."""
    try:
        return as_members(members, n_sentences)
    except ValueError as error:
        raise ValueError(f"question {number}: wanted: {error}") from error
