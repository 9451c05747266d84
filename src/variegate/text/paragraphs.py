"""Paragraphs, and which of them are headlines or date lines.

A text is cut at blank lines, and at every newline that does not merely wrap a long
line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from variegate.text.documents import Kind
from variegate.text.languages import LANGUAGES, Language

__all__ = ["CLOSERS", "INVISIBLE", "MARKS", "kinds", "paragraphs", "trim"]

Span = tuple[int, int]

# For character classes.  Vowel signs and accents are parts of words, though neither
# Python nor syntok says so.
MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f"
    "\u0951-\u0957\u0962\u0963"
)
INVISIBLE = "\ufeff\u200b-\u200f\u202a-\u202e\u2060-\u2069\u00ad"
CLOSERS = "\"'\u2019\u201c\u201d\u00bb\u203a\u05f3\u05f4\x94)\\]}"

# Python takes \x85 for white space; in texts it is an ellipsis of Windows-1252.
_BREAK = re.compile("\r\n|[\n\r\x0b\x0c\u2028\u2029]")
_LEADING = re.compile(rf"(?:[^\S\x85]|[{INVISIBLE}])*+")
_EDGE = re.compile(rf"[^\S\x85]|[{INVISIBLE}]")
_WORD = re.compile(rf"[\w{MARKS}]+")
_LIST_ITEM = re.compile(r"(?:[-*+•‣▪◦]|\d{1,3}[.)]|\(?[a-zA-Z]\))\s")
_ENDS_SENTENCE = re.compile(rf"[.!?…।॥|؟۔;\u037e][\s{CLOSERS}]*$")
_NUMERIC_DATE = re.compile(r"\d{1,4}([/.-])\d{1,2}\1\d{1,4}(?!\d)")
_DAY_AND_YEAR = re.compile(r"(?<!\d)\d{1,2}\D+\d{4}(?!\d)")
_ALL_DATES = frozenset[str]().union(*(entry.dates for entry in LANGUAGES.values()))


class _Line(NamedTuple):
    """A line that is not blank: where it begins, and where its text does."""

    begin: int
    start: int
    end: int
    after_blank: bool


def trim(text: str, start: int, end: int) -> Span:
    """Leave out white space and invisible characters at both ends."""
    match = _LEADING.match(text, start, end)
    start = match.end() if match else start
    while end > start and _EDGE.match(text, end - 1):
        end -= 1
    return start, end


def _lines(text: str) -> Iterator[_Line]:
    begin, blank = 0, True
    for stop, after in (
        *((match.start(), match.end()) for match in _BREAK.finditer(text)),
        (len(text), len(text)),
    ):
        start, end = trim(text, begin, stop)
        if start < end:
            yield _Line(begin, start, end, blank)
        blank = start == end
        begin = after


def _fills(text: str, line: _Line, following: _Line, width: int) -> bool:
    """Whether the first word of the following line had no room on this one."""
    word = len(text[following.start : following.end].split(maxsplit=1)[0])
    return line.end - line.begin + 1 + word > width


def _wrap_width(text: str, lines: list[_Line]) -> int | None:
    """Return the width at which the lines of a text were wrapped, if they were.

    They were when nearly all are within 50-100 characters and most had no room for
    the word that follows.  One or two such lines prove nothing; then the next line
    must also go on in lower case.
    """
    inner = [
        (line, following)
        for line, following in pairwise(lines)
        if not following.after_blank and not _LIST_ITEM.match(text, following.start)
    ]
    if not inner:
        return None
    lengths = sorted(line.end - line.begin for line, _ in inner)
    width = lengths[int(0.9 * (len(lengths) - 1))]
    if not 50 <= width <= 100:
        return None
    filled = [pair for pair in inner if _fills(text, *pair, width)]
    if len(filled) < 3:
        filled = [pair for pair in filled if text[pair[1].start].islower()]
    return width if len(filled) > 0.6 * len(inner) else None


def paragraphs(text: str) -> list[Span]:
    """Return the spans of the paragraphs; wrapped lines are one paragraph."""
    lines = list(_lines(text))
    width = _wrap_width(text, lines)
    spans: list[Span] = []
    last: _Line | None = None
    for line in lines:
        joins = (
            last is not None
            and width is not None
            and not line.after_blank
            and _fills(text, last, line, width)
            and line.start - line.begin <= max(1, last.start - last.begin)
            and not _LIST_ITEM.match(text, line.start)
        )
        if joins:
            spans[-1] = (spans[-1][0], line.end)
        else:
            spans.append((line.start, line.end))
        last = line
    return spans


def _is_dateline(line: str, language: Language | None) -> bool:
    """Whether a line is a date, with at most two words beside it."""
    if len(line) > 100 or not re.search(r"\d", line):
        return False
    names = _ALL_DATES if language is None else language.dates
    words = [word for word in _WORD.findall(line.lower()) if not word[0].isdigit()]
    others = sum(word not in names for word in words)
    written = _NUMERIC_DATE.search(line) or _DAY_AND_YEAR.search(line)
    return others <= 2 and (others < len(words) or written is not None)


def kinds(lines: list[str], language: Language | None) -> list[Kind]:
    """Say what each paragraph of a document is.

    The first line is a headline when sentences follow and it is short and has no
    full stop, or begins with a date, or stands before a date line.  Later, one or two
    very short lines without a full stop before a paragraph are headings; more of
    them are a list.
    """
    result: list[Kind] = ["body"] * len(lines)
    length = [len(line[:1000].split()) for line in lines]
    ends = [_ENDS_SENTENCE.search(line[-20:]) is not None for line in lines]
    sentences = [n for n, line in enumerate(lines) if ends[n]]
    if not sentences:
        return result
    dates = [n for n, line in enumerate(lines[:3]) if _is_dateline(line, language)]
    first = 1 if dates[:1] == [0] else 0
    for n in range(first, max(dates, default=0)):
        if length[n] < 40:
            result[n] = "headline"
    if (
        length[first] < 25
        and (not ends[first] or _NUMERIC_DATE.match(lines[first]))
        and not _LIST_ITEM.match(lines[first])
        and any(length[n] > length[first] for n in sentences if n > first)
    ):
        result[first] = "headline"
    run = 0
    for n in range(first + 1, len(lines)):
        if length[n] <= 8 and not ends[n] and not _LIST_ITEM.match(lines[n]):
            run += 1
            continue
        if run <= 2 and not _LIST_ITEM.match(lines[n]):
            result[n - run : n] = ["headline"] * run
        run = 0
    for n in dates:
        result[n] = "dateline"
    return result
