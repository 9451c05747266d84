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

# Suffixes of steps 2 to 4 and their replacements, which step 4 has none of.
_STEP_2 = """ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al
entli:ent eli:e ousli:ous ization:ize ation:ate ator:ate alism:al iveness:ive
fulness:ful ousness:ous aliti:al iviti:ive biliti:ble logi:log"""
_STEP_3 = "icate:ic ative: alize:al iciti:ic ical:ic ful: ness:"
_STEP_4 = """al: ance: ence: er: ic: able: ible: ant: ement: ou: ism: ate: iti: ous:
ive: ize:"""


def _rule(suffixes: str, measure: int) -> tuple[re.Pattern[str], dict[str, str], int]:
    """Return a pattern, replacements, and the measure that the stem must exceed."""
    replacements = dict(suffix.split(":") for suffix in suffixes.split())
    # The lazy stem makes the longest suffix win.
    return re.compile(rf"(.*?)({'|'.join(replacements)})"), replacements, measure


_RULES = [
    *(_rule(suffixes, 0) for suffixes in (_STEP_2, _STEP_3)),
    *(_rule(suffixes, 1) for suffixes in (_STEP_4, "ment:", "ent:", "(?<=[st])ion:")),
]


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


def _without_ed_ing(word: str) -> str:
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


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of a lower-case English word; one or two letters stay.

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
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    for pattern, replacements, measure in _RULES:
        split = pattern.fullmatch(word)
        if split is not None and _measure(split[1]) > measure:
            word = split[1] + replacements.get(split[2], "")
    left = word.removesuffix("e")
    if _measure(left) > (1 if _ends_like_hop(left) else 0):
        word = left
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word
