"""Plain text, paragraphs and headings of Markdown files and HTML pages.

trafilatura finds the main content of a page; readability-lxml would often keep only one
of many parts.  The built-in reader reads its result, and pages where it finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple

from variegate._install import explain_missing
from variegate.text.documents import Block, Document, Kind
from variegate.text.html_source import limit_attributes

HTML_READER = "the built-in HTML reader"


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


_NO_TEXT = word_set(
    """script style noscript template title nav footer aside svg math button select
    textarea iframe object audio video canvas dialog pre menu del s strike"""
)
# Elements inside a line of text; all others begin and end paragraphs.
_INLINE = word_set(
    """a abbr acronym b bdi bdo big cite code data del dfn em font i img input ins kbd
    label mark q rp rt ruby s samp small span strike strong sub sup time tt u var wbr
    audio button canvas iframe math noscript object script select style svg template
    textarea video"""
)
_KINDS: Mapping[str, Kind] = {  # of elements other than paragraphs
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "headline"),
    "term": "other",
}
_CODE = word_set("code samp kbd tt var")
_ROLES = word_set(
    """navigation dialog alertdialog search menu menubar contentinfo complementary
    banner toolbar tooltip"""
)
_HIDDEN_STYLE = re.compile(r"(?i)(?:display\s*:\s*none|visibility\s*:\s*hidden)")
_ANCHORS = "¶#§🔗 \u00a0"


class Passage(NamedTuple):
    """A block of a document with its spans (start, end) of code.

    ``follows`` says that only a line break, not a blank line, is before it.
    """

    kind: Kind
    text: str
    code: Sequence[tuple[int, int]] = ()
    follows: bool = False


class PassageReader:
    """Collects the ``passages`` of HTML: tell it of each tag and text in order.

    Elements inside a line stay in a passage; others begin and end one.
    """

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self._kind: Kind = "body"
        self._links = 0
        self._code_depth = 0
        self._begin_passage(follows=False)

    def _begin_passage(self, *, follows: bool) -> None:
        """Begin an empty passage: see :class:`Passage` for ``follows``."""
        self._pieces = [""]
        self._length = self._link_length = 0
        self._code: list[tuple[int, int]] = []
        self._code_start = 0
        self._follows = follows

    def start(self, tag: str) -> None:
        """Begin an element, and a passage unless it is inline or a cell."""
        if tag in ("br", "hr"):
            self._end_passage(follows=tag == "br")
        elif tag in ("td", "th"):
            self._append_text("\t" if self._length else "")
        elif tag in _INLINE:
            self._links += tag == "a"
            if tag in _CODE:
                if self._code_depth == 0:
                    self._code_start = self._length
                self._code_depth += 1
        else:
            self._end_passage()
            self._links = self._code_depth = 0
            self._kind = _KINDS.get(tag, "body")

    def end(self, tag: str) -> None:
        """End an element, and its passage unless it is inline, a break or a cell."""
        if tag in _INLINE:
            self._links = max(0, self._links - (tag == "a"))
            if tag in _CODE and self._code_depth:
                self._code_depth -= 1
                if self._code_depth == 0 and self._code_start < self._length:
                    self._code.append((self._code_start, self._length))
        elif tag not in ("br", "hr", "td", "th"):
            self._end_passage()
            self._kind = "body"

    def add(self, text: str | None) -> None:
        """Add text to the passage, with runs of white space as one space."""
        data = re.sub(r"[ \t\r\n\f]+", " ", text or "")
        if self._pieces[-1][-1:] in ("", " ", "\t"):
            data = data.lstrip(" ")
        self._append_text(data)
        self._link_length += len(data) * (self._links > 0)

    def strip_end(self) -> None:
        """Remove the white space at the end of the passage, before a reference mark."""
        while self._pieces:
            last = self._pieces.pop()
            kept = last.rstrip()
            self._length -= len(last) - len(kept)
            if kept:
                self._pieces.append(kept)
                return
        self._pieces = [""]

    def _append_text(self, data: str) -> None:
        """Append text to the passage as it is, white space included."""
        if data:
            self._pieces.append(data)
            self._length += len(data)

    def _end_passage(self, *, follows: bool = False) -> None:
        """Add the passage to ``passages`` if it has text, and begin another.

        Of the body, one that is nearly all links or code, or has cells, is "other".
        """
        text, kind = "".join(self._pieces).rstrip(), self._kind
        if kind == "headline":
            text = text.strip(_ANCHORS)
        n_code = sum(end - start for start, end in self._code)
        is_marked = max(self._link_length, n_code) > 0.8 * len(text)
        if kind == "body" and (is_marked or "\t" in text):
            kind = "other"
        if text:
            code = [(start, min(end, len(text))) for start, end in self._code]
            self.passages.append(Passage(kind, text, code, self._follows))
        self._begin_passage(follows=follows)


def as_document(passages: Sequence[Passage], reader: str) -> Document:
    """Return passages as a document with blank lines between its blocks."""
    text, blocks = "", list[Block]()
    unbroken: list[tuple[int, int]] = []
    for passage in passages:
        follows = passage.follows and bool(blocks)
        if blocks:
            text += "\n" if follows else "\n\n"
        start = len(text)
        text += passage.text
        unbroken += [(start + first, start + last) for first, last in passage.code]
        if follows and blocks[-1].kind == passage.kind and passage.text[0].islower():
            start = blocks.pop().start  # a line that was only wrapped
        blocks.append(Block(start, len(text), passage.kind))
    return Document(text, "", blocks, unbroken, reader)


def _parse_html(source: str) -> Any:
    """Return the root element of a page as lxml parses it, empty for an empty page."""
    with explain_missing("reading HTML needs lxml", "text"):
        from lxml import etree, html
    parser = html.HTMLParser(
        encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True
    )
    data = limit_attributes(source).encode(errors="replace")
    try:
        return html.document_fromstring(data, parser=parser)
    except etree.ParserError:  # an empty page
        return html.Element("html")


def is_hidden(element: Any) -> bool:
    """Whether an lxml element is not text, hidden, or beside the main content."""
    return (
        element.tag in _NO_TEXT
        or element.get("hidden") is not None
        or element.get("aria-hidden") == "true"
        or element.get("role") in _ROLES
        or _HIDDEN_STYLE.search(element.get("style", "")) is not None
    )


def _without_hidden(tree: Any, is_left_out: Callable[[Any], bool] = is_hidden) -> Any:
    """Empty the lxml elements that ``is_left_out``, in place, and return the tree."""
    for element in list(tree.iter()):
        if is_left_out(element):
            element.clear(keep_tail=True)
            element.tag = "span" if element.tag in _INLINE else "hr"
    return tree


def _read_passages(tree: Any) -> list[Passage]:
    """Return the passages of an lxml element and all below it."""
    from lxml import etree

    reader = PassageReader()
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        if event == "start":
            reader.start(element.tag)
            reader.add(element.text)
        else:
            reader.end(element.tag)
            reader.add(element.tail)
    reader.end("html")
    return reader.passages


def html_document(
    source: str, is_left_out: Callable[[Any], bool] = is_hidden
) -> Document:
    """Return the visible text of an HTML page, a blank line between its blocks.

    Left out are scripts, comments, navigation, dialogs, asides, footers, preformatted
    and hidden text, and all outside of ``<main>`` where a page has one.  Another
    ``is_left_out`` takes an lxml element, and is true where it is not to be read.
    """
    tree = _without_hidden(_parse_html(source), is_left_out)
    passages = [
        passage for element in _main_parts(tree) for passage in _read_passages(element)
    ]
    return as_document(passages or _read_passages(tree), HTML_READER)


def _main_parts(tree: Any) -> Iterator[Any]:
    """Yield the outermost elements of an lxml tree that hold its main content."""
    from lxml import etree

    walk = etree.iterwalk(tree, events=("start",))
    for _, element in walk:
        if element.tag == "main" or element.get("role") == "main":
            walk.skip_subtree()
            yield element


_HTML_NAMES = {  # of trafilatura's elements
    **{"head": "h2", "list": "ul", "item": "li", "hi": "span", "ref": "a", "lb": "br"},
    **{"row": "tr", "cell": "td", "quote": "blockquote", "doc": "div"},
}
# Elements around another, and cells of a row, that trafilatura is asked to read.
_DEEPEST = 200
_WIDEST_ROW = 1000
# Elements in which code is between words; outside of them it is a block.
_HOLDS_TEXT = ("p", "h2", "li", "td")


def page_document(source: str) -> Document:
    """Return the main content of an HTML page.

    By trafilatura, or where it finds none by the built-in reader, which is then named
    as the document's ``reader``.
    """
    with explain_missing("reading HTML needs trafilatura", "text"):
        import trafilatura
        from lxml import etree
    page = _without_hidden(_parse_html(source))
    if _is_extreme(page):
        return _read_simply(source, "the page is nested too deeply, or a row too wide")
    for element in _inside_code(page):  # else their text comes before the rest
        element.drop_tag()
    try:
        xml = trafilatura.extract(
            page,
            output_format="xml",
            include_comments=False,
            include_formatting=True,
            include_links=True,
            favor_recall=True,
        )
    except Exception as error:  # on pages that it does not foresee
        return _read_simply(source, f"trafilatura failed: {type(error).__name__}")
    tree = etree.fromstring(xml or "<doc/>")
    for element in tree.iter():
        around = element.iterancestors(*_HOLDS_TEXT)
        if element.tag == "code" and next(around, None) is None:
            element.tag = "pre"
        elif element.tag == "hi" and element.get("rend") == "#t":
            element.tag = "tt"  # typewriter
        element.tag = _HTML_NAMES.get(element.tag, element.tag)
        element.attrib.clear()
    passages = _read_passages(_without_hidden(tree))
    if not any(passage.kind == "body" for passage in passages):
        return _read_simply(source, "trafilatura found no text")
    return as_document(passages, f"trafilatura {version('trafilatura')}")


def _read_simply(source: str, reason: str) -> Document:
    """Return a page as the built-in reader reads it, with the reason in its name."""
    return replace(html_document(source), reader=f"{HTML_READER} ({reason})")


def _is_extreme(page: Any) -> bool:
    """Whether trafilatura would take the square of the size of an lxml tree."""
    from lxml import etree

    depth = 0
    for event, element in etree.iterwalk(page, events=("start", "end")):
        depth += 1 if event == "start" else -1
        if depth > _DEEPEST or (element.tag == "tr" and len(element) > _WIDEST_ROW):
            return True
    return False


def _inside_code(page: Any) -> list[Any]:
    """Return the elements inside of code, in the order of the document."""
    from lxml import etree

    found, depth = [], 0
    for event, element in etree.iterwalk(page, events=("start", "end")):
        if event == "end":
            depth -= element.tag == "code"
        else:
            found += [element] if depth else []
            depth += element.tag == "code"
    return found


_FRONT_MATTER = re.compile(
    r"\ufeff?(?:---[ \t]*\n.*?\n(?:---|\.\.\.)|\+\+\+[ \t]*\n.*?\n\+\+\+)[ \t]*\n", re.S
)
_FOOTNOTE = re.compile(r"(?m)^\[\^\w+\]:[ \t]*|(?<=[\w.,)`])\[\^\d+\]")
_ALERT = re.compile(r"(?m)^([ \t]*>[ \t]*)\[![A-Za-z]+\][ \t]*$")


def markdown_document(source: str) -> Document:
    """Return the text of a Markdown file, without code blocks and front matter."""
    with explain_missing("reading Markdown needs markdown-it-py", "text"):
        from markdown_it import MarkdownIt
    if front_matter := _FRONT_MATTER.match(source):
        source = source[front_matter.end() :]
    source = _FOOTNOTE.sub("", _ALERT.sub(r"\1", source))
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(source)
    tree = _without_hidden(_parse_html(page))
    return as_document(_read_passages(tree), "markdown-it-py")
