"""The main content of a web page, by trafilatura where it is installed.

Of two well-kept extractors it is the one that leaves least out: readability-lxml has
fewer dependencies, but takes one part of a page that has many for all of it (of a
manual it may read the licence alone).
"""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

from variegate.text.documents import Document
from variegate.text.markup import (
    HTML_READER,
    Attributes,
    HtmlReader,
    as_document,
    html_document,
)

__all__ = ["page_document"]

#: What trafilatura's elements are called in HTML.
_HTML_NAMES = {
    "head": "h2",
    "list": "ul",
    "item": "li",
    "hi": "span",
    "ref": "a",
    "lb": "br",
    "row": "tr",
    "cell": "td",
    "quote": "blockquote",
    "doc": "div",
}
#: What is taken out before, since an extractor may keep it: what is hidden, and code.
_NEVER_TEXT = (
    "//body//*[self::pre or self::dialog or self::nav or @hidden or "
    "@aria-hidden='true' or contains(translate(@style, ' ', ''), 'display:none')]"
)
#: Elements in which code is between words; elsewhere it is a block.
_HOLDS_TEXT = frozenset({"p", "h2", "li", "td"})


class _XmlReader(HtmlReader):
    """Reads the XML that trafilatura writes."""

    def __init__(self) -> None:
        super().__init__(by_class=False)
        self._open: list[str] = []

    def _name(self, tag: str, attrs: Attributes) -> str:
        if tag == "hi" and ("rend", "#t") in attrs:  # typewriter
            return "tt"
        tag = _HTML_NAMES.get(tag, tag)
        holds = any(name in _HOLDS_TEXT for name in self._open)
        return "pre" if tag == "code" and not holds else tag

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        """Begin an element, by its name in HTML."""
        name = self._name(tag, attrs)
        super().handle_starttag(name, [])
        self._open.append(name)

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        """Begin an element that ends itself."""
        super().handle_startendtag(self._name(tag, attrs), [])

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        name = self._open.pop() if self._open else _HTML_NAMES.get(tag, tag)
        super().handle_endtag(name)


def page_document(source: str) -> Document:
    """Return the main content of an HTML page.

    By trafilatura, if it is installed and finds any, and else by the built-in reader;
    the document's ``reader`` says which it was, and why.
    """
    try:
        import trafilatura  # type: ignore[import-not-found, unused-ignore]
        from lxml import etree, html  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return _built_in(
            source, "trafilatura is not installed: pip install 'variegate[text]'"
        )
    try:
        page = html.document_fromstring(
            source.encode(errors="replace"),
            parser=html.HTMLParser(
                encoding="utf-8", remove_comments=True, remove_pis=True
            ),
        )
    except etree.ParserError:  # nothing in it
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
    reader = _XmlReader()
    reader.feed(xml or "")
    reader.close()
    if not any(passage.kind == "body" for passage in reader.passages):
        return _built_in(source, "trafilatura found no text")
    return as_document(reader.passages, f"trafilatura {version('trafilatura')}")


def _built_in(source: str, reason: str) -> Document:
    return replace(html_document(source), reader=f"{HTML_READER} ({reason})")
