"""The Porter stemmer as ROUGE-1.5.5 has it.

Porter's algorithm (M. F. Porter, 1980, "An algorithm for suffix stripping") takes
suffixes off in five steps.  A rule looks at what a suffix leaves behind, the stem, and
at its measure m: how often a run of vowels is followed by a run of consonants.

ROUGE-1.5.5 differs in three places: ``bli`` becomes ``ble`` (Porter: ``abli`` becomes
``able``), ``logi`` becomes ``log``, and step 4 tries ``ment``, ``ent`` and ``ion`` one
after the other on whatever is left, so that "element" becomes "elem".
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby

__all__ = ["stem"]


def _table(rules: str) -> dict[str, str]:
    """Return suffixes and what replaces them."""
    return dict(rule.split(":") for rule in rules.split())


_STEP_2 = _table(
    """ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent
    eli:e ousli:ous ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful
    ousness:ous aliti:al iviti:ive biliti:ble logi:log"""
)
_STEP_3 = _table("icate:ic ative: alize:al iciti:ic ical:ic ful: ness:")
_STEP_4 = "al|ance|ence|er|ic|able|ible|ant|ement|ou|ism|ate|iti|ous|ive|ize"


def _split_off(suffixes: str) -> re.Pattern[str]:
    # The lazy stem makes the longest suffix win.
    return re.compile(rf"(.*?)({suffixes})")


_RULES_2_3 = [(_split_off("|".join(table)), table) for table in (_STEP_2, _STEP_3)]
_SUFFIXES_4 = [_split_off(one) for one in (_STEP_4, "ment", "ent", "(?<=[st])ion")]


def _shape(word: str) -> str:
    """Return ``v`` for every vowel and ``c`` for every other character.

    ``y`` is a vowel after a consonant, else a consonant.
    """
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    runs = "".join(kind for kind, _ in groupby(_shape(word)))
    return runs.count("vc")


def _ends_like_hop(word: str) -> bool:
    """Whether the word ends in consonant, vowel, consonant but w, x, y."""
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _step_1a(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _step_1b(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    left = re.fullmatch(r"(.*?)(ed|ing)", word)
    if left is None or "v" not in _shape(left[1]):
        return word
    word = left[1]
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if re.search(r"([^aeiouylsz])\1$", word):
        return word[:-1]
    if _measure(word) == 1 and _ends_like_hop(word):
        return word + "e"
    return word


def _step_1c(word: str) -> str:
    if word.endswith("y") and "v" in _shape(word[:-1]):
        return word[:-1] + "i"
    return word


def _steps_2_3(word: str) -> str:
    for pattern, table in _RULES_2_3:
        split = pattern.fullmatch(word)
        if split is not None and _measure(split[1]) > 0:
            word = split[1] + table[split[2]]
    return word


def _step_4(word: str) -> str:
    for pattern in _SUFFIXES_4:
        split = pattern.fullmatch(word)
        if split is not None and _measure(split[1]) > 1:
            word = split[1]
    return word


def _step_5(word: str) -> str:
    left = word.removesuffix("e")
    if _measure(left) > (1 if _ends_like_hop(left) else 0):
        word = left
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of a lower-case English word; one or two letters stay.

    >>> stem("relational"), stem("element")
    ('relat', 'elem')
    """
    if len(word) < 3:
        return word
    word = _step_1c(_step_1b(_step_1a(word)))
    return _step_5(_step_4(_steps_2_3(word)))
