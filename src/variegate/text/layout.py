"""What each part of a document is, by its markup or by how its lines are set."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from variegate.text.documents import Block, Document, Kind
from variegate.text.languages import Language
from variegate.text.paragraphs import (
    LIST_ITEM,
    Paragraph,
    kinds,
    wrapped_paragraphs,
)
from variegate.text.scripts import count_spaced_words, ends_sentence

__all__ = ["begins_amid", "blocks_of", "sentence_kind"]

_COPYRIGHT = re.compile(r"(?i)(?:copyright\W+(?:©|\(c\)|\d)|©|\(c\)\s+\d)")
_NUMBERED = re.compile(r"(?:section\s+)?\d{1,3}(?:\.\d{1,3})*[.:)]?\s+(?=\D)", re.I)
_LOOSE_DOTS = re.compile(r"[\s,]\.+$|\.\.\]+$")  # "starting with .", "[FILE...]"
_WORD_CHARACTER = re.compile(r"\w")

#: What has more words is a sentence, not a title.
_LONGEST_TITLE = 8


def blocks_of(
    document: Document, language: Language | None
) -> tuple[list[Block], bool]:
    """Return the blocks of a document, and whether its layout is known.

    It is where there was markup, and where lines were wrapped; then what does not end
    as a sentence does is none.
    """
    if document.blocks is not None:
        return list(document.blocks), True
    found, wrapped = wrapped_paragraphs(document.text)
    known = (_wrapped_kinds if wrapped else _kinds)(document.text, found, language)
    return [
        Block(one.start, one.end, kind) for one, kind in zip(found, known, strict=True)
    ], wrapped


def _kinds(
    text: str, found: Sequence[Paragraph], language: Language | None
) -> list[Kind]:
    return kinds([text[one.start : one.end] for one in found], language)


def _wrapped_kinds(
    text: str, found: Sequence[Paragraph], language: Language | None
) -> list[Kind]:
    """Say what each paragraph is where rows and quotations can be told."""
    literal = _literal(text, found)
    prose = [
        n
        for n, one in enumerate(found)
        if not (one.is_row or n in literal)
        and _WORD_CHARACTER.search(text, one.start, one.end)
    ]
    result: list[Kind] = ["other"] * len(found)
    of_prose = _kinds(text, [found[n] for n in prose], language)
    for n, kind in zip(prose, of_prose, strict=True):
        result[n] = kind
    for n, (one, below) in enumerate(pairwise(found)):
        if result[n] == "body" and _underlines(
            text[below.start : below.end], text[one.start : one.end]
        ):
            result[n] = "headline"
    return result


def _literal(text: str, found: Sequence[Paragraph]) -> set[int]:
    """Return which paragraphs are code: indented, after one that ends in ``::``."""
    result = set()
    margin: int | None = None
    for n, one in enumerate(found):
        if margin is not None and one.indent > margin:
            result.add(n)
        else:
            margin = one.indent if text.endswith("::", one.start, one.end) else None
    return result


def _underlines(rule: str, line: str) -> bool:
    """Whether a line is made of one mark, about as long as the line above it."""
    return (
        len(set(rule)) == 1
        and rule[0] in "=-~^*+#\"'`"
        and "\n" not in line
        and len(rule) >= max(3, 0.7 * len(line))
    )


def begins_amid(document: Document, block: Block, previous: Block | None) -> bool:
    """Whether a block begins in the middle of a sentence, in lower case.

    After something that was left out, a page break, or as an item of a sentence that
    lists them.
    """
    text, start = document.text, block.start
    if document.blocks is None and (item := LIST_ITEM.match(text, start)):
        return text[item.end() : item.end() + 1].islower()
    if previous is None:
        return False
    if document.blocks is not None and previous.kind == "headline":
        return False
    if not text[start].islower() or _is_code(document, start):
        return False
    return not ends_sentence(text[previous.start : previous.end])


def _is_code(document: Document, place: int) -> bool:
    """Whether a span of code begins at a place."""
    following = bisect_left(document.unbroken, (place, 0))
    spans = document.unbroken[following : following + 1]
    return any(start == place for start, _ in spans)


def sentence_kind(sentence: str) -> Kind:
    """Say what a sentence is that stands in a paragraph of known layout."""
    if not ends_sentence(sentence) or _COPYRIGHT.match(sentence):
        return "other"
    if _LOOSE_DOTS.search(sentence[-10:]) or count_spaced_words(sentence) == 1:
        return "other"
    number = _NUMBERED.match(sentence)
    asked = number is not None and sentence.endswith("?")  # in a list of questions
    named = _is_title(sentence[number.end() if number else 0 :])
    return "headline" if asked or named else "body"


def _is_title(text: str) -> bool:
    """Whether a few words end in a full stop, the long ones with capitals."""
    words = text.split()
    if len(words) > _LONGEST_TITLE or not text.endswith(".") or text.isupper():
        return False
    long = [word for word in words if len(word) > 3]
    return len(long) > 1 and all(word[0].isupper() for word in long)
