"""The words that ROUGE compares: tokens of a text, and the stems of English words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, groupby
from os import PathLike
from pathlib import Path

from variegate.files.folders import read_text
from variegate.text.words import import_regex

Words = tuple[str, ...]

_SPACES = " \t\n\r\f\v"
_JOINERS = r"[\p{Cf}--\u200b]+"  # only say how letters are drawn
_ASCII_WORD = re.compile("[a-z0-9]+")


def folded(text: str) -> str:
    """Return a text case-folded, in Unicode's composed form (NFC)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def mostly_beyond_ascii(text: str) -> bool:
    """Whether more than half of the letters are outside ASCII."""
    letters = [character for character in text if character.isalpha()]
    return sum(letter.isascii() for letter in letters) * 2 < len(letters)


# The Porter stemmer (M. F. Porter, 1980, "An algorithm for suffix stripping") takes
# suffixes off in five steps.  A rule looks at the stem before a suffix, and at its
# measure m: how often a run of vowels is followed by a run of consonants.  ROUGE-1.5.5
# differs in three places: "bli" becomes "ble" (Porter: "abli" becomes "able"), "logi"
# becomes "log", and step 4 tries "ment", "ent" and "ion" one after the other on the
# rest, so that "element" becomes "elem".

# Suffixes of steps 2 to 4 and their replacements, which are empty in step 4.
_STEP_2 = """ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al
entli:ent eli:e ousli:ous ization:ize ation:ate ator:ate alism:al iveness:ive
fulness:ful ousness:ous aliti:al iviti:ive biliti:ble logi:log"""
_STEP_3 = "icate:ic ative: alize:al iciti:ic ical:ic ful: ness:"
_STEP_4 = """al: ance: ence: er: ic: able: ible: ant: ement: ou: ism: ate: iti: ous:
ive: ize:"""


def _rule(suffixes: str, measure: int) -> tuple[re.Pattern[str], dict[str, str], int]:
    """Return a pattern of (stem, suffix), replacements by suffix, and ``measure``.

    ``suffixes`` are pairs "suffix:replacement", divided by spaces; ``measure`` is the
    number that Porter's m of a stem must exceed.
    """
    replacements = dict(suffix.split(":") for suffix in suffixes.split())
    # The lazy stem makes the longest suffix win.
    return re.compile(rf"(.*?)({'|'.join(replacements)})"), replacements, measure


_RULES = [
    *(_rule(suffixes, 0) for suffixes in (_STEP_2, _STEP_3)),
    *(_rule(suffixes, 1) for suffixes in (_STEP_4, "ment:", "ent:", "(?<=[st])ion:")),
]


def _letter_kinds(word: str) -> str:
    """Return ``v`` for every vowel and ``c`` for every other character.

    ``y`` is a vowel after a consonant, else a consonant.
    """
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _stem_measure(word: str) -> int:
    """Return Porter's measure m of a stem."""
    runs = "".join(kind for kind, _ in groupby(_letter_kinds(word)))
    return runs.count("vc")


def _ends_like_hop(word: str) -> bool:
    """Whether a word ends in consonant, vowel, and a consonant other than w, x, y."""
    return _letter_kinds(word).endswith("cvc") and word[-1] not in "wxy"


def _without_ed_ing(word: str) -> str:
    """Return a word without "ed" or "ing", if a vowel is before: "hop" of "hopping".

    An "e" that was lost comes back: "hope" of "hoping".  "eed" becomes "ee" if m > 0.
    """
    if word.endswith("eed"):
        return word[:-1] if _stem_measure(word[:-3]) > 0 else word
    left = re.fullmatch(r"(.*?)(ed|ing)", word)
    if left is None or "v" not in _letter_kinds(left[1]):
        return word
    word = left[1]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if re.search(r"([^aeiouylsz])\1$", word):
        return word[:-1]
    if _stem_measure(word) == 1 and _ends_like_hop(word):
        return word + "e"
    return word


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of a lower-case English word; shorter than three it stays.

    >>> stem("relational"), stem("element")
    ('relat', 'elem')
    """
    if len(word) < 3:
        return word
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    word = _without_ed_ing(word)
    if word.endswith("y") and "v" in _letter_kinds(word[:-1]):
        word = word[:-1] + "i"
    for pattern, replacements, measure in _RULES:
        split = pattern.fullmatch(word)
        if split is not None and _stem_measure(split[1]) > measure:
            word = split[1] + replacements.get(split[2], "")
    left = word.removesuffix("e")
    if _stem_measure(left) > (1 if _ends_like_hop(left) else 0):
        word = left
    if word.endswith("ll") and _stem_measure(word) > 1:
        word = word[:-1]
    return word


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
        """Return the words of a text within the limits, in order, stemmed if asked."""
        return tuple(chain.from_iterable(map(self.words_of, self.lines_of(text))))

    def lines_of(self, text: str) -> list[str]:
        """Return the lines of a text, cut where they exceed the limit together."""
        lines = text.split("\n")
        if self.max_bytes is not None:
            return first_bytes(lines, self.max_bytes)
        return lines if self.max_words is None else _first_words(lines, self.max_words)

    def words_of(self, line: str) -> Iterator[str]:
        """Yield the words of a line without stop words, stemmed if asked."""
        if self.unicode:
            regex = import_regex()
            line = regex.sub(_JOINERS, "", folded(line), flags=regex.VERSION1)
            words = regex.findall(r"[\p{L}\p{N}\p{M}]+", line)
        else:  # lower-casing must not turn letters outside ASCII into ASCII, as K to k
            words = _ASCII_WORD.findall(
                line.encode("ascii", "replace").decode().lower()
            )
        for word in words:
            if word not in (self.stop_words or ()):
                yield self._base_form(word) if self.stem else word

    def _base_form(self, word: str) -> str:
        """Return the exception or the stem of a word; up to three letters stay."""
        if len(word) <= 3 or not word.isascii():
            return word
        known = self.exceptions.get(word) if self.exceptions else None
        return stem(word) if known is None else known


def first_bytes(lines: list[str], limit: int) -> list[str]:
    """Return ``lines`` with only the first ``limit`` bytes of all of them together.

    Lines after the limit are "", and a character that the limit divides is left out.
    """
    kept = []
    for line in lines:
        data = line.encode("utf-8", "replace")[:limit]
        kept.append(data.decode("utf-8", "ignore"))
        limit -= len(data)
    return kept


def _first_words(lines: list[str], limit: int) -> list[str]:
    """Return ``lines`` with only the first ``limit`` words of all of them together."""
    kept = []
    for line in lines:
        # White space at the start of a line counts as a word: ROUGE-1.5.5 splits so.
        stripped = line.rstrip(_SPACES)
        words = re.split(f"[{_SPACES}]+", stripped)[:limit] if stripped else []
        kept.append(" ".join(words))
        limit -= len(words)
    return kept


def read_exceptions(path: str | PathLike[str]) -> dict[str, str]:
    """Return base forms by irregular forms, from a file of ``form<TAB>base`` lines."""
    exceptions = {}
    text = read_text(Path(path), remedy="save the table in UTF-8")
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
