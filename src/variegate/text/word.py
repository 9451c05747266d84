"""Text of Word files (.docx): paragraphs and headings of the XML in the archive."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from xml.parsers import expat

from variegate.text.documents import Document, Kind
from variegate.text.markup import Passage, as_document

_MOST_BYTES = 100_000_000  # of the XML
_PART = "word/document.xml"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main "
_STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main "
_FALLBACK = "http://schemas.openxmlformats.org/markup-compatibility/2006 Fallback"
_HEADING = re.compile(r"(?i)title|subtitle|heading|überschrift|berschrift|titre|nadpis")


def word_document(data: bytes) -> Document:
    """Return the paragraphs and headings of a Word file, without tables and notes.

    Raises
    ------
    ValueError : for a file that is damaged, encrypted or too large
    """
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
    reader = _Reader()
    try:
        reader.parser.Parse(xml, True)
    except expat.ExpatError as error:
        raise ValueError(
            f"the XML of the Word file is damaged ({error}): open it in a word "
            "processor and save it again"
        ) from error
    return as_document(reader.passages, "the built-in Word reader")


class _Reader:
    """Collects the paragraphs outside of tables."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._add
        self._pieces: list[str] = []
        self._heading = self._in_text = False
        self._skipped = 0  # depth of elements that are left out

    def _refuse(self, *_: object) -> None:
        raise ValueError(
            "the XML of the Word file declares a document type, which Word never "
            "writes: save the file again in a word processor"
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.removeprefix(_WORD).removeprefix(_STRICT)
        if tag in ("tbl", _FALLBACK):
            self._skipped += 1
        elif tag == "pStyle":
            style = "".join(attributes.values())
            self._heading = _HEADING.match(style) is not None
        elif tag in ("tab", "br", "cr"):
            self._pieces.append(" ")
        self._in_text = tag == "t"

    def _end(self, name: str) -> None:
        tag = name.removeprefix(_WORD).removeprefix(_STRICT)
        self._in_text = False
        if tag in ("tbl", _FALLBACK):
            self._skipped -= 1
        elif tag == "p" and not self._skipped:
            if text := " ".join("".join(self._pieces).split()):
                kind: Kind = "headline" if self._heading else "body"
                self.passages.append(Passage(kind, text))
            self._pieces, self._heading = [], False

    def _add(self, data: str) -> None:
        if self._in_text and not self._skipped:
            self._pieces.append(data)
