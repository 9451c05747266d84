"""Documents of pages: paragraphs of placed text, and their kinds.

Pages of PDF files and of the output of ``pdftotext``, which ends pages by form feeds,
are read alike.  A line is a :class:`~variegate.text.columns.Piece`, a column a list of
lines from top to bottom; ``character`` is the width of a letter, in the unit of
``left`` and ``right``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from variegate.text.columns import (
    Piece,
    columns_of,
    has_words,
    without_running_lines,
)
from variegate.text.documents import Document, Kind
from variegate.text.layout import LIST_ITEM
from variegate.text.markup import Passage, as_document
from variegate.text.words import ends_sentence

_CAPTION = re.compile(
    r"(?:fig(?:ure|\.)?|table|tab\.|algorithm|listing|abbildung|abb\.|tabelle|tableau|"
    r"obrázek|tabulka)\s*(?:\d+|[A-Z]\.?\d+|[IVX]+)(?:\.\d+)*\s*(?:[.:|—–-]|$)",
    re.I,
)
_LEADERS = re.compile(r"(?:\. ?){5,}|…{2,}")
_NUMBERED_HEADING = re.compile(
    r"(?:(?:chapter|section|appendix)\s+)?(?:\d{1,3}|[A-Z])(?:\.\d{1,3})*\.?\s+\S", re.I
)
_LIST_HEADING = re.compile(
    r"(?:\d+(?:\.\d+)*\.?\s*)?(?:references(?: and notes)?|notes and references|"
    r"bibliography|works cited|literature(?: cited)?|literatur(?:verzeichnis)?|"
    r"bibliographie|literatura|key ?words|index terms|ccs concepts)\W*",
    re.I,
)
_CONTENTS = re.compile(
    r"(?:(?:table of )?contents|inhalt(?:sverzeichnis)?|table des matières|obsah)\W*",
    re.I,
)
_LONGEST_ENTRY = 25  # words of an entry of contents
_KEYWORDS = re.compile(
    r"(?:key ?words|index terms|schlüsselwörter|mots[- ]clés|klíčová slova)\b"
    r"[^.]{0,20}?[:—–-]",
    re.I,
)
_OPEN_ADDRESS = re.compile(r"(?:https?://|www\.)\S*[/.&=?_-]$")
_PLAIN_WORDS = re.compile(r"(?:[^\W_]|[\s'’,&()?!/–—-])+")
# Geometric shapes, dingbats and letters for private use: bullets of symbol fonts.
_BULLET = re.compile(r"^[•‣◦∙\u25a0-\u25ff\u2700-\u27bf\ue000-\uf8ff]\s*")
_OPENING = "([\"'“‘"
_HYPHENATED = re.compile(r"([^\W\d_]+)[-\u2010\u00ad]$")
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_LONGEST_END = 300  # characters of an address or a word that continues on a line


class _Paragraph(NamedTuple):
    """The lines of a paragraph and its kind."""

    lines: list[Piece]
    kind: Kind
    number: int  # position in the document of the column that it begins in
    is_full: bool  # the last line has no room for another word


def _starts_lower(text: str) -> bool:
    """Whether a text, after brackets and quotes, begins in lower case."""
    return text.lstrip(_OPENING)[:1].islower()


def _ends_before(
    paragraph: list[Piece], line: Piece, right: float, pitch: float, character: float
) -> bool:
    """Whether ``line``, below the lines of ``paragraph``, begins another one.

    Full lines of the column end at ``right``; ``pitch`` is as ``_line_pitch``, and
    ``character`` the width of a letter.
    """
    last = paragraph[-1]
    is_item = LIST_ITEM.match(paragraph[0].text) is not None
    room = (right - last.right) / character
    width = right - min(last.left, line.left)
    return (
        line.base - last.base > 1.35 * pitch * max(last.size, line.size)
        or abs(line.size - last.size) > 0.12 * max(last.size, line.size)
        or (
            LIST_ITEM.match(line.text) is not None
            and (is_item or room > 2 or last.text[-1] in ".!?:;,")
        )
        or line.is_row != last.is_row
        or (
            line.left - last.left > 1.5 * character
            and not (is_item and len(paragraph) == 1)
        )
        or (
            not _starts_lower(line.text)
            and room > len(line.text.split(maxsplit=1)[0]) + 1
            and (ends_sentence(last.text) or last.right - last.left < 0.8 * width)
        )
    )


def _line_pitch(columns: Sequence[list[Piece]]) -> float:
    """Return the usual distance of base lines in paragraphs, in sizes of letters.

    It is the median over lines in lower case, which continue a paragraph; with fewer
    than three, the least of all distances, or 1.
    """
    steps = [
        ((line.base - last.base) / line.size, line.text[0].islower())
        for column in columns
        for last, line in pairwise(column)
    ]
    within = [step for step, is_lower in steps if is_lower]
    if len(within) >= 3:
        return median(within)
    return min((step for step, _ in steps), default=1.0)


def _right_edge(column: list[Piece]) -> float:
    """Return the 90 % quantile of right ends of lines in letters of the median size."""
    size = median(line.size for line in column)
    rights = sorted(
        line.right for line in column if abs(line.size - size) < 0.12 * size
    ) or [max(line.right for line in column)]
    return rights[math.ceil(0.9 * (len(rights) - 1))]


def _paragraphs(columns: Sequence[list[Piece]], character: float) -> list[_Paragraph]:
    """Return the paragraphs of a document; one may continue in a later column."""
    pitch = _line_pitch(columns)
    groups: list[tuple[list[Piece], int, float]] = []
    for number, column in enumerate(columns):
        right = _right_edge(column)
        for place, line in enumerate(column):
            if place and not _ends_before(groups[-1][0], line, right, pitch, character):
                groups[-1][0].append(line)
            else:
                groups.append(([line], number, right - 3 * character))
    sizes = Counter[float]()
    for lines, *_ in groups:
        for line in lines:
            sizes[round(line.size, 1)] += len(line.text)
    body_size = max(sizes, key=lambda size: sizes[size])
    return _join_over_columns(
        [
            _Paragraph(lines, _kind_of(lines, body_size), n, lines[-1].right > edge)
            for lines, n, edge in groups
        ]
    )


def _kind_of(lines: list[Piece], body_size: float) -> Kind:
    """Return "headline", "body" or "other", by words, layout and size of letters.

    "other" are captions, keywords, tables, formulas and footnotes.  ``body_size`` is
    the size of most letters of the document.
    """
    text = " ".join(line.text for line in lines)
    size, n_words = lines[0].size, len(text.split())
    if (
        _CAPTION.match(text)
        or _KEYWORDS.match(text)
        or _LEADERS.search(text)
        or not has_words(text)
        or sum(line.is_row for line in lines) >= 0.5 * len(lines)
    ):
        return "other"
    if n_words <= 30 and size > 1.12 * body_size:
        return "headline"
    if size < 0.85 * body_size:
        return "other"  # footnotes
    if ends_sentence(text) or LIST_ITEM.match(text) or text[0].islower():
        return "body"
    if n_words <= 15 and _NUMBERED_HEADING.match(text):
        return "headline"
    short = n_words <= 8 and len(lines) == 1 and _PLAIN_WORDS.fullmatch(text)
    return "headline" if short else "body"


def _join_over_columns(paragraphs: list[_Paragraph]) -> list[_Paragraph]:
    """Join paragraphs that continue in another column.

    Contents, keywords and references, the body below such a heading, become "other".
    """
    result: list[_Paragraph] = []
    body: int | None = None  # position in result of the last paragraph of the body
    listing: Piece | None = None  # heading of contents, keywords or a bibliography
    for one in paragraphs:
        first = one.lines[0]
        if one.kind == "headline":
            if len(one.lines) == 1 and (
                _LIST_HEADING.fullmatch(first.text) or _CONTENTS.fullmatch(first.text)
            ):
                listing = first
            elif listing is not None and first.size >= 0.98 * listing.size:
                listing = None
        elif listing is not None:
            n_words = sum(len(line.text.split()) for line in one.lines)
            if n_words > _LONGEST_ENTRY and _CONTENTS.fullmatch(listing.text):
                listing = None
            else:
                one = one._replace(kind="other")
        if one.kind == "body" and body is not None and _continues(result[body:], one):
            result[body].lines.extend(one.lines)
            result[body] = one._replace(lines=result[body].lines)
            continue
        if one.kind == "body":
            body = len(result)
        result.append(one)
    return result


def _continues(before: list[_Paragraph], one: _Paragraph) -> bool:
    """Whether paragraph ``one`` continues ``before[0]``, the last one of the body.

    The rest of ``before`` are the headlines, captions and footnotes between them.
    """
    start, first = before[0], one.lines[0].text
    is_cut = start.is_full and len(start.lines) > 1 and not LIST_ITEM.match(first)
    return (
        start.number != one.number
        and (_starts_lower(first) or is_cut)
        and not ends_sentence(start.lines[-1].text)
        and not any(between.kind == "headline" for between in before)
    )


def _paragraph_text(lines: list[Piece], words: Counter[str]) -> str:
    """Return the text of a paragraph on one line, without hyphens of line ends.

    ``words`` counts the words of the document in lower case; a hyphen stays where the
    word is more often written with it.
    """
    pieces = [""]
    end = ""  # of the text so far
    for line in lines:
        broken = _HYPHENATED.search(end)
        following = _WORD.match(line.text)
        added = line.text
        if not (broken and following and following[0][0].islower()):
            added = added if not end or _OPEN_ADDRESS.search(end) else f" {added}"
        elif not _keeps_hyphen(broken[1].lower(), following[0].lower(), words):
            pieces[-1], end = pieces[-1][:-1], end[:-1]
        pieces.append(added)
        end = (end + added)[-_LONGEST_END:]
    return " ".join("".join(pieces).split())


def _keeps_hyphen(first: str, second: str, words: Counter[str]) -> bool:
    """Whether the hyphen between parts of a word, at a line end, is one of the word."""
    return words[first + second] < words[f"{first}-{second}"] or (
        not words[first + second]
        and min(len(first), len(second)) >= 3
        and words[first] > 1  # not only in this place
        and words[second] > 1
    )


def pages_document(pages: Sequence[list[Piece]], reader: str) -> Document:
    """Return the text of pages in reading order, with the kinds of its paragraphs.

    ``pages`` has the pieces of each page; ``reader`` names the program that read them.
    Page numbers and running heads and feet are left out.  Headings, tables, captions,
    footnotes, contents and bibliographies are blocks of other kinds than body.
    """
    pages = [
        [one._replace(text=_BULLET.sub("• ", one.text)) for one in page]
        for page in without_running_lines(pages)
    ]
    widths = [(p.right - p.left) / len(p.text) for page in pages for p in page]
    if not widths:
        return Document("", reader=reader)
    character = max(median(widths), 1e-6)
    columns = [column for page in pages for column in columns_of(page, character)]
    words = Counter(
        word
        for column in columns
        for line in column
        for word in _WORD.findall(line.text.replace("\u2010", "-").lower())
    )
    passages = [
        Passage(one.kind, _BULLET.sub("", _paragraph_text(one.lines, words)))
        for one in _paragraphs(columns, character)
    ]
    return as_document([one for one in passages if one.text], reader)
