"""Text of PDF files by PDFium: characters with their places, cut into pieces."""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from importlib.metadata import version
from typing import Any
from unicodedata import normalize

from variegate._install import explain_missing
from variegate.text.columns import WIDE_GAP, Piece
from variegate.text.documents import Document
from variegate.text.pages import pages_document

_MOST_PAGES = 2000
_MOST_CHARACTERS = 20_000_000

_HYPHENS = frozenset("\x02\ufffe")  # PDFium's marks of a hyphen at a line end
_BEFORE_NOTE_MARK = '.,;:?!)”"'
# TeX prints accents before the letter, or after the word, at the place of the letter.
_ACCENTS = dict(
    zip("¨´`ˆ˜ˇ¸˚", "\u0308\u0301\u0300\u0302\u0303\u030c\u0327\u030a", strict=True)
)
_SAME_PLACE = 0.2  # sizes of a letter
_DOTLESS = {"ı": "i", "ȷ": "j"}


def pdf_document(data: bytes) -> Document:
    """Return the text of a PDF file in reading order; raise ValueError without any."""
    with explain_missing("reading PDF files needs pypdfium2", "pdf"):
        import pypdfium2
    try:
        source = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise ValueError(
                "the PDF file is encrypted: save it without a password"
            ) from error
        raise ValueError(
            f"the PDF file is damaged or not a PDF file: {error}; open it in a viewer "
            "and save it again"
        ) from error
    try:
        n_pages = len(source)
        if n_pages > _MOST_PAGES:
            raise ValueError(
                f"the PDF file has {n_pages:,} pages, more than {_MOST_PAGES:,}: "
                "divide it"
            )
        pages, left = [], _MOST_CHARACTERS
        for number in range(n_pages):
            try:
                pieces, n_characters = _read_page(source[number], left)
            except pypdfium2.PdfiumError as error:
                raise ValueError(
                    f"page {number + 1} of the PDF file is damaged: {error}; open the "
                    "file in a viewer and save it again"
                ) from error
            pages.append(pieces)
            left -= n_characters
    finally:
        source.close()
    document = pages_document(pages, f"pypdfium2 {version('pypdfium2')}")
    if not document.text:
        raise ValueError(
            "the PDF file has pages but no text; if they are scanned, run text "
            "recognition (OCR) first"
        )
    return document


def _read_page(page: Any, most: int) -> tuple[list[Piece], int]:
    """Return the pieces of a pypdfium2 page and its number of characters; close it.

    Raises ValueError above ``most`` characters.  Text at an angle is left out.
    """
    import pypdfium2.raw as pdfium

    textpage = page.get_textpage()
    n_characters = textpage.count_chars()
    if n_characters > most:
        raise ValueError(
            f"the PDF file has more than {_MOST_CHARACTERS:,} characters: divide it"
        )
    height = page.get_height()
    box, matrix = pdfium.FS_RECTF(), pdfium.FS_MATRIX()
    x, y = ctypes.c_double(), ctypes.c_double()
    writer = _PieceWriter()
    for index in range(n_characters):
        letter = chr(pdfium.FPDFText_GetUnicode(textpage, index))
        if letter in "\r\n":
            writer.end()
        elif letter.isspace():
            writer.space = True
        elif abs(pdfium.FPDFText_GetCharAngle(textpage, index)) < 0.1:
            pdfium.FPDFText_GetLooseCharBox(textpage, index, box)
            pdfium.FPDFText_GetCharOrigin(textpage, index, x, y)
            pdfium.FPDFText_GetMatrix(textpage, index, matrix)
            size = pdfium.FPDFText_GetFontSize(textpage, index)
            size = max(size * math.hypot(matrix.c, matrix.d), 0.1)
            writer.add(letter, (box.left, box.right), height - y.value, size)
    writer.end()
    textpage.close()
    page.close()
    return writer.pieces, n_characters


class _PieceWriter:
    """Joins the letters of a page to ``pieces``; set ``space`` after white space.

    A letter has its ``sides`` (left, right), the distance ``base`` of its line from the
    top of the page, and a ``size``, all in points.
    """

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.space = False
        self._letters: list[str] = []
        self._lefts: list[float] = []
        self._accent: tuple[str, tuple[float, float], float, float] | None = None
        self._left = self._right = self._base = self._size = 0.0
        self._sizes = Counter[float]()

    def add(
        self, letter: str, sides: tuple[float, float], base: float, size: float
    ) -> None:
        """Add a letter; an accent waits for, or is put on, the letter at its place."""
        left = sides[0]
        if self._accent is not None:
            accent, self._accent = self._accent, None
            if letter.isalpha() and abs(accent[1][0] - left) < _SAME_PLACE * size:
                letter = _add_accent(letter, accent[0])
            else:
                self._put_letter(*accent)
        below = [
            n
            for n, x in enumerate(self._lefts)
            if self._letters[n].isalpha() and abs(x - left) < _SAME_PLACE * size
        ]
        if letter in _ACCENTS and below:
            self._letters[below[0]] = _add_accent(self._letters[below[0]], letter)
        elif letter in _ACCENTS:
            self._accent = letter, sides, base, size
        else:
            self._put_letter(letter, sides, base, size)

    def _put_letter(
        self, letter: str, sides: tuple[float, float], base: float, size: float
    ) -> None:
        """Append a letter, to a new piece after a gap; skip footnote numbers."""
        left, right = sides
        if letter in _HYPHENS:
            letter = "-"
        if self._letters:
            character = (self._right - self._left) / len(self._letters)
            gap = left - self._right
            raised = self._base - base
            if (
                letter.isdigit()
                and not self.space
                and 0.15 * self._size < raised < 0.6 * self._size
                and self._letters[-1] in _BEFORE_NOTE_MARK
            ):
                return  # the number of a footnote
            if (
                abs(raised) > 0.6 * max(size, self._size)
                or gap > WIDE_GAP * max(character, 0.3 * size)
                or gap < -2 * size
            ):
                self.end()
            elif self.space or gap > 0.2 * size:
                self._letters.append(" ")
                self._lefts.append(-math.inf)
        if not self._letters:
            self._left, self._base, self._size = left, base, size
            self._sizes.clear()
        self._letters.append(letter)
        self._lefts.append(left)
        self._right = max(right, self._left)
        self._size = max(self._size, size)
        self._sizes[size] += 1
        self.space = False

    def end(self) -> None:
        """Append the current piece to ``pieces`` if it has text, and begin another."""
        if self._accent is not None:
            accent, self._accent = self._accent, None
            self._put_letter(*accent)
        text = "".join(self._letters)
        # Characters beyond the first 65,536 come as two surrogates.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if text:
            size = self._sizes.most_common(1)[0][0]
            piece = Piece(text, self._left, self._right, self._base, size)
            self.pieces.append(piece)
        self._letters, self._lefts, self.space = [], [], False


def _add_accent(letter: str, accent: str) -> str:
    """Return a letter with an accent, or as it is where Unicode has no such letter."""
    whole = normalize("NFC", _DOTLESS.get(letter, letter) + _ACCENTS[accent])
    return whole if len(whole) == 1 else letter
