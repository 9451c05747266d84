"""A summary and its sources on one page of HTML, without anything from outside."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from variegate.report.html import count, escape, percent
from variegate.text.budget import Budget
from variegate.text.documents import Document
from variegate.text.languages import as_language
from variegate.text.paragraphs import paragraphs, trim
from variegate.text.summary import MarkedSentence, Summary

__all__ = ["html_report"]

#: A sentence is shaded by how many of these its probability reaches.
_SHADES = (0.01, 0.05, 0.2, 0.5)

_STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfcfa; --ink: #22211f; --quiet: #65615a; --rule: #e3dfd8;
  --link: #1f5a8c; --chosen: #ffe08a; --badge: #855600; --shade: 64, 132, 176;
  --serif: Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, "Noto Serif",
    "Noto Serif Devanagari", "Noto Serif Hebrew", "Noto Naskh Arabic", serif;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
@media (prefers-color-scheme: dark) { :root {
  --paper: #191a1c; --ink: #dcdad5; --quiet: #a19d96; --rule: #34353a;
  --link: #8fc0ea; --chosen: #5c4708; --badge: #f0c14b; --shade: 92, 160, 208;
} }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0 auto; padding: 3.5rem 1.5rem 6rem; max-width: 43rem;
  background: var(--paper); color: var(--ink); font: 1.0625rem/1.62 var(--serif);
  overflow-wrap: break-word; }
h1, h2, h3, h4 { line-height: 1.25; font-weight: 600; text-wrap: balance; }
h1 { margin: 0; font-size: 2rem; letter-spacing: -.01em; }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; text-underline-offset: .18em; }
.facts { display: flex; flex-wrap: wrap; gap: .7rem 1.9rem; margin: 1.5rem 0 2rem;
  padding: .9rem 0; border: solid var(--rule); border-width: 1px 0;
  font: .875rem/1.45 var(--sans); }
.facts dt { color: var(--quiet); font-size: .8125rem; } .facts dd { margin: 0; }
.summary { margin: 0; padding: 0; list-style: none; counter-reset: n; }
.summary li { position: relative; margin: 0 0 .85em; padding-inline-start: 2rem;
  font-size: 1.125rem; counter-increment: n; scroll-margin-top: 3rem; }
.summary li::before { content: counter(n); position: absolute; top: .34em;
  inset-inline-start: 0; color: var(--badge); font: 600 .8125rem/1.62 var(--sans); }
.summary a { color: inherit; } .summary a:hover { color: var(--link); }
.source, .summary a::after { color: var(--link); font: .8125rem var(--sans); }
.summary a::after { content: " ↓"; }
.legend { margin: 3rem 0 0; color: var(--quiet); font: .875rem/1.6 var(--sans); }
.legend h2 { margin: 0 0 .4rem; color: var(--ink); font-size: 1rem; }
.legend ul { display: flex; flex-wrap: wrap; gap: .4rem .6rem; padding: 0;
  list-style: none; }
.legend p, .legend ul { margin: 0 0 .6rem; }
.legend li > * { padding: .1rem .5rem; border-radius: .2rem; color: var(--ink); }
.document { margin-top: 2.75rem; border-top: 1px solid var(--rule); }
.name { display: flex; gap: 1rem; justify-content: space-between; text-wrap: wrap;
  margin: .8rem 0 1.4rem; color: var(--quiet); font: 600 .8125rem/1.5 var(--sans);
  overflow-wrap: anywhere; }
.name span { flex: none; font-weight: 400; }
.text p { margin: 0 0 .9em; } .text h3 { margin: 0 0 .5em; font-size: 1.375rem; }
.text h4 { margin: 1.6em 0 .4em; font-size: 1.0625rem; }
.text .date { color: var(--quiet); font: .875rem/1.5 var(--sans); }
.p1, .p2, .p3, .p4, mark { padding: .08em 0; border-radius: .15em;
  -webkit-box-decoration-break: clone; box-decoration-break: clone;
  -webkit-print-color-adjust: exact; print-color-adjust: exact; }
.p1 { --a: .11; } .p2 { --a: .20; } .p3 { --a: .32; } .p4 { --a: .46; }
.p1, .p2, .p3, .p4 { background: rgba(var(--shade), var(--a)); }
mark { background: var(--chosen); color: inherit; scroll-margin-top: 35vh; }
mark:target { outline: 2px solid var(--badge); outline-offset: 2px; }
.back::before { content: attr(data-n); padding-inline: .25em; color: var(--badge);
  font: 600 .75em var(--sans); vertical-align: .15em; }
@media (max-width: 34rem) {
  body { padding: 1.75rem 1.125rem 4rem; font-size: 1rem; } h1 { font-size: 1.625rem; }
  .facts { gap: .6rem 1.5rem; margin: 1.1rem 0 1.5rem; }
  .summary li { padding-inline-start: 1.75rem; font-size: 1.0625rem; }
  .text h3 { font-size: 1.25rem; }
}
@media print {
  :root { --paper: #fff; --ink: #000; --quiet: #444; --rule: #bbb; --chosen: #ffe08a;
    --badge: #6b4600; --shade: 64, 132, 176; }
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  .summary li { font-size: 11pt; break-inside: avoid; }
  .summary a::after { content: ""; }
  .text h3, .text h4, .name { break-after: avoid; }
  .text p { orphans: 3; widows: 3; } mark:target { outline: none; }
}
"""


