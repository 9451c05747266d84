"""Text of reStructuredText files by docutils."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from variegate._install import explain_missing
from variegate.text.documents import Document
from variegate.text.markup import PassageReader, as_document, word_set

_NO_TEXT = word_set(
    """comment table footnote citation literal_block doctest_block math_block raw
    substitution_definition system_message field_list option_list docinfo meta
    figure header footer sidebar topic line_block pending decoration attribution
    classifier"""
)
_MARKS = word_set("footnote_reference citation_reference image")
_HTML_NAMES = {  # of docutils' nodes
    **dict.fromkeys(("title", "subtitle", "rubric"), "h1"),
    **{"literal": "code", "math": "code", "reference": "a", "term": "term"},
}

# Roles of Sphinx and others; docutils knows few of them.
_ROLE = re.compile(r"(?<![\w`:\\]):(?:[\w+.-]+:)*([\w+.-]+):`([^`]+)`(?!`)")
_ROLES_OF_WORDS = word_set(
    """ref doc term numref any abbr dfn emphasis strong title-reference title t sub
    sup subscript superscript menuselection guilabel keyword"""
)
# Substitutions that are defined in another file.
_UNKNOWN = re.compile(r"\|([^|\n]+)\|_{0,2}")
_TARGET = re.compile(r"(?s)^(.*\S)\s*<[^<>]*>$")

# docutils takes the square of the number of marks and rules in a text, and of the
# length of a paragraph.
_MARKS_IN_TEXT = re.compile(r"(?m)[*`|_]+|^([^\w\s])\1{3,}$")
_MOST_MARKS = 5000
_MARKS_OF_PIECE = 1000
_LONGEST_PARAGRAPH = 4000
_PIECE_OF_PARAGRAPH = 1000

_SETTINGS = {
    # Neither files nor the network, nor settings of the user.
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    # Problems of the markup end nothing and are not printed.
    "halt_level": 5,
    "report_level": 5,
    "warning_stream": False,
    "syntax_highlight": "none",
    "smart_quotes": False,
    "docinfo_xform": False,
    "line_length_limit": 1_000_000,
}


def restructured_document(source: str) -> Document:
    """Return the paragraphs and headings of a reStructuredText file.

    Directives but notes and warnings, tables, footnotes, field lists and code are left
    out.  Roles leave their text.
    """
    with explain_missing("reading reStructuredText needs docutils", "text"):
        from docutils.core import publish_doctree
        from docutils.parsers.rst import Parser
        from docutils.parsers.rst.states import Inliner

    inliner = Inliner()
    parse_markup = inliner.parse

    def parse_in_pieces(text: str, *place: Any) -> tuple[list[Any], list[Any]]:
        """Return the nodes of a paragraph, and messages."""
        parsed = [parse_markup(one, *place) for one in _cut_at_spaces(text)]
        nodes, messages = map(chain.from_iterable, zip(*parsed, strict=True))
        return list(nodes), list(messages)

    inliner.parse = parse_in_pieces
    source, reader = _ROLE.sub(_text_of_role, source), PassageReader()
    try:
        for piece in _cut_by_marks(source):
            tree = publish_doctree(
                piece, parser=Parser(inliner=inliner), settings_overrides=_SETTINGS
            )
            _read_node(tree, reader)
    except RecursionError as error:
        raise ValueError(
            "the reStructuredText is nested too deeply: save it as plain text (.txt)"
        ) from error
    except Exception as error:  # of docutils, on markup that it does not foresee
        raise ValueError(
            f"docutils fails on the reStructuredText ({type(error).__name__}: {error}):"
            " save it as plain text (.txt)"
        ) from error
    return as_document(reader.passages, "docutils")


def _cut_at_spaces(text: str) -> Iterator[str]:
    """Yield a paragraph, or if it is long its pieces, cut after spaces."""
    start = 0
    while len(text) > _LONGEST_PARAGRAPH and len(text) - start > _PIECE_OF_PARAGRAPH:
        end = start + _PIECE_OF_PARAGRAPH
        end = max(text.rfind(" ", start, end), text.rfind("\n", start, end)) + 1 or end
        yield text[start:end]
        start = end
    yield text[start:]


def _cut_by_marks(source: str) -> Iterator[str]:
    """Yield a text, or if it has many marks pieces of it with a bounded number.

    They are cut at a blank line before a line that is not indented, else at a line or
    a word.
    """
    start, places = 0, [mark.start() for mark in _MARKS_IN_TEXT.finditer(source)]
    if len(places) > _MOST_MARKS:
        for place in places[_MARKS_OF_PIECE::_MARKS_OF_PIECE]:
            window = source[start:place]
            cuts = (_last_block(window), window.rfind("\n") + 1, window.rfind(" ") + 1)
            # A cut near the beginning would leave more and more to the next piece.
            cut = next((one for one in cuts if 2 * one > len(window)), len(window))
            yield window[:cut]
            start += cut
    yield source[start:]


def _last_block(text: str) -> int:
    """Return where the last block begins that is not indented, 0 without any."""
    place = text.rfind("\n\n")
    while place >= 0 and text[place + 2 : place + 3].isspace():
        place = text.rfind("\n\n", 0, place + 1)
    return place + 2 if place >= 0 else 0


def _text_of_role(match: re.Match[str]) -> str:
    """Return the text that a match of ``_ROLE`` shows, quoted if it names code."""
    role, text = match.groups()
    text = _shown_text(text)
    return text if role in _ROLES_OF_WORDS else f"``{text.strip()}``"


def _shown_text(text: str) -> str:
    """Return the shown part of a role's text: "title" of "title <x>", "c" of "~a.c"."""
    if titled := _TARGET.match(text):
        return titled[1].removeprefix("!")
    if text.startswith("~"):
        return text[1:].rpartition(".")[2]
    return text.lstrip("!.")


def _read_node(node: Any, reader: PassageReader) -> None:
    """Pass the text below a docutils node to ``reader``, under names of HTML tags."""
    from docutils.nodes import Inline

    name = node.tagname
    if name == "#text":
        reader.add(node.astext().replace("\0", ""))
    elif name == "problematic" and (unknown := _UNKNOWN.fullmatch(node.astext())):
        reader.add(unknown[1])
    elif name == "title_reference":  # a role without a name
        shown = _shown_text(node.astext())
        tag = "span" if shown == node.astext() else "code"
        reader.start(tag)
        reader.add(shown)
        reader.end(tag)
    elif name in _MARKS:
        reader.strip_end()
    elif name not in _NO_TEXT:
        tag = _HTML_NAMES.get(name, "span" if isinstance(node, Inline) else "div")
        reader.start(tag)
        for child in node.children:
            _read_node(child, reader)
        reader.end(tag)
