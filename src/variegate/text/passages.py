"""Sentences that a question is asked of: as they are given, or of documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from variegate._typing import IntArray
from variegate.text.documents import Block, Cluster, Document, Sentence
from variegate.text.sentences import split_cluster
from variegate.text.words import count_spaced_words

_SHORTEST = 3  # words of a sentence that can be chosen


@dataclass(frozen=True, eq=False)
class Passages:
    """Sentences of documents, and those that can be chosen.

    Attributes
    ----------
    documents : sequence of Document
    sentences : sequence of Sentence
        All of them, in reading order, with headings.
    candidates : array of shape (N,)
        Numbers of the sentences that can be chosen.
    titles : list of str
        For each candidate the heading above it, or the title of its document; "" if
        there is none.
    sections : array of shape (N,)
        For each candidate the number of its document or, under headings, its section.
    language : str or None, of documents
    """

    documents: Sequence[Document]
    sentences: Sequence[Sentence]
    candidates: IntArray
    titles: list[str]
    sections: IntArray
    language: str | None = None

    @classmethod
    def from_sentences(cls, texts: Sequence[str], titles: Sequence[str]) -> Self:
        """Return all sentences as candidates; a run of equal titles is a document."""
        sections = section_numbers(titles)
        documents, sentences = [], []
        for number in range(int(sections.max(initial=-1)) + 1):
            rows = np.flatnonzero(sections == number).tolist()
            start = 0
            for place, row in enumerate(rows):
                text = texts[row]
                end = start + len(text)
                sentences.append(Sentence(number, start, end, text, position=place))
                start = end + 1
            text = "\n".join(texts[row] for row in rows)
            block = Block(0, len(text))
            documents.append(Document(text, titles[rows[0]], blocks=[block]))
        return cls(documents, sentences, np.arange(len(texts)), list(titles), sections)

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        language: str | None = None,
        document_titles: Sequence[str] | None = None,
    ) -> Self:
        """Split documents into sentences; those of running text can be chosen.

        So can sentences that end in a colon, before code or a list; not repetitions,
        nor fragments of one or two words.
        """
        first_titles = document_titles or [""] * len(documents)
        sentences = split_cluster(Cluster(documents, language=language))
        candidates, titles, sections = [], [], []
        title, document, section, seen = "", -1, -1, set()
        for place, sentence in enumerate(sentences):
            if sentence.document != document:
                document, section = sentence.document, section + 1
                title = first_titles[document]
            if sentence.kind == "headline":
                title, section = sentence.plain, section + 1
            can_answer = sentence.kind == "body" or _introduces_list(sentence)
            can_answer &= count_spaced_words(sentence.plain) >= _SHORTEST
            if not can_answer or sentence.plain in seen:
                continue
            seen.add(sentence.plain)
            candidates.append(place)
            titles.append(title)
            sections.append(section)
        numbers, runs = (np.array(one, np.intp) for one in (candidates, sections))
        return cls(documents, sentences, numbers, titles, runs, language)

    def leave_out(self, given: Sequence[str]) -> Self:
        """Return the passages without candidates that stand in a text of ``given``.

        Spaces and ends of lines do not count.
        """
        whole = [" ".join(text.split()) for text in given]
        lines = [" ".join(text.split()) for text in self.texts]
        rows = [
            row
            for row, line in enumerate(lines)
            if not any(line in one for one in whole)
        ]
        titles = [self.titles[row] for row in rows]
        numbers = np.array(rows, np.intp)
        return replace(
            self,
            candidates=self.candidates[numbers],
            titles=titles,
            sections=self.sections[numbers],
        )

    @property
    def texts(self) -> list[str]:
        """The text of each candidate, on one line."""
        return [self.sentences[place].plain for place in self.candidates]


def _introduces_list(sentence: Sentence) -> bool:
    """Whether five or more words, not of running text or code, end in a colon."""
    words = sentence.plain.split()
    return (
        sentence.kind == "other"
        and len(words) >= 5
        and words[-1].endswith((":", "："))
        and not words[0][0].islower()
    )


def section_numbers(titles: Sequence[str]) -> IntArray:
    """Return the number (N,), from 0, of each sentence's run of equal titles."""
    changes = [a != b for a, b in zip(titles[1:], titles[:-1], strict=True)]
    return np.cumsum([0, *changes])[: len(titles)]
