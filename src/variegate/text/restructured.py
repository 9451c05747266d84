"""Text of reStructuredText files by docutils."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from variegate._install import install_command
from variegate.text.documents import Document, Kind
from variegate.text.markup import Passage, as_document, names

_NO_TEXT = names(
    """comment table footnote citation literal_block doctest_block math_block raw
    target substitution_definition system_message field_list option_list docinfo meta
    image figure header footer sidebar topic line_block pending decoration"""
)
_NO_INLINE = names("footnote_reference citation_reference image")
_CODE = names("literal math")
_HEADLINES = names("title subtitle rubric")

# Roles of Sphinx and others; docutils knows few of them.
_ROLE = re.compile(r"(?<![\w`:\\]):(?:[\w+.-]+:)*([\w+.-]+):`([^`]+)`(?!`)")
_ROLES_OF_WORDS = names(
    """ref doc term numref any abbr dfn emphasis strong title-reference title t sub
    sup subscript superscript menuselection guilabel keyword"""
)
_SPACE = re.compile(r"\s+")
_TARGET = re.compile(r"(?s)^(.*\S)\s*<[^<>]*>$")

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

    Raises
    ------
    ImportError : without docutils
    ValueError : for markup that is nested too deeply
    """
    try:
        from docutils.core import (  # type: ignore[import-untyped, unused-ignore]
            publish_doctree,
        )
    except ImportError as error:
        raise ImportError(
            f"reading reStructuredText needs docutils: {install_command('text')}"
        ) from error
    source = _ROLE.sub(_text_of_role, source)
    try:
        tree = publish_doctree(source, settings_overrides=_SETTINGS)
        return as_document(list(_passages(tree)), "docutils")
    except RecursionError as error:
        raise ValueError(
            "the reStructuredText is nested too deeply: save it as plain text (.txt)"
        ) from error


def _text_of_role(match: re.Match[str]) -> str:
    """Return the text that a role shows, as a literal where it names code."""
    role, text = match.groups()
    if titled := _TARGET.match(text):
        text = titled[1]
    elif text.startswith("~"):
        text = text[1:].rpartition(".")[2]
    text = text.removeprefix("!")
    return text if role in _ROLES_OF_WORDS else f"``{text.strip()}``"


def _passages(node: Any) -> Iterator[Passage]:
    """Yield the passages below a node of docutils."""
    for child in node.children:
        name = child.tagname
        if name in _HEADLINES:
            yield from _passage(child, "headline")
        elif name == "term":
            yield from _passage(child, "other")
        elif name == "paragraph":
            yield from _passage(child, "body")
        elif name not in _NO_TEXT:
            yield from _passages(child)


def _passage(node: Any, kind: Kind) -> Iterator[Passage]:
    """Yield the passage of one node; one of links and code alone is not body."""
    pieces: list[str] = []
    code: list[tuple[int, int]] = []
    n_code = n_links = length = 0
    for child in node.children:
        if child.tagname in _NO_INLINE:
            pieces[-1:] = [piece.rstrip() for piece in pieces[-1:]]
            length = sum(map(len, pieces))
            continue
        text = _SPACE.sub(" ", child.astext().replace("\0", ""))
        if not pieces:
            text = text.lstrip()
        if child.tagname in _CODE and text:
            code.append((length, length + len(text)))
            n_code += len(text)
        n_links += len(text) * (child.tagname == "reference")
        pieces.append(text)
        length += len(text)
    text = "".join(pieces)
    if kind == "body" and max(n_code, n_links) > 0.8 * len(text):
        kind = "other"
    if text.strip():
        code = [(start, min(end, len(text.rstrip()))) for start, end in code]
        yield Passage(kind, text.rstrip(), code)
