"""Languages: a few short word lists of each, and which language a text is in.

Functions that need word lists take a language; ``None`` is one without lists.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, repeat
from typing import Any

from variegate.text.documents import Document

_ENOUGH = 100_000  # characters from the beginning that a language is detected from
_ENOUGH_WORDS = 15  # of a paragraph that its language is detected from
_LEAST_SHARE = 0.15  # of a text's words, that its language's common words have

_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS = {
    "greek": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "hebrew": re.compile("[\u0590-\u05ff]"),
    "arabic": re.compile("[\u0600-\u06ff\u0750-\u077f]"),
    "hindi": re.compile("[\u0900-\u097f]"),
    "latin": re.compile("[A-Za-z\u00c0-\u024f]"),
}
# Devanagari's vowel signs are not letters to Python: words are cut at spaces.
_PIECE = re.compile(r"[^\s\d.,;:!?()\[\]\"'«»“”„।|؟،؛–—-]+")


@dataclass(frozen=True)
class Language:
    """The word lists of a language for splitting and describing sentences.

    Attributes
    ----------
    name, code : ``"english"`` and its ISO 639-1 code ``"en"``
    pronouns : frozenset of str
        Forms of the personal pronouns, in lower case, without forms that are more often
        another word (Czech *je*, Hebrew *את*).
    function_words : the most common articles, prepositions, conjunctions, auxiliaries
    dates : names of months and weekdays, in lower case, in the forms dates use
    abbreviations : words whose full stop ends no sentence, without it
    right_to_left : bool
    """

    name: str
    code: str
    pronouns: frozenset[str]
    function_words: frozenset[str]
    dates: frozenset[str]
    abbreviations: frozenset[str]
    right_to_left: bool = False


def _read_toml(name: str) -> dict[str, Any]:
    """Read the tables of a TOML file of this package."""
    return tomllib.loads((files(__package__) / name).read_text(encoding="utf-8"))


def _make_language(
    name: str, code: str, right_to_left: bool = False, **of: str
) -> Language:
    """Return a language; ``of`` are its lists by name, as words divided by spaces."""
    lists = {field: frozenset(text.split()) for field, text in of.items()}
    return Language(name, code, **lists, right_to_left=right_to_left)


_TABLES = _read_toml("languages.toml")
LANGUAGES = {name: _make_language(name, **table) for name, table in _TABLES.items()}
_OTHERS = _read_toml("other_languages.toml")
# Common words of other languages: German must not be taken for English.
OTHER_WORDS: dict[str, frozenset[str]] = {
    name: frozenset(text.split()) for name, text in _OTHERS["words"].items()
}
_COMMON_WORDS = {
    **{one.name: one.function_words | one.pronouns for one in LANGUAGES.values()},
    **OTHER_WORDS,
}

_LANGUAGES_OF: dict[str, list[str]] = {}  # of each common word
for _name, _words in _COMMON_WORDS.items():
    for _word in _words:
        _LANGUAGES_OF.setdefault(_word, []).append(_name)


def as_language(name: str | Language | None) -> Language | None:
    """Return the language of a name or ISO 639-1 code; ``Language`` and None stay."""
    if name is None or isinstance(name, Language):
        return name
    wanted = name.strip().lower()
    for language in LANGUAGES.values():
        if wanted in (language.name, language.code):
            return language
    known = ", ".join(f"{entry.name} ({entry.code})" for entry in LANGUAGES.values())
    raise ValueError(
        f"unknown language {name!r}: use one of {known}, or None for any other language"
    )


def other_language(name: str) -> str | None:
    """Return the name, in ``other_languages.toml``, of a name or code, or None."""
    wanted, known = name.strip().lower(), _OTHERS["names"].items()
    return next((str(other) for code, other in known if wanted in (code, other)), None)


def _main_script(text: str) -> str | None:
    """Return the name of the script of half of a text's letters; None without one."""
    if text.isascii():
        return "latin" if _SCRIPTS["latin"].search(text) else None
    letters = sum(map(str.isalpha, text))
    counts = {name: len(found.findall(text)) for name, found in _SCRIPTS.items()}
    script = max(counts, key=lambda name: counts[name])
    return script if letters and counts[script] >= 0.5 * letters else None


def _language_shares(text: str) -> dict[str, float]:
    """Return by language the share of a text's words that are common in the language.

    Greek and Hebrew have a script of their own, and share 1.  The result is empty where
    no script of ``_SCRIPTS`` has half of the letters.
    """
    text = text[:_ENOUGH].lower()
    script = _main_script(text)
    if script is None:
        return {}
    if script in ("greek", "hebrew"):
        return {script: 1.0}
    pieces = (_PIECE if script == "hindi" else _WORD).findall(text)
    languages = map(_LANGUAGES_OF.get, pieces, repeat(()))
    counts = Counter(chain.from_iterable(languages))
    return {name: counts[name] / len(pieces) for name in _COMMON_WORDS}


def detect_language(text: str) -> str | None:
    """Return the name of the language of a text, from its first 100,000 characters.

    None if it has no word lists, or fewer than 15 % of the words are common ones.
    """
    shares = _language_shares(text)
    best = max(shares, key=lambda name: shares[name], default="")
    return best if best in LANGUAGES and shares[best] >= _LEAST_SHARE else None


def in_other_language(texts: Sequence[str]) -> list[bool]:
    """Return for each paragraph whether it is not in the document's main language.

    That is the one of most letters.  Paragraphs of fewer than 15 words, and those with
    common words of the main language too, count as being in it.
    """
    shares = [
        _language_shares(text) if len(text.split()) >= _ENOUGH_WORDS else {}
        for text in texts
    ]
    best = [max(one, key=lambda name: one[name], default="") for one in shares]
    sizes = Counter[str]()
    for text, name, share in zip(texts, best, shares, strict=True):
        if name and share[name] >= _LEAST_SHARE:
            sizes[name] += len(text)
    main = max(sizes, key=lambda name: sizes[name], default="")
    return [
        name in sizes
        and name != main
        and share[name] >= _LEAST_SHARE
        and share.get(main, 0.0) < 0.3 * share[name]
        for name, share in zip(best, shares, strict=True)
    ]


def language_of(documents: Sequence[Document], name: str | None) -> str | None:
    """Return ``name``, or the detected language if it is None; "none" gives None."""
    if name is None:
        return detect_language("\n".join(one.text for one in documents))
    return None if name.strip().lower() == "none" else name
