"""Paragraphs of a text, and the kind of each: body, headline, date line or other.

A text is cut at blank lines, and at every newline that does not merely wrap a long
line.  Lists, tables, quotations, headers of mails and short lines are never joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from variegate.text.documents import Block, Document, Kind
from variegate.text.languages import LANGUAGES, Language
from variegate.text.words import ENDS, UNSPACED, count_spaced_words, ends_sentence

Span = tuple[int, int]

# For character classes.  Vowel signs and accents are parts of words.
MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f"
    "\u0951-\u0957\u0962\u0963"
)
INVISIBLE = "\ufeff\u200b-\u200f\u202a-\u202e\u2060-\u2069\u00ad"
CLOSERS = "\"'\u2019\u201c\u201d\u00bb\u203a\u05f3\u05f4\x94)\\]}"

# Python takes \x85 for white space; in texts it is an ellipsis of Windows-1252.
_BREAK = re.compile("\r\n|[\n\r\x0b\x0c\u2028\u2029]|\\Z")
_LEADING = re.compile(rf"(?:[^\S\x85]|[{INVISIBLE}])*+")
_EDGE = re.compile(rf"[^\S\x85]|[{INVISIBLE}]")
_WORD = re.compile(rf"[\w{MARKS}]+")
LIST_ITEM = re.compile(
    r"(?:[-*+•‣▪◦]|\d{1,3}[.)]|\d{1,2}(?:\.\d{1,2})+\.|\(?[a-zA-Z]\))\s+"
)
_ENDS_SENTENCE = re.compile(rf"[.!?…|;\u037e{ENDS}][\s{CLOSERS}」』）】》]*$")
_UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
# Quotations of e-mails; rows whose cells are parted by bars or wide gaps; rules; the
# feet and heads of the pages of an RFC; who has the copyright.
_NO_PROSE = re.compile(
    r"^(?:[>|]|#+\s|\W*$)|\S {5,}\S|\S {4}\S.*\S {4}\S|\[Page \d+\]$"
    r"|^(?i:copyright)\W+(?:©|\([cC]\)|\d)"
)
_FIRST_LETTER = re.compile(r"[\"'`(<\[*:_]{0,3}([^\W\d_])")
_BREAKS_OFF = re.compile(r"(?:,|[^\W\d_A-Z]|\b[A-Z])$")
#: A field of a header: ``Subject: Rain``.
_FIELD = re.compile(r"[A-Z][A-Za-z-]{1,30}:\s")
_NUMERIC_DATE = re.compile(r"\d{1,4}([/.-])\d{1,2}\1\d{1,4}(?!\d)")
_DAY_AND_YEAR = re.compile(r"(?<!\d)\d{1,2}\D+\d{4}(?!\d)")
_COPYRIGHT = re.compile(r"(?i)(?:\S+\s+){0,3}?copyright\W+(?:©|\(c\)|\d)|©|\(c\)\s+\d")
_NUMBERED = re.compile(r"(?:section\s+)?\d{1,3}(?:\.\d{1,3})*[.:)]?\s+(?=\D)", re.I)
_SECTION = re.compile(r"\d{1,3}(?:\.\d{1,3})+[.:)]?(?:\s+\S+){1,5}$")
_LOOSE_DOTS = re.compile(r"[\s,]\.+$|\.\.\]+$")  # "starting with .", "[FILE...]"
_WORD_CHARACTER = re.compile(r"\w")
_ALL_DATES = frozenset[str]().union(*(entry.dates for entry in LANGUAGES.values()))

# The beginning of a line of a log: a time of day, a level in capitals, an address.
_RECORD = re.compile(
    r"\W*(?:\S+\s+){0,3}?\W*(?:\d{1,2}:\d{2}:\d{2}\b"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d|(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL)\b)"
    r"|(?:\d{1,3}\.){3}\d{1,3}\s"
)
_FEWEST_RECORDS = 5

_LONGEST_TITLE = 8  # words; a sentence has more
_LONGEST_LINE = 100  # characters of a line that was wrapped


class _Line(NamedTuple):
    """A line that is not blank, ``text[start:end]`` without white space at its ends."""

    start: int
    end: int
    after_blank: bool  # or the first
    indent: int  # columns before the text; a tab goes to every eighth column
    width: int  # columns to the end of the text, with the indent

    def unindent(self, text: str) -> str:
        """Return the line's string in ``text``, tabs expanded and indent removed."""
        return (" " * self.indent + text[self.start : self.end]).expandtabs().lstrip()


def trim(text: str, start: int, end: int) -> Span:
    """Return (start, end) without white space and invisible characters at the ends."""
    match = _LEADING.match(text, start, end)
    start = match.end() if match else start
    while end > start and _EDGE.match(text, end - 1):
        end -= 1
    return start, end


def _lines_of(text: str) -> Iterator[_Line]:
    """Yield the lines of a text that are not blank."""
    begin, blank = 0, True
    for line_break in _BREAK.finditer(text):
        start, end = trim(text, begin, line_break.start())
        if start < end:
            indent = len(text[begin:start].expandtabs())
            width = len(text[begin:end].expandtabs())
            yield _Line(start, end, blank, indent, width)
        blank = start == end
        begin = line_break.end()


