"""Summaries, and the page of HTML that shows one in its documents."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

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
        facts = {"documents": f"{len(self.documents):,}", "omega": f"{self.omega:g}"}
        if self.budget is not None:
            facts["budget"] = self.budget
        rows = []
        for one in filter(attrgetter("chosen"), self.marked):
            name = self.documents[one.sentence.document].id
            shown = "" if one.probability is None else percent(one.probability)
            rows.append([one.sentence.plain, name, shown])
        chosen = html_table(["sentence", "document", "probability"], rows)
        title = f"Summary: {len(rows):,} of {len(self.marked):,} sentences"
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


class _Block(NamedTuple):
    """A paragraph or heading with its tag, or the space between them without one.

    Its pieces are texts, each with its sentence, if it is one, and its number in the
    summary, or 0.
    """

    pieces: Sequence[tuple[str, MarkedSentence | None, int]]
    tag: str = ""
    is_date: bool = False


def html_report(summary: Summary, title: str = "Summary") -> str:
    """Return a page with the summary and, below it, the whole documents.

    In the documents the chosen sentences are marked, and all candidates are shaded by
    the probability that a set drawn from the model holds them.  The page loads nothing.
    Write it as UTF-8.
    """
    language = as_language(summary.language)
    edges = [f"{100 * edge:g}" for edge in _SHADES]
    between = [f"{low}–{high} %" for low, high in pairwise(edges)]
    return render(
        "text",
        "summary.html",
        title=title,
        facts=_facts(summary),
        language=language and language.code,
        right_to_left=language is not None and language.right_to_left,
        sentences=[
            {"text": one.plain, "source": _document_name(summary, one.document)}
            for one in summary.sentences
        ],
        lowest=edges[0],
        edges=_SHADES,
        shades=[*between, f"over {edges[-1]} %"],
        percent=percent,
        documents=list(_document_values(summary)),
    )


def _document_name(summary: Summary, number: int) -> str:
    """Return the name of a document on the page."""
    return summary.documents[number].id or f"Document {number + 1}"


def _facts(summary: Summary) -> dict[str, str]:
    """Return the facts at the top of the page, by their names."""
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
    """Yield the name, the number of chosen sentences and the blocks of documents."""
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
    """Yield a document in blocks, its chosen sentences with the next numbers."""
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
    """Yield paragraphs (start, end), with the sentences that begin in each."""
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
