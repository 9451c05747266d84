"""Summaries, and the page of HTML that shows one in its documents."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from variegate._typing import IntArray
from variegate.report.notebook import html_card, html_table
from variegate.report.page import render
from variegate.report.wording import count, percent
from variegate.selection import Selection
from variegate.text.budget import Budget
from variegate.text.documents import Document, Sentence
from variegate.text.languages import as_language
from variegate.text.layout import blocks_of, trim
from variegate.text.words import count_spaced_words

_OF_SENTENCES = ("start", "end", "text", "kind")
_SHADES = (0.01, 0.05, 0.2, 0.5)  # probabilities from which sentences are shaded darker


@dataclass(frozen=True)
class MarkedSentence:
    """A sentence of a document, and whether it was chosen.

    ``probability`` is that of a set drawn from the model to hold it, None for sentences
    that are not candidates: a headline, a date line, not running text, a repetition, a
    fragment, or of too low a quality among too many.
    """

    sentence: Sentence
    probability: float | None
    chosen: bool


@dataclass(frozen=True, eq=False)
class Summary:
    """The result of :meth:`Summarizer.summarize`.

    Attributes
    ----------
    documents : sequence of Document
    marked : all their sentences, in reading order
    budget : str or None
    omega : float
    language : str or None, as given or detected
    selection : Selection
        Of ``marked``, with its ``stop_reason``, ``gap`` and ``is_optimal``.
    """

    documents: Sequence[Document]
    marked: Sequence[MarkedSentence]
    budget: str | None
    omega: float
    language: str | None
    selection: Selection | None = None

    @property
    def sentences(self) -> list[Sentence]:
        """The chosen sentences, in reading order."""
        return [entry.sentence for entry in self.marked if entry.chosen]

    @property
    def text(self) -> str:
        """The summary, one sentence a line."""
        return "\n".join(sentence.plain for sentence in self.sentences)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return (
            f"<Summary: {len(self.sentences)} of {len(self.marked)} sentences, "
            f"{len(self.documents)} documents>"
        )

    def _repr_html_(self) -> str:
        """Return HTML of facts and chosen sentences, for a notebook."""
        facts = {"documents": f"{len(self.documents):,}", "omega": f"{self.omega:g}"}
        if self.budget is not None:
            facts["budget"] = self.budget
        rows = []
        for one in filter(attrgetter("chosen"), self.marked):
            name = self.documents[one.sentence.document].id
            shown = "" if one.probability is None else percent(one.probability)
            rows.append([one.sentence.plain, name, shown])
        chosen = html_table(["sentence", "document", "probability"], rows)
        title = (
            f"{type(self).__name__}: {len(rows):,} of {len(self.marked):,} sentences"
        )
        return html_card(title, facts, chosen)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON.

        ``start`` and ``end`` of a sentence are offsets in the plain text of its
        document, not in the source of Markdown and HTML.
        """
        return {
            "summary": self.text,
            "budget": self.budget,
            "omega": self.omega,
            "language": self.language,
            **(self.selection.ending() if self.selection else {}),
            "documents": [
                {"id": one.id, "reader": one.reader or None, "text": one.text}
                for one in self.documents
            ],
            "sentences": [
                {
                    "document": self.documents[one.sentence.document].id,
                    "document_number": one.sentence.document,
                    **{name: getattr(one.sentence, name) for name in _OF_SENTENCES},
                    "probability": one.probability,
                    "chosen": one.chosen,
                }
                for one in self.marked
            ],
        }