def _fills(text: str, line: _Line, following: _Line, width: int) -> bool:
    """Whether the first word of ``following`` would exceed ``width`` on the line."""
    word = text[following.start : following.end].split(maxsplit=1)[0]
    needed = 1 if _UNSPACED_LETTER.match(word) else len(word)
    return line.width + 1 + needed > width


def _wrap_width(text: str, lines: list[_Line]) -> tuple[int | None, bool]:
    """Return the width in columns of wrapped lines, or None, and if that is certain.

    Lines were wrapped when nearly all are within 50-100 characters and most had no room
    for the next word; it is certain when many next lines begin in lower case.  Of fewer
    than three such lines, only those before lower case count.
    """
    inner = [
        (line, following)
        for line, following in pairwise(lines)
        if not following.after_blank and not LIST_ITEM.match(text, following.start)
    ]
    if not inner:
        return None, False
    lengths = sorted(line.width for line, _ in inner)
    width = lengths[int(0.9 * (len(lengths) - 1))]
    if not 50 <= width <= _LONGEST_LINE:
        return None, False
    filled = [pair for pair in inner if _fills(text, *pair, width)]
    lower = [pair for pair in filled if text[pair[1].start].islower()]
    n_filled = len(filled if len(filled) >= 3 else lower)
    certain = len(lower) >= max(3, 0.15 * len(inner))
    return (width if certain or n_filled > 0.6 * len(inner) else None), certain


def _continues(
    text: str, paragraph: list[_Line], line: _Line, width: int, is_mail: bool
) -> bool:
    """Whether a line continues ``paragraph``, in text wrapped at ``width`` columns."""
    first, last = paragraph[0], paragraph[-1]
    item = LIST_ITEM.match(text, first.start)
    hanging = first.indent + item.end() - item.start() if item else 0
    if (
        line.after_blank
        or line.indent > max(1, last.indent, hanging)
        or LIST_ITEM.match(text, line.start)
        or any(_NO_PROSE.search(one.unindent(text)) for one in (last, line))
        or all(_FIELD.match(text, one.start) for one in (last, line))
    ):
        return False
    if _fills(text, last, line, width):
        return True
    first_letter = _FIRST_LETTER.match(text, line.start)
    if first_letter and first_letter[1].islower():
        return last.width >= 0.5 * width or (item is not None and last is first)
    # Ragged: the next line begins with a name, or all is in capitals, though it had
    # room here.
    if is_mail and last.width >= 0.6 * width:
        return True  # Mails are wrapped twice, by different programs.
    breaks_off = _BREAKS_OFF.search(text[last.end - 2 : last.end])
    capitals = text[last.start : last.end].isupper() and text[last.end - 1].isalpha()
    return last.width >= 0.8 * width and (breaks_off is not None or capitals)


def wrapped_paragraphs(
    text: str, is_mail: bool = False
) -> tuple[list[list[_Line]], bool]:
    """Return the lines of each paragraph, and whether lines were certainly wrapped.

    Lines of mails count as wrapped if none has more than 100 columns and any follows
    another without a blank line.
    """
    lines = list(_lines_of(text))
    width, certain = _wrap_width(text, lines)
    if is_mail and width is None:
        widths = [line.width for line in lines]
        if any(not line.after_blank for line in lines) and max(widths) <= _LONGEST_LINE:
            width, certain = max(widths), True
    paragraphs: list[list[_Line]] = []
    for line in lines:
        if (
            width
            and paragraphs
            and _continues(text, paragraphs[-1], line, width, is_mail)
        ):
            paragraphs[-1].append(line)
        else:
            paragraphs.append([line])
    return paragraphs, certain


def span_of(paragraph: list[_Line]) -> Span:
    """Return the offsets (start, end) of a paragraph."""
    return paragraph[0].start, paragraph[-1].end


def _is_dateline(line: str, language: Language | None) -> bool:
    """Whether a line is a date, with at most two words beside it."""
    if len(line) > 100 or not re.search(r"\d", line):
        return False
    names = _ALL_DATES if language is None else language.dates
    words = [word for word in _WORD.findall(line.lower()) if not word[0].isdigit()]
    others = sum(word not in names for word in words)
    written = _NUMERIC_DATE.search(line) or _DAY_AND_YEAR.search(line)
    return others <= 2 and (others < len(words) or written is not None)