class _Direction(NamedTuple):
    """Attributes that say which way a text runs, for the whole of it and its blocks.

    Where the language does not say right to left, each block finds out from its first
    letters: the language may not be known, or not have been given.
    """

    whole: str
    block: str


def _direction(name: str | None) -> _Direction:
    language = as_language(name)
    if language is None:
        return _Direction("", ' dir="auto"')
    if language.right_to_left:
        return _Direction(f' lang="{language.code}" dir="rtl"', "")
    return _Direction(f' lang="{language.code}"', ' dir="auto"')


def html_report(summary: Summary, title: str = "Summary") -> str:
    """Return a page with the summary and, below it, the documents it comes from.

    In the documents the chosen sentences are marked, and all candidates are shaded by
    the probability that a set drawn from the model holds them.  Every character of the
    documents is on the page, in order; nothing is loaded from elsewhere.  The page is
    to be written as UTF-8.
    """
    direction = _direction(summary.language)
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>\n</head>\n<body>",
            f"<header>\n<h1>{escape(title)}</h1>\n{_facts(summary)}\n</header>\n<main>",
            _sentences(summary, direction),
            _legend(summary),
            *_documents(summary, direction),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _name(document: Document, number: int) -> str:
    return document.id or f"Document {number + 1}"


def _facts(summary: Summary) -> str:
    text, budget = summary.text, "none: the model chose the length"
    if summary.budget is not None:
        budget = Budget.parse(summary.budget).describe()
    facts = {
        "Length": f"{count(len(text.split()), 'word')}, "
        f"{count(len(text), 'character')}, "
        f"{count(len(summary.sentences), 'sentence')}",
        "Budget": budget,
        "ω": f"{summary.omega:g}",
        "Source": f"{count(len(summary.documents), 'document')}, "
        f"{count(len(summary.marked), 'sentence')}",
    }
    rows = (
        f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items()
    )
    return f'<dl class="facts">{"".join(rows)}</dl>'


def _sentences(summary: Summary, direction: _Direction) -> str:
    """Return the summary: a list of links to the places of its sentences."""
    if not summary.sentences:
        return "<p>No sentence was chosen.</p>"
    several = len(summary.documents) > 1
    items = []
    for number, sentence in enumerate(summary.sentences, 1):
        name = _name(summary.documents[sentence.document], sentence.document)
        short = re.split(r"[/\\]", name.rstrip("/\\"))[-1]
        source = f' <bdi class="source" title="{escape(name)}">{escape(short)}</bdi>'
        items.append(
            f'<li id="n{number}"{direction.block}><a href="#s{number}">'
            f"{escape(sentence.plain)}{source * several}</a></li>"
        )
    return f'<ol class="summary"{direction.whole}>\n' + "\n".join(items) + "\n</ol>"


