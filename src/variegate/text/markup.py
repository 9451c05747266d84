"""The text in Markdown and HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

__all__ = ["html_text", "markdown_text"]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Elements whose content is no text of the page.
_NO_TEXT = _names(
    """script style noscript template title nav footer aside svg math button select
    textarea iframe object audio video canvas dialog"""
)
# Elements inside a line of text; all others begin and end paragraphs.
_INLINE = _names(
    """a abbr acronym b bdi bdo big cite code data del dfn em font i img input ins kbd
    label mark q rp rt ruby s samp small span strike strong sub sup time tt u var wbr"""
)


class _Extractor(HTMLParser):
    """Collects the text of a page: a blank line between blocks."""

    def __init__(self, *, keep_code: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._no_text = _NO_TEXT if keep_code else _NO_TEXT | {"pre"}
        self._skipping: str | None = None
        self._depth = 0
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipping is not None:
            self._depth += tag == self._skipping
        elif tag in self._no_text:
            self._skipping, self._depth = tag, 1
        elif tag == "br":
            self.pieces.append("\n")
        elif tag in ("td", "th"):
            if not self._at_line_start():
                self.pieces.append("\t")
        elif tag not in _INLINE:
            self.pieces.append("\n\n")
            self._preformatted += tag == "pre"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # In HTML the slash means nothing, but <script/> or <nav/> opens no element
        # in the XML pages that write it.
        if tag not in self._no_text:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._skipping is not None:
            self._depth -= tag == self._skipping
            if self._depth == 0:
                self._skipping = None
        elif tag in ("br", "td", "th") or tag in _INLINE or tag in self._no_text:
            return
        else:
            self.pieces.append("\n\n")
            self._preformatted = max(0, self._preformatted - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        if self._skipping is not None:
            return
        if not self._preformatted:
            data = re.sub(r"[ \t\r\n\f]+", " ", data)
            data = data.lstrip(" ") if self._at_line_start() else data
        if data:
            self.pieces.append(data)

    def _at_line_start(self) -> bool:
        return not self.pieces or self.pieces[-1].endswith("\n")


def html_text(source: str, *, keep_code: bool = True) -> str:
    """Return the text of an HTML page, a blank line between its blocks.

    Scripts, styles, comments, navigation, asides and footers are left out; without
    ``keep_code`` also preformatted text.
    """
    extractor = _Extractor(keep_code=keep_code)
    extractor.feed(source)
    extractor.close()
    lines = "".join(extractor.pieces).split("\n")
    text = "\n".join(line.rstrip() for line in lines)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


def markdown_text(source: str) -> str:
    """Return the text of a Markdown file, without code blocks and front matter."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise ImportError(
            "reading Markdown needs markdown-it-py: pip install 'variegate[text]'"
        ) from error
    front_matter = re.match(
        r"\ufeff?---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*\n", source, re.S
    )
    if front_matter:
        source = source[front_matter.end() :]
    page = MarkdownIt("commonmark").enable("table").render(source)
    return html_text(page, keep_code=False)
