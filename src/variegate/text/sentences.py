"""Texts cut into sentences, by offsets, in many scripts.

syntok finds the ends of sentences in a *shadow* of a paragraph: a string of the same
length in which other scripts, abbreviations and closing quotes are rewritten for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise

from variegate._install import explain_missing
from variegate.text.documents import Cluster, Document, Sentence
from variegate.text.languages import Language, as_language, in_other_language
from variegate.text.layout import (
    CLOSERS,
    INVISIBLE,
    MARKS,
    Span,
    begins_amid,
    blocks_of,
    sentence_kind,
    span_of,
    trim,
    wrapped_paragraphs,
)
from variegate.text.words import ENDS

_DEVANAGARI = "\u0900-\u097f"
_CASELESS = f"\u0590-\u07ff{_DEVANAGARI}"

# Certain ends of sentences, with the closing marks that follow: marks of other
# scripts (dandas also typed as "|"), and full stops without a space after them
# between words of scripts without capitals, after Hindi "is" and "was", before English
# "I".
_CERTAIN_END = re.compile(
    rf"(?:[{ENDS}]|\uff0e(?!\d)|(?<=[{_DEVANAGARI}])[ ]?\|"
    rf"|(?<=[{_CASELESS}]{{3}})[.!?](?=[{_CASELESS}]{{3}})"
    rf"|(?:(?<=है|था|थे|थी|गई|गए)|(?<=हैं|थीं|गया)|(?<=\s))[.!?](?=[{_CASELESS}]{{2}})"
    rf"|(?<=[a-z]{{2}})[.!?](?=I[\s'’]))"
    rf"(?:[ \t\u00a0\u202f]*+[{ENDS}.!?»”›]|[{CLOSERS}」』）】》〕］｝])*+"
    r"(?!(?<=[」』])[\u3041-\u309f、，])"  # 「え？」と言った。
)
_SAME_LENGTH = str.maketrans("…\x85\u037e", "..?")
# Addresses, and names of functions with brackets: no full stop in them ends a sentence.
# Each run of such characters is looked at from its start alone, or it takes the square
# of the time.
_ADDRESS = re.compile(
    r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++|(?:https?://|www\.)[^\s<>]+"
    r"|(?<!\w)(?<!\w\.)\w++(?:\.\w++)++\("
)
_SEMICOLON = re.compile(r"(?<![\u0370-\u03ff\u1f00-\u1fff]);")
_CLOSING_QUOTES = re.compile(
    r"(?<=[.!?])([)\]}]*+)((?:[ \t\u00a0\u202f]*+[»”›\x94]|[\"'“’\u05f3\u05f4])++)"
)
_LONE_PUNCTUATION = re.compile(r"(?<!\S)[^\w\s]{2,}+(?!\S)")
_TOKENIZED_END = re.compile(r"(?<=\s\.\s)[^\W\d_]")
_ANY_END = re.compile(r"(?<=[.!?]\s)[^\W\d_]")
_ENDS_HERE = re.compile(r"[.!?;‼‽⁇⁈⁉。﹒﹗！．？｡]")
_STOP_AFTER_BRACKET = re.compile(r"[.!?]++\s++(?=[^a-zα-ω])")
_WORD_CHARACTER = re.compile(r"\w")
_NUMBERING = re.compile(r"\W*(?:\d{1,2}\.)*\d{1,3}\W*$")


@cache
def _abbreviation_pattern(language: Language) -> re.Pattern[str]:
    """Return a pattern of the abbreviations of a language with their full stop."""
    forms = language.abbreviations
    forms |= {form[0].upper() + form[1:] for form in forms}
    names = "|".join(re.escape(form) for form in sorted(forms))
    return re.compile(rf"(?<![\w.{MARKS}])({names})\.")


def _keep_first_end(match: re.Match[str]) -> str:
    """Return a match with spaces for all but its first ".", "!" or "?", if any."""
    end = re.search(r"[.!?]", match[0])
    if end is None:
        return match[0]
    return " " * end.start() + end[0] + " " * (len(match[0]) - end.end())


def _upper_case(match: re.Match[str]) -> str:
    """Return the letter matched, in upper case if that is one letter."""
    upper = match[0].upper()
    return upper if len(upper) == 1 else match[0]


def _make_shadow(text: str, language: Language | None) -> str:
    """Return a text of the same length, changed so that syntok splits it well."""
    shadow, code = text, None if language is None else language.code
    if language is not None:
        shadow = _abbreviation_pattern(language).sub(r"\1·", shadow)
    if code == "cs":  # ordinals: 8. ledna, 8. 1. 2005
        shadow = re.sub(r"(?<!\w)(\d{1,3})\.(?=\s?+[\da-zá-ž])", r"\1·", shadow)
    shadow = shadow.translate(_SAME_LENGTH)
    shadow = re.sub(
        rf"(?<=[\w{MARKS}])[{INVISIBLE}]+|[{MARKS}]+",
        lambda match: "\u0915" * len(match[0]),
        shadow,
    )
    shadow = re.sub(f"[{INVISIBLE}]", " ", shadow)
    shadow = re.sub(r"(?<=\d)\.(?=\d)|(?<=\bet al)\.(?=\s*[\[(])", "·", shadow)
    shadow = _ADDRESS.sub(lambda match: re.sub(r"[.!?](?=\w)", "·", match[0]), shadow)
    if code != "el":
        shadow = _SEMICOLON.sub(",", shadow)
    shadow = _CLOSING_QUOTES.sub(
        lambda match: match[1] + "”" + " " * (len(match[2]) - 1), shadow
    )
    shadow = _LONE_PUNCTUATION.sub(_keep_first_end, shadow)
    all_lower = text == text.lower()
    return (_ANY_END if all_lower else _TOKENIZED_END).sub(_upper_case, shadow)


def _sentence_starts(shadow: str) -> Iterator[int]:
    """Yield the offset of each sentence in a stretch of shadow text, 0 first."""
    yield 0
    end = _ENDS_HERE.search(shadow)
    if end is None or not _WORD_CHARACTER.search(shadow, end.end()):
        return
    with explain_missing("splitting sentences needs syntok", "text"):
        from syntok import segmenter
        from syntok.tokenizer import Tokenizer
    tokens = Tokenizer(replace_not_contraction=False).tokenize(shadow)
    for number, sentence in enumerate(segmenter.segment(tokens)):
        start = sentence[0].offset
        # syntok also ends sentences at brackets.
        before = shadow[max(0, start - 40) : start].rstrip(" \t\r\n\u00a0\u202f)]}”\"'")
        if number and _ENDS_HERE.match(before[-1:]):
            yield start
        elif number and (stop := _STOP_AFTER_BRACKET.match(shadow, start)):
            yield stop.end()


def _sentence_spans(text: str, shadow: str, begin: int, end: int) -> list[Span]:
    """Return the spans of sentences in ``text[begin:end]``, found in its shadow."""
    certain = [match.end() for match in _CERTAIN_END.finditer(text, begin, end)]
    starts = [
        left + start
        for left, right in pairwise([begin, *certain, end])
        if left < right
        for start in _sentence_starts(shadow[left:right])
    ]
    spans: list[Span] = []
    joins = False
    for start, stop in pairwise([*starts, end]):
        piece = text[start:stop]
        if spans and (joins or not _WORD_CHARACTER.search(piece)):
            spans[-1] = (spans[-1][0], stop)
        else:
            spans.append((start, stop))
        first = spans[-1][0]
        joins = stop - first < 10 and bool(_NUMBERING.match(text, first, stop))
    trimmed = (trim(text, *span) for span in spans)
    return [span for span in trimmed if _WORD_CHARACTER.search(text, *span)]


def split_sentences(
    text: str, language: str | Language | None = None
) -> list[tuple[int, int]]:
    """Return the offsets ``(start, end)`` of the sentences of a text, in order.

    The abbreviations of a language end no sentence; all scripts work without one.
    """
    shadow = _make_shadow(text, as_language(language))
    return [
        span
        for paragraph in wrapped_paragraphs(text)[0]
        for span in _sentence_spans(text, shadow, *span_of(paragraph))
    ]


def _split_document(
    number: int, document: Document, language: Language | None
) -> Iterator[Sentence]:
    """Yield the sentences of document ``number`` of a cluster, with their kinds."""
    text = document.text
    shadow = _make_shadow(_without_code(document), language)
    blocks, known = blocks_of(document, language)
    foreign = in_other_language([text[block.start : block.end] for block in blocks])
    position, previous = 0, None
    for block, is_foreign in zip(blocks, foreign, strict=True):
        if is_foreign:
            block = replace(block, kind="other")
        pieces = _sentence_spans(text, shadow, block.start, block.end)
        if block.kind != "body" and pieces:
            pieces = [(pieces[0][0], pieces[-1][1])]
        amid = known and begins_amid(document, block, previous)
        for place, (start, end) in enumerate(pieces):
            kind = block.kind
            if known and kind == "body":
                kind = sentence_kind(text[start:end])
            if amid and place == 0 and kind == "body":
                kind = "other"
            yield Sentence(number, start, end, text[start:end], kind, position)
            position += kind == "body"
        previous = block if pieces else previous


def _without_code(document: Document) -> str:
    """Return a text of the same length, a made-up name in place of each code span."""
    text, done = document.text, 0
    pieces: list[str] = []
    for start, end in sorted(document.unbroken):
        start = max(start, done)
        # A single letter before a full stop would be an initial, a digit would not.
        name = "C" + "c" * (end - start - 1) if end - start > 1 else "7"
        pieces += (text[done:start], name[: end - start])
        done = max(done, end)
    return "".join([*pieces, text[done:]])


def split_cluster(cluster: Cluster) -> list[Sentence]:
    """Return the sentences of all documents of a cluster, in order.

    Blocks of other kinds than body are kept whole; their ``position`` is that of the
    next body sentence.
    """
    language = as_language(cluster.language)
    return [
        sentence
        for number, document in enumerate(cluster.documents)
        for sentence in _split_document(number, document, language)
    ]