@dataclass(frozen=True, eq=False, repr=False)
class Evidence(Summary):
    """The result of :meth:`EvidenceSelector.select`.

    Attributes
    ----------
    question : str
    reasons : list of str
        Of each chosen sentence: words of the question that it or its heading has, or
        the feature that raised its quality most.
    """

    question: str = ""
    reasons: Sequence[str] = ()

    @property
    def indices(self) -> IntArray:
        """The numbers of the chosen sentences in ``marked``, sorted."""
        return np.flatnonzero([entry.chosen for entry in self.marked])

    def __repr__(self) -> str:
        return f"<Evidence: {len(self.sentences)} of {len(self.marked)} sentences>"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON: as of a summary, with question and reasons."""
        found = super().as_dict()
        reasons = iter(self.reasons)
        for entry in found["sentences"]:
            entry["reason"] = next(reasons) if entry["chosen"] else None
        evidence = {"question": self.question, "evidence": found.pop("summary")}
        return evidence | found


class _Block(NamedTuple):
    """A paragraph or heading with its HTML tag, or the space between them with "".

    A piece is a text, its sentence, or None for text between sentences, and its number
    in the summary from 1, or 0 if it was not chosen.
    """

    pieces: Sequence[tuple[str, MarkedSentence | None, int]]
    tag: str = ""
    is_date: bool = False


def html_report(summary: Summary, title: str = "Summary") -> str:
    """Return a page with a summary or evidence and, below it, the whole documents.

    In the documents the chosen sentences are marked, and all candidates are shaded by
    the probability that a set drawn from the model holds them.  Evidence has its
    reasons.  The page loads nothing.  Write it as UTF-8.
    """
    reasons: Sequence[str | None] = [None] * len(summary.sentences)
    noun = "summary"
    if isinstance(summary, Evidence):
        reasons, noun = summary.reasons, "evidence"
    language = as_language(summary.language)
    edges = [f"{100 * edge:g}" for edge in _SHADES]
    between = [f"{low}–{high} %" for low, high in pairwise(edges)]
    return render(
        "text",
        "summary.html",
        title=title,
        facts=_page_facts(summary),
        language=language and language.code,
        right_to_left=language is not None and language.right_to_left,
        sentences=[
            {
                "text": one.plain,
                "source": _document_name(summary, one.document),
                "reason": reason,
            }
            for one, reason in zip(summary.sentences, reasons, strict=True)
        ],
        noun=noun,
        lowest=edges[0],
        edges=_SHADES,
        shades=[*between, f"over {edges[-1]} %"],
        percent=percent,
        documents=list(_document_values(summary)),
    )


def _document_name(summary: Summary, number: int) -> str:
    """Return the id of a document, or "Document 1" for number 0 without one."""
    return summary.documents[number].id or f"Document {number + 1}"


def _page_facts(summary: Summary) -> dict[str, str]:
    """Return the facts at the top of the page as texts by name."""
    text, budget = summary.text, summary.budget
    allowed = budget and Budget.parse(budget).describe()
    return {
        "Length": f"{count(count_spaced_words(text), 'word')}, "
        f"{count(len(text), 'character')}, "
        f"{count(len(summary.sentences), 'sentence')}",
        "Budget": allowed or "none: the model chose the length",
        "ω": f"{summary.omega:g}",
        "Source": f"{count(len(summary.documents), 'document')}, "
        f"{count(len(summary.marked), 'sentence')}",
    }


def _document_values(summary: Summary) -> Iterator[dict[str, object]]:
    """Yield values of each document for the template: name, n_chosen and blocks."""
    marked: list[list[MarkedSentence]] = [[] for _ in summary.documents]
    for entry in summary.marked:
        marked[entry.sentence.document].append(entry)
    numbers = itertools.count(1)
    for place, entries in enumerate(marked):
        n_chosen = sum(entry.chosen for entry in entries)
        blocks = list(_document_blocks(summary.documents[place], entries, numbers))
        yield {
            "name": _document_name(summary, place),
            "n_chosen": n_chosen,
            "blocks": blocks,
        }


def _document_blocks(
    document: Document, entries: Sequence[MarkedSentence], numbers: Iterator[int]
) -> Iterator[_Block]:
    """Yield the blocks of a document; each chosen sentence takes the next number.

    ``entries`` are its sentences.  The first headline has the tag h3, others h4.
    """
    heading, text = "h3", document.text
    for start, end, inside in _paragraphs(document, entries):
        first, last = trim(text, start, end)
        if first == last:
            yield _Block([(text[start:end], None, 0)])
            continue
        kinds = {entry.sentence.kind for entry in inside}
        tag = "p"
        if kinds == {"headline"}:
            tag, heading = heading, "h4"
        pieces: list[tuple[str, MarkedSentence | None, int]] = []
        for entry in inside:
            pieces.append((text[start : entry.sentence.start], None, 0))
            number = next(numbers) if entry.chosen else 0
            pieces.append((entry.sentence.text, entry, number))
            start = entry.sentence.end
        pieces.append((text[start:end], None, 0))
        yield _Block(pieces, tag, kinds == {"dateline"})


def _paragraphs(
    document: Document, entries: Sequence[MarkedSentence]
) -> Iterator[tuple[int, int, list[MarkedSentence]]]:
    """Yield start, end and ``entries`` of paragraphs, which together cover the text."""
    begin, following, inside = 0, 0, list[MarkedSentence]()
    blocks, _ = blocks_of(document, None)
    for cut in [*(block.start for block in blocks), len(document.text)]:
        while following < len(entries) and entries[following].sentence.start < cut:
            inside.append(entries[following])
            following += 1
        if cut == begin or (inside and inside[-1].sentence.end > cut):
            continue
        yield begin, cut, inside
        begin, inside = cut, []
