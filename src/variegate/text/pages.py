"""Documents of pages: reading order, running heads and paragraphs of placed text.

A page is a list of :class:`Piece`, text without a wide gap at a place on the page.
Pages of PDF files and of the output of ``pdftotext``, which ends pages by form feeds,
are read alike.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise, takewhile
from statistics import median
from typing import NamedTuple

from variegate.text.documents import Document, Kind
from variegate.text.layout import LIST_ITEM
from variegate.text.markup import Passage, as_document
from variegate.text.words import ends_sentence

#: Spaces that part two pieces of a row.
WIDE_GAP = 3

_PIECE = re.compile(r"\S+(?: {1,2}\S+)*")
_DIGITS = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"\W*(?:(?:page|seite|p\.)\s*)?(?:\d+|[ivxlc]+)(?:\s*(?:/|of|de|von)\s*\d+)?\W*",
    re.I,
)
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
    r"(?:\d+(?:\.\d+)*\.?\s*)?(?:references|bibliography|works cited|literatur|"
    r"bibliographie|literatura|(?:table of )?contents|inhalt(?:sverzeichnis)?|index|"
    r"table des matières|obsah)\W*",
    re.I,
)
_PLAIN_WORDS = re.compile(r"(?:[^\W_]|[\s'’,&()?!/–—-])+")
# Letters for private use are the bullets of symbol fonts.
_BULLET = re.compile(r"^[•‣▪◦∙●■➢➤►▸✓✔\ue000-\uf8ff]\s*")
_OPENING = "([\"'“‘"
_HYPHENATED = re.compile(r"([^\W\d_]+)[-\u2010\u00ad]$")
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_CELL_GAP = 8  # characters between cells of a table, and from its left edge to them
_EDGE_ROWS = 4  # at the top and the bottom of a page, that may be running lines


class Piece(NamedTuple):
    """Text without a wide gap, or a line of a column, which may be a row of a table.

    ``base`` is the distance of its base line from the top of the page, ``size`` the
    height of its letters in the same unit; ``left`` and ``right`` may have another.
    """

    text: str
    left: float
    right: float
    base: float
    size: float
    is_row: bool = False


def text_pages(text: str) -> list[list[Piece]]:
    """Return the pages of a text that are parted by form feeds."""
    return [
        [
            Piece(match[0], match.start(), match.end(), row, 1.0)
            for row, line in enumerate(re.split("\r\n|[\n\r]", page))
            for match in _PIECE.finditer(line.expandtabs())
        ]
        for page in text.split("\f")
    ]


def _rows(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """Return the pieces on one base line together, from top to bottom."""
    rows: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda one: (one.base, one.left)):
        if rows and piece.base - rows[-1][0].base < 0.5 * piece.size:
            rows[-1].append(piece)
        else:
            rows.append([piece])
    return [sorted(row, key=lambda one: one.left) for row in rows]


def _is_page_number(row: list[Piece]) -> bool:
    """Whether a row is a page number, alone or far from the rest of the row."""
    number, neighbour = row[0], row[min(1, len(row) - 1)]
    if not _PAGE_NUMBER.fullmatch(number.text):
        neighbour, number = row[-2:] if len(row) > 1 else (number, number)
    character = (neighbour.right - neighbour.left) / len(neighbour.text)
    gap = max(number.left - neighbour.right, neighbour.left - number.right)
    is_far = len(row) == 1 or gap > 3 * WIDE_GAP * character
    return is_far and _PAGE_NUMBER.fullmatch(number.text) is not None


def _without_running_lines(pages: Sequence[list[Piece]]) -> list[list[Piece]]:
    """Leave out page numbers, and lines that repeat at the edges of pages."""
    all_rows = [_rows(page) for page in pages]
    tops = _n_running([rows[:_EDGE_ROWS] for rows in all_rows])
    all_rows = [rows[n:] for rows, n in zip(all_rows, tops, strict=True)]
    feet = _n_running([rows[: -_EDGE_ROWS - 1 : -1] for rows in all_rows])
    return [
        [piece for row in rows[: len(rows) - n] for piece in row]
        for rows, n in zip(all_rows, feet, strict=True)
    ]


def _n_running(edges: Sequence[list[list[Piece]]]) -> list[int]:
    """Return how many rows of each page are running lines, from the edge inward."""

    def key(row: list[Piece]) -> tuple[str, int]:
        # A title in larger letters is not the running head that repeats it.
        text = " ".join(piece.text for piece in row)
        return _DIGITS.sub("0", text), round(row[0].size)

    counts = Counter(text for rows in edges for text in {key(row) for row in rows})
    numbers = []
    for rows in edges:
        running = takewhile(
            lambda row: counts[key(row)] > 1 or _is_page_number(row), rows
        )
        numbers.append(sum(1 for _ in running))
    return numbers


def _gutter(pieces: list[Piece], character: float) -> float | None:
    """Return where the second of several columns of text begins, if there are any."""
    slack = 2 * character
    lefts = Counter(round(piece.left / slack) * slack for piece in pieces)
    best, most = None, 3  # columns have at least four lines
    for cut, _ in lefts.most_common(20):
        first = [piece for piece in pieces if piece.right <= cut + slack]
        second = [piece for piece in pieces if piece.left >= cut - slack]
        n_lines = min(len(first), len(second))
        if n_lines <= most or len(first) + len(second) < 0.5 * len(pieces):
            continue
        if min(_typical_length(side) for side in (first, second)) < 20:
            continue  # a table
        tops = max(min(one.base for one in side) for side in (first, second))
        bottoms = min(max(one.base for one in side) for side in (first, second))
        side_by_side = sum(tops <= one.base <= bottoms for one in (*first, *second))
        if side_by_side >= 0.5 * n_lines:
            best, most = cut, n_lines
    return best


def _typical_length(pieces: list[Piece]) -> float:
    """Return the mean length of the piece that a character is in.

    Parts of formulas beside the text count little.
    """
    lengths = [len(piece.text) for piece in pieces]
    return sum(length**2 for length in lengths) / sum(lengths)


def _columns(pieces: list[Piece], character: float) -> Iterator[list[Piece]]:
    """Yield columns in reading order; lines across all columns divide them."""
    cut = _gutter(pieces, character)
    if cut is None:
        if pieces:
            yield _lines(_rows(pieces), character)
        return

    def side(piece: Piece) -> int:
        if piece.right <= cut + 2 * character:
            return 0
        return 1 if piece.left >= cut - 2 * character else 2

    ordered = sorted(pieces, key=lambda one: one.base)
    for across, band in groupby(ordered, key=lambda one: side(one) == 2):
        group = list(band)
        parts = (
            [group] if across else [[p for p in group if side(p) == n] for n in (0, 1)]
        )
        for part in parts:
            yield from _columns(part, character)


def _line(row: list[Piece], character: float) -> Piece:
    text = " ".join(piece.text for piece in row)
    size = max(row, key=lambda one: len(one.text)).size
    is_row = len(row) > 2
    if len(row) == 2:
        is_far = row[1].left - row[0].right > _CELL_GAP * character
        is_row = is_far or not _has_words(text)
    return Piece(text, row[0].left, row[-1].right, row[0].base, size, is_row)


def _lines(rows: Iterable[list[Piece]], character: float) -> list[Piece]:
    """Return the lines of a column; those below cells of a row belong to the row."""
    lines: list[Piece] = []
    for row in rows:
        line = _line(row, character)
        if lines and lines[-1].is_row:
            is_close = line.base - lines[-1].base < 1.5 * max(line.size, lines[-1].size)
            if is_close and line.left - lines[0].left > _CELL_GAP * character:
                line = line._replace(is_row=True)
        lines.append(line)
    return lines


class _Paragraph(NamedTuple):
    lines: list[Piece]
    kind: Kind
    number: int  # of the column it begins in


def _has_words(text: str) -> bool:
    return sum(map(str.isalpha, text)) >= 0.5 * len(text.replace(" ", ""))


def _starts_lower(text: str) -> bool:
    return text.lstrip(_OPENING)[:1].islower()


def _ends_before(
    paragraph: list[Piece], line: Piece, right: float, pitch: float, character: float
) -> bool:
    """Whether a line of the same column begins another paragraph."""
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


def _pitch(columns: Sequence[list[Piece]]) -> float:
    """Return the distance of the lines of a paragraph, in sizes of their letters."""
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
    """Return where full lines end: of the letters of most lines, but few outliers."""
    size = median(line.size for line in column)
    rights = sorted(
        line.right for line in column if abs(line.size - size) < 0.12 * size
    ) or [max(line.right for line in column)]
    return rights[math.ceil(0.9 * (len(rights) - 1))]


def _paragraphs(columns: Sequence[list[Piece]], character: float) -> list[_Paragraph]:
    """Return the lines of each paragraph, one over several columns included."""
    pitch = _pitch(columns)
    groups: list[tuple[list[Piece], int]] = []
    for number, column in enumerate(columns):
        right = _right_edge(column)
        for place, line in enumerate(column):
            if place and not _ends_before(groups[-1][0], line, right, pitch, character):
                groups[-1][0].append(line)
            else:
                groups.append(([line], number))
    sizes = Counter[float]()
    for lines, _ in groups:
        for line in lines:
            sizes[round(line.size, 1)] += len(line.text)
    body_size = max(sizes, key=lambda size: sizes[size])
    return _over_columns(
        [_Paragraph(lines, _kind(lines, body_size), n) for lines, n in groups]
    )


def _kind(lines: list[Piece], body_size: float) -> Kind:
    text = " ".join(line.text for line in lines)
    size, n_words = lines[0].size, len(text.split())
    if (
        _CAPTION.match(text)
        or _LEADERS.search(text)
        or not _has_words(text)
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


def _over_columns(paragraphs: list[_Paragraph]) -> list[_Paragraph]:
    """Join paragraphs that go on in another column; mark contents and references."""
    result: list[_Paragraph] = []
    body: int | None = None  # place of the last paragraph of the body
    listing: float | None = None  # size of the heading of contents or a bibliography
    for one in paragraphs:
        first = one.lines[0]
        if one.kind == "headline":
            if len(one.lines) == 1 and _LIST_HEADING.fullmatch(first.text):
                listing = first.size
            elif listing is not None and first.size >= 0.98 * listing:
                listing = None
        elif listing is not None:
            one = one._replace(kind="other")
        if one.kind == "body" and body is not None:
            before = result[body]
            if (
                before.number != one.number
                and _starts_lower(first.text)
                and not ends_sentence(before.lines[-1].text)
                and not any(between.kind == "headline" for between in result[body:])
            ):
                lines = [*before.lines, *one.lines]
                result[body] = before._replace(lines=lines, number=one.number)
                continue
        if one.kind == "body":
            body = len(result)
        result.append(one)
    return result


def _joined(lines: list[Piece], words: Counter[str]) -> str:
    """Return the text of a paragraph on one line, without hyphens of line ends."""
    text = ""
    for line in lines:
        broken = _HYPHENATED.search(text)
        following = _WORD.match(line.text)
        if not (broken and following and following[0][0].islower()):
            text += " " * bool(text) + line.text
            continue
        first, second = broken[1].lower(), following[0].lower()
        if words[first + second] < words[f"{first}-{second}"] or (
            not words[first + second]
            and min(len(first), len(second)) >= 3
            and words[first] > 1  # not only in this place
            and words[second] > 1
        ):
            text += line.text  # a hyphen of the word
        else:
            text = text[:-1] + line.text
    return " ".join(text.split())


def pages_document(pages: Sequence[list[Piece]], reader: str) -> Document:
    """Return the text of pages in reading order, with the kinds of its paragraphs.

    Page numbers and running heads and feet are left out.  Headings, tables, captions,
    footnotes, contents and bibliographies are blocks of other kinds than body.
    """
    pages = [
        [one._replace(text=_BULLET.sub("• ", one.text)) for one in page]
        for page in _without_running_lines(pages)
    ]
    widths = [(p.right - p.left) / len(p.text) for page in pages for p in page]
    if not widths:
        return Document("", reader=reader)
    character = max(median(widths), 1e-6)
    columns = [column for page in pages for column in _columns(page, character)]
    words = Counter(
        word
        for column in columns
        for line in column
        for word in _WORD.findall(line.text.replace("\u2010", "-").lower())
    )
    passages = [
        Passage(one.kind, _BULLET.sub("", _joined(one.lines, words)))
        for one in _paragraphs(columns, character)
    ]
    return as_document([one for one in passages if one.text], reader)
