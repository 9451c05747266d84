"""A summary and its sources on one page of HTML, without anything from outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from variegate.report.page import render
from variegate.report.words import count, percent
from variegate.text.budget import Budget
from variegate.text.documents import Document
from variegate.text.languages import as_language
from variegate.text.layout import blocks_of, trim
from variegate.text.summary import MarkedSentence, Summary
from variegate.text.words import count_spaced_words

__all__ = ["html_report"]

#: A sentence is shaded by how many of these its probability reaches.
_SHADES = (0.01, 0.05, 0.2, 0.5)


@dataclass(frozen=True)
class _Piece:
    """Some text: a sentence if it has a note, and one of the summary if a number."""

    text: str
    note: str = ""
    shade: int = 0
    number: int = 0


@dataclass(frozen=True)
class _Block:
    """A paragraph or heading by its tag, or without one the space between them."""

    pieces: Sequence[_Piece]
    tag: str = ""
    is_date: bool = False


def html_report(summary: Summary, title: str = "Summary") -> str:
    """Return a page with the summary and, below it, the documents it comes from.

    In the documents the chosen sentences are marked, and all candidates are shaded by
    the probability that a set drawn from the model holds them.  Every character of the
    documents is on the page, in order; nothing is loaded from elsewhere.  The page is
    to be written as UTF-8.
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
        sentences=list(_sentences(summary)),
        lowest=edges[0],
        shades=[*between, f"over {edges[-1]} %"],
        documents=list(_documents(summary)),
    )


def _name(document: Document, number: int) -> str:
    return document.id or f"Document {number + 1}"


def _facts(summary: Summary) -> dict[str, str]:
    text, budget = summary.text, "none: the model chose the length"
    if summary.budget is not None:
        budget = Budget.parse(summary.budget).describe()
    return {
        "Length": f"{count(count_spaced_words(text), 'word')}, "
        f"{count(len(text), 'character')}, "
        f"{count(len(summary.sentences), 'sentence')}",
        "Budget": budget,
        "ω": f"{summary.omega:g}",
        "Source": f"{count(len(summary.documents), 'document')}, "
        f"{count(len(summary.marked), 'sentence')}",
    }


def _sentences(summary: Summary) -> Iterator[dict[str, str]]:
    """Yield the summary's sentences, and where each is from."""
    for sentence in summary.sentences:
        name = _name(summary.documents[sentence.document], sentence.document)
        yield {"text": sentence.plain, "source": name}


def _documents(summary: Summary) -> Iterator[dict[str, object]]:
    marked: list[list[MarkedSentence]] = [[] for _ in summary.documents]
    for entry in summary.marked:
        marked[entry.sentence.document].append(entry)
    number = 1
    for place, (document, entries) in enumerate(
        zip(summary.documents, marked, strict=True)
    ):
        n_chosen = sum(entry.chosen for entry in entries)
        yield {
            "name": _name(document, place),
            "n_chosen": n_chosen,
            "blocks": list(_blocks(document, entries, number)),
        }
        number += n_chosen


def _blocks(
    document: Document, entries: Sequence[MarkedSentence], number: int
) -> Iterator[_Block]:
    """Yield a document in blocks; ``number`` is that of its first chosen sentence."""
    heading, text = "h3", document.text
    for start, end, inside in _paragraphs(document, entries):
        first, last = trim(text, start, end)
        if first == last:
            yield _Block([_Piece(text[start:end])])
            continue
        kinds = {entry.sentence.kind for entry in inside}
        tag = "p"
        if kinds == {"headline"}:
            tag, heading = heading, "h4"
        pieces = []
        for entry in inside:
            sentence = entry.sentence
            pieces.append(_Piece(text[start : sentence.start]))
            pieces.append(_piece(text[sentence.start : sentence.end], entry, number))
            number += entry.chosen
            start = sentence.end
        yield _Block([*pieces, _Piece(text[start:end])], tag, kinds == {"dateline"})


def _paragraphs(
    document: Document, entries: Sequence[MarkedSentence]
) -> Iterator[tuple[int, int, list[MarkedSentence]]]:
    """Cut a text into paragraphs, with the sentences that begin in each."""
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


def _piece(text: str, entry: MarkedSentence, number: int) -> _Piece:
    note, shade = "not a candidate", 0
    if entry.probability is not None:
        note = f"probability {percent(entry.probability)}"
        shade = sum(entry.probability >= edge for edge in _SHADES)
    return _Piece(text, note, shade, number if entry.chosen else 0)