def _paragraph_kinds(lines: list[str], language: Language | None) -> list[Kind]:
    """Return the kind of each paragraph of a document, whose texts are ``lines``.

    The first is a headline when sentences follow and it is short and has no full stop,
    or begins with a date, or is before a date line.  Later, one or two of at most eight
    words without a full stop before a paragraph are headlines, more are a list.
    """
    result: list[Kind] = ["body"] * len(lines)
    length = [len(line[:1000].split()) for line in lines]
    ends = [_ENDS_SENTENCE.search(line[-20:]) is not None for line in lines]
    sentences = [n for n, is_sentence in enumerate(ends) if is_sentence]
    if not sentences:
        return result
    dates = [n for n, line in enumerate(lines[:3]) if _is_dateline(line, language)]
    first = 1 if dates[:1] == [0] else 0
    for n in range(first, max(dates, default=0)):
        if length[n] < 40:
            result[n] = "headline"
    if (
        first < len(lines)
        and length[first] < 25
        and (not ends[first] or _NUMERIC_DATE.match(lines[first]))
        and not LIST_ITEM.match(lines[first])
        and any(length[n] > length[first] for n in sentences if n > first)
    ):
        result[first] = "headline"
    run = 0
    for n in range(first + 1, len(lines)):
        if length[n] <= 8 and not ends[n] and not LIST_ITEM.match(lines[n]):
            run += 1
            continue
        if run <= 2 and not LIST_ITEM.match(lines[n]):
            result[n - run : n] = ["headline"] * run
        run = 0
    for n in dates:
        result[n] = "dateline"
    return result


def blocks_of(
    document: Document, language: Language | None, is_mail: bool = False
) -> tuple[list[Block], bool]:
    """Return the blocks of a document, and whether its layout is known for certain.

    It is known from markup, and where lines were certainly wrapped, as in mails.
    """
    if document.blocks is not None:
        return list(document.blocks), True
    text = document.text
    paragraphs, wrapped = wrapped_paragraphs(text, is_mail)
    spans = [span_of(paragraph) for paragraph in paragraphs]
    pieces = [text[start:end] for start, end in spans]
    prose = list(range(len(pieces)))
    if wrapped:
        prose = list(_prose_places(text, paragraphs, pieces))
    found = _paragraph_kinds([pieces[n] for n in prose], language)
    kinds: dict[int, Kind] = dict(zip(prose, found, strict=True))
    for n, (line, rule) in enumerate(pairwise(pieces)):
        if wrapped and kinds.get(n) == "body" and _underlines(rule, line):
            kinds[n] = "headline"
    return [
        Block(*span, kinds.get(n, "other")) for n, span in enumerate(spans)
    ], wrapped


def _prose_places(
    text: str, paragraphs: list[list[_Line]], pieces: list[str]
) -> Iterator[int]:
    """Yield positions of the paragraphs that are not table rows, quotations or code.

    ``pieces`` has the text of each paragraph.
    """
    margin: int | None = None
    for n, (first, *_) in enumerate(paragraphs):
        if margin is not None and first.indent > margin:
            continue  # code, indented after a paragraph that ends in "::"
        margin = first.indent if pieces[n].endswith("::") else None
        is_row = _NO_PROSE.search(first.unindent(text))
        if not is_row and _WORD_CHARACTER.search(pieces[n]):
            yield n


def _underlines(rule: str, line: str) -> bool:
    """Whether ``rule`` is one mark repeated, as an underline of ``line`` above it."""
    return (
        len(set(rule)) == 1
        and rule[0] in "=-~^*+#\"'`"
        and "\n" not in line
        and len(rule) >= max(3, 0.7 * len(line))
    )


def lacks_prose(text: str) -> bool:
    """Whether nearly all lines of a text are records of a log or rows of numbers."""
    lines = [line for line in text.splitlines() if line.strip()]
    n_records = sum(
        _RECORD.match(line) is not None
        or sum(map(str.isdigit, line)) > sum(map(str.isalpha, line))
        for line in lines
    )
    return n_records >= max(_FEWEST_RECORDS, 0.8 * len(lines))


def begins_amid(document: Document, block: Block, previous: Block | None) -> bool:
    """Whether a block of a document begins in the middle of a sentence.

    Then it begins in lower case and, unless it is a list item, ``previous``, the block
    before, ends no sentence.
    """
    text, start = document.text, block.start
    if document.blocks is None and (item := LIST_ITEM.match(text, start)):
        return text[item.end() : item.end() + 1].islower()
    if previous is None:
        return False
    if document.blocks is not None and previous.kind == "headline":
        return False
    if not text[start : block.end].lstrip("([")[:1].islower():
        return False
    if start in document.code_starts:
        return False
    return not ends_sentence(text[previous.start : previous.end])


def sentence_kind(sentence: str) -> Kind:
    """Return "body", "headline" or "other" for a sentence of a body paragraph."""
    if not ends_sentence(sentence) or _COPYRIGHT.match(sentence):
        return "other"
    if _LOOSE_DOTS.search(sentence[-10:]) or count_spaced_words(sentence) == 1:
        return "other"
    number = _NUMBERED.match(sentence)
    asked = number is not None and sentence.endswith("?")  # in a list of questions
    named = _is_title(sentence[number.end() if number else 0 :])
    return "headline" if asked or named or _SECTION.match(sentence) else "body"


def _is_title(text: str) -> bool:
    """Whether a text looks like a title: few words, the long ones with capitals."""
    words = text.split()
    if len(words) > _LONGEST_TITLE or not text.endswith(".") or text.isupper():
        return False
    long = [word for word in words if len(word) > 3]
    return len(long) > 1 and all(word[0].isupper() for word in long)
