"""Scripts written without spaces between words, and where sentences end in any."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["ENDS", "UNSPACED", "count_spaced_words", "ends_sentence"]

#: For character classes: letters of Chinese and Japanese, Thai, Lao, Burmese, Khmer.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f"
    "\u1780-\u17d3\u17d7\u17dc-\u17e9\u3005-\u3007\u3041-\u309f\u30a1-\u30fa"
    "\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)

#: For character classes: marks that end sentences and nothing else, beside those of
#: ASCII.  All have the property ``Sentence_Break=STerm`` of Unicode (UAX #29).
#: Armenian, Arabic, Urdu, Devanagari and its kin, Burmese, Amharic, Khmer, and the wide
#: marks of Chinese and Japanese.  Thai and Lao have none.
ENDS = (
    "\u0589\u061e\u061f\u06d4\u0964\u0965\u104b\u1362\u1367\u1368\u17d4\u17d5"
    "\u3002\ufe12\ufe15\ufe16\uff01\uff1f\uff61"
)

_AN_UNSPACED = re.compile(f"[{UNSPACED}]")
_SPACED_RUN = re.compile(rf"(?:(?![{UNSPACED}])\S)+")
_ENDS_SENTENCE = re.compile(
    rf"[.!?…‼⁇⁈⁉\uff0e\u037e{ENDS}][\s\"'’“”»›\u05f3\u05f4\x94*_)\]}}」』）】》]*+$"
)


def ends_sentence(text: str) -> bool:
    """Whether a text ends as a sentence does, in any script that marks it."""
    return _ENDS_SENTENCE.search(text[-20:]) is not None


def count_spaced_words(text: str) -> int:
    """Count words as a budget does.

    Between spaces; in scripts without them, every letter with its marks is a word.
    """
    if _AN_UNSPACED.search(text) is None:
        return len(text.split())
    count = 0
    for piece in text.split():
        letters = _AN_UNSPACED.findall(piece)
        if not letters:
            count += 1
            continue
        count += sum(unicodedata.category(one)[0] != "M" for one in letters)
        count += sum(
            any(one.isalnum() for one in run) for run in _SPACED_RUN.findall(piece)
        )
    return count
