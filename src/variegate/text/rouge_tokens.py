"""From a text to the words that ROUGE compares."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from os import PathLike
from pathlib import Path

from variegate.text.porter import stem

Words = tuple[str, ...]

_SPACES = " \t\n\r\f\v"
_ASCII_WORD = re.compile("[a-z0-9]+")


class _WordCharacters(dict[int, int | None]):
    """A lazily filled table for ``str.translate``, of letters, digits and marks.

    Joiners, which only say how letters are drawn, vanish; all else is a space.
    """

    def __missing__(self, code: int) -> int | None:
        category = unicodedata.category(chr(code))
        is_joiner = category == "Cf" and chr(code) != "\N{ZERO WIDTH SPACE}"
        is_word = category[0] in "LNM"
        self[code] = code if is_word else None if is_joiner else ord(" ")
        return self[code]


_WORD_CHARACTERS = _WordCharacters()


def folded(text: str) -> str:
    """Return a text case-folded, with composed accents."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def mostly_beyond_ascii(text: str) -> bool:
    """Whether more than half of the letters are outside ASCII."""
    letters = [character for character in text if character.isalpha()]
    return sum(letter.isascii() for letter in letters) * 2 < len(letters)


@dataclass(frozen=True)
class Tokenizer:
    """Splits a text into words; line breaks are ends of sentences.

    Limits apply to the raw text: ``max_bytes`` to the bytes of the lines in UTF-8,
    ``max_words`` to words between white space; line ends are free.

    Words are runs of ASCII letters and digits in lower case or, with ``unicode``, runs
    of letters, digits and marks of any script, case-folded.  Stop words go before
    stemming.  Words of more than three ASCII characters are looked up in the table of
    ``exceptions`` and stemmed if it does not have them.
    """

    max_bytes: int | None = None
    max_words: int | None = None
    stem: bool = False
    exceptions: Mapping[str, str] | None = field(default=None, repr=False)
    stop_words: Collection[str] | None = field(default=None, repr=False)
    unicode: bool = False

    def read(self, text: str) -> Words:
        """Return the words of a text."""
        return tuple(chain.from_iterable(map(self.words_of, self.lines_of(text))))

    def lines_of(self, text: str) -> list[str]:
        """Return the lines of a text within the limit."""
        lines = text.split("\n")
        if self.max_bytes is not None:
            return first_bytes(lines, self.max_bytes)
        return lines if self.max_words is None else _first_words(lines, self.max_words)

    def words_of(self, line: str) -> Iterator[str]:
        """Yield the words of a line."""
        if self.unicode:
            words = folded(line).translate(_WORD_CHARACTERS).split()
        else:  # lower-casing must not turn letters outside ASCII into ASCII, as K to k
            words = _ASCII_WORD.findall(
                line.encode("ascii", "replace").decode().lower()
            )
        for word in words:
            if word not in (self.stop_words or ()):
                yield self._stem(word) if self.stem else word

    def _stem(self, word: str) -> str:
        if len(word) <= 3 or not word.isascii():
            return word
        known = self.exceptions.get(word) if self.exceptions else None
        return stem(word) if known is None else known


def first_bytes(lines: list[str], limit: int) -> list[str]:
    """Return lines of which only the first bytes of all are kept."""
    kept = []
    for line in lines:
        data = line.encode("utf-8", "replace")[:limit]
        kept.append(data.decode("utf-8", "ignore"))
        limit -= len(data)
    return kept


def _first_words(lines: list[str], limit: int) -> list[str]:
    kept = []
    for line in lines:
        # White space at the start of a line counts as a word: ROUGE-1.5.5 splits so.
        stripped = line.rstrip(_SPACES)
        words = re.split(f"[{_SPACES}]+", stripped)[:limit] if stripped else []
        kept.append(" ".join(words))
        limit -= len(words)
    return kept


def read_exceptions(path: str | PathLike[str]) -> dict[str, str]:
    """Read a table of irregular forms, such as WordNet's: ``form<TAB>base`` lines."""
    exceptions = {}
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) != 2 or not all(cell.strip() for cell in cells):
            raise ValueError(
                f"{path}, line {number}: expected 'form<TAB>base', got {line!r}"
            )
        exceptions[cells[0].strip()] = cells[1].strip()
    return exceptions
