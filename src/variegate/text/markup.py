"""Plain text, paragraphs and headings of Markdown files and HTML pages.

trafilatura finds the main content of a page, where it is installed; readability-lxml
would often keep only one of many parts.  The built-in reader of HTML reads its result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from importlib.metadata import version
from typing import NamedTuple

from variegate._install import install_command
from variegate.text.documents import Block, Document, Kind

HTML_READER = "the built-in HTML reader"

_Attributes = list[tuple[str, str | None]]


def names(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_NO_TEXT = names(
    """script style noscript template title nav footer aside svg math button select
    textarea iframe object audio video canvas dialog pre menu del s strike"""
)
# Elements inside a line of text; all others begin and end paragraphs.
_INLINE = names(
    """a abbr acronym b bdi bdo big cite code data del dfn em font i img input ins kbd
    label mark q rp rt ruby s samp small span strike strong sub sup time tt u var wbr"""
)
_HEADINGS = names("h1 h2 h3 h4 h5 h6")
_CODE = names("code samp kbd tt var")
# Elements that are always closed: their content can be left out by attributes.
_CLOSED = _HEADINGS | names(
    "div section ul ol dl span a form table header details figure p b i small"
)
_ROLES = names(
    """navigation dialog alertdialog search menu menubar contentinfo complementary
    banner toolbar tooltip"""
)
_ASIDE = re.compile(
    r"(?i)(?:^|[\s_-])(?:nav|navbar|navigation|navheader|navfooter|sidebar|sidetoc|toc|"
    r"breadcrumbs?|menu|menubar|footer|popup|modal|cookies?|skip-?link|headerlink|"
    r"visually-hidden|sr-only|searchbox|search-?form|pagination|table-of-contents|"
    r"gmail_(?:quote|signature)|moz-(?:cite-prefix|signature)|yahoo_quoted)"
    r"(?:$|[\s_-])"
)
_HIDDEN_STYLE = re.compile(r"(?i)(?:display\s*:\s*none|visibility\s*:\s*hidden)")
_ANCHORS = "¶#§🔗 \u00a0"


class Passage(NamedTuple):
    """A block of a document with its spans of code, ``inside`` main content or not.

    It ``follows`` another after a line break only.
    """

    kind: Kind
    text: str
    code: Sequence[tuple[int, int]] = ()
    inside: bool = True
    follows: bool = False


class _HtmlReader(HTMLParser):
    """Collects the passages of a page."""

    def __init__(self, *, by_class: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.passages: list[Passage] = []
        self._by_class = by_class
        self._skipping: str | None = None
        self._depth = 0
        self._main: list[str] = []
        self._heading = False
        self._links = 0
        self._code_depth = 0
        self._begin(follows=False)

    def _begin(self, *, follows: bool) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._link_length = 0
        self._code: list[tuple[int, int]] = []
        self._code_start = 0
        self._follows = follows

    def handle_starttag(self, tag: str, attrs: _Attributes) -> None:
        if self._skipping == "p" and tag not in _INLINE:
            self._skipping = None
        if self._skipping is not None:
            self._depth += tag == self._skipping
        elif tag in _NO_TEXT or (tag in _CLOSED and self._is_aside(dict(attrs))):
            if tag not in _INLINE:
                self._flush()
            self._skipping, self._depth = tag, 1
        elif tag == "br":
            self._flush(follows=True)
        elif tag in ("td", "th"):
            if self._length:
                self._add("\t")
        elif tag in _INLINE:
            self._links += tag == "a"
            if tag in _CODE:
                if self._code_depth == 0:
                    self._code_start = self._length
                self._code_depth += 1
        else:
            self._flush()
            self._links = self._code_depth = 0
            self._heading = tag in _HEADINGS
            if tag == "main" or ("role", "main") in attrs:
                self._main.append(tag)

    def handle_startendtag(self, tag: str, attrs: _Attributes) -> None:
        # HTML ignores the slash, but in XML pages <script/> or <nav/> opens no element.
        if tag not in _NO_TEXT and tag not in _CLOSED:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._skipping is not None:
            self._depth -= tag == self._skipping
            if self._depth == 0:
                self._skipping = None
        elif tag in _INLINE:
            self._links = max(0, self._links - (tag == "a"))
            if tag in _CODE and self._code_depth:
                self._code_depth -= 1
                if self._code_depth == 0 and self._code_start < self._length:
                    self._code.append((self._code_start, self._length))
        elif tag not in ("br", "td", "th") and tag not in _NO_TEXT:
            self._flush()
            self._heading = False
            if tag == "main" and "main" in self._main:
                self._main.remove("main")

    def handle_data(self, data: str) -> None:
        data = re.sub(r"[ \t\r\n\f]+", " ", data)
        if not self._length or self._pieces[-1][-1] in " \t":
            data = data.lstrip(" ")
        if data and self._skipping is None:
            self._add(data)
            self._link_length += len(data) * (self._links > 0)

    def close(self) -> None:
        super().close()
        self._flush()

    def _is_aside(self, attributes: dict[str, str | None]) -> bool:
        """Whether attributes say that an element is hidden or not main content."""
        if (
            "hidden" in attributes
            or attributes.get("aria-hidden") == "true"
            or attributes.get("role") in _ROLES
            or _HIDDEN_STYLE.search(attributes.get("style") or "")
        ):
            return True
        named = (attributes.get("class"), attributes.get("id"))
        return self._by_class and any(_ASIDE.search(name or "") for name in named)

    def _add(self, data: str) -> None:
        self._pieces.append(data)
        self._length += len(data)

    def _flush(self, *, follows: bool = False) -> None:
        """End the current passage and begin another."""
        text = "".join(self._pieces).rstrip()
        if self._heading:
            text = text.strip(_ANCHORS)
        if text:
            code = [(start, min(end, len(text))) for start, end in self._code]
            self.passages.append(
                Passage(self._kind(text), text, code, bool(self._main), self._follows)
            )
        self._begin(follows=follows)

    def _kind(self, text: str) -> Kind:
        if self._heading:
            return "headline"
        in_code = sum(end - start for start, end in self._code)
        mostly = max(self._link_length, in_code) > 0.8 * len(text)
        return "other" if mostly or "\t" in text else "body"


def as_document(passages: Sequence[Passage], reader: str) -> Document:
    """Join passages, with a blank line between blocks."""
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


def _passages(source: str, *, by_class: bool) -> list[Passage]:
    """Return the passages of a page, of its main content if that has text."""
    reader = _HtmlReader(by_class=by_class)
    reader.feed(source)
    reader.close()
    inside = [passage for passage in reader.passages if passage.inside]
    return inside if _size(inside) else reader.passages


def _size(passages: Sequence[Passage]) -> int:
    return sum(len(one.text) for one in passages if one.kind == "body")


def html_document(source: str) -> Document:
    """Return the main content of an HTML page, a blank line between its blocks.

    Left out are scripts, comments, navigation, dialogs, asides, footers, preformatted
    and hidden text, and all outside of ``<main>`` where a page has one.
    """
    passages = _passages(source, by_class=True)
    everything = _passages(source, by_class=False)
    # Where classes would leave out nearly all, they have another meaning.
    if _size(passages) < 0.2 * _size(everything):
        passages = everything
    return as_document(passages, HTML_READER)


_HTML_NAMES = {  # of trafilatura's elements
    **{"head": "h2", "list": "ul", "item": "li", "hi": "span", "ref": "a", "lb": "br"},
    **{"row": "tr", "cell": "td", "quote": "blockquote", "doc": "div"},
}
# Hidden elements and code, which trafilatura may keep.
_NEVER_TEXT = (
    "//body//*[self::pre or self::dialog or self::nav or @hidden or "
    "@aria-hidden='true' or contains(translate(@style, ' ', ''), 'display:none')]"
)
# Elements in which code is between words; outside of them it is a block.
_HOLDS_TEXT = frozenset({"p", "h2", "li", "td"})


def page_document(source: str) -> Document:
    """Return the main content of an HTML page.

    By trafilatura, if it is installed and finds any, and else by the built-in reader;
    the document's ``reader`` names it and the reason.
    """
    try:
        import trafilatura  # type: ignore[import-not-found, unused-ignore]
        from lxml import etree, html  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        reason = f"trafilatura is not installed: {install_command('text')}"
        return _built_in(source, reason)
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        page = html.document_fromstring(source.encode(errors="replace"), parser=parser)
    except etree.ParserError:  # an empty page
        return _built_in(source, "trafilatura found no text")
    for element in page.xpath(_NEVER_TEXT):
        element.drop_tree()
    for element in page.xpath("//code//*"):  # else their text comes before the rest
        element.drop_tag()
    xml = trafilatura.extract(
        page,
        output_format="xml",
        include_comments=False,
        include_formatting=True,
        include_links=True,
        favor_recall=True,
    )
    tree = etree.fromstring(xml or "<doc/>")
    for element in tree.iter():
        is_code = element.tag == "code"
        if is_code and not any(a.tag in _HOLDS_TEXT for a in element.iterancestors()):
            element.tag = "pre"
        elif element.tag == "hi" and element.get("rend") == "#t":
            element.tag = "tt"  # typewriter
        element.tag = _HTML_NAMES.get(element.tag, element.tag)
        element.attrib.clear()
    passages = _passages(etree.tostring(tree, encoding="unicode"), by_class=False)
    if not any(passage.kind == "body" for passage in passages):
        return _built_in(source, "trafilatura found no text")
    return as_document(passages, f"trafilatura {version('trafilatura')}")


def _built_in(source: str, reason: str) -> Document:
    return replace(html_document(source), reader=f"{HTML_READER} ({reason})")


_FRONT_MATTER = re.compile(
    r"\ufeff?(?:---[ \t]*\n.*?\n(?:---|\.\.\.)|\+\+\+[ \t]*\n.*?\n\+\+\+)[ \t]*\n", re.S
)
_FOOTNOTE = re.compile(r"(?m)^\[\^\w+\]:[ \t]*|(?<=[\w.,)`])\[\^\d+\]")
_ALERT = re.compile(r"(?m)^([ \t]*>[ \t]*)\[![A-Za-z]+\][ \t]*$")


def markdown_document(source: str) -> Document:
    """Return the text of a Markdown file, without code blocks and front matter."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise ImportError(
            f"reading Markdown needs markdown-it-py: {install_command('text')}"
        ) from error
    if front_matter := _FRONT_MATTER.match(source):
        source = source[front_matter.end() :]
    source = _FOOTNOTE.sub("", _ALERT.sub(r"\1", source))
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(source)
    return as_document(_passages(page, by_class=False), "markdown-it-py")
