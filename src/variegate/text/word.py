"""Text of Word files (.docx): paragraphs and headings of the XML in the archive."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from variegate._install import explain_missing
from variegate.text.documents import Document
from variegate.text.markup import Passage, as_document

_MOST_BYTES = 100_000_000  # of the XML
_PART = "word/document.xml"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_HEADING = re.compile(r"(?i)title|subtitle|heading|überschrift|berschrift|titre|nadpis")


def word_document(data: bytes) -> Document:
    """Return the paragraphs and headings of a Word file, without tables and notes."""
    with explain_missing("reading Word files needs lxml", "text"):
        from lxml import etree
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        with archive, archive.open(_PART) as part:
            xml = part.read(_MOST_BYTES + 1)
    except (
        zipfile.BadZipFile, KeyError, RuntimeError, NotImplementedError, zlib.error,
        EOFError,
    ) as error:  # fmt: skip
        raise ValueError(
            "the Word file is damaged, encrypted or not a .docx file: open it in a "
            "word processor and save it again, without a password"
        ) from error
    if len(xml) > _MOST_BYTES:
        raise ValueError(
            f"the text of the Word file has more than {_MOST_BYTES:,} bytes: divide it"
        )
    parser = etree.XMLParser(resolve_entities=False, huge_tree=True)
    try:
        root = etree.fromstring(xml, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(
            f"the XML of the Word file is damaged ({error.msg}): open it in a word "
            "processor and save it again"
        ) from error
    if root.getroottree().docinfo.doctype:
        raise ValueError(
            "the XML of the Word file declares a document type, which Word never "
            "writes: save the file again in a word processor"
        )
    etree.strip_elements(root, "{*}tbl", _FALLBACK, with_tail=False)
    return as_document(list(_read_paragraphs(root)), "the built-in Word reader")


def _read_paragraphs(root: Any) -> Iterator[Passage]:
    """Yield the paragraphs below an lxml element as passages, headings as headlines."""
    word = f"{{{root.xpath('namespace-uri()')}}}"  # one of two namespaces
    spaces = [f"{word}{name}" for name in ("tab", "br", "cr")]
    for paragraph in root.iter(f"{word}p"):
        pieces = [
            (node.text or "") if node.tag == f"{word}t" else " "
            for node in paragraph.iter(f"{word}t", *spaces)
            if next(node.iterancestors(f"{word}p")) is paragraph  # not in a text box
        ]
        style = paragraph.find(f"{word}pPr/{word}pStyle")
        name = "" if style is None else style.get(f"{word}val", "")
        if text := " ".join("".join(pieces).split()):
            yield Passage("headline" if _HEADING.match(name) else "body", text)