def _legend(summary: Summary) -> str:
    heading = "The documents" if len(summary.documents) > 1 else "The document"
    edges = [f"{100 * edge:g}" for edge in _SHADES]
    labels = [f"{low}–{high} %" for low, high in pairwise(edges)]
    labels.append(f"over {edges[-1]} %")
    shades = "".join(
        f'<li><span class="p{shade}">{label}</span></li>'
        for shade, label in enumerate(labels, 1)
    )
    return (
        f'<section class="legend">\n<h2>{heading}</h2>\n'
        "<p>Sentences of the summary are highlighted. The others are shaded by the "
        "probability that the model includes them, if it is at least "
        f"{edges[0]} %; it shows when the pointer rests on a sentence.</p>\n"
        f"<ul><li><mark>in the summary</mark></li>{shades}</ul>\n</section>"
    )


def _documents(summary: Summary, direction: _Direction) -> Iterator[str]:
    marked: list[list[MarkedSentence]] = [[] for _ in summary.documents]
    for entry in summary.marked:
        marked[entry.sentence.document].append(entry)
    number = 1
    for place, (document, entries) in enumerate(
        zip(summary.documents, marked, strict=True)
    ):
        chosen = sum(entry.chosen for entry in entries)
        note = f"{chosen} chosen" if chosen else ""
        yield (
            f'<section class="document">\n<h2 class="name">'
            f"<bdi>{escape(_name(document, place))}</bdi><span>{note}</span></h2>\n"
            f'<article class="text"{direction.whole}>'
            f"{_text(document, entries, number, direction)}</article>\n</section>"
        )
        number += chosen


def _text(
    document: Document,
    entries: Sequence[MarkedSentence],
    number: int,
    direction: _Direction,
) -> str:
    """Return a document in blocks; ``number`` is that of its first chosen sentence."""
    text, pieces, heading = document.text, list[str](), "h3"
    for start, end, inside in _blocks(text, entries):
        first, last = trim(text, start, end)
        if first == last:
            pieces.append(escape(text[start:end]))
            continue
        kinds = {entry.sentence.kind for entry in inside}
        tag, style = "p", ""
        if kinds == {"headline"}:
            tag, heading = heading, "h4"
        elif kinds == {"dateline"}:
            style = ' class="date"'
        pieces.append(f"<{tag}{style}{direction.block}>")
        for entry in inside:
            sentence = entry.sentence
            pieces.append(escape(text[start : sentence.start]))
            pieces.append(_marked(text[sentence.start : sentence.end], entry, number))
            number += entry.chosen
            start = sentence.end
        pieces.append(f"{escape(text[start:end])}</{tag}>")
    return "".join(pieces)


def _blocks(
    text: str, entries: Sequence[MarkedSentence]
) -> Iterator[tuple[int, int, list[MarkedSentence]]]:
    """Cut a text into paragraphs, with the sentences that begin in each."""
    begin, following, inside = 0, 0, list[MarkedSentence]()
    for cut in [*(start for start, _ in paragraphs(text)), len(text)]:
        while following < len(entries) and entries[following].sentence.start < cut:
            inside.append(entries[following])
            following += 1
        if cut == begin or (inside and inside[-1].sentence.end > cut):
            continue
        yield begin, cut, inside
        begin, inside = cut, []


def _marked(text: str, entry: MarkedSentence, number: int) -> str:
    if entry.probability is None:
        note, shade = "not a candidate", 0
    else:
        note = f"probability {percent(entry.probability)}"
        shade = sum(entry.probability >= edge for edge in _SHADES)
    if entry.chosen:
        return (
            f'<mark id="s{number}" title="chosen, {note}"><a class="back" '
            f'href="#n{number}" data-n="{number}" aria-label="Sentence {number} of the '
            f'summary"></a>{escape(text)}</mark>'
        )
    style = f' class="p{shade}"' if shade else ""
    return f'<span{style} title="{note}">{escape(text)}</span>'
