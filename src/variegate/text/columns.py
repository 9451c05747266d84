"""Lines of placed text in reading order: running lines, columns, rows of tables.

A page is a list of :class:`Piece`, text without a wide gap at a place on the page.  A
row is a list of the pieces on one base line; ``character`` is the width of a letter.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import NamedTuple

#: Spaces that part two pieces of a row.
WIDE_GAP = 3

_PIECE = re.compile(r"\S+(?: {1,2}\S+)*")
_DIGITS = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"\W*(?:(?:page|seite|p\.)\s*)?(?:\d+|[ivxlc]+)(?:\s*(?:/|of|de|von)\s*\d+)?\W*",
    re.I,
)
_EDGE_ROWS = 4  # at the top and the bottom of a page, that may be running lines
_ALONE = 1.6  # sizes of letters from a running line to the text
_CELL_GAP = 8  # characters between cells of a table, and from its left edge to them
_FEWEST_LINES = 4  # of a column
_MOST_DIVISIONS = 16  # of a page into bands and columns
_SHORTEST_LINE = 20  # characters of lines of columns; cells of tables are shorter


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
    """Return the pieces of each page of a text, whose pages end with form feeds."""
    return [
        [
            Piece(match[0], match.start(), match.end(), row, 1.0)
            for row, line in enumerate(re.split("\r\n|[\n\r]", page))
            for match in _PIECE.finditer(line.expandtabs())
        ]
        for page in text.split("\f")
    ]


def _group_into_rows(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """Return pieces of like base line as rows, top to bottom, each left to right."""
    rows: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda one: (one.base, one.left)):
        if rows and piece.base - rows[-1][0].base < 0.5 * piece.size:
            rows[-1].append(piece)
        else:
            rows.append([piece])
    return [sorted(row, key=lambda one: one.left) for row in rows]


def _is_page_number(row: list[Piece]) -> bool:
    """Whether a row has a page number at one end, far from its neighbour, or alone."""
    number, neighbour = row[0], row[min(1, len(row) - 1)]
    if not _PAGE_NUMBER.fullmatch(number.text):
        neighbour, number = row[-2:] if len(row) > 1 else (number, number)
    character = (neighbour.right - neighbour.left) / len(neighbour.text)
    gap = max(number.left - neighbour.right, neighbour.left - number.right)
    is_far = len(row) == 1 or gap > 3 * WIDE_GAP * character
    return is_far and _PAGE_NUMBER.fullmatch(number.text) is not None


def without_running_lines(pages: Sequence[list[Piece]]) -> list[list[Piece]]:
    """Return pages without page numbers and lines that repeat at their edges."""
    all_rows = [_group_into_rows(page) for page in pages]
    tops = _n_running_rows([rows[:_EDGE_ROWS] for rows in all_rows])
    all_rows = [rows[n:] for rows, n in zip(all_rows, tops, strict=True)]
    feet = _n_running_rows([rows[: -_EDGE_ROWS - 1 : -1] for rows in all_rows])
    return [
        [piece for row in rows[: len(rows) - n] for piece in row]
        for rows, n in zip(all_rows, feet, strict=True)
    ]


def _n_running_rows(edges: Sequence[list[list[Piece]]]) -> list[int]:
    """Return how many rows at one edge of each page are running lines.

    ``edges`` has the outer rows of each page, from the edge inward.  Running lines are
    page numbers, lines that repeat on another page, and lines by themselves at a height
    where other pages have such lines.
    """
    counts = Counter(text for rows in edges for text in set(map(_row_key, rows)))

    def repeats(row: list[Piece]) -> bool:
        """Whether a row repeats on another page or is a page number."""
        return counts[_row_key(row)] > 1 or _is_page_number(row)

    heights = Counter(
        height
        for rows in edges
        for height in {_row_height(row) for row in rows if repeats(row)}
    )
    numbers = []
    for rows in edges:
        number = 0
        for row, inner in zip_longest(rows, rows[1:]):
            is_usual = heights[_row_height(row)] >= max(3, 0.1 * len(edges))
            is_alone = inner is None or abs(inner[0].base - row[0].base) > (
                _ALONE * max(row[0].size, inner[0].size)
            )
            if not (repeats(row) or (is_usual and is_alone)):
                break
            number += 1
        numbers.append(number)
    return numbers


def _row_key(row: list[Piece]) -> tuple[str, int]:
    """Return a key that is equal for running lines: digits as 0, and the size."""
    # A title in larger letters is not the running head that repeats it.
    text = " ".join(piece.text for piece in row)
    return _DIGITS.sub("0", text), round(row[0].size)


def _row_height(row: list[Piece]) -> tuple[int, int]:
    """Return the base line and the size of letters of a row, both rounded."""
    return round(row[0].base), round(row[0].size)


def _find_gutter(pieces: list[Piece], character: float) -> float | None:
    """Return the left edge of the second of two columns of text.

    None if the text is in one column.  Of several edges, it is the one where the two
    columns hold most characters, more than half of all.
    """
    slack = 2 * character
    lefts = Counter(round(piece.left / slack) * slack for piece in pieces)
    best, most = None, 0.5 * _n_characters(pieces)
    for cut, _ in lefts.most_common(20):
        first = [piece for piece in pieces if piece.right <= cut + slack]
        second = [piece for piece in pieces if piece.left >= cut - slack]
        n_lines = min(len(first), len(second))
        n_characters = _n_characters(first) + _n_characters(second)
        if n_lines < _FEWEST_LINES or n_characters <= most:
            continue
        if min(_typical_length(side) for side in (first, second)) < _SHORTEST_LINE:
            continue  # a table
        tops = max(min(one.base for one in side) for side in (first, second))
        bottoms = min(max(one.base for one in side) for side in (first, second))
        side_by_side = sum(tops <= one.base <= bottoms for one in (*first, *second))
        if side_by_side >= 0.5 * n_lines:
            best, most = cut, n_characters
    return best


def _n_characters(pieces: Iterable[Piece]) -> int:
    """Return the length of all texts together."""
    return sum(len(piece.text) for piece in pieces)


def _typical_length(pieces: list[Piece]) -> float:
    """Return the mean length of pieces, each weighted by its length."""
    lengths = [len(piece.text) for piece in pieces]
    return sum(length**2 for length in lengths) / sum(lengths)


def columns_of(
    pieces: list[Piece], character: float, depth: int = 0
) -> Iterator[list[Piece]]:
    """Yield the lines of each column of a page, columns in reading order.

    Pieces across both columns divide the page into bands, which follow each other; a
    page is divided ``_MOST_DIVISIONS`` times at most, of which ``depth`` are done.
    """
    cut = _find_gutter(pieces, character) if depth < _MOST_DIVISIONS else None
    if cut is None:
        if pieces:
            yield _column_lines(_group_into_rows(pieces), character)
        return

    def side(piece: Piece) -> int:
        """Return 0 for the first column, 1 for the second, 2 for both."""
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
            yield from columns_of(part, character, depth + 1)


def _join_row(row: list[Piece], character: float) -> Piece:
    """Return the pieces of a row joined by spaces; ``is_row`` if they are cells."""
    text = " ".join(piece.text for piece in row)
    size = max(row, key=lambda one: len(one.text)).size
    is_row = len(row) > 2
    if len(row) == 2:
        is_far = row[1].left - row[0].right > _CELL_GAP * character
        is_row = is_far or not has_words(text)
    return Piece(text, row[0].left, row[-1].right, row[0].base, size, is_row)


def _column_lines(rows: Iterable[list[Piece]], character: float) -> list[Piece]:
    """Return rows as lines; indented ones below a table row count as table rows."""
    lines: list[Piece] = []
    left = math.inf
    for row in rows:
        line = _join_row(row, character)
        left = min(left, line.left)
        if lines and lines[-1].is_row:
            is_close = line.base - lines[-1].base < 1.5 * max(line.size, lines[-1].size)
            if is_close and line.left - left > _CELL_GAP * character:
                line = line._replace(is_row=True)
        lines.append(line)
    return lines


def has_words(text: str) -> bool:
    """Whether at least half of the characters, without spaces, are letters."""
    return sum(map(str.isalpha, text)) >= 0.5 * len(text.replace(" ", ""))
